"""The base of MAS-Bench's tasks: the generator (Algorithm 1), grades, and failure modes decided by rule."""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, Literal

from harness.api import Action, Case, Facts, Outcome, Reply
from harness.extensions.networks.answers import INTEGERS, Integers
from harness.extensions.networks.sharded import Items, ShardedTask

Family = Literal["asc", "near_asc", "random", "near_desc", "desc"]


@dataclass(kw_only=True)
class MasTask(ShardedTask):
    """A problem on N lists of K integers, all different. Problems with the same size, family and seed share one input.

    Attributes:
        agents: N, the number of agents.
        items: K, the number of integers in each list.
        family: the order of the whole input (Section 3.3): "asc" and "desc" are sorted, "random" is shuffled;
            "near_asc" and "near_desc" are sorted except for a fifth of the places, whose values are shuffled.
        instances: the number of instances.
        domain: has no effect here.
        whole: a single agent has the whole input.

    Class attributes:
        goal: the task in a word or two.
        checker: the function `check_results` in prompts (Appendix D.1).
        sliced: whether answers are consecutive slices of one sequence, so that an agent can submit another agent's.
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
        """The parts of the input's seed. The problem is not among them."""
        return ("mas", self.agents, self.items, self.family)

    def labels(self, shards: Sequence[Sequence[int]]) -> Facts:
        """The input family, and the problem's coupling between agents (Appendix G.3)."""
        return {"family": self.family, "coupling": self.level}

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[int]], Facts]:
        """Draw n·K different integers below 10·n·K, in the family's order."""
        k, total = self.items, n * self.items
        values = sorted(rng.sample(range(10 * total), total), reverse=self.family in ("desc", "near_desc"))
        count = {"random": total, "near_asc": total // 5, "near_desc": total // 5}.get(self.family, 0)
        places = rng.sample(range(total), count)
        shuffled = [values[place] for place in places]
        rng.shuffle(shuffled)
        for place, value in zip(places, shuffled, strict=True):
            values[place] = value
        return [values[i * k : (i + 1) * k] for i in range(n)], {}

    def context(self, case: Case, agent: str) -> Facts:
        """The context of sharded tasks, with the number of `items`, the `goal` and the `checker`."""
        return {**super().context(case, agent), "items": self.items, "goal": self.goal, "checker": self.checker}

    def reply(self, case: Case, agent: str) -> Reply:
        """A list with as many integers as the right answer."""
        return Integers(len(case.target[case.agents.index(agent)]))

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, float | None]:
        """Return SR (`success`, Section 3.4), CHECK (Appendix F.2), and failure modes (Section 5.3), 0 or 1.

        Besides the failure modes of sharded tasks:

        - `boundary`: an agent could know all it needed and submitted a slice of the right sequence with the wrong
            start.
        - `hallucination`: an agent submitted a number that is in no list; or it could know all it needed and submitted
          a number twice, or left out one between its smallest and its largest.
        - `stale`: an agent submitted a wrong answer after another agent had changed a key that it had read and not read
          again.

        Modes are 0 in an episode without a wrong answer, and None if undecidable. `elements` is N·K, `inversion_rate`
        is ρ (equation 3).
        """
        grades = super().grade(case, outcome)
        shards = [case.private[agent]["shard"] for agent in case.agents]
        answers = [_as_integers(outcome.answers.get(agent)) for agent in case.agents]
        wrong = {
            i: answer
            for i, (answer, truth) in enumerate(zip(answers, case.target, strict=True))
            if answer is not None and answer != truth
        }
        knew, stale = outcome.facts.get("knew"), outcome.facts.get("stale")
        informed = self.informed(case, knew) if knew is not None and wrong else {}
        whole = list(chain.from_iterable(case.target))
        return {
            **grades,
            "check": float(self.check(shards, answers)),
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

    def check(self, shards: Sequence[Sequence[int]], answers: Sequence[list[int] | None]) -> bool:
        """CHECK: whether the submissions together solve the problem."""
        return all(answer == truth for answer, truth in zip(answers, self.right_answers(shards, {}), strict=True))

    def _hallucination(
        self, shards: Sequence[Sequence[int]], wrong: Mapping[int, Sequence[int]], informed: Mapping[int, bool]
    ) -> float:
        ordered = sorted(chain.from_iterable(shards))
        numbers = set(ordered)
        return _any(
            not numbers.issuperset(answer) or (self.sliced and informed.get(i) and _omits_or_repeats(answer, ordered))
            for i, answer in wrong.items()
        )


def inversion_rate(values: Sequence[int]) -> float:
    """Return ρ, the share of pairs in the wrong order; 0 for less than two values (Section 3.3, equation 3).

    >>> inversion_rate([3, 1, 2])
    0.6666666666666666
    """
    n = len(values)
    if n < 2:
        return 0.0
    earlier: list[int] = []
    inversions = 0
    for value in values:
        inversions += len(earlier) - bisect_left(earlier, value)
        insort(earlier, value)
    return inversions / (n * (n - 1) / 2)


def _as_integers(answer: Action) -> list[int] | None:
    """Return a submission as a list of integers; [] for any other value, which no protocol with `reply` submits."""
    if answer is None:
        return None
    return answer if isinstance(answer, list) and all(type(item) is int for item in answer) else []


def _slice_of(answer: Sequence[int], whole: Sequence[int]) -> bool:
    """Return whether the answer is a consecutive slice of `whole`."""
    n = len(answer)
    return n > 0 and any(whole[i : i + n] == answer for i, first in enumerate(whole) if first == answer[0])


def _omits_or_repeats(answer: Sequence[int], ordered: Sequence[int]) -> bool:
    """Return whether the answer has a number twice, or misses one between its smallest and its largest."""
    if not answer or len(set(answer)) < len(answer):
        return bool(answer)
    first, last = bisect_left(ordered, min(answer)), bisect_left(ordered, max(answer))
    return last - first + 1 > len(answer)


def _any(flags: Iterable[object]) -> float:
    return float(any(flags))
