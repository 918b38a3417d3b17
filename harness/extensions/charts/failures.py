"""How episodes ended: stacked bars of solved, partly solved and unsolved ones, and of what went wrong in those."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from harness.api.errors import DataError
from harness.extensions.charts.style import FAINT, label, ticks
from harness.tables import SIMULATED, UNREAD, EpisodeScore, HeadlineSpec, text

from .chart import Chart
from .sources import ChartOptions, Material, PlayedEpisode

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOLVED, PARTLY, UNSOLVED = "solved", "partly solved", "unsolved"
FAILED, ENGINE, LIMIT, TRUNCATED, UNREADABLE = (
    "failed",
    "engine error",
    "limit reached",
    "cut-off reply",
    "unreadable reply",
)
COLORS: Final = {
    SOLVED: "#009E73",
    PARTLY: "#56B4E9",
    UNSOLVED: FAINT,
    UNREADABLE: "#E69F00",
    TRUNCATED: "#D55E00",
    LIMIT: "#CC79A7",
    ENGINE: "#0072B2",
    FAILED: "#8C6BB1",
}
_PARTIAL: Final = ("score", "partial")
_MAX_BARS: Final = 40


def failures(material: Material, choice: ChartOptions) -> Chart:
    """The chart. Raises `DataError` if no episode was played, or the metric does not say what is solved."""
    headline = material.headline(choice.metric)
    material = material.where(headline.covers)
    by, higher = material.way(choice.by), headline.better == "higher"
    ending = _ending(material, headline)
    counts: dict[str, Counter[str]] = {}
    simulated, unread, too_few = set(), set(), headline.unread(material.scores)
    for one in material.played():
        group = text(one.score.labels.get(by))
        counts.setdefault(group, Counter())[ending(one)] += 1
        if one.score.uses_ground_truth:
            simulated.add(group)
        if one.score.model in too_few:
            unread.add(group)
    if not counts:
        raise DataError("no episode was played: nothing to count")
    if len(counts) > _MAX_BARS:
        message = f"{material.shown(by)} has {len(counts)} values, and {_MAX_BARS} bars are as many as one can read"
        raise DataError(message, hint="Choose another label with --by.")
    kinds = [kind for kind in COLORS if any(count[kind] for count in counts.values())]
    names = {
        group: (group if by == "model" else material.shown(group))
        + (f" {SIMULATED}" if group in simulated else "")
        + (f" {UNREAD}" if group in unread else "")
        for group in counts
    }

    def paint(figure: Figure) -> None:
        axis = figure.subplots()
        places = range(len(counts))
        left = [0.0] * len(counts)
        for kind in kinds:
            shares = [100 * count[kind] / count.total() for count in counts.values()]
            bars = axis.barh(places, shares, left=left, height=0.68, color=COLORS[kind], label=kind)
            texts = [f"{share:.0f}" if share >= 9 else "" for share in shares]
            axis.bar_label(bars, texts, label_type="center", color="white", fontsize=7, fontweight="bold")
            left = [a + b for a, b in zip(left, shares, strict=True)]
        axis.set_yticks(places, ticks(names.values()))
        axis.invert_yaxis()
        axis.set_xlim(0, 100)
        axis.set_xlabel("Episodes, %")
        axis.set_ylabel(label(material.shown(by)))
        axis.spines["left"].set_visible(False)
        axis.tick_params(axis="y", length=0)
        figure.legend(loc="outside upper left", ncols=min(3, len(kinds)), columnspacing=1.2, fontsize=7)

    return Chart(
        "failures",
        f"How episodes ended, by {material.shown(by)}",
        f"Share of episodes by how they ended, a bar for each {material.shown(by)}. "
        f"Solved means that {label(headline.name)} is {int(higher)}. "
        "An episode that was not solved counts once, under the gravest of: failed, engine error, limit reached, "
        "cut-off reply, unreadable reply." + "".join(f" {UNREAD} {why}" for why in too_few.values()),
        (material.shown(by), "episodes", *kinds),
        tuple((names[group], count.total(), *(count[kind] for kind in kinds)) for group, count in counts.items()),
        paint,
        height=1.0 + 0.26 * len(counts) + 0.14 * -(-len(kinds) // 3),
    )


def _ending(material: Material, headline: HeadlineSpec) -> Callable[[PlayedEpisode], str]:
    """How an episode ended, by the headline where that lies from 0 to 1."""
    higher = headline.better == "higher"
    partial = [
        name
        for name, metric in material.metrics.items()
        if metric.bounds == (0, 1) and name.rpartition("/")[2] in _PARTIAL
    ]

    numbers = (score.number(headline.metric) for score in material.scores)
    if any(x is not None and not 0 <= x <= 1 for x in numbers):
        raise DataError(
            f"{headline.name} is not a number from 0 to 1: it does not say which episodes were solved",
            hint="Name a metric that does with --metric.",
        )

    def quality(score: EpisodeScore) -> str:
        value = score.number(headline.metric)
        if value is None:
            return UNSOLVED
        good = value if higher else 1 - value
        if good == 1:
            return SOLVED
        others = [score.number(name) for name in partial] if higher else []
        return PARTLY if good > 0 or any(x is not None and 0 < x < 1 for x in others) else UNSOLVED

    def ending(one: PlayedEpisode) -> str:
        if one.score.failed:
            return FAILED
        end = quality(one.score)
        if end == SOLVED:
            return end
        use = one.use
        causes = ((ENGINE, use.engine), (LIMIT, use.limits), (TRUNCATED, use.truncated), (UNREADABLE, use.parse))
        return next((name for name, count in causes if count), end)

    return ending
