"""`harness eval --until "headline ±2%"`: the rule that ends a run once a number is known well enough."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from harness.api import Facts
from harness.api.errors import SpecError
from harness.config.plan import Job, Plan
from harness.runtime.stopping import StoppingRule
from harness.tables import EpisodeScore, HeadlineSpec
from harness.tables.parse_share import ParseShare

from .block_progress import BlockProgress
from .confidence_sequences import LEVEL, Interval
from .covered_mean import Covered
from .estimates import Mean, MeanEstimate
from .until_options import PLACE, Wanted

_TOO_NARROW: Final = (
    "Errors, intervals and tests of tables take the number of episodes as fixed before, which it was not"
)


def from_arguments(arguments: Mapping[str, Any]) -> StoppingRule:
    """The rule that `until` asks for. Raises `SpecError`."""
    return Until(Wanted.parse(arguments["until"]))


class Until(StoppingRule):
    """Ends a run once a number's 95 % confidence sequence is narrow enough.

    Args:
        wanted: which number, and how narrow.
    """

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self._lacks, self._needed = "", 0.0
        self._turns: dict[str, Counter[str]] = {}  # of each model, in episodes of blocks that have ended

    def begin(self, plan: Plan, episodes: Sequence[Job]) -> None:
        covered = Covered.of(plan, self.wanted.name, PLACE)
        self._plan, self._episodes, self._covered = plan, len(episodes), covered
        headline = HeadlineSpec.of(plan.spec.data, plan.metrics)
        self._headline = headline if headline.metric == covered.metric else None
        self._progress = BlockProgress(plan, episodes, covered)
        self.order = self._progress.blocks.order
        ids, blocks = self._progress.covered_ids, self._progress.blocks.ids
        if self.wanted.per_condition:
            means = covered.means_of_conditions(ids)
            by_condition = self._progress.blocks_of_conditions()
            self._estimates = [self._estimate(mean, own) for mean, own in zip(means, by_condition, strict=True)]
        else:
            self._estimates = [self._estimate(covered.mean(ids), blocks)]
        self._needed = self._blocks()

    def _estimate(self, mean: Mean, blocks: Sequence[Sequence[str]]) -> MeanEstimate:
        low, high = mean.bounds
        width = self.wanted.width
        if math.isfinite(high - low):
            width *= high - low if self.wanted.percent else 1
            if width >= (high - low) / 2:
                message = f"{mean.name} lies between {low:g} and {high:g}, so it is known within ±{width:g} already"
                raise SpecError(message, place=PLACE, hint="Ask for less than half of that range.")
        return MeanEstimate(mean, blocks, self._progress.blocks.scale, (width,))

    def add(self, score: EpisodeScore) -> None:
        if self.reached is not None:
            return
        for scores, numbers in self._progress.add(score):
            for estimate in self._estimates:
                estimate.add(numbers)
            self._count_turns(scores)
            self._needed = math.inf if self._unread() else self._blocks()
            if not self.wanted.per_condition:
                self._lacks = self._lacks or self._progress.lacking(self._done - 1, numbers)
            if all(map(self._is_known, self._estimates)) and not self._lacks and not self._unread():
                self.counted = self._progress.ids_until(self._done)
                self.reached = (
                    f"enough: {self.wanted} is reached after {len(self.counted):,} of {self._episodes:,} episodes"
                )
                return

    def _count_turns(self, scores: Iterable[EpisodeScore]) -> None:
        for score in scores:
            if self._headline is not None and self._headline.covers(score):
                for turns in score.turns.values():
                    self._turns.setdefault(score.model, Counter()).update(turns)

    def _unread(self) -> str:
        """Of which model too few turns were parsed for a headline, in words; "" if of none. Tables show no number of
        it, and no interval: nothing is known well enough."""
        for model, turns in self._turns.items():
            reads = ParseShare.counted(turns)
            if self._headline is not None and reads.share is not None and reads.share < self._headline.min_read:
                return self._headline.why_unread(model, reads)
        return ""

    @property
    def _done(self) -> int:
        """How many blocks the estimates know."""
        return self._estimates[0].n

    def is_due(self, episode: str) -> bool:
        return self._progress.block_of[episode] < max(self._needed, self._done + 1)

    def _blocks(self) -> float:
        """After about how many blocks the number will be known well enough, by what is known so far."""
        return max(one.blocks_for(self._target(one, one.interval or (0.0, 0.0))) for one in self._estimates)

    def _is_known(self, estimate: MeanEstimate) -> bool:
        interval = estimate.interval
        return interval is not None and _half(interval) <= self._target(estimate, interval)

    def _target(self, estimate: MeanEstimate, interval: Interval) -> float:
        """How wide half of the interval may be."""
        low, high = estimate.mean.bounds
        if not self.wanted.percent:
            return self.wanted.width
        is_bounded = math.isfinite(high - low) and estimate.method == "betting"
        return self.wanted.width * (high - low if is_bounded else abs(sum(interval) / 2))

    def record(self) -> Facts:
        found = {one.mean.name: one for one in self._estimates}
        return {
            "by": "--until",
            "at": str(self.wanted),
            "arguments": {"until": str(self.wanted)},
            "enough": self._sentence(),
            "level": LEVEL,
            "intervals": {name: list(one.interval or ()) for name, one in found.items()},
            "method": next(iter(found.values())).method,
            **self._progress.record(self._done),
        }

    def _sentence(self) -> str:
        what = f"{self._plan.model}: --until '{self.wanted}' ended the run after {len(self.counted):,} of "
        what += f"{self._episodes:,} episodes. {self._known()}. {_TOO_NARROW}; the command without --until plays on."
        return what

    def _known(self) -> str:
        widest = max(self._estimates, key=lambda one: _half(one.interval or (0.0, 0.0)))
        several = f"Of {len(self._estimates)} conditions the least certain: " if len(self._estimates) > 1 else ""
        return several + in_words(widest)

    def unmet(self) -> str | None:
        if self._lacks:
            return f"--until '{self.wanted}' could not be decided: {self._lacks}"
        if unread := self._unread():
            return f"--until '{self.wanted}' was not reached: {unread}"
        if not math.isfinite(self._needed):
            what = f"the {self._episodes:,} numbers of {self._covered.metric} vary too little, or are too few, to say"
            return f"--until '{self.wanted}' was not reached: {what} how well their mean is known"
        takes = float(f"{self._needed * self._episodes / len(self._progress.blocks.ids):.2g}")
        return (
            f"--until '{self.wanted}' was not reached: it takes about {takes:,.0f} episodes, and the run has "
            f"{self._episodes:,} (repeats of a case add little)"
        )


def _half(interval: Interval) -> float:
    return (interval[1] - interval[0]) / 2


def in_words(estimate: MeanEstimate) -> str:
    """What is known of a mean."""
    if (interval := estimate.interval) is None:
        return f"{estimate.mean.name} has no interval yet"
    what = "an asymptotic" if estimate.method == "asymptotic" else "a"
    low, high = interval
    return (
        f"{estimate.mean.name} is in [{low:.4g}, {high:.4g}], {what} 95 % interval that holds however often one looks"
    )
