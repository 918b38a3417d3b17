"""`harness eval --adaptive`: the rule that plays only episodes that say most about the size solved by half."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.api import Facts
from harness.api.errors import SpecError
from harness.config.plan import Job, Plan, episode_id
from harness.runtime.scoring import labels
from harness.runtime.stopping import StoppingRule
from harness.tables import EpisodeScore, TableSpec
from harness.tables.axis import Axis, Key, meets

from .ability_options import PLACE, factor
from .ability_table import AbilityTable, cluster, first_ability, row_labels, size_of
from .curve import Observed, Posterior
from .next_sizes import is_known, next_sizes

_DECLARE = (
    "Let the spec have a table such as {title: Size solved by half, ability: {over: size}, metrics: solved}, where "
    "size is a number of its matrix by which tasks grow."
)


def from_arguments(arguments: Mapping[str, Any]) -> Adaptive:
    """The rule that `--adaptive` asks for. Raises `SpecError`."""
    return Adaptive(factor(arguments["adaptive"]))


@dataclass
class _CurveInPlay:
    """One row's curve: its sizes, the episodes of each that are left, and those that were chosen."""

    levels: tuple[float, ...]
    left: list[list[Job]]
    chosen: list[tuple[int, Job]] = field(default_factory=list)
    is_known: bool = False


class Adaptive(StoppingRule):
    """Chooses sizes round by round, and ends the run once every curve's size is known.

    A round depends on nothing but the numbers of the rounds before it, so that a killed run goes on as it would have
    gone. Of a size cases come before repeats.

    Args:
        within: how many times its lower end the upper end of an interval may be; None: as the table says.
    """

    in_rounds = True

    def __init__(self, within: float | None = None) -> None:
        self._within = within
        self._jobs: list[Job] = []
        self.order = self._jobs
        self._scores: dict[str, EpisodeScore] = {}
        self._waiting: set[str] = set()

    def begin(self, plan: Plan, episodes: Sequence[Job]) -> None:
        table = first_ability(map(TableSpec.parse, plan.spec.tables))
        if table is None:
            message = f"the spec {plan.spec.name} does not say by which number its tasks grow"
            raise SpecError(message, place=PLACE, hint=_DECLARE)
        assert isinstance(table.kind, AbilityTable)
        self._plan, self._table, self._kind, self._every = plan, table, table.kind, len(episodes)
        self._within = table.kind.within if self._within is None else self._within
        self._curves = [*self._curves_of(episodes).values()]
        if not any(len(curve.levels) > 1 for curve in self._curves):
            message = f"{table.kind.over} has fewer than two values in the episodes of {table.title!r}"
            raise SpecError(message, place=PLACE, hint="Give the matrix more of them, or leave --adaptive out.")
        self._next_round()

    @property
    def within(self) -> float:
        """How many times its lower end the upper end of an interval may be (from `begin`)."""
        assert self._within is not None
        return self._within

    @property
    def grids(self) -> list[tuple[tuple[float, ...], tuple[int, ...]]]:
        """Of each curve its sizes, and how many episodes of each there are (from `begin`)."""
        found = []
        for curve in self._curves:
            chosen = Counter(level for level, _ in curve.chosen)
            found.append((curve.levels, tuple(len(jobs) + chosen[k] for k, jobs in enumerate(curve.left))))
        return found

    @property
    def floor(self) -> float:
        """What chance solves (from `begin`)."""
        return self._kind.floor

    def _curves_of(self, episodes: Sequence[Job]) -> dict[Key, _CurveInPlay]:
        table, axis = self._table, Axis(row_labels(self._table, ("",)), self._table)
        groups: dict[Key, dict[float, list[tuple[int, int, Job]]]] = {}
        counts: dict[tuple[str, int], int] = {}
        for job in episodes:
            condition, case, repeat = job
            own: Mapping[str, Any] = labels(self._plan, condition, case)
            for key in table.added:
                own = key.relabelled(own)
            if not meets(own, table.where):
                continue
            if (size := size_of(own.get(self._kind.over))) is None:
                found = own.get(self._kind.over)
                message = f"{self._kind.over} of {episode_id(*job)} is {found!r:.40}, no number above 0"
                raise SpecError(message, place=PLACE, hint=_DECLARE)
            index = counts[condition.id, repeat] = counts.get((condition.id, repeat), -1) + 1
            groups.setdefault(axis.key(own), {}).setdefault(size, []).append((repeat, index, job))
        return {
            key: _CurveInPlay(
                tuple(sorted(sizes)),
                [[job for *_, job in sorted(sizes[size], key=lambda one: one[:2])] for size in sorted(sizes)],
            )
            for key, sizes in groups.items()
        }

    def add(self, score: EpisodeScore) -> None:
        self._scores[score.id] = score
        self._waiting.discard(score.id)
        while not self._waiting and self.reached is None:
            self._next_round()

    def _next_round(self) -> None:
        """Choose more episodes of every curve whose size is not known, or end the run."""
        before = len(self._jobs)
        for curve in self._curves:
            self._choose(curve)
        new = [episode_id(*job) for job in self._jobs[before:]]
        self._waiting = {name for name in new if name not in self._scores}
        if not new:
            known = all(curve.is_known for curve in self._curves)
            why = f"every {self._size} is known" if known else f"all that say something of {self._size} are played"
            self.counted = frozenset(episode_id(*job) for job in self._jobs)
            self.reached = f"enough: {why} after {len(self.counted):,} of {self._every:,} episodes"

    def _choose(self, curve: _CurveInPlay) -> None:
        if curve.is_known or len(curve.levels) < 2:
            return
        posterior = Posterior.of(curve.levels, self._kind.floor, [*self._observed(curve)])
        curve.is_known = is_known(posterior.threshold(), len(curve.chosen), self.within)
        if not curve.is_known:
            left = [len(jobs) for jobs in curve.left]
            for level in next_sizes(posterior, left, len(curve.chosen), self.within):
                job = curve.left[level].pop(0)
                curve.chosen.append((level, job))
                self._jobs.append(job)

    def _observed(self, curve: _CurveInPlay) -> list[Observed]:
        found = []
        for level, job in curve.chosen:
            score = self._scores[episode_id(*job)]
            if (solved := self._kind.solved(score, self._table.cells[0])) is not None:
                own: Mapping[str, Any] = score.labels
                for key in self._table.added:
                    own = key.relabelled(own)
                found.append(Observed(level, solved, cluster(replace(score, labels=own), self._table)))
        return found

    @property
    def _size(self) -> str:
        return f"{self._kind.over} solved by half"

    def record(self) -> Facts:
        return {
            "by": "adaptive",
            "at": f"{self.within:g}",
            "arguments": {"adaptive": float(self.within)},
            "enough": (
                f"{self._plan.model}: --adaptive chose {len(self.counted):,} of {self._every:,} episodes, those that "
                f"say most about the {self._size}. Other means are over values of {self._kind.over} that were not "
                "played equally often; the command without --adaptive plays the rest."
            ),
            "uneven": True,
        }

    def unmet(self) -> str | None:
        if all(curve.is_known for curve in self._curves):
            return None
        return f"--adaptive: all episodes are played, and a {self._size} is not known within a factor {self.within:g}"
