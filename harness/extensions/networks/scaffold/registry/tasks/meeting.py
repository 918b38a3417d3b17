"""Find the one day on which all people are free."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated

from harness.api import Case, Facts, Outcome, Range, Reply, plugin
from harness.extensions.networks import Network, NetworkTask, adjacency_of, complete
from harness.replies import Choice

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
NAMES = ("Ada", "Bo", "Cem", "Dina", "Eli", "Fay", "Gus", "Hana")


@plugin
class Meeting(NetworkTask):
    """People with different calendars must name the one day on which all of them are free.

    Attributes:
        people: how many.
        days: the week they choose from.
        cases_made: how many different calendars there are.
    """

    problem = "meeting"
    grades = ("solved", "consent")

    people: Annotated[int, Range(ge=2, le=len(NAMES))] = 3
    days: Annotated[int, Range(ge=2, le=len(DAYS))] = 5
    cases_made: Annotated[int, Range(ge=1)] = 10

    def networks(self, seed: int) -> Iterable[Network]:
        """Everyone can write to everyone; one network for each of the calendars."""
        people = NAMES[: self.people]
        everyone = adjacency_of(people, complete(len(people), seed))
        return (Network(f"calendar{i}", "complete", i, everyone) for i in range(self.cases_made))

    def case(self, network: Network, seed: int) -> Case:
        """The same calendars for the same seed."""
        rng = random.Random(f"{seed}/{network.sample}")
        case, week = super().case(network, seed), DAYS[: self.days]
        shared = rng.choice(week)
        # Every other day is taken by at least one person, so that the shared day is the only answer.
        busy = {day: {rng.choice(case.agents)} for day in week if day != shared}
        free = {s: [d for d in week if d == shared or (s not in busy[d] and rng.random() < 0.7)] for s in case.agents}
        return replace(case, private={agent: {"free": days} for agent, days in free.items()}, target=shared)

    def context(self, case: Case, agent: str) -> Facts:
        """Own name, own free days, and whom one can write to. Not the answer."""
        return {"name": agent, "free": case.private[agent]["free"], "people": len(case.agents)}

    def reply(self, case: Case, agent: str) -> Reply:
        """The final answer is the name of a day."""
        return Choice(DAYS[: self.days], marker="### Final Answer ###")

    def grade(self, case: Case, outcome: Outcome) -> dict[str, float | None]:
        """`solved`: all name the right day. `consent`: the share that names the most popular day."""
        said = [str(outcome.answers.get(agent)) for agent in case.agents]
        valid = [day for day in said if day in DAYS]
        most = max((valid.count(day) for day in set(valid)), default=0)
        return {"solved": float(all(day == case.target for day in said)), "consent": most / len(said)}
