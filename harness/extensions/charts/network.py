"""A network after an episode: who was joined to whom, what every agent answered, and where answers conflict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.api.errors import DataError, near
from harness.config.plan import episode_id
from harness.extensions.charts.style import FAINT, INK, PALETTE, label
from harness.extensions.networks import NetworkTask
from harness.tables import text as show
from harness.transcripts.reader import Transcripts
from harness.transcripts.view_api import Node, Scene

from .chart import Chart
from .sources import ChartOptions, Material

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMED: Final = 24
_CONFLICT: Final = "#D55E00"
_EDGES: Final[dict[str, dict[str, Any]]] = {
    "conflict": {"color": _CONFLICT, "linewidth": 2.0, "linestyle": "--"},
    "chosen": {"color": INK, "linewidth": 2.4},
    "held": {"color": INK, "linewidth": 2.4},
    "muted": {"color": FAINT, "linewidth": 0.5},
}
_COLORS: Final = tuple(color for color in PALETTE if color != _CONFLICT)
_WRONG: Final = ("conflict", "wrong", "no answer")


def network(material: Material, choice: ChartOptions) -> Chart:
    """The chart. Raises `DataError` if no episode has a network."""
    run, episode = _choose_episode(material, choice)
    tally, source = material.tallies[run], material.sources[run]
    transcript = Transcripts(source.folder).read(episode, tally.batches(episode), tally.end(episode))
    scene = source.scenes(transcript)[-1]
    kinds = sorted({(node.color, node.text) for node in scene.nodes if node.color is not None})
    answers = transcript.outcome.answers if transcript.outcome is not None else {}
    conflicts = sum(edge.state == "conflict" for edge in scene.edges)
    joined: dict[str, list[str]] = {node.id: [] for node in scene.nodes}
    for edge in scene.edges:
        joined[edge.source].append(edge.target)
        joined[edge.target].append(edge.source)

    def paint(figure: Figure) -> None:
        places = _places(scene)
        axis = figure.subplots()
        for edge in scene.edges:
            (x, y), (u, v) = places[edge.source], places[edge.target]
            how = _EDGES.get(edge.state, {"color": FAINT, "linewidth": 0.9})
            axis.plot([x, u], [y, v], zorder=1, **how)
        size = 90 if len(places) <= _NAMED else 30
        for color, text in (*kinds, (None, "")):
            nodes = [n for n in scene.nodes if n.color == color and (color is None or n.text == text)]
            if nodes:
                axis.scatter(
                    [places[node.id][0] for node in nodes],
                    [places[node.id][1] for node in nodes],
                    s=size,
                    facecolor="white" if color is None else _COLORS[color % len(_COLORS)],
                    edgecolor=[_ring(node) for node in nodes],
                    linewidth=1.6,
                    label=None if color is None else label(text or f"answer {color + 1}", 24),
                    zorder=2,
                )
        for node in scene.nodes if len(places) <= _NAMED else ():
            name = label(node.label or node.id, 14)
            name += f": {label(node.text, 10)}" if node.text and node.color is None else ""
            axis.annotate(name, places[node.id], (0, 7), textcoords="offset points", ha="center", fontsize=6.5)
        axis.set_axis_off()
        axis.margins(0.12)
        if conflicts:
            axis.plot([], [], label="conflict", **_EDGES["conflict"])
        if kinds or conflicts:
            figure.legend(loc="outside lower center", ncols=3, fontsize=7, columnspacing=1.2)

    return Chart(
        "network",
        "A network after an episode",
        f"{len(scene.nodes)} agents and {len(scene.edges)} edges of episode {label(episode, 80)} "
        f"({label(transcript.labels.get('model', ''))}), colored by final answers; {conflicts} "
        f"edge{'s' * (conflicts != 1)} in conflict. {label(scene.caption, 200)}",
        ("agent", "answer", "state", "neighbors"),
        tuple(
            (node.id, show(answers.get(node.id)), ", ".join(node.marks) or "–", ", ".join(joined[node.id]))
            for node in scene.nodes
        ),
        paint,
        height=3.2,
    )


def _ring(node: Node) -> str:
    """The mark around a node: for a wrong answer, for a missing one, or none."""
    return _CONFLICT if any(mark in _WRONG for mark in node.marks) else FAINT if node.color is None else "none"


def _places(scene: Scene) -> dict[str, tuple[float, float]]:
    """Where nodes stand: where the view puts them, else where a spring layout with a fixed seed does."""
    placed = {node.id: (node.x, -node.y) for node in scene.nodes if node.x is not None and node.y is not None}
    if len(placed) == len(scene.nodes):
        return placed
    import networkx

    graph = networkx.Graph([(edge.source, edge.target) for edge in scene.edges])
    graph.add_nodes_from(node.id for node in scene.nodes)
    return {name: (float(x), float(y)) for name, (x, y) in networkx.spring_layout(graph, seed=0).items()}


def _choose_episode(material: Material, choice: ChartOptions) -> tuple[int, str]:
    """(number of the run, episode): by default the first unsolved episode on a network, else the first."""
    headline = material.headline(choice.metric)
    first: tuple[int, str] | None = None
    for i, source in enumerate(material.sources):
        scores = {score.id: score for score in source.run.scores}
        if choice.episode is not None and choice.episode not in scores:
            continue
        for condition, case, repeat in source.plan().episodes():
            name = episode_id(condition, case, repeat)
            score = scores.get(name)
            if score is None or score.error is not None or choice.episode not in (None, name):
                continue
            if not isinstance(condition.task, NetworkTask):
                if choice.episode is not None:
                    raise DataError(f"no network to draw: {name} is of no task on networks")
                continue
            first = first or (i, name)
            if choice.episode is not None or score.number(headline.metric) != 1:
                return i, name
    if first is None and choice.episode is not None:
        ids = [score.id for score in material.scores]
        raise DataError(f"there is no finished episode {choice.episode!r}", hint=near(choice.episode, ids))
    if first is None:
        raise DataError("no network to draw: this is not a task on networks")
    return first
