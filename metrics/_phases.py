"""Moves and tokens of an episode's last phase, or of all its phases. Most episodes have one phase."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Literal

from harness.api import Completion, Episode, Move

Phase = Literal["final", "all"]
"""The phases that a number covers: the last one, whose results count, or both."""


def facts(episode: Episode) -> Mapping[str, Any]:
    """The protocol's facts."""
    return episode.outcome.facts if episode.outcome else {}


def moves(episode: Episode, phase: Phase) -> Iterator[Move]:
    """Yield the moves of the last phase, or of both."""
    start = int(facts(episode).get("final_from") or 0) if phase == "final" else 0
    return (move for batch in islice(episode.batches, start, None) for move in batch)


def calls(episode: Episode, phase: Phase) -> Iterator[Completion]:
    """Yield the model calls of the last phase, or of both, for which the engine reports tokens."""
    for move in moves(episode, phase):
        for call in move.calls:
            if call.input_tokens is not None and call.output_tokens is not None:
                yield call


def total_tokens(episode: Episode, phase: Phase) -> int:
    """Return T_total: input and output tokens of all calls. Each call counts its whole history again (Section 3.4)."""
    return sum(move.used("input_tokens", "output_tokens") or 0 for move in moves(episode, phase))


def characters_per_token(episode: Episode) -> float | None:
    """Return the mean characters per token of the episode's replies and reasoning; None if no tokens are reported.

    Reasoning that an engine counts but does not return has tokens and no characters, so it is left out.
    """
    tokens = characters = 0
    for call in calls(episode, "all"):
        hidden = (call.reasoning_tokens or 0) if call.reasoning is None else 0
        tokens += max(0, (call.output_tokens or 0) - hidden)
        characters += len(call.shown) + len(call.reasoning or "")
    return characters / tokens if tokens and characters else None
