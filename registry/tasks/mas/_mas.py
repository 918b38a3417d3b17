"""What MAS-Bench's tasks share: the generator (Algorithm 1), the grade, and failure modes decided by rule."""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, Literal

from harness.api import Action, Case, Facts, Outcome, Reply
from harness.authoring.sharded import Items, ShardedTask
from harness.replies import Integers
from harness.replies.answer import INTEGERS

Family = Literal["asc", "near_asc", "random", "near_desc", "desc"]


@dataclass(kw_only=True)
class MasTask(ShardedTask):
    """A problem on N lists of K integers, all different. All problems of one size, family and seed have one input.

    Attributes:
        agents: N, how many agents there are.
        items: K, how many integers each one's list has.
        family: how the whole input is ordered (Section 3.3): "asc" and "desc" are sorted, "random" is shuffled;
            "near_asc" and "near_desc" are sorted but for a fifth of the places, whose values are shuffled.
        samples: how many instances.
        domain: has no effect here.
        whole: one single agent holds the whole input.

    Class attributes:
        goal: what the task is about, in a word.
        checker: the function `check_results` that agents are shown (Appendix D.1).
        sliced: whether answers are consecutive slices of one sequence, so that a slice can be somebody else's.
        from_input: whether the numbers of an answer are numbers of the input.
    """

    items: Items = 5
    family: Family = "random"

    form = INTEGERS
    segments = True
    credit = "entries"
    goal: ClassVar[str]
    checker: ClassVar[str]
    sliced: ClassVar[bool] = True
    from_input: ClassVar[bool] = True

    @property
    def grades(self) -> tuple[str, ...]:
        """See `grade`."""
        return (*super().grades, "check", "boundary", "hallucination", "stale", "elements", "inversion_rate")

    def source(self) -> tuple[object, ...]:
        """The problem is not part of it."""
        return ("mas", self.agents, self.items, self.family)

    def labels(self, shards: Sequence[Sequence[int]]) -> Facts:
        """The input family, and how tightly the problem couples the agents (Appendix G.3)."""
        return {"family": self.family, "coupling": self.level}

    def draw(self, rng: random.Random, n: int) -> tuple[list[list[int]], Facts]:
        """n·K different integers below 10·n·K, ordered as the family wants it."""
        k, total = self.items, n * self.items
        values = sorted(rng.sample(range(10 * total), total), reverse=self.family in ("desc", "near_desc"))
        moved = {"random": total, "near_asc": total // 5, "near_desc": total // 5}.get(self.family, 0)
        places = rng.sample(range(total), moved)
        shuffled = [values[place] for place in places]
        rng.shuffle(shuffled)
        for place, value in zip(places, shuffled, strict=True):
            values[place] = value
        return [values[i * k : (i + 1) * k] for i in range(n)], {}

    def context(self, case: Case, agent: str) -> Facts:
        """What every sharded task tells, with the number of `items`, the `goal` in a word and the `checker`."""
        return {**super().context(case, agent), "items": self.items, "goal": self.goal, "checker": self.checker}

    def reply(self, case: Case, agent: str) -> Reply:
        """As many integers as the right answer has."""
        return Integers(len(case.target[case.agents.index(agent)]))

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, float | None]:
        """SR (`success`, Section 3.4), CHECK (Appendix F.2), and what went wrong (Section 5.3), 0 or 1 for the run.

        Besides the failure modes of every sharded task: `boundary` (mismatch): somebody who could know all it needed
        submitted a slice of the right sequence that begins at another place than its own. `hallucination`: somebody
        submitted a number that is in nobody's list, or, able to know all it needed, one number twice, or left out one
        that lies between its smallest and its largest. `stale` (reads): somebody submitted a wrong answer after another
        agent had changed a key that it had read, and it had not read it again. Modes are 0 for a run without a wrong
        answer, and None where they cannot be told. `elements` is N·K, `inversion_rate` ρ (equation 3).
        """
        graded = super().grade(case, outcome)
        shards = [case.private[agent]["shard"] for agent in case.agents]
        given = [_list(outcome.answers.get(agent)) for agent in case.agents]
        wrong = {
            i: answer
            for i, (answer, truth) in enumerate(zip(given, case.target, strict=True))
            if answer is not None and answer != truth
        }
        knew, stale = outcome.facts.get("knew"), outcome.facts.get("stale")
        informed = self.informed(case, knew) if knew is not None and wrong else {}
        whole = list(chain.from_iterable(case.target))
        return {
            **graded,
            "check": float(self.check(shards, given)),
            "boundary": None
            if knew is None or not self.sliced
            else _any(informed.get(i) and _slice_of(wrong[i], whole) for i in wrong),
            "hallucination": self._hallucination(shards, wrong, informed)
            if knew is not None and self.from_input
            else None,
            "stale": None if stale is None else _any(stale.get(case.agents[i]) for i in wrong),
            "elements": sum(map(len, shards)),
            "inversion_rate": inversion_rate(list(chain.from_iterable(shards))),
        }

    def check(self, shards: Sequence[Sequence[int]], given: Sequence[list[int] | None]) -> bool:
        """CHECK: whether the submissions, taken together, solve the problem."""
        return all(answer == truth for answer, truth in zip(given, self.answers(shards, {}), strict=True))

    def _hallucination(
        self, shards: Sequence[Sequence[int]], wrong: Mapping[int, Sequence[int]], informed: Mapping[int, bool]
    ) -> float:
        ordered = sorted(chain.from_iterable(shards))
        known = set(ordered)
        return _any(
            not known.issuperset(answer) or (self.sliced and informed.get(i) and _drops(answer, ordered))
            for i, answer in wrong.items()
        )


def inversion_rate(values: Sequence[int]) -> float:
    """ρ: the share of pairs that are in the wrong order, 0 for less than two values (Section 3.3, equation 3).

    >>> inversion_rate([3, 1, 2])
    0.6666666666666666
    """
    n = len(values)
    if n < 2:
        return 0.0
    seen: list[int] = []
    inversions = 0
    for value in values:
        inversions += len(seen) - bisect_left(seen, value)
        insort(seen, value)
    return inversions / (n * (n - 1) / 2)


def _list(answer: Action) -> list[int] | None:
    """What was submitted; nothing else than a list of integers gets here from a protocol that asks `reply`."""
    if answer is None:
        return None
    return answer if isinstance(answer, list) and all(type(item) is int for item in answer) else []


def _slice_of(answer: Sequence[int], whole: Sequence[int]) -> bool:
    """Whether the answer stands in `whole` in one piece."""
    n = len(answer)
    return n > 0 and any(whole[i : i + n] == answer for i, first in enumerate(whole) if first == answer[0])


def _drops(answer: Sequence[int], ordered: Sequence[int]) -> bool:
    """Whether numbers between the answer's smallest and largest are missing from it, or one stands in it twice."""
    if not answer or len(set(answer)) < len(answer):
        return bool(answer)
    first, last = bisect_left(ordered, min(answer)), bisect_left(ordered, max(answer))
    return last - first + 1 > len(answer)


def _any(flags: Iterable[object]) -> float:
    return float(any(flags))
