"""samples.jsonl: every episode's conversations, message by message, for people to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from harness import storage
from harness.api import Case, Episode
from harness.runtime.players import ModelPlayer, Player


def sample(episode: Episode, case: Case, players: Mapping[str, Player]) -> dict[str, Any]:
    """One line of it: the case without its target, and what was said in every seat."""
    turns: Counter[str] = Counter()
    moves = []
    for b, batch in enumerate(episode.batches):
        moves.append([storage.move_line(episode.id, b, p, turns[move.seat], move) for p, move in enumerate(batch)])
        turns.update(move.seat for move in batch)
    return {
        "episode": episode.id,
        "labels": dict(episode.labels),
        "case": {"public": dict(case.public), "topology": case.topology, "roles": dict(case.roles)},
        "threads": {seat: p.thread.messages for seat, p in players.items() if isinstance(p, ModelPlayer)},
        "moves": moves,
        "outcome": storage.outcome_line(episode.outcome),
        "grade": dict(episode.grade),
        "error": episode.error,
    }
