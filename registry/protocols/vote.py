"""All agents answer independently, then votes are counted: the baseline of every exchange of answers."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from typing import Annotated, Literal

from harness.api import Case, Play, Range, Task, plugin
from harness.authoring.panels import Opinion, Panel, Ties, majority
from harness.errors import PluginError


@plugin
class Vote(Panel):
    """All agents answer independently; the most frequent answer is the group's.

    One model in all agents is self-consistency (Wang et al., 2022), several are a majority vote of models. Turns:
    `answer`, each in a new conversation; the observation is empty, the context the task's.

    Attributes:
        calls: how many answers there are in all: the agents answer in turn, each again and again; None: each once. For
            a vote with as many calls as another method takes.
        weights: agent → weight; None: all the same. An agent that is not named has weight 1; 0 takes its vote away.
        ties: what wins of several leading answers: the one given "first" in agents' order, one drawn by lot ("random"),
            or "none".
        invalid: what an answer that cannot be read counts: "ignored", or "vote": all of them together are one more
            answer, which wins as no answer if it leads.
    """

    calls: Annotated[int, Range(ge=1, le=100_000)] | None = None
    weights: dict[str, float] | None = None
    ties: Ties = "first"
    invalid: Literal["ignored", "vote"] = "ignored"

    facts = (*Panel.facts, "votes", "tied", "unanimous")

    def __post_init__(self) -> None:
        for agent, weight in (self.weights or {}).items():
            if not 0 <= weight < float("inf"):
                raise PluginError(f"the weight of {agent} is {weight}; it must be 0 or more", at=("weights", agent))

    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Yields one batch, or as many as `calls` takes."""
        members = self.members(case)
        ballots: list[Opinion] = []
        for number, voters in enumerate(self._voters(members)):
            moves = yield [self.ask(task, case, agent, fresh=number > 0) for agent in voters]
            ballots += [self.read(task, case, move) for move in moves]
        weights = [(self.weights or {}).get(ballot.agent, 1.0) for ballot in ballots]
        count = majority(task, case, [ballot.answer for ballot in ballots], weights, self.ties, rng)
        lost = sum(weight for ballot, weight in zip(ballots, weights, strict=True) if ballot.answer is None)
        silent = self.invalid == "vote" and lost > max(count.weights.values(), default=0.0)
        exit = "unread" if silent and count.weights else count.exit
        everybody = all(ballot.answer is not None for ballot in ballots)
        return self.outcome(
            [ballots],
            None if silent else count.answer,
            exit=exit,
            votes=count.weights,
            tied=count.tied,
            unanimous=len(count.weights) == 1 and everybody,
        )

    def members(self, case: Case) -> tuple[str, ...]:
        """The panel. Raises `PluginError` if weights name an agent that does not exist."""
        found = super().members(case)
        strangers = [agent for agent in self.weights or () if agent not in found]
        if strangers:
            message = f"weights names {strangers[0]!r}, who is no agent of this case"
            raise PluginError(message, hint=f"There are: {', '.join(found)}.", at=("weights",))
        return found

    def _voters(self, members: Sequence[str]) -> Iterator[Sequence[str]]:
        """Who answers, batch by batch."""
        left = self.calls or len(members)
        while left > 0:
            yield tuple(islice(cycle(members), min(left, len(members))))
            left -= len(members)
