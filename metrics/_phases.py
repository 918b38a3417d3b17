"""The moves of an episode's last phase or of all, and their tokens; episodes of one phase have only the last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Literal

from harness.api import Completion, Episode, Move

Phase = Literal["final", "all"]
"""Of which phases of an episode a number tells: of the last, whose results count, or of both together."""


def facts(episode: Episode) -> Mapping[str, Any]:
    """The protocol's facts."""
    return episode.outcome.facts if episode.outcome else {}


def moves(episode: Episode, phase: Phase) -> Iterator[Move]:
    """The moves of the last phase, or of both."""
    start = int(facts(episode).get("final_from") or 0) if phase == "final" else 0
    return (move for batch in islice(episode.batches, start, None) for move in batch)


def calls(episode: Episode, phase: Phase) -> Iterator[Completion]:
    """The model calls of the last phase, or of both, whose tokens are known."""
    for move in moves(episode, phase):
        for call in move.calls:
            if call.input_tokens is not None and call.output_tokens is not None:
                yield call


def total_tokens(episode: Episode, phase: Phase) -> int:
    """T_total: input and output tokens of all calls, the history counted anew with each (Section 3.4)."""
    return sum((call.input_tokens or 0) + (call.output_tokens or 0) for call in calls(episode, phase))


def characters_per_token(episode: Episode) -> float | None:
    """Characters that a token of the episode's own replies and reasoning has; None where tokens are not reported.

    Reasoning that an engine counts and does not show has tokens and no characters: it is left out.
    """
    tokens = characters = 0
    for call in calls(episode, "all"):
        hidden = (call.reasoning_tokens or 0) if call.reasoning is None else 0
        tokens += max(0, (call.output_tokens or 0) - hidden)
        characters += len(call.text) + len(call.reasoning or "")
    return characters / tokens if tokens and characters else None
