"""A network after an episode: who was joined to whom, what every agent answered, and where answers conflict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harness import storage
from harness.config.plan import episode_id
from harness.errors import DataError, near
from harness.tables import text

from .chart import Chart
from .sources import ChartOptions, ChartRun, Material
from .style import FAINT, PALETTE, label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMED = 24
_COLORS = 7
_NO_ANSWER = "no answer"
_Adjacency = Mapping[str, tuple[str, ...]]


def network(material: Material, choice: ChartOptions) -> Chart:
    """The chart. Raises `DataError` where no episode has a network."""
    source, episode, topology = _chosen(material, choice)
    answers = _answers(source, episode)
    given = {agent: _NO_ANSWER if answers.get(agent) is None else text(answers[agent]) for agent in topology}
    kinds = sorted(set(given.values()) - {_NO_ANSWER})
    paints = {kind: PALETTE[i] for i, kind in enumerate(kinds)} if len(kinds) <= _COLORS else {}
    rank = {agent: i for i, agent in enumerate(topology)}
    edges = [(a, b) for a, others in topology.items() for b in others if rank[a] < rank[b]]

    def paint(figure: Figure) -> None:
        import networkx

        graph = networkx.Graph()
        graph.add_nodes_from(topology)
        graph.add_edges_from(edges)
        near_each_other = len(topology) <= 60 and networkx.is_connected(graph)
        places = networkx.kamada_kawai_layout(graph) if near_each_other else networkx.spring_layout(graph, seed=0)
        axis = figure.subplots()
        for a, b in edges:
            axis.plot([places[a][0], places[b][0]], [places[a][1], places[b][1]], color=FAINT, linewidth=0.9, zorder=1)
        size = 90 if len(topology) <= _NAMED else 30
        for kind in (*kinds, _NO_ANSWER):
            agents = [agent for agent, answer in given.items() if answer == kind]
            if not agents:
                continue
            color = paints.get(kind, PALETTE[0])
            axis.scatter(
                [places[agent][0] for agent in agents],
                [places[agent][1] for agent in agents],
                s=size,
                facecolor="white" if kind == _NO_ANSWER else color,
                edgecolor=FAINT if kind == _NO_ANSWER else "white",
                linewidth=1.2 if kind == _NO_ANSWER else 0.8,
                label=label(kind, 24) if paints or kind == _NO_ANSWER else None,
                zorder=2,
            )
        for agent in topology if len(topology) <= _NAMED else ():
            name = label(agent, 14) + ("" if paints else f"\n{label(given[agent], 14)}")
            axis.annotate(name, places[agent], (0, 7), textcoords="offset points", ha="center", fontsize=6.5)
        axis.set_axis_off()
        axis.margins(0.12)
        if paints or _NO_ANSWER in given.values():
            figure.legend(loc="outside lower center", ncols=3, fontsize=7, columnspacing=1.2)

    tally = Counter(given.values()).most_common(_COLORS)
    counts = ", ".join(f"{label(kind)}: {count}" for kind, count in tally)
    return Chart(
        "network",
        "Final answers in the network",
        f"{len(topology)} agents and {len(edges)} edges of episode {label(episode, 80)}; agents are colored by their "
        f"final answers ({counts}).",
        ("agent", "answer", "neighbors"),
        tuple((agent, given[agent], ", ".join(topology[agent])) for agent in topology),
        paint,
        height=3.2,
    )


def _chosen(material: Material, choice: ChartOptions) -> tuple[ChartRun, str, _Adjacency]:
    """(run, episode, network): by default the first that was played and not solved, else the first."""
    headline = material.headline(choice.metric)
    first: tuple[ChartRun, str, _Adjacency] | None = None
    for source in material.sources:
        scores = {score.id: score for score in source.run.scores}
        if choice.episode is not None and choice.episode not in scores:
            continue
        for condition, case, repeat in source.plan().episodes():
            name = episode_id(condition, case, repeat)
            score = scores.get(name)
            if score is None or score.error is not None or choice.episode not in (None, name):
                continue
            if case.topology is None:
                if choice.episode is not None:
                    raise DataError(f"no network to draw: all agents of {name} reach one another")
                continue
            first = first or (source, name, case.topology)
            if choice.episode is not None or score.number(headline.metric) != 1:
                return source, name, case.topology
    if first is None and choice.episode is not None:
        ids = [score.id for score in material.scores]
        raise DataError(f"there is no finished episode {choice.episode!r}", hint=near(choice.episode, ids))
    if first is None:
        raise DataError("no network to draw: all agents reach one another")
    return first


def _answers(source: ChartRun, episode: str) -> Mapping[str, Any]:
    for end, _ in storage.batches(*storage.journals(source.folder), episodes={episode}):
        if end.get("outcome") is not None:
            answers: Mapping[str, Any] = end["outcome"]["answers"]
            return answers
    return {}
