"""Who hears whom in a discussion: named patterns, pairs, lists of speakers, and random graphs."""

from __future__ import annotations

import collections
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from harness.api import PluginError, near
from harness.extensions.yaml_tasks import graph_bounds
from harness.extensions.yaml_tasks.random_graphs import RandomGraph, RandomGraphs

Seat = str | int
"""An agent of the panel: its name, or its place from 0."""
Pattern = Literal["all", "ring", "star", "chain", "relay", "tree", "pairs", "report"]
Hears = Pattern | RandomGraphs | dict[str, Any] | list[tuple[Seat, Seat]]
Hearing = Mapping[str, tuple[str, ...]]
"""Listener → the speakers that it hears, both in the panel's order."""
_RANDOM = ("random", "parameters")
_Edges = Iterable[tuple[int, int]]
"""Pairs (listener, speaker) of places on the panel."""


def _mutual(pairs: Iterable[tuple[int, int]]) -> _Edges:
    return [edge for a, b in pairs for edge in ((a, b), (b, a))]


def _star(n: int) -> _Edges:
    return _mutual((0, i) for i in range(1, n))


PATTERNS: dict[str, Callable[[int], _Edges]] = {
    "all": lambda n: ((i, j) for i in range(n) for j in range(n) if i != j),
    "ring": lambda n: _mutual((i, (i + 1) % n) for i in range(n) if n > 1),
    "star": _star,
    "chain": lambda n: ((i, i - 1) for i in range(1, n)),
    "relay": lambda n: ((i, (i - 1) % n) for i in range(n) if n > 1),
    "tree": lambda n: _mutual(((i - 1) // 2, i) for i in range(1, n)),
    "pairs": lambda n: _mutual((i, i + 1) for i in range(0, n - 1, 2)),
    "report": _star,
}
"""Pattern → its edges for a panel of n agents."""


def hearing(topology: Hears, members: Sequence[str], rng: random.Random) -> Hearing:
    """Return who hears whom; of a random graph a draw. Raises `PluginError` as `check`, and where a draw fails.

    >>> hearing("chain", ["a", "b", "c"], random.Random(0))
    {'a': (), 'b': ('a',), 'c': ('b',)}
    """
    heard: list[set[int]] = [set() for _ in members]
    for listener, speaker in _edges(topology, members, rng):
        heard[listener].add(speaker)
    return {name: tuple(members[i] for i in sorted(heard[place])) for place, name in enumerate(members)}


def check(topology: Hears, members: Sequence[str]) -> None:
    """Raise `PluginError` for seats that the panel lacks, agents that hear themselves, and unknown random graphs."""
    if not isinstance(topology, str):
        collections.deque(_edges(topology, members, None), 0)


def _edges(topology: Hears, members: Sequence[str], rng: random.Random | None) -> _Edges:
    if isinstance(topology, str):
        return PATTERNS[topology](len(members))
    if not topology:
        hint = "For a panel that does not talk set max_rounds: 0."
        raise PluginError("topology is empty: no agent would hear another", hint=hint, at=("topology",))
    if not isinstance(topology, Mapping):
        return _mutual(_pairs(topology, members))
    if "random" not in topology:
        return _listed(topology, members)
    entry: Any = topology
    for key in entry:
        if key not in _RANDOM:
            raise PluginError(f"topology: a random graph has no {key!r}", hint=near(key, _RANDOM), at=("topology", key))
    graph = RandomGraph(entry, ("topology",), "agents")
    if rng is None:
        return ()
    count, edges = graph.draw(len(members), rng.randrange(2**31), graph_bounds.deadline())
    if count != len(members):
        message = f"{graph.name} gives {count} agents for a panel of {len(members)}"
        raise PluginError(message, hint=f"Set agents: {count}.", place=graph.place, at=("topology",))
    return _mutual(edges)


def _pairs(pairs: Sequence[tuple[Seat, Seat]], members: Sequence[str]) -> _Edges:
    for i, (one, other) in enumerate(pairs):
        yield _edge(one, other, members, ("topology", i))


def _listed(listed: Mapping[str, Any], members: Sequence[str]) -> _Edges:
    for listener, speakers in listed.items():
        at = ("topology", listener)
        _place(listener, members, at)
        if not isinstance(speakers, list) or not all(isinstance(speaker, str | int) for speaker in speakers):
            hint = f"Write {listener}: [{members[-1]}], with all that it hears."
            raise PluginError(
                f"topology: {listener} must have a list of agents, found {speakers!r:.80}", hint=hint, at=at
            )
        for i, speaker in enumerate(speakers):
            yield _edge(listener, speaker, members, (*at, i))


def _edge(listener: Seat, speaker: Seat, members: Sequence[str], at: tuple[str | int, ...]) -> tuple[int, int]:
    one, other = _place(listener, members, at), _place(speaker, members, at)
    if one == other:
        message = f"topology lets {members[one]} hear itself: every agent knows its own words"
        raise PluginError(message, hint="Name another agent, or leave this out.", at=at)
    return one, other


def _place(seat: Seat, members: Sequence[str], at: tuple[str | int, ...]) -> int:
    """The place of an agent on the panel."""
    if seat in members:
        return members.index(str(seat))
    text = str(seat)
    if text.isascii() and text.isdecimal() and int(text) < len(members):
        return int(text)
    hint = near(text, members) + f" Places count from 0 to {len(members) - 1}."
    raise PluginError(f"topology names {seat!r}, which has no seat on the panel", hint=hint, at=at)
