"""ReConcile: a round table that discusses until it agrees, and a vote weighted by stated confidence."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, Any, Literal

from harness.api import Action, Case, Play, Range, Task, Turn, plugin
from harness.extensions.panels.panels import Confidence, Opinion, Panel, Ties, candidate, leading, majority
from harness.extensions.panels.traffic import Traffic

from ._reconcile import as_text, check_demonstrations, examples_for, group_answers, tenths


@plugin
class Reconcile(Panel):
    """All agents answer with a confidence, discuss the groups of answers, and answer again; a weighted vote decides.

    ReConcile (Chen et al., 2024). Every turn is a new conversation. In a discussion round all agents read the same
    text: the answers of the previous round, most frequent first, each with its count and its members' replies and
    confidences without names, the reader's own included. Unanimity ends the discussion. The answer with the largest sum
    of mapped confidences in the last round is the group's.

    Turns: `answer` (`demonstrated`, if there are demonstrations to show), `discuss` (observation: `groups`, each with
    `answer`, `count`, `members`; `demonstrations`; `leading`).

    Attributes:
        rounds: R, the maximal number of discussion rounds.
        groups: how many groups of equal answers agents see; None for all.
        weights: a vote's weight: "steps" of the stated confidence (1 → 10, 0.9 → 8, 0.8 → 5, above 0.6 → 3, else 1),
            the "stated" confidence itself in tenths, or "equal".
        default_confidence: the weight of a vote without a stated confidence, in the same tenths.
        demonstrations: examples before the question, in the first round too: question, rationale, answer, and
            optionally `agent`: the agent that the example convinces, and that does not see it.
        ties: which of several leading answers wins. Unreadable answers are not shown and have no vote.
    """

    agents: Annotated[int, Range(ge=1, le=1000)] | None = 3
    confidence: Confidence = "line"
    rounds: Annotated[int, Range(ge=0, le=1000)] = 2
    groups: Annotated[int, Range(ge=1)] | None = 2
    weights: Literal["steps", "stated", "equal"] = "steps"
    default_confidence: Annotated[float, Range(ge=0, le=10)] = 1
    demonstrations: list[dict[str, Any]] = field(default_factory=list)
    ties: Ties = "first"

    facts = (*Panel.facts, "votes", "tied", "imputed", "dropped", "overruled")

    def __post_init__(self) -> None:
        check_demonstrations(self.demonstrations)

    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Yield one batch per round."""
        members = self.members(case)
        moves = yield [self._first(task, case, agent) for agent in members]
        believed = yield from self.likelihoods(task, case, members)
        history = [self.sure((self.read(task, case, move) for move in moves), believed)]
        dropped: list[list[Action]] = []
        traffic = Traffic(agents)
        while len(history) <= self.rounds and not self.unanimous(history[-1]):
            groups, others = group_answers(history[-1], self.groups)
            dropped.append([group[0].answer for group in others])
            moves = yield [self._discuss(task, case, agent, groups, traffic) for agent in members]
            history.append(self.sure((self.read(task, case, move) for move in moves), believed))
        last = history[-1]
        weights = [self._weight(opinion.confidence) for opinion in last]
        count = majority(task, case, [opinion.answer for opinion in last], weights, self.ties, rng)
        agreed = self.unanimous(last)  # a unanimous answer wins even where all votes weigh 0
        answer = last[0].answer if agreed else count.answer
        return self.outcome(
            history,
            answer,
            exit="unanimous" if agreed else count.exit,
            peer_characters=traffic.characters,
            sent=traffic.sent,
            votes=count.weights,
            tied=count.tied,
            imputed=sum(opinion.answer is not None and opinion.confidence is None for opinion in last),
            dropped=dropped,
            overruled=None if answer is None else int(_overruled(last, candidate(task, case, answer))),
        )

    def _first(self, task: Task, case: Case, agent: str) -> Turn:
        """The first turn: as in any other panel, unless there are examples to show."""
        examples = examples_for(self.demonstrations, agent)
        if not examples:
            return self.ask(task, case, agent)
        return self.ask(task, case, agent, "demonstrated", {"demonstrations": examples})

    def _discuss(
        self, task: Task, case: Case, agent: str, groups: Sequence[Sequence[Opinion]], traffic: Traffic
    ) -> Turn:
        """A turn of the discussion."""
        opinions = [opinion for group in groups for opinion in group]
        observation = {
            "groups": [as_text(group) for group in groups],
            "demonstrations": examples_for(self.demonstrations, agent),
            "leading": leading(opinions),
        }
        others = [opinion for opinion in opinions if opinion.agent != agent]
        for opinion in others:
            traffic.note(opinion.agent, [agent], opinion.text)
        peer_texts = [opinion.text for opinion in others]
        return self.ask(task, case, agent, "discuss", observation, peer_texts=peer_texts, fresh=True)

    def _weight(self, confidence: float | None) -> float:
        """Return a vote's weight, in tenths."""
        if self.weights == "equal":
            return 10
        if confidence is None:
            return self.default_confidence
        return tenths(confidence) if self.weights == "steps" else 10 * confidence


def _overruled(opinions: Sequence[Opinion], winner: str | None) -> bool:
    """Return whether another answer has more supporters than the winner."""
    heads = Counter(opinion.candidate for opinion in opinions if opinion.candidate is not None)
    supporters = heads[winner] if winner is not None else 0
    return supporters < max(heads.values(), default=0)
