"""What no model gives: signs of invented replies. They prove nothing, and are said as what they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from harness.api import Completion, Move

MIN_CALLS: Final = 20
"""Replies from which on shares say something."""
_LONG: Final = 200
"""Characters of a reply that two calls do not give by chance."""
_CHARS: Final = 30.0
"""The most characters of a token, on average over a reply; longer than in any known tokenizer and language."""
_SPEED: Final = 20_000.0
"""Output tokens a second of one reply, above which no model of today writes."""


def suspicions(meta: Mapping[str, Any], moves: Iterable[Move]) -> Iterator[str]:
    """A line for each sign.

    Args:
        meta: the content of run.json.
        moves: all moves of the run.
    """
    calls = [call for move in moves for call in move.calls if call.likelihoods is None]
    if len(calls) < MIN_CALLS:
        return
    sampling = meta.get("generation_kwargs")
    temperature = sampling.get("temperature") if isinstance(sampling, Mapping) else None
    if isinstance(temperature, int | float) and temperature >= 0.5:
        long = Counter(call.text for call in calls if len(call.text) >= _LONG)
        again = sum(count for count in long.values() if count > 1)
        if again > 0.02 * len(calls):
            share = f"{again:,} of {len(calls):,} replies"
            yield f"{share} are long and equal to another one, at temperature {temperature:g}"
    yield from _line(calls, "have impossible numbers of tokens", _impossible_tokens)
    yield from _line(calls, f"were written faster than {_SPEED:,.0f} tokens a second", _impossible_speed)
    limit = sampling.get("max_tokens") if isinstance(sampling, Mapping) else None
    if isinstance(limit, int):
        yield from _line(
            calls, f"are longer than max_tokens ({limit:,})", lambda call: (call.output_tokens or 0) > limit
        )


def _line(calls: list[Completion], what: str, is_odd: Callable[[Completion], bool]) -> Iterator[str]:
    if odd := sum(map(bool, map(is_odd, calls))):
        yield f"{odd:,} of {len(calls):,} replies {what}"


def _impossible_tokens(call: Completion) -> bool:
    written = len(call.text) + len(call.reasoning or "")
    tokens = call.output_tokens
    if tokens is None or call.tool_calls:
        return False
    return tokens < 0 or written > _CHARS * max(tokens, 1) or (call.input_tokens or 1) <= 0


def _impossible_speed(call: Completion) -> bool:
    return bool(
        call.latency and call.output_tokens and call.output_tokens > 100 and call.output_tokens / call.latency > _SPEED
    )
