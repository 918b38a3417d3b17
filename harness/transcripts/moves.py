"""An episode as its journal alone has it: moves and replies, no prompts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.api import Move
from harness.storage import outcome_of
from harness.transcripts.view_api import RecordedTurn, Transcript


def turns_of(batches: Sequence[Sequence[Move]], played: Sequence[RecordedTurn] = ()) -> list[RecordedTurn]:
    """All moves as turns, a round per batch; with their prompts as far as `played` has them."""
    known = {(turn.agent, turn.index): turn for turn in played if turn.move is not None}
    counts: Counter[str] = Counter()
    result: list[RecordedTurn] = []
    for number, batch in enumerate(batches):
        for move in batch:
            index = counts[move.agent]
            counts[move.agent] += 1
            bare = RecordedTurn(len(result), number, move.agent, index, move.turn, move=move)
            result.append(replace(known.get((move.agent, index), bare), number=len(result), round=number))
    return result


def from_journal(
    episode: str, batches: Sequence[Sequence[Move]], end: Mapping[str, Any] | None, problem: str | None
) -> Transcript:
    """The transcript of an episode without case and prompts.

    Args:
        episode: its id.
        batches: its moves in the order of the protocol.
        end: its end line; None while it is not finished.
        problem: what the transcript says about itself.
    """
    line, turns = end or {}, tuple(turns_of(batches))
    return Transcript(
        id=episode,
        condition=str(line.get("condition", "")),
        case_id=str(line.get("case", "")),
        repeat=int(line.get("repeat", 0)),
        labels=dict(line.get("labels") or {}),
        case=None,
        agents=tuple(dict.fromkeys(turn.agent for turn in turns)),
        roles=dict(line.get("roles") or {}),
        models={},
        policies={},
        turns=turns,
        outcome=outcome_of(line.get("outcome")),
        grade=dict(line.get("grade") or {}),
        numbers=dict(line.get("numbers") or {}),
        error=line.get("error"),
        finished=end is not None,
        problem=problem,
    )
