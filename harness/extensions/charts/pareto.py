"""What quality costs: tokens or USD an episode against the headline, with the Pareto front."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.api.errors import DataError
from harness.extensions.charts.style import FAINT, compact, guide, label, labels, legend, look, reach
from harness.tables import SIMULATED, EpisodeScore, HeadlineSpec, build, text
from harness.tables.cost import usd_of_episode
from harness.tables.headline import ARROWS
from harness.tables.scores import bounds_of

from .chart import Chart, unit_interval
from .sources import ChartOptions, Material

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DIRECT = 8
_MAX_LABEL_CHARS = 18
_MARGIN = 0.15  # of the width, beside the outermost points
_SAME_COST = 1.01  # costs whose ratio is at most this are equal: a token more or less decides nothing


@dataclass(frozen=True, slots=True)
class _Point:
    name: str
    cost: float
    value: float
    low: float
    high: float
    n: int


def pareto(material: Material, choice: ChartOptions) -> Chart:
    """The chart. Raises `DataError` if no call reports tokens, or there is nothing to compare."""
    headline = material.headline(choice.metric)
    material, unread = material.where(headline.covers).readable(headline)
    by = material.way(choice.by)
    played = [
        one
        for one in material.played()
        if one.score.error is None and one.use.input is not None and one.use.output is not None
    ]
    paid = [usd_of_episode(one.score, material.prices) for one in played]
    in_usd = all(amount is not None and amount.whole for amount in paid)
    costs: defaultdict[str, list[float]] = defaultdict(list)
    for one, amount in zip(played, paid, strict=True):
        tokens = (one.use.input or 0) + (one.use.output or 0)
        costs[text(one.score.labels.get(by))].append(amount.value if amount is not None and in_usd else tokens)
    if not costs:
        models_played = any(use.calls for tally in material.tallies for use in tally.uses.values())
        why = "the engine reports no tokens" if models_played else "policies played, which use no tokens"
        raise DataError(f"no cost to draw: {why}")
    entry = headline.by(by)
    groups: dict[str, list[EpisodeScore]] = {}
    for score in material.scores:
        groups.setdefault(text(score.labels.get(by)), []).append(score)
    points = []
    for group, scores in groups.items():
        cell = next((row.cells[0] for row in build(entry, scores, material.metrics).rows), None)
        if cell is None or cell.value is None or group not in costs:
            continue
        low, high = (cell.value if end is None else end for end in (cell.low, cell.high))
        name = (group if by == "model" else material.shown(group)) + (f" {SIMULATED}" if cell.uses_ground_truth else "")
        points.append(_Point(name, math.fsum(costs[group]) / len(costs[group]), cell.value, low, high, cell.n or 0))
    if not points:
        raise DataError(
            f"no cost to draw: no episode with tokens has a number for {headline.name}.{unread}".rstrip(".")
        )
    if len(points) == 1:
        hint = "Give runs of several models, or another label with --by."
        raise DataError(f"no cost to compare: all episodes are of {material.shown(by)} {points[0].name}", hint=hint)
    front = _front(points, headline)
    unit = "USD an episode" if in_usd else "Tokens an episode"

    def paint(figure: Figure) -> None:
        axis = figure.subplots()
        guide(axis)
        stairs = sorted(front, key=lambda point: point.cost)
        axis.step(
            [p.cost for p in stairs], [p.value for p in stairs], where="post", color=FAINT, linestyle="--", zorder=1
        )
        direct = (
            len(points) <= _DIRECT
            and all(len(point.name) <= _MAX_LABEL_CHARS for point in points)
            and not _touch(points)
        )
        middle = sorted(point.cost for point in points)[len(points) // 2]
        names = labels(point.name for point in points)
        for i, point in enumerate(points):
            how = look(i)
            error = [[max(0.0, point.value - point.low)], [max(0.0, point.high - point.value)]]
            fill = how["color"] if point in front else "none"
            axis.errorbar(point.cost, point.value, yerr=error, elinewidth=0.8, linestyle="none", markersize=5.5,
                          label=names[i], markerfacecolor=fill, **how)  # fmt: skip
            if direct:
                side = -1 if point.cost > middle else 1
                axis.annotate(names[i], (point.cost, point.value), (6 * side, 4), textcoords="offset points",
                              ha="left" if side > 0 else "right", fontsize=7)  # fmt: skip
        spread = [point.cost for point in points]
        if min(spread) > 0 and max(spread) / min(spread) >= 20:
            axis.set_xscale("log")
        else:
            low, high = reach(min(spread), max(spread))
            axis.set_xlim(low - _MARGIN * (high - low), high + _MARGIN * (high - low))
        axis.xaxis.set_major_formatter(lambda x, _: compact(x))
        unit_interval(
            axis, bounds_of(material.metrics[headline.metric], material.scores, headline.metric), headline.table.unit
        )
        axis.set_xlabel(f"{unit} {ARROWS['lower']}")
        axis.set_ylabel(f"{label(headline.name)} {ARROWS[headline.better]}")
        if not direct:
            legend(axis, names)

    return Chart(
        "pareto",
        f"{headline.name} by cost",
        f"{unit} against {headline.name}, a point for each {material.shown(by)}; filled points, joined by the dashed "
        f"line, are the Pareto front: each hollow point is dearer and worse than one of them (costs within 1 % count "
        f"as equal). Bars are 95 % intervals. On the front: "
        f"{', '.join(labels(point.name for point in front))}.{unread}",
        (material.shown(by), unit, headline.name, "95 % from", "to", "n", "on the front"),
        tuple((p.name, p.cost, p.value, p.low, p.high, p.n, "yes" if p in front else "no") for p in points),
        paint,
    )


def _touch(points: Sequence[_Point]) -> bool:
    """Whether names beside the points would lie on one another."""
    costs, values = [point.cost for point in points], [point.value for point in points]
    start, end = reach(min(costs), max(costs))
    wide, high = end - start, max(1, max(values)) - min(0, *values)
    return any(
        abs(a.cost - b.cost) / wide < 0.3 and abs(a.value - b.value) / high < 0.07
        for a, b in itertools.combinations(points, 2)
    )


def _front(points: Sequence[_Point], headline: HeadlineSpec) -> list[_Point]:
    """Those to which no other of them is at least as good in both and better in one; nearly equal costs are equal.

    Nearly equal is not transitive: only a point that is kept may drop another, or a chain of small steps
    leaves the last alone.
    """
    sign = 1 if headline.better == "higher" else -1

    def beats(a: _Point, b: _Point) -> bool:
        if a.value == b.value:
            return a.cost * _SAME_COST < b.cost
        return sign * a.value > sign * b.value and a.cost <= b.cost * _SAME_COST

    kept: list[_Point] = []
    for point in sorted(points, key=lambda point: (-sign * point.value, point.cost)):
        if not any(beats(other, point) for other in kept):
            kept.append(point)
    return [point for point in points if point in kept]
