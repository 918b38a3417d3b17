"""Values between the package and JSON: what grading gives, what scored turns give, what generation takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.api import Action
from harness.engines.sampling import normalize


def plain(value: Any) -> Any:
    """A value as JSON keeps it: NumPy's numbers and arrays, tuples and truth values as numbers and lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, (list, tuple)):
        return [item if isinstance(item, bool) else plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return value


def pairs_of(action: Action) -> list[tuple[float, bool]] | None:
    """An action of a scored turn as the package's pairs; None for anything else."""
    if not isinstance(action, (list, tuple)) or not action:
        return None
    for pair in action:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or isinstance(pair[0], bool):
            return None
        if not isinstance(pair[0], (int, float)) or not isinstance(pair[1], (bool, int)):
            return None
    return [(float(total), bool(greedy)) for total, greedy in action]


def sampling_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A generation's keyword arguments with the package's default length, without empty stop texts and lone beams.

    Raises:
        SetupError: engines know no such argument.
    """
    from lm_eval.defaults import DEFAULT_MAX_GEN_TOKS

    sampling = {name: value for name, value in arguments.items() if (name, value) != ("num_beams", 1)}
    until = sampling.get("until")
    sampling["until"] = [stop for stop in ([until] if isinstance(until, str) else until or []) if stop]
    if not any(word in sampling for word in ("max_gen_toks", "max_tokens", "max_new_tokens", "max_completion_tokens")):
        sampling["max_gen_toks"] = DEFAULT_MAX_GEN_TOKS
    normalize(sampling)
    return sampling
