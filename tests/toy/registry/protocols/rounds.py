"""Ask everybody at once, several times; everybody sees what was said last."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Annotated

from harness.api import Case, Outcome, Play, Protocol, Range, Task, Turn, plugin


@plugin
class Rounds(Protocol):
    """Ask everybody at once, several times."""

    facts = ("rounds",)

    rounds: Annotated[int, Range(ge=1)] = 2
    parse_retries: Annotated[int, Range(ge=0)] = 1

    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        heard: dict[str, str | None] = {}
        draw = rng.random()
        for r in range(self.rounds):
            moves = yield [
                Turn(
                    s,
                    "say",
                    {"round": r, "heard": dict(heard), "draw": draw},
                    task.reply(case, s),
                    task.context(case, s),
                    self.parse_retries,
                )
                for s in agents
            ]
            heard = {m.agent: m.action for m in moves}
        return Outcome(heard, facts={"rounds": self.rounds})
