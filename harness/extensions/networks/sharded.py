"""Sharded tasks: an input cut into one shard per agent, and a question about the whole (SILO-Bench, Section 3).

Subclass `ShardedTask` and define how the input is drawn and how it is solved. Cases, contexts, answers and grades
follow.
"""

from __future__ import annotations

import json
import random
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from harness.api import Action, Case, Facts, Outcome, Range, Reply, Task, derive_seed
from harness.extensions.networks import FAMILIES, Family, LocalTask, adjacency_of
from harness.extensions.panels.questions import GRADES, Question, QuestionTask, panel_grades
from harness.replies import act_of

from .answers import MARKER, Answer, AnswerForm, normalize, same

Items = Annotated[int, Range(ge=1, le=1_000_000)]
"""The type of the parameter `items`; a task gives it its own default."""
Credit = Literal["number", "exact", "entries", "cells", "sequence"]


class _Problem(QuestionTask, LocalTask):
    """What a sharded task asks: class attributes of a task in Python, parameters of one in YAML."""

    problem: str
    level: str
    question: str
    question_alone: str | None = None
    form: Any
    digits: int | None = None
    segments: bool = False
    credit: str = "exact"


@dataclass(kw_only=True)
class ShardedTask(_Problem):
    """A problem whose input is cut into shards, of which every agent holds one.

    An instance depends on the problem, `agents`, `items`, `domain`, the seed and its own number, and on nothing else.

    Attributes:
        agents: N, the number of shards and of agents.
        items: k, the number of items per shard.
        instances: the number of instances.
        domain: "paper" draws as the paper's release does. "hardened" makes problems that can be guessed without
            communication harder to guess; for other problems both are the same.
        whole: a single agent has the whole input: the baseline of the relative coordination cost (Section 4.1).
        topology: the agents are the nodes of a network of this family and send messages to their neighbors only; None:
            to all others. A shared store has no links: all use it. Inputs are the same as without.

    Class attributes:
        problem: its id.
        level: I, II or III (Section 3.2).
        question: the description for agents; a format string over `n`, `items` and the public facts of `draw_input`.
        question_alone: the same for N = 1; None if `question` fits too.
        form: the form of an answer, an `AnswerForm`.
        digits: the decimals that the task asks for; None if answers are exact.
        segments: whether every agent answers for its own part.
        credit: the credit for a wrong answer: see `credit_for`.
    """

    agents: Annotated[int, Range(ge=1, le=10_000)] = 5
    items: Items = 20
    instances: Annotated[int, Range(ge=1, le=1_000_000)] = 1
    domain: Literal["paper", "hardened"] = "paper"
    whole: bool = False
    topology: Family | None = None

    @property
    def alone(self) -> bool:
        """Whether one agent has the whole input, so that it, or a panel in its place, can answer alone."""
        return self.whole or self.agents == 1

    @property
    def grades(self) -> tuple[str, ...]:
        """See `grade`."""
        failures = ("premature", "consensus", "computation", "timeout")
        return ("success", "partial", *failures, "data_characters", *(GRADES if self.alone else ()))

    def misfit(self, needed: type[Task]) -> str | None:
        """An input in several shards is not a question for one agent; one agent has no neighbors."""
        if needed is QuestionTask and not self.alone:
            return f"its input is cut into {self.agents} shards; `whole: true` gives all of it to one agent"
        if issubclass(needed, LocalTask) and self.alone:
            return "one agent has all of its input, and no neighbors"
        return super().misfit(needed)

    # ------------------------------------------------------------------------------- for each task

    @abstractmethod
    def draw_input(self, rng: random.Random, n: int) -> tuple[Sequence[Any], Facts]:
        """Draw a new input in n shards (JSON values: lists, texts, or mappings of lists), and facts for all agents.

        Raises:
            PluginError: if parameters do not fit together.
        """

    @abstractmethod
    def solve(self, shards: Sequence[Any], public: Facts) -> Any:
        """Return the right answer, unrounded; with `segments` a list with one per shard. A pure function."""

    def needed_agents(self, agent: int, shards: Sequence[Any], public: Facts) -> Sequence[int]:
        """Return the agents whose data decide this agent's answer, as bits by number; by default all.

        Of several sets any one is enough.
        """
        return [(1 << len(shards)) - 1]

    def segmented(self, public: Facts) -> bool:
        """Return whether every agent answers for its own part."""
        return self.segments

    # ------------------------------------------------------------------- with defaults that mostly fit

    def asked(self, public: Facts) -> str:
        """Return the question in words."""
        question = self.question_alone if self.agents == 1 and self.question_alone is not None else self.question
        return question.format(**{"n": self.agents, "items": self.items, **public})

    def answer_form(self, agent: int) -> AnswerForm:
        """Return the form of an agent's answer."""
        form: AnswerForm = self.form
        return form

    def form_words(self, agent: int) -> str:
        """Return the form of an agent's answer in words."""
        digits = self.digits
        precision = "" if digits is None else f", every number with a fraction rounded to {digits} decimals"
        return f"{self.answer_form(agent).words}{precision}"

    def answers_count(self, agent: int) -> bool:
        """Return whether an agent's answer is graded, unless the agent is byzantine."""
        return True

    def whole_input(self, shards: Sequence[Any]) -> Any:
        """Return the input that was cut into these shards."""
        return compose(shards)

    def whole_answer(self, answers: Sequence[Any], public: Facts) -> Any:
        """Return the right answer of a single agent with the whole input, from those of agents with a shard."""
        return compose(answers) if self.segmented(public) else answers[0]

    def is_right(self, case: Case, agent: int, answer: Action) -> bool:
        """Return whether an agent's answer, in normal form, is right."""
        return same(answer, case.target[agent], self.digits)

    def credit_of(self, case: Case, agent: int, answer: Action) -> float:
        """Return the credit for an agent's wrong answer, from 0 to 1."""
        return credit_for(self.credit, answer, case.target[agent], self.digits)

    # -------------------------------------------------------------------------------------- shared

    def right_answers(self, shards: Sequence[Any], public: Facts) -> Sequence[Any]:
        """Return the right answer of each agent, unrounded."""
        solution = self.solve(shards, public)
        return solution if self.segmented(public) else [solution] * len(shards)

    def answer_text(self, answer: Any) -> str:
        """Return an answer as an agent would write it: JSON, rounded to `digits`."""
        return answer if isinstance(answer, str) else json.dumps(_rounded(answer, self.digits))

    def cases(self, limit: int | None, seed: int) -> Iterator[Case]:
        """Yield `instances` of them, each with a seed of its own."""
        for sample in range(self.instances if limit is None else min(limit, self.instances)):
            yield self._case(sample, seed)

    def example(self) -> Case:
        """An instance for two agents. The text of a task is the same at every size."""
        return replace(self, agents=min(self.agents, 2))._case(0, 0)

    def source(self) -> tuple[object, ...]:
        """The parts of an input's seed, besides seed and number. Problems with the same source share inputs."""
        return ("sharded", self.problem, self.agents, self.items, self.domain)

    def labels(self, shards: Sequence[Any]) -> Facts:
        """Labels for tables."""
        return {"level": self.level}

    def _case(self, sample: int, seed: int) -> Case:
        n = self.agents
        rng = random.Random(derive_seed(*self.source(), seed, sample))
        shards, public = self.draw_input(rng, n)
        answers = self.right_answers(shards, public)
        if self.whole:
            answers = [self.whole_answer(answers, public)]
            shards = [self.whole_input(shards)]
        agents = tuple(f"Agent-{i}" for i in range(len(shards)))
        return Case(
            id=f"{self.problem}-n{n}-{sample}",
            agents=agents,
            public={"known": public},
            private={agent: {"shard": shard} for agent, shard in zip(agents, shards, strict=True)},
            target=answers,
            topology=self._network(agents, sample, seed),
            labels={**self.labels(shards), "agents": n, "sample": sample, "alone": self.whole},
        )

    def _network(self, agents: Sequence[str], sample: int, seed: int) -> Mapping[str, tuple[str, ...]] | None:
        if self.topology is None or len(agents) == 1:
            return None
        drawn = derive_seed("topology", self.topology, len(agents), seed, sample)
        return adjacency_of(agents, FAMILIES[self.topology](len(agents), drawn % 2**31))

    def context(self, case: Case, agent: str) -> Facts:
        """The agent's `name` and `id`, `n` agents, the `task` in words, the agent's `shard` as JSON text, the `problem`
        (the name of its file), its `module` (for scripted agents, which solve it), the facts `known` to all, which
        prompts mention in the task, and in a network its `neighbors`."""
        public, number = case.public["known"], int(agent.rpartition("-")[2])
        return {
            "name": agent,
            "id": number,
            "n": len(case.agents),
            "problem": type(self).__module__.rpartition(".")[2],
            "module": type(self).__module__,
            "task": f"{self.asked(public)}\nForm of the answer: {self.form_words(number)}.",
            "shard": shard_text(case.private[agent]["shard"]),
            "known": public,
            **({} if case.topology is None else {"neighbors": list(case.topology[agent])}),
        }

    def reply(self, case: Case, agent: str) -> Reply:
        """A value of the problem's form. An agent that answers alone may reason first, and announces its answer."""
        return Answer(self.answer_form(case.agents.index(agent)), MARKER if self.alone else None)

    def reply_after_talk(self, case: Case, agent: str) -> Reply:
        """`reply`, with a marker before the answer: other protocols take no reasoning before it."""
        reply = self.reply(case, agent)
        return replace(reply, marker=reply.marker or MARKER) if isinstance(reply, Answer) else reply

    def question_of(self, case: Case) -> Question:
        """The task in words, and the first agent's input, which is the whole input if the agent is `alone`."""
        context = self.context(case, case.agents[0])
        return Question(f"{context['task']}\n{context['shard']}")

    def canonical(self, case: Case, action: Action) -> str:
        """One text for answers that are equal to `digits` decimals, for counting votes."""
        return json.dumps(_rounded(normalize(action), self.digits), sort_keys=True)

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, Any]:
        """Return S and P (Section 3.3), failure modes (Appendix G.2), and how many characters each agent's shard has.

        `success` is the share of agents with the right answer, `partial` their mean credit; byzantine agents are left
        out. A failure mode is 0 or 1 for the whole run, never 1 for a run without a wrong answer, and None if the
        protocol does not record which agent knew what: `premature`, an agent submitted before it could know the data
        that it needs; `consensus`, agents submitted different answers to one question (None if every agent answers for
        its own part); `computation`, an agent that could know all it needs submitted a wrong answer; `timeout`, an
        agent submitted nothing. `data_characters` is agent → characters of its shard. If one agent has the whole input,
        also `GRADES` (`panel_grades`).
        """
        # A panel can answer for the agent with the whole input; then the panel's answer counts.
        alone = len(case.agents) == 1 and outcome.facts.get("history") is not None
        seats = [
            i for i, agent in enumerate(case.agents) if self.answers_count(i) and agent not in case.unscored
        ]  # whose answers count
        answers = {i: act_of(outcome.group if alone else outcome.answers.get(case.agents[i])) for i in seats}
        right = {i: a is not None and self.is_right(case, i, a) for i, a in answers.items()}
        partial = [
            1.0 if right[i] else 0.0 if answer is None else self.credit_of(case, i, answer)
            for i, answer in answers.items()
        ]
        return {
            "success": sum(right.values()) / len(seats) if seats else None,
            "partial": sum(partial) / len(seats) if seats else None,
            **self._failures(case, outcome.facts.get("knew"), answers, right),
            "data_characters": {agent: len(shard_text(case.private[agent]["shard"])) for agent in case.agents},
            **(self._panel(case, outcome) if self.alone else {}),
        }

    def _panel(self, case: Case, outcome: Outcome) -> dict[str, float | None]:
        return panel_grades(outcome, lambda answer: self.is_right(case, 0, answer))

    def informed(self, case: Case, knew: Mapping[str, str]) -> dict[int, bool]:
        """Return agent → whether it could know all it needed when it submitted (`knew`: agent → bits, hexadecimal)."""
        public, shards = case.public["known"], [case.private[agent]["shard"] for agent in case.agents]
        return {
            i: any(need & ~int(knew[agent], 16) == 0 for need in self.needed_agents(i, shards, public))
            for i, agent in enumerate(case.agents)
            if agent in knew
        }

    def _failures(
        self, case: Case, knew: Mapping[str, str] | None, answers: Mapping[int, Action], right: Mapping[int, bool]
    ) -> dict[str, float | None]:
        if knew is None:
            return dict.fromkeys(("premature", "consensus", "computation", "timeout"))
        public = case.public["known"]
        knowing = {} if all(right.values()) else self.informed(case, knew)
        informed = {i: able for i, able in knowing.items() if i in answers}
        distinct = {
            "" if right[i] else json.dumps(_rounded(answer, self.digits), sort_keys=True)
            for i, answer in answers.items()
            if answer is not None
        }
        return {
            "premature": float(not all(informed.values())),
            "consensus": None if self.segmented(public) else float(len(distinct) > 1),
            "computation": float(any(informed[i] and not right[i] for i in informed)),
            "timeout": float(None in answers.values()),
        }


def shard_text(shard: Any) -> str:
    """Return a shard as agents see it: JSON."""
    return json.dumps(shard, ensure_ascii=False)


def compose(shards: Sequence[Any]) -> Any:
    """Return the whole input of these shards: texts and lists concatenated, mappings merged entry by entry.

    >>> joined([{"rows": [1]}, {"rows": [2]}])
    {'rows': [1, 2]}
    """
    first = shards[0]
    if isinstance(first, str):
        return "".join(shards)
    if isinstance(first, Mapping):
        return {key: compose([shard[key] for shard in shards]) for key in first}
    return [item for shard in shards for item in shard]


def credit_for(kind: str, answer: Any, truth: Any, digits: int | None = None, tolerance: float | None = None) -> float:
    """Return the credit for an answer in normal form, from 0 to 1 (Section 3.3, P).

    "number": 1 within one per cent of the right value. "exact": 1 if equal. "entries": share of right places of a list,
    or keys of a mapping. "cells": the same for a list of lists, cell by cell. "sequence": length of the longest common
    subsequence over that of the right answer; extra entries cost nothing here, and `tolerance` has no effect.
    """
    if kind == "number":
        numbers = (int, float)
        fits = isinstance(answer, numbers) and isinstance(truth, numbers) and not isinstance(answer, bool)
        return float(fits and abs(answer - truth) <= 0.01 * abs(truth))
    if kind == "exact" or not isinstance(truth, (list, dict)):
        return float(same(answer, truth, digits, tolerance))
    if kind == "cells" and isinstance(truth, list) and truth:
        rows = answer if isinstance(answer, list) else []
        earned = [
            credit_for("entries", rows[i] if i < len(rows) else None, row, digits, tolerance)
            for i, row in enumerate(truth)
        ]
        return sum(earned) / len(earned)
    if kind == "sequence" and isinstance(truth, list):
        return _common(answer, truth, digits) if isinstance(answer, list) else 0.0
    return _entries(answer, truth, digits, tolerance)


def _entries(answer: Any, truth: Any, digits: int | None, tolerance: float | None) -> float:
    if type(answer) is not type(truth):
        return 0.0
    if not truth:
        return float(not answer)
    if isinstance(truth, dict):
        hits = sum(key in answer and same(answer[key], value, digits, tolerance) for key, value in truth.items())
    else:
        hits = sum(same(a, b, digits, tolerance) for a, b in zip(answer, truth, strict=False))
    return hits / len(truth)


def _common(answer: list[Any], truth: list[Any], digits: int | None) -> float:
    """Return the length of the longest common subsequence, divided by that of the truth.

    Hyyrö's bit-parallel algorithm: one addition of integers with as many bits as the truth has items, for each item of
    the answer.
    """
    if not truth:
        return float(not answer)
    places: dict[str, list[int]] = {}
    for i, item in enumerate(truth):
        places.setdefault(json.dumps(_rounded(item, digits)), []).append(i)
    masks: dict[str, int] = {}  # of frequent items: a mask is as long as the truth, so not all are kept
    row = full = (1 << len(truth)) - 1  # a 0 for every place at which the longest common subsequence grows
    for item in answer[: 4 * len(truth) + 100]:  # bounds the time of endless answers
        key = json.dumps(_rounded(item, digits))
        if key not in places:
            continue
        mask = masks.get(key) or sum(1 << i for i in places[key])
        if len(places[key]) > 16:
            masks[key] = mask
        hits = row & mask
        row = (row + hits | row - hits) & full
    return (row ^ full).bit_count() / len(truth)


def _rounded(value: Any, digits: int | None) -> Any:
    """Return the value with all numbers in it rounded to `digits` decimals, and whole numbers as integers."""
    if isinstance(value, float):
        near = value if digits is None else round(value, digits)
        return int(near) if near.is_integer() else near
    if isinstance(value, (list, tuple)):
        return [_rounded(item, digits) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _rounded(item, digits) for key, item in value.items()}
    return value
