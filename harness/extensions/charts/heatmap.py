"""Who sent how much to whom: one episode, or the mean of a condition's episodes with the same agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.api.errors import DataError, near
from harness.extensions.charts.message_counts import counted
from harness.extensions.charts.style import FAINT, compact, label, labels
from harness.extensions.panels.traffic import EVERY_OTHER

from .chart import Chart
from .sources import ChartOptions, ChartRun, Material
from .tally import Tally

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_NAMED_AGENTS = 24
_MAX_ROWS = 400


def heatmap(material: Material, choice: ChartOptions) -> Chart:
    """The chart. Raises `DataError` if the protocol records no messages, or none was sent."""
    source, tally, condition, agents, ends = _choose(material, choice)
    episodes = len(ends)
    place = {agent: i for i, agent in enumerate(agents)}
    sums = [[0.0] * len(agents) for _ in agents]
    for line in tally.lines(ends):
        _, pairs = counted(line["outcome"]["facts"])
        for sender, receiver, count, _ in pairs:
            i = place[sender]
            for j in range(len(agents)) if receiver == EVERY_OTHER else [place[receiver]]:
                sums[i][j] += count if i != j else 0
    matrix = [[x / episodes for x in row] for row in sums]
    total = sum(map(sum, matrix))
    if not total:
        raise DataError("no messages to draw: the protocol records none of one agent to another (its fact `sent`)")
    model = source.run.run.get("model")
    what = (
        f"episode {choice.episode}"
        if choice.episode
        else (f"mean of {episodes:,} episodes of {condition}" if episodes > 1 else f"the episode of {condition}")
    )
    named = len(agents) <= _MAX_NAMED_AGENTS

    def paint(figure: Figure) -> None:
        from matplotlib import colormaps

        axis = figure.subplots()
        ink = colormaps["viridis"].resampled(32)
        tiles = axis.pcolormesh(matrix, cmap=ink, vmin=0, edgecolors="face", linewidth=0.2)
        bar = figure.colorbar(tiles, ax=axis, label="Messages an episode", shrink=0.85)
        bar.outline.set_visible(False)
        bar.ax.yaxis.set_major_formatter(lambda x, _: compact(x))
        axis.set_aspect("equal")
        axis.invert_yaxis()
        axis.spines[:].set_visible(False)
        axis.tick_params(length=0)
        if named:
            names = labels(agents, 14)
            axis.set_xticks(
                [i + 0.5 for i in range(len(agents))], names, rotation=60, ha="right", rotation_mode="anchor"
            )
            axis.set_yticks([i + 0.5 for i in range(len(agents))], names)
        if len(agents) <= 8:
            top = max(map(max, matrix))
            for i, row in enumerate(matrix):
                for j, x in enumerate(row):
                    if i == j:
                        axis.text(j + 0.5, i + 0.5, "·", ha="center", va="center", color=FAINT, fontsize=7)
                    else:
                        tint = "black" if x > 0.6 * top else "white"
                        axis.text(j + 0.5, i + 0.5, compact(x), ha="center", va="center", color=tint, fontsize=6.5)
        axis.set_xlabel("Receiver")
        axis.set_ylabel("Sender")

    rows = [(agents[i], agents[j], x) for i, row in enumerate(matrix) for j, x in enumerate(row) if i != j and x]
    busiest = max(rows, key=lambda row: row[2])
    return Chart(
        "heatmap",
        "Who sent messages to whom",
        f"Messages from each agent (down) to each other agent (across): {what}, model {label(model)}. {_count(total)} "
        f"messages an episode; most from {label(busiest[0])} to {label(busiest[1])}, {_count(busiest[2])}.",
        ("sender", "receiver", "messages an episode"),
        tuple(sorted(rows, key=lambda row: -row[2])[:_MAX_ROWS]),
        paint,
        height=3.0,
    )


def _count(x: float) -> str:
    return f"{x:,.0f}" if x >= 100 else f"{x:.3g}"


_Chosen = tuple[ChartRun, Tally, str, tuple[str, ...], Sequence[int]]


def _choose(material: Material, choice: ChartOptions) -> _Chosen:
    """(run, its tally, condition, agents, places of ends) of what is drawn: by default where most messages an episode
    were sent."""
    if choice.episode is not None:
        for source, tally in zip(material.sources, material.tallies, strict=True):
            if (place := tally.ends.get(choice.episode)) is None:
                continue
            for (condition, agents), talk in tally.talk.items():
                if place in talk.ends:
                    return source, tally, condition, agents, [place]
            raise DataError(f"no messages to draw: {choice.episode} does not record who sent messages to whom")
        ids = [score.id for score in material.scores]
        raise DataError(f"there is no finished episode {choice.episode!r}", hint=near(choice.episode, ids))
    kept = {score.condition for score in material.scores}
    groups = [
        (talk.messages / len(talk.ends), source, tally, condition, agents, talk.ends)
        for source, tally in zip(material.sources, material.tallies, strict=True)
        for (condition, agents), talk in tally.talk.items()
        if condition in kept
    ]
    if not groups:
        raise DataError("no messages to draw: the protocol does not record who sent messages to whom")
    _, source, tally, condition, agents, ends = max(groups, key=lambda group: group[0])
    return source, tally, condition, agents, ends
