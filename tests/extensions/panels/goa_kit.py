"""Graph-of-Agents by a script: what every node says is a number that tells who said it when."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.api import Turn
from harness.runtime.steps import Drive, drive
from tests.extensions.datasets.documents_kit import BUILTIN, cases, task_of

TASK = task_of("arithmetic", size=1, terms=2)
CASE = cases(TASK)[0]
_GOA = BUILTIN.load("protocols", "graph_of_agents")
_HOME = _GOA.__module__.rpartition(".")[0]
graph: Any = importlib.import_module(f"{_HOME}._graph")
replies: Any = importlib.import_module(f"{_HOME}._graph_replies")

FIRST, FORWARD, BACKWARD, AGAIN, POOLED = 10, 20, 30, 50, 99
"""Node 2 says 12 first, 22 on the way down, 32 on the way up; 50, 51, … is what the general agent says for others."""


def goa(**parameters: Any) -> Any:
    return _GOA(**{"agents": 3, **parameters})


def sure(answer: Any, confidence: float | None = 0.9) -> dict[str, Any]:
    return {"answer": answer, "confidence": confidence, "malformed": False}


def judgements(*shares: float) -> list[dict[int, float]]:
    """What judges say so that better nodes, by `shares`, rank higher: each one's share among the others."""
    total = sum(shares)
    return [{j: share / (total - shares[i]) for j, share in enumerate(shares) if j != i} for i in range(len(shares))]


@dataclass
class Script:
    """Plays every agent. `rows`: judge → slot → score, or None for no score. `confidence`: slot → what it states.
    `unreadable`: turns without a readable reply; with "pick", `picks` says which nodes there are all the same."""

    picks: Sequence[int] = (0, 1, 2)
    rows: Sequence[Mapping[int, float] | None] = field(default_factory=lambda: judgements(0.6, 0.3, 0.1))
    confidence: Mapping[int, float | None] = field(default_factory=dict)
    level: int | None = None
    unreadable: frozenset[str] = frozenset()
    asked: dict[tuple[str, str], int] = field(default_factory=dict)
    again: int = 0

    def __call__(self, turn: Turn) -> Any:
        times = self.asked.get((turn.agent, turn.name), 0)
        self.asked[turn.agent, turn.name] = times + 1
        if turn.name in self.unreadable:
            return None
        if turn.name == "pick":
            return [*self.picks]
        if turn.name == "difficulty":
            return self.level
        if turn.name == "pool":
            return sure(POOLED)
        own = [slot for slot, pick in enumerate(self.picks) if f"Agent-{pick}" == turn.agent]
        if turn.name == "answer" and times >= len(own):
            self.again += 1
            return sure(AGAIN + self.again - 1)
        slot = own[times % len(own)]
        if turn.name == "answer":
            return sure(FIRST + slot, self.confidence.get(slot, 0.9))
        if turn.name == "judge":
            row = self.rows[slot]
            return None if row is None else {str(other + 1): score for other, score in row.items()}
        return sure((FORWARD if turn.name == "forward" else BACKWARD) + slot)


def played(script: Script | None = None, **parameters: Any) -> Drive:
    return drive(goa(**parameters), TASK, CASE, script or Script())


def facts_of(drive: Drive) -> Mapping[str, Any]:
    return drive.outcome.facts


def names(drive: Drive) -> list[str]:
    return [turn.name for turn in drive.turns()]


def turn_of(drive: Drive, name: str, agent: str) -> Turn:
    [result] = [turn for turn in drive.turns() if (turn.name, turn.agent) == (name, agent)]
    return result


def number(text: str) -> int:
    return int(text.split("\n")[0])


def heard(turn: Turn) -> dict[int, int]:
    """Slot → the number that a turn shows of it."""
    return {other["number"] - 1: number(other["text"]) for other in turn.observation["others"]}


def labels(turn: Turn) -> dict[int, str | None]:
    return {other["number"] - 1: other["relevance"] for other in turn.observation["others"]}
