"""Episodes that checks play without a model: as runs have them, and whether the spec's metrics can measure them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.api import Case, Episode, Move, Outcome
from harness.api.errors import SpecError
from harness.config.plan import Condition, Plan
from harness.runtime.scoring import labels, measure


def trial_episode(
    plan: Plan, condition: Condition, case: Case, batches: Sequence[Sequence[Move]], outcome: Outcome
) -> Episode:
    """An episode as a run would have it, not yet graded."""
    columns = labels(plan, condition, case)
    return Episode(f"{condition.id}/{case.id}/0", condition.id, case.id, 0, columns, case.roles, batches, outcome)


def unmeasured(plan: Plan, episode: Episode, known: set[str]) -> Iterator[SpecError]:
    """Yield why a graded episode would fail in a run: its grading did, or metrics of the spec cannot measure it.

    Args:
        plan: whose metrics.
        episode: graded, as by `harness.runtime.scoring.grade`.
        known: places of what failed earlier episodes. Nothing more is said of them; those of this episode are added.
    """
    failures = [(plan.spec.place("task"), episode.error)]
    if episode.error is None:
        tried = [measure(episode, {name: metric})[1] for name, metric in plan.metrics.items()]
        failures = [(plan.spec.place("metrics", i), error) for i, error in enumerate(tried)]
    for place, error in failures:
        if error is not None and str(place) not in known:
            known.add(str(place))
            yield SpecError(f"{episode.id}: {error}", place=place)
