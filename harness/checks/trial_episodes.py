"""Episodes that checks play without a model: as runs have them, and whether the spec's metrics can measure them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.api import Case, Completion, Episode, Move, Outcome, as_text
from harness.api.errors import SpecError
from harness.config.plan import Condition, Plan
from harness.runtime.scoring import labels, measure


def trial_episode(
    plan: Plan, condition: Condition, case: Case, batches: Sequence[Sequence[Move]], outcome: Outcome
) -> Episode:
    """An episode as a run would have it, not yet graded: each move of a group that a model plays has a call.

    Args:
        plan: whose run it would be.
        condition: of the plan.
        case: what was played, with its groups assigned.
        batches: the moves, without calls.
        outcome: what they led to.
    """
    columns = labels(plan, condition, case)
    batches = [[_asked(move, condition, case) for move in batch] for batch in batches]
    return Episode(f"{condition.id}/{case.id}/0", condition.id, case.id, 0, columns, case.roles, batches, outcome)


def _asked(move: Move, condition: Condition, case: Case) -> Move:
    """The move with the one call of a model that answers at its first try; a policy's move as it is."""
    if condition.group_of(case, move.agent).policy is not None:
        return move
    # No count is None and none is 0: some engines report each of them, and metrics divide by them.
    call = Completion(
        as_text(move.action),
        finish_reason="stop",
        input_tokens=1,
        output_tokens=1,
        cached_tokens=1,
        reasoning_tokens=1,
        peer_tokens=1,
        latency=1.0,
    )
    return replace(move, calls=(call,))


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
