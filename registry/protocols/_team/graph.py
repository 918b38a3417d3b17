"""Who hears whom in a team, and in which order its seats act."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.api import PluginError, near

from .families import edges_within
from .roles import Part

Shape = Literal["star", "chain", "tree", "graph"]
Edges = Shape | list[str | tuple[str, str]]
MAX_EDGES = 100_000
_Link = tuple[int, int, bool]
"""Speaker, listener (places of seats), and whether the message waits for the next round."""


@dataclass(frozen=True, slots=True)
class Graph:
    """A team's seats and edges.

    Attributes:
        seats: all seats that take part, in the order of the roles.
        role_of: seat → its role.
        hears: seat → the seats that it hears, in order.
        heard_by: seat → the seats that hear it, in order.
        levels: seats that act at once in a round: a seat's level is the longest path to it within a round.
        returning: seats between two loops, which act again on the way back: those that a seat of a later role writes
            to, and that write to a seat of an earlier one.
        ends: seats that no later seat of their own role hears in the same round. Their answers count for the role.
    """

    seats: tuple[str, ...]
    role_of: Mapping[str, str]
    hears: Mapping[str, tuple[str, ...]]
    heard_by: Mapping[str, tuple[str, ...]]
    levels: tuple[tuple[str, ...], ...]
    returning: frozenset[str]
    ends: frozenset[str]


def graph_of(parts: Mapping[str, Part], edges: Edges, seed: int) -> Graph:
    """Return the graph. Raises `PluginError` for edges that name no role or seat, and for too many."""
    seats = [seat for part in parts.values() for seat in part.seats]
    role_of = {seat: part.name for part in parts.values() for seat in part.seats}
    place = {seat: i for i, seat in enumerate(seats)}
    links: dict[tuple[int, int], bool] = {}
    for one, other, waits in _links(parts, edges, place, seed):
        links[one, other] = waits and links.get((one, other), True)
        if len(links) > MAX_EDGES:
            message = f"the team has more than {MAX_EDGES:,} pairs of seats of which one hears the other"
            raise PluginError(message, hint="Lower agents:, or give fewer edges.", at=("edges",))
    hears: list[list[int]] = [[] for _ in seats]
    heard: list[list[int]] = [[] for _ in seats]
    level = [0] * len(seats)
    ups, downs, inner = set[int](), set[int](), set[int]()
    order = list(dict.fromkeys(role_of.values()))
    rank = [order.index(role_of[seat]) for seat in seats]
    for (one, other), waits in sorted(links.items(), key=lambda link: (link[0][1], link[0][0])):
        hears[other].append(one)
        heard[one].append(other)
        if not waits:
            level[other] = max(level[other], level[one] + 1)  # earlier seats come first, so theirs is final
            inner |= {one} if rank[one] == rank[other] else set()
        elif rank[one] > rank[other]:
            ups.add(one)
            downs.add(other)
    names = [[seat for seat, own in zip(seats, level, strict=True) if own == n] for n in range(max(level) + 1)]
    return Graph(
        tuple(seats),
        role_of,
        {seat: tuple(seats[i] for i in hears[n]) for n, seat in enumerate(seats)},
        {seat: tuple(seats[i] for i in sorted(heard[n])) for n, seat in enumerate(seats)},
        tuple(map(tuple, names)),
        frozenset(seats[i] for i in ups & downs),
        frozenset(seat for i, seat in enumerate(seats) if i not in inner),
    )


def check_paths(graph: Graph, answering: Sequence[str]) -> None:
    """Raise `PluginError` for a seat whose messages can never matter to the answer."""
    reached, waiting = set(answering), list(answering)
    while waiting:
        for speaker in graph.hears[waiting.pop()]:
            if speaker not in reached:
                reached.add(speaker)
                waiting.append(speaker)
    lost = next((seat for seat in graph.seats if seat not in reached), None)
    if lost is not None:
        role, answers = graph.role_of[lost], graph.role_of[answering[0]]
        message = f"no path of edges leads from {lost!r} to {answers!r}, whose answer counts"
        raise PluginError(message, hint=f"Add an edge such as {role} > {answers}, or drop the role.", at=("edges",))


def names_of(edge: str | tuple[str, str]) -> list[str]:
    """The roles or seats of an edge, from the speaker on."""
    return [name.strip() for name in edge.split(">")] if isinstance(edge, str) else list(edge)


def _links(parts: Mapping[str, Part], edges: Edges, place: Mapping[str, int], seed: int) -> Iterator[_Link]:
    entries: dict[str, tuple[int, ...]] = {}
    exits: dict[str, tuple[int, ...]] = {}
    for part in parts.values():
        at = ("roles", part.name, "within")
        own = edges_within(part.within, len(part.seats), seed, at) if part.within is not None else []
        first = place[part.seats[0]]
        yield from ((first + i, first + j, False) for i, j in own)
        later, earlier = {j for _, j in own}, {i for i, _ in own}
        entries[part.name] = tuple(first + i for i in range(len(part.seats)) if i not in later)
        exits[part.name] = tuple(first + i for i in range(len(part.seats)) if i not in earlier)
    if isinstance(edges, str):
        yield from _shaped(edges, list(parts.values()), place)
        return
    for i, entry in enumerate(edges):
        names = names_of(entry)
        if len(names) < 2 or not all(names):
            raise PluginError(f"{entry!r:.80} is not an edge", hint="Write speaker > listener.", at=("edges", i))
        for name in names:
            if name not in parts and name not in place:
                hint = near(name, [*parts, *place])
                raise PluginError(f"edges names {name!r:.80}, which is not a role", hint=hint, at=("edges", i))
        for one, other in itertools.pairwise(names):
            if one == other and one in parts:
                yield from _others(parts[one], place, i)
            elif one == other:
                raise PluginError(f"{one} > {other}: a seat does not hear itself", at=("edges", i))
            else:
                speakers = exits[one] if one in parts else (place[one],)
                listeners = entries[other] if other in parts else (place[other],)
                yield from ((a, b, a > b) for a in speakers for b in listeners if a != b)


def _others(part: Part, place: Mapping[str, int], i: int) -> Iterator[_Link]:
    """All seats of a role hear each other, in the next round."""
    if len(part.seats) == 1:
        message = f"{part.name} > {part.name}: the role has one seat, which does not hear itself"
        raise PluginError(message, hint="Give the role more agents:, or drop the edge.", at=("edges", i))
    numbers = [place[seat] for seat in part.seats]
    yield from ((a, b, True) for a in numbers for b in numbers if a != b)


def _shaped(shape: Shape, parts: Sequence[Part], place: Mapping[str, int]) -> Iterator[_Link]:
    """The four coordinations of MultiAgentBench (Zhu et al., 2025)."""
    everyone = range(len(place))
    if shape == "graph":
        yield from ((a, b, True) for a in everyone for b in everyone if a != b)
    elif shape == "chain":
        yield from ((a, a + 1, False) for a in everyone[:-1])
    elif shape == "star":
        hubs = everyone[: len(parts[0].seats)]
        yield from _both((hub, other) for hub in hubs for other in everyone[len(hubs) :])
    else:
        for above, below in itertools.pairwise(parts):
            step, places = len(below.seats), [place[seat] for seat in above.seats]
            yield from _both((places[k * len(places) // step], place[seat]) for k, seat in enumerate(below.seats))


def _both(pairs: Iterable[tuple[int, int]]) -> Iterator[_Link]:
    for one, other in pairs:
        yield one, other, False
        yield other, one, True
