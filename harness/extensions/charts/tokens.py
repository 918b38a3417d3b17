"""Where tokens go: input, read from a cache or not, and output, reasoning or not; a bar per model."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from harness.api.errors import DataError
from harness.extensions.charts.style import compact, label, ticks
from harness.tables import text

from .chart import Chart
from .sources import ChartOptions, Material

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARTS: Final = {
    "input": "#0072B2",
    "input from cache": "#8A8A8A",
    "output": "#D55E00",
    "output, reasoning": "#E69F00",
}
_MOST_BARS: Final = 40


def tokens(material: Material, choice: ChartOptions) -> Chart:
    """The chart. Raises `DataError` if no call reports tokens."""
    by = material.way(choice.by)
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0] * len(PARTS))
    counts: defaultdict[str, int] = defaultdict(int)
    for one in material.played():
        use = one.use
        if use.input is not None and use.output is not None:
            group = text(one.score.labels.get(by))
            counts[group] += 1
            cached, reasoning = min(use.cached or 0, use.input), min(use.reasoning or 0, use.output)
            for i, count in enumerate((use.input - cached, cached, use.output - reasoning, reasoning)):
                sums[group][i] += count
    if not counts:
        raise DataError("no tokens to draw: no call reports them")
    if len(counts) > _MOST_BARS:
        message = f"{material.shown(by)} has {len(counts)} values, and {_MOST_BARS} bars are as many as one can read"
        raise DataError(message, hint="Choose another label with --by.")
    shown = [i for i, _ in enumerate(PARTS) if any(row[i] for row in sums.values())]
    names = {group: group if by == "model" else material.shown(group) for group in counts}

    def paint(figure: Figure) -> None:
        axis = figure.subplots()
        left = [0.0] * len(counts)
        for i, (part, color) in enumerate(PARTS.items()):
            if i in shown:
                widths = [sums[group][i] / counts[group] for group in counts]
                axis.barh(range(len(counts)), widths, left=left, height=0.68, color=color, label=part, linewidth=0)
                left = [a + b for a, b in zip(left, widths, strict=True)]
        for place, end in enumerate(left):
            axis.annotate(compact(end), (end, place), (3, 0), textcoords="offset points", va="center", fontsize=7)
        axis.set_yticks(range(len(counts)), ticks(names.values()))
        axis.invert_yaxis()
        axis.margins(x=0.14)
        axis.set_xlim(left=0)
        axis.xaxis.set_major_formatter(compact)
        axis.set_xlabel("Tokens an episode")
        axis.set_ylabel(label(material.shown(by)))
        axis.spines["left"].set_visible(False)
        axis.tick_params(axis="y", length=0)
        figure.legend(loc="outside upper left", ncols=2, columnspacing=1.2, fontsize=7)

    parts = [*PARTS]
    return Chart(
        "tokens",
        f"Tokens an episode, by {material.shown(by)}",
        f"Mean tokens an episode, a bar for each {material.shown(by)}: input, the part of it that a cache held, "
        "output, and the part of it that was reasoning, as far as the engine reports them.",
        (material.shown(by), "episodes", *(f"{parts[i]} an episode" for i in shown), "total tokens"),
        tuple((names[group], n, *(sums[group][i] / n for i in shown), sum(sums[group])) for group, n in counts.items()),
        paint,
        height=1.05 + 0.26 * len(counts),
    )
