"""Tournaments whose rounds are drawn from the results of those before: how many there are, and the next one."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from harness.api.errors import DataError
from harness.config.plan import Condition, Plan
from harness.config.spec import Spec
from harness.tables import EpisodeScore

from .adaptive import SeatedGame
from .results import RESULTS, standing_of
from .swiss import Draw, draw, points
from .tournament import Tournament


def rounds(plan: Plan) -> tuple[int, int]:
    """(rounds that are drawn, rounds of the whole tournament); (1, 1) where none are drawn."""
    variant, tournament = [*_tournaments(plan)][-1]
    if tournament.rounds is None:
        return 1, 1
    return len(tournament.rounds_of(variant, plan.seed, plan.limit)), tournament.rounds_in_all(plan.limit)


def share_drawn(plan: Plan) -> tuple[int, int]:
    """(How much is drawn, how much the whole tournament is): rounds, which have equal sizes, or cases."""
    drawn = every = 0
    for variant, tournament in _tournaments(plan):
        if tournament.pairing != "adaptive":
            return rounds(plan)
        drawn += sum(sum(one.cases) for one in tournament.rounds_of(variant, plan.seed, plan.limit))
        every += tournament.cases_in_all(plan.limit)
    return drawn, every


def with_next_round(plan: Plan, scores: Iterable[EpisodeScore]) -> Spec:
    """The plan's spec with one more round, by the results of all rounds before.

    Raises `DataError` if a record is not a result of two contestants.
    """
    entry = plan.spec.data["tournament"]
    metric = entry.get("results", RESULTS)
    results: dict[str, list[tuple[Condition, dict[str, float]]]] = {one.origin: [] for one in plan.conditions}
    conditions = {condition.id: condition for condition in plan.conditions}
    for score in scores:
        condition, record = conditions[score.condition], score.record(metric)
        if record is None or score.failed:
            continue
        pair = [group.name for group in condition.groups[1:]]
        if not (isinstance(record.value, list) and {*map(_contestant, record.value)} == {*pair}):
            message = f"metric {metric!r} gives {record.value!r:.80} for {score.id}, not [[contestant, return], …]"
            raise DataError(message, hint="results: names a metric that does, such as games/results.")
        results[condition.origin].append((condition, standing_of(record.value) or {}))
    drawn: dict[str, list[dict[str, Any]]] = {}
    for variant, tournament in _tournaments(plan):
        earlier = tournament.rounds_of(variant, plan.seed, plan.limit)
        following = _next(tournament, earlier, results[variant], plan)
        drawn[variant] = [one.entry for one in (*earlier, following)]
    return replace(plan.spec, data={**plan.spec.data, "tournament": {**entry, "drawn": drawn}})


def _next(
    tournament: Tournament,
    earlier: Iterable[Draw],
    results: Iterable[tuple[Condition, dict[str, float]]],
    plan: Plan,
) -> Draw:
    before = [*earlier]
    if tournament.pairing == "swiss":
        won = [(condition.labels["round"], [*standing.items()]) for condition, standing in results]
        return draw(tournament.names, before, points(before, won), plan.seed)
    number = {name: i for i, name in enumerate(tournament.names)}
    games: list[SeatedGame] = []
    for condition, standing in results:
        seats = tuple(int(name != condition.labels["first"]) for name in standing)
        games.append(([(number[name], value) for name, value in standing.items()], seats))
    return tournament.further(games, before, plan.seed, plan.limit)


def _tournaments(plan: Plan) -> Iterator[tuple[str, Tournament]]:
    """(Variant of the matrix, its tournament)."""
    place = functools.partial(plan.spec.place, "tournament")
    for variant in plan.spec.variants():
        yield variant.id, Tournament.read(variant.data["tournament"], place)


def _contestant(result: Any) -> Any:
    """Of [contestant, return, …] the first; None if it is something else."""
    named = isinstance(result, list) and len(result) in (2, 3) and isinstance(result[1], int | float)
    return result[0] if named else None
