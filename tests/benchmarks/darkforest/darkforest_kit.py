"""DarkForest's parts, opinions of the tests' own making, and a panel whose members say given texts."""

from __future__ import annotations

import importlib
import random
from collections.abc import Mapping, Sequence
from typing import Any

from harness.api import Action, Case, Completion, Move, Outcome, Task, Turn
from harness.config import project
from harness.extensions.datasets import DatasetTask
from harness.extensions.panels.panels import Opinion

BUILTIN = project.builtin()
DarkForest: Any = BUILTIN.load("protocols", "darkforest")
_HOME = DarkForest.__module__.rpartition(".")[0]
belief: Any = importlib.import_module(f"{_HOME}._darkforest.belief")
calibration: Any = importlib.import_module(f"{_HOME}._darkforest.calibration")
disclosure: Any = importlib.import_module(f"{_HOME}._darkforest.disclosure")
excerpts: Any = importlib.import_module(f"{_HOME}._darkforest.excerpt")
rules: Any = importlib.import_module(f"{_HOME}._darkforest.rules")

A, B, C = "Agent-0", "Agent-1", "Agent-2"


def opinion(agent: str, answer: str | None, confidence: float | None = None, malformed: bool = False) -> Any:
    return Opinion(agent, answer, answer, confidence, malformed, f"I think.\nThe answer is {answer}")


def opinions(*answers: str | None) -> list[Any]:
    return [opinion(f"Agent-{place}", answer) for place, answer in enumerate(answers)]


def question(form: str = "letter", **parameters: Any) -> tuple[DatasetTask, Case]:
    """A question whose right answer is B, with the subject as a label."""
    result: Any = BUILTIN.load("tasks", "dataset_qa")(
        data_files="none.jsonl",
        doc_to_text="{{q}}",
        doc_to_target="B",
        answer={"form": form, **({"options": 4} if form == "letter" else {})},
        **parameters,
    )
    calls = {"question": "Which one?", "choices": ["ant", "bee", "cat", "dog"]}
    return result, Case("q", ("Agent-0",), calls, target={"answers": ["B"]}, labels={"subject": "bees"})


class Played:
    """An episode: batches of (turn, move), and what came of it."""

    def __init__(self, batches: list[list[tuple[Turn, Move]]], outcome: Outcome) -> None:
        self.batches, self.outcome = batches, outcome

    @property
    def facts(self) -> Mapping[str, Any]:
        return self.outcome.facts

    @property
    def evidence(self) -> str:
        """What the coordinator was shown."""
        observation: str = self.batches[1][0][0].observation["evidence"]
        return observation


def moved(turn: Turn, said: Any) -> Move:
    """What an agent's text comes to; an action in a one-tuple is a policy's, an exception's text a failed call."""
    if isinstance(said, tuple):
        return Move(turn.agent, turn.name, said[0])
    if isinstance(said, Exception):
        return Move(turn.agent, turn.name, None, str(said), "request")
    parsed = turn.reply.parse(said)
    kind = "parse" if parsed.error else None
    return Move(turn.agent, turn.name, parsed.action, parsed.error, kind, (Completion(said),))


def converse(protocol: Any, said: Mapping[str, Any], task: Task | None = None, case: Case | None = None) -> Played:
    """Play an episode in which every agent says its text; who is asked in a second batch says `Coordinator`'s."""
    if task is None or case is None:
        task, case = question()
    game = protocol.play(task, case, protocol.possible_agents(case), random.Random(0))
    batches: list[list[tuple[Turn, Move]]] = []
    batch = next(game)
    try:
        while True:
            moves = [moved(t, said["Coordinator" if t.name == "coordinate" else t.agent]) for t in batch]
            batches.append(list(zip(batch, moves, strict=True)))
            batch = game.send(moves)
    except StopIteration as stop:
        return Played(batches, stop.value)


def letters(*given: str | None, coordinator: str | None = None) -> dict[str, Any]:
    """Agents that say these letters, or nothing that can be read."""
    mapping = {f"Agent-{i}": "no idea" if x is None else f"The answer is ({x})" for i, x in enumerate(given)}
    return mapping | {"Coordinator": "no idea" if coordinator is None else f"The answer is ({coordinator})"}


def tally(correct: int, valid: int, every: int | None = None) -> dict[str, int]:
    return {"correct": correct, "valid": valid, "all": valid if every is None else every}


def counts(
    agents: Mapping[str, dict[str, int]], patterns: Sequence[tuple[Sequence[str], int, int]] = (), **more: Action
) -> dict[str, Any]:
    """A calibration's JSON; patterns are (agents, right, count)."""
    listed = [{"agents": list(agents), "correct": right, "count": count} for agents, right, count in patterns]
    kinds = {kind: tally(0, 0) for kind in ("unstated", "malformed", "formed")}
    return {"agents": list(agents), "episodes": 10, "tallies": dict(agents), "patterns": listed, **kinds, **more}
