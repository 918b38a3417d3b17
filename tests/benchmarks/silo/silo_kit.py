"""One episode of a SILO-Bench task with scripted agents, without an engine."""

import random
from typing import Any

from harness.api import Case, Outcome, Policy, Turn
from harness.config import project
from harness.runtime.steps import drive
from tests.helpers import shipped

BUILTIN = project.builtin()
SEGMENTED = {"prefix_sum", "life_game_1d", "pipeline_hash"}
TASKS = [name.removeprefix("silo/") for name in shipped.plugins("tasks", "silo/")]


class Played:
    """What came of it: the grade, the facts, and numbers that several tests want."""

    def __init__(self, case: Case, outcome: Outcome, grade: dict[str, float | None]) -> None:
        self.case, self.facts, self.grade = case, outcome.facts, grade
        self.outcome = outcome

    @property
    def flags(self) -> set[str]:
        return {name for name in ("premature", "consensus", "computation", "timeout") if self.grade[name]}

    @property
    def reads(self) -> int:
        return sum(sum(readers.values()) for readers in (self.facts["reads"] or {}).values())


def play(
    task: str, channel: str, agents: int, policy: str = "silo/oracle", seed: int = 0, domain: str = "paper",
    rounds: int = 100, calls: int = 1, whole: bool = False, inbox: str | None = None, **parameters: Any,
) -> Played:  # fmt: skip
    """`parameters` are the policy's."""
    result = BUILTIN.load("tasks", f"silo/{task}")(agents=agents, domain=domain, whole=whole)
    on = BUILTIN.load("channels", channel)(**({"inbox": inbox} if inbox else {}))
    protocol = BUILTIN.load("protocols", "action_rounds")(channel=on, max_rounds=rounds, calls_per_round=calls)
    case = next(iter(result.cases(1, seed)))
    players: dict[str, Policy] = {agent: BUILTIN.load("policies", policy)(**parameters) for agent in case.agents}

    def answer(turn: Turn) -> Any:
        return players[turn.agent].choose(turn, random.Random(0))

    played = drive(protocol, result, case, answer)
    return Played(case, played.outcome, dict(result.grade(case, played.outcome)))
