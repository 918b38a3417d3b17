"""Draws of a Swiss tournament: a pure function of what earlier rounds have brought, and of the seed.

Contestants with as many points meet, no two of them twice while that can be avoided; of an odd number one sits out.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.api import derive_seed

_LOTS: Final = 1 << 16
_STEP: Final = 1000
"""A difference in points counts in thousandths."""
_POINTS: Final = 1 << 40
"""More than all lots of a round together …"""
_REMATCH: Final = 1 << 100
"""… and more than all differences in points."""


@dataclass(frozen=True)
class Draw:
    """One round: who plays whom, the first of a pair in the first seat, and who sits out; of adaptive ones also how
    many further cases each pair plays."""

    pairs: tuple[tuple[str, str], ...]
    bye: str | None = None
    cases: tuple[int, ...] = ()

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Draw:
        """The inverse of `entry`."""
        pairs = tuple((first, second) for first, second in entry["pairs"])
        return cls(pairs, entry.get("bye"), tuple(entry.get("cases", ())))

    @property
    def entry(self) -> dict[str, Any]:
        """As a spec has it under `drawn:`."""
        more = ({"bye": self.bye} if self.bye is not None else {}) | ({"cases": [*self.cases]} if self.cases else {})
        return {"pairs": [list(pair) for pair in self.pairs], **more}


def draw(names: Sequence[str], earlier: Sequence[Draw], points: Mapping[str, float], seed: int) -> Draw:
    """The next round.

    It is the perfect matching with the fewest rematches (a second bye is one), among these the one with the least sum
    of squared differences in points, among these one by lot: the aims of the Dutch and the Monrad system. The one that
    sits out counts as paired with the fewest points there are. Of a pair, the one that sat first less often sits first.

    Args:
        names: the contestants, in the order of the pool.
        earlier: the rounds before.
        points: contestant → its points in them.
        seed: what lots are drawn from.
    """
    rng = random.Random(derive_seed(seed, "swiss", len(earlier)))
    if not earlier:  # by lot alone
        lots = rng.sample(names, len(names))
        return Draw(tuple(zip(lots[::2], lots[1::2], strict=False)), lots[-1] if len(lots) % 2 else None)
    import networkx

    number = {name: i for i, name in enumerate(names)}
    out = len(names)  # as a player: the one that meets it sits out
    met = Counter(frozenset(map(number.__getitem__, pair)) for one in earlier for pair in one.pairs)
    met.update(frozenset((number[one.bye], out)) for one in earlier if one.bye is not None)
    firsts = Counter(number[first] for one in earlier for first, _ in one.pairs)
    standing = [points.get(name, 0.0) for name in names]
    standing.append(min(standing))
    graph = networkx.Graph()  # of whole numbers, whose order in sets is the same in every process
    for one, other in itertools.combinations(range(out + len(names) % 2), 2):
        apart = round(_STEP * (standing[one] - standing[other])) ** 2
        weight = met[frozenset((one, other))] * _REMATCH + apart * _POINTS + rng.randrange(_LOTS)
        graph.add_edge(one, other, weight=-weight)
    matched = sorted(sorted(pair) for pair in networkx.max_weight_matching(graph, maxcardinality=True))
    matched.sort(key=lambda pair: -standing[pair[0]] - standing[pair[1]])
    bye = next((names[one] for one, other in matched if other == out), None)
    pairs = []
    for one, other in matched:
        lot = rng.random() < 0.5
        if other != out:
            swapped = firsts[one] > firsts[other] or (firsts[one] == firsts[other] and lot)
            pairs.append((names[other], names[one]) if swapped else (names[one], names[other]))
    return Draw(tuple(pairs), bye)


def points(drawn: Sequence[Draw], results: Iterable[tuple[int, Sequence[tuple[str, float]]]]) -> dict[str, float]:
    """Contestant → its points: the mean over the games of a round of 1 for a win, ½ for a draw and 0 for a loss.

    A bye counts as a win. A pair without a single result (all its games failed) has drawn.

    Args:
        drawn: the rounds.
        results: of each game that has one: the number of its round, from 1, and what both contestants got.
    """
    games: dict[tuple[int, str], list[float]] = {}
    for number, ((one, ones), (other, others)) in results:
        won = 0.5 + 0.5 * ((ones > others) - (ones < others))
        games.setdefault((number, one), []).append(won)
        games.setdefault((number, other), []).append(1 - won)
    total: dict[str, float] = {}
    for number, played in enumerate(drawn, 1):
        for name in itertools.chain.from_iterable(played.pairs):
            shares = games.get((number, name), [0.5])
            total[name] = total.get(name, 0.0) + sum(shares) / len(shares)
        if played.bye is not None:
            total[played.bye] = total.get(played.bye, 0.0) + 1
    return total
