"""All agents answer independently, then vote: the baseline of every exchange of answers."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from typing import Annotated, Literal

from harness.api import Case, Play, PluginError, Range, Task, plugin
from harness.extensions.panels.panels import Opinion, Panel, Ties, majority
from harness.extensions.panels.questions import QuestionTask

_UNSURE = 0.5
"""The confidence of a vote that has none, as DarkForest's c_miss."""


@plugin
class Vote(Panel):
    """All agents answer independently; the most frequent answer is the group's.

    With one model for all agents this is self-consistency (Wang et al., 2022), with several a majority vote of models.
    Turns: `answer`, each in a new conversation; the observation is empty, the context the task's.

    Attributes:
        calls: the total number of answers, for a vote with as many calls as another method. The agents answer in turn,
            repeatedly; None: each answers once.
        weights: agent → weight; None: all equal. An agent without an entry has weight 1; weight 0 removes its vote.
            "confidence": each vote has its own confidence, 0.5 if there is none.
        ties: which of several leading answers wins: the "first" in the agents' order, a "random" one, or "none".
        invalid: how unreadable answers count: "ignored", or "vote": together they are one more answer, and if it leads,
            the group has no answer.
    """

    calls: Annotated[int, Range(ge=1, le=100_000)] | None = None
    weights: dict[str, float] | Literal["confidence"] | None = None
    ties: Ties = "first"
    invalid: Literal["ignored", "vote"] = "ignored"

    facts = (*Panel.facts, "votes", "tied", "unanimous")
    reads_text = False

    def __post_init__(self) -> None:
        for agent, weight in self._weights.items():
            if not 0 <= weight < float("inf"):
                raise PluginError(f"the weight of {agent} is {weight}; it must be 0 or more", at=("weights", agent))

    def misfit(self, task: Task) -> str | None:
        """Votes that their confidence weighs must have one."""
        stated = self.confidence != "none" or (isinstance(task, QuestionTask) and "confidence" in task.beside)
        if self.weights == "confidence" and not stated:
            return "weights: confidence needs votes that have one. Set confidence: line, json or likelihood"
        return super().misfit(task)

    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Yield one batch, or as many as `calls` needs."""
        members = self.members(case)
        ballots: list[Opinion] = []
        for number, voters in enumerate(self._voters(members)):
            moves = yield [self.ask(task, case, agent, fresh=number > 0) for agent in voters]
            ballots += [self.read(task, case, move) for move in moves]
        ballots = self.sure(ballots, (yield from self.likelihoods(task, case, members)))
        weights = [self._weight(ballot) for ballot in ballots]
        count = majority(task, case, [ballot.answer for ballot in ballots], weights, self.ties, rng)
        unreadable_weight = sum(
            weight for ballot, weight in zip(ballots, weights, strict=True) if ballot.answer is None
        )
        no_answer_leads = self.invalid == "vote" and unreadable_weight > max(count.weights.values(), default=0.0)
        exit = "unread" if no_answer_leads and count.weights else count.exit
        all_readable = all(ballot.answer is not None for ballot in ballots)
        return self.outcome(
            [ballots],
            None if no_answer_leads else count.answer,
            exit=exit,
            votes=count.weights,
            tied=count.tied,
            unanimous=len(count.weights) == 1 and all_readable,
        )

    def members(self, case: Case) -> tuple[str, ...]:
        """The panel. Raises `PluginError` if `weights` names an unknown agent."""
        panel = super().members(case)
        unknown = [agent for agent in self._weights if agent not in panel]
        if unknown:
            message = f"weights names {unknown[0]!r}, which is not an agent of this case"
            raise PluginError(message, hint=f"The agents are: {', '.join(panel)}.", at=("weights",))
        return panel

    @property
    def _weights(self) -> dict[str, float]:
        return self.weights if isinstance(self.weights, dict) else {}

    def _weight(self, ballot: Opinion) -> float:
        if self.weights == "confidence":
            return _UNSURE if ballot.confidence is None else ballot.confidence
        return self._weights.get(ballot.agent, 1.0)

    def _voters(self, members: Sequence[str]) -> Iterator[Sequence[str]]:
        """Yield the agents that answer, batch by batch."""
        remaining = self.calls or len(members)
        while remaining > 0:
            yield tuple(islice(cycle(members), min(remaining, len(members))))
            remaining -= len(members)
