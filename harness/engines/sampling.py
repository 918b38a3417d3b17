"""One vocabulary for `generation_kwargs`, whichever engine reads them.

The words are those of vLLM's `SamplingParams` and of the OpenAI API; the ones a person brings from Hugging Face or
lm-eval (`max_gen_toks`, `until`, `do_sample`, …) mean the same and are turned into them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.api import Range
from harness.errors import SetupError, near

SYNONYMS = {
    "max_gen_toks": "max_tokens",
    "max_new_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "until": "stop",
    "stop_sequences": "stop",
    "stop_strings": "stop",
}
"""Words of other tools → ours."""

_BOUNDS = {
    "temperature": Range(ge=0),
    "top_p": Range(gt=0, le=1),
    "min_p": Range(ge=0, le=1),
    "presence_penalty": Range(ge=-2, le=2),
    "frequency_penalty": Range(ge=-2, le=2),
    "repetition_penalty": Range(gt=0),
    "top_k": Range(ge=-1),
    "max_tokens": Range(ge=1),
    "min_tokens": Range(ge=0),
}
_WHOLE = {"top_k", "max_tokens", "min_tokens"}
_OTHERS = {
    "stop", "stop_token_ids", "ignore_eos", "bad_words", "logit_bias", "allowed_token_ids",
    "include_stop_str_in_output",
}  # fmt: skip
WORDS = frozenset(_BOUNDS) | _OTHERS
"""The words every engine may be sent."""


def normalise(sampling: Mapping[str, Any]) -> dict[str, Any]:
    """The sampling words in our vocabulary, checked; None means "as if not said" and is left out.

    `stop` becomes a list. `do_sample: false` is `temperature: 0`, whatever else was said (as in lm-eval).

    Raises:
        SetupError: for an unknown word, a value of the wrong type or out of bounds, or two words for one thing.
    """
    made: dict[str, Any] = {}
    came: dict[str, str] = {}
    greedy = False
    for given, value in sampling.items():
        if given == "do_sample":
            greedy = not _truth(value)
            continue
        word = SYNONYMS.get(given, given)
        if word not in WORDS:
            raise SetupError(f"generation_kwargs: unknown word {given!r}", hint=_advice(given))
        if value is None:
            continue
        value = _checked(given, word, value)
        if made.get(word, value) != value:
            raise SetupError(f"generation_kwargs: {came[word]!r} and {given!r} mean the same but differ: keep one")
        made[word], came[word] = value, given
    if greedy:
        made["temperature"] = 0.0
    return made


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise SetupError(f"generation_kwargs: do_sample must be true or false, not {value!r}")
    return value


def _checked(given: str, word: str, value: Any) -> Any:
    """The value in its one type and within its bounds."""
    if word == "stop":
        stops = [value] if isinstance(value, str) else value
        if not isinstance(stops, list | tuple) or not all(isinstance(s, str) and s for s in stops):
            raise SetupError(f"generation_kwargs: {given} must be a string or a list of strings, none empty: {value!r}")
        return list(stops)
    if word not in _BOUNDS:
        return value
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or (word in _WHOLE and isinstance(value, float) and not value.is_integer())
    ):
        kind = "a whole number" if word in _WHOLE else "a number"
        raise SetupError(f"generation_kwargs: {given} must be {kind}, not {value!r}")
    bound = _BOUNDS[word]
    inside = (
        (bound.ge is None or value >= bound.ge)
        and (bound.gt is None or value > bound.gt)
        and (bound.le is None or value <= bound.le)
    )
    if not inside:
        low = f"at least {bound.ge:g}" if bound.ge is not None else f"above {bound.gt:g}"
        high = f" and at most {bound.le:g}" if bound.le is not None else ""
        raise SetupError(f"generation_kwargs: {given} must be {low}{high}, not {value!r}")
    return int(value) if word in _WHOLE else float(value)


def _advice(given: str) -> str:
    if given == "seed":
        return "The seed of every call is derived from the run's seed: say --seed or `seed:` in the spec."
    if given in {"n", "best_of", "num_return_sequences"}:
        return "A call has one answer; `repeats:` in the spec plays every case several times."
    return near(given, WORDS | set(SYNONYMS) | {"do_sample"})
