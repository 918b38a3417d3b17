"""One vocabulary for `generation_kwargs`, whichever engine reads them.

The words are those of vLLM's `SamplingParams` and of the OpenAI API; the ones a person brings from Hugging Face or
lm-eval (`max_gen_toks`, `until`, `do_sample`, …) mean the same and are turned into them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from harness.api import Range
from harness.api.errors import SetupError, near

SYNONYMS = {
    "max_gen_toks": "max_tokens",
    "max_new_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "until": "stop",
    "stop_sequences": "stop",
    "stop_strings": "stop",
}
"""Words of other tools → ours."""

_NUMBERS: dict[str, tuple[type, Range]] = {
    "temperature": (float, Range(ge=0)),
    "top_p": (float, Range(gt=0, le=1)),
    "min_p": (float, Range(ge=0, le=1)),
    "presence_penalty": (float, Range(ge=-2, le=2)),
    "frequency_penalty": (float, Range(ge=-2, le=2)),
    "repetition_penalty": (float, Range(gt=0)),
    "top_k": (int, Range(ge=-1)),
    "max_tokens": (int, Range(ge=1)),
    "min_tokens": (int, Range(ge=0)),
}
_OTHERS = {
    "stop", "stop_token_ids", "ignore_eos", "bad_words", "logit_bias", "allowed_token_ids",
    "include_stop_str_in_output",
}  # fmt: skip
WORDS = frozenset(_NUMBERS) | _OTHERS
"""The words that every engine reads."""


def normalize(sampling: Mapping[str, Any]) -> dict[str, Any]:
    """The sampling words in our vocabulary, checked; None means "as if not there" and is left out.

    `stop` becomes a list. `do_sample: false` is `temperature: 0`, whatever else is there (as in lm-eval).

    Raises:
        SetupError: for an unknown word, a value of the wrong type or out of bounds, or two words for one thing.
    """
    values: dict[str, Any] = {}
    names: dict[str, str] = {}
    greedy = False
    for name, value in sampling.items():
        if name == "do_sample":
            if not isinstance(value, bool):
                raise _mistake(f"do_sample must be true or false, not {value!r}")
            greedy = not value
            continue
        word = SYNONYMS.get(name, name)
        if word not in WORDS:
            raise _mistake(f"unknown word {name!r}", _advice(name))
        if value is None:
            continue
        value = _stops(name, value) if word == "stop" else _number(name, word, value) if word in _NUMBERS else value
        if values.get(word, value) != value:
            raise _mistake(f"{names[word]!r} and {name!r} mean the same but differ: keep one")
        values[word], names[word] = value, name
    return values | {"temperature": 0.0} if greedy else values


def _stops(name: str, value: Any) -> list[str]:
    stops = [value] if isinstance(value, str) else value
    if not isinstance(stops, list | tuple) or not all(isinstance(s, str) and s for s in stops):
        raise _mistake(f"{name} must be a string or a list of strings, none empty: {value!r}")
    return list(stops)


def _number(name: str, word: str, value: Any) -> float:
    """The value in its one type and within its bounds."""
    kind, bound = _NUMBERS[word]
    if isinstance(value, float) and not math.isfinite(value):
        raise _mistake(f"{name} must be finite, not {value!r}")
    if isinstance(value, bool) or not isinstance(value, int | float) or (kind is int and value % 1 != 0):
        raise _mistake(f"{name} must be {'a whole number' if kind is int else 'a number'}, not {value!r}")
    low = value >= bound.ge if bound.ge is not None else bound.gt is None or value > bound.gt
    if not (low and (bound.le is None or value <= bound.le)):
        least = f"at least {bound.ge:g}" if bound.ge is not None else f"above {bound.gt:g}"
        most = f" and at most {bound.le:g}" if bound.le is not None else ""
        raise _mistake(f"{name} must be {least}{most}, not {value!r}")
    return int(value) if kind is int else float(value)


def _mistake(message: str, hint: str | None = None) -> SetupError:
    return SetupError(f"generation_kwargs: {message}", hint=hint)


def _advice(name: str) -> str:
    if name == "seed":
        return "The seed of every call is derived from the run's seed: say --seed or `seed:` in the spec."
    if name in {"n", "best_of", "num_return_sequences"}:
        return "A call has one answer; `repeats:` in the spec plays every case several times."
    return near(name, WORDS | set(SYNONYMS) | {"do_sample"})
