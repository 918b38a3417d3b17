"""The arithmetic of Graph-of-Agents: scores of nodes, which nodes stay, edges, and relevance.

Yun et al., "Graph-of-agents: a graph-based framework for multi-agent LLM collaboration", arXiv:2604.17148. A node is a
slot, a number from 0; several slots can belong to one agent. Everything here is deterministic and pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Relevance = Literal["high", "moderate", "low"]
Row = Mapping[int, float] | None
"""A judge's scores of the other nodes, slot → score, with a sum of about 1. None: the judge is ignored."""

HIGH, MODERATE = 0.7, 0.4
"""Above these shares a neighbor is of high, of moderate relevance."""
_DIGITS = 9  # 0.1 + 0.2 is 0.3: shares that differ only by rounding are equal


@dataclass(frozen=True, slots=True)
class Graph:
    """The remaining nodes, best first. Every node has an edge to all below it.

    Attributes:
        shares: every slot's score. The sum is 1, or all are 0 if no slot was scored.
        ranks: the remaining slots, best first.
    """

    shares: tuple[float, ...]
    ranks: tuple[int, ...]

    @property
    def top(self) -> int | None:
        """The best slot; None if no slot remains."""
        return self.ranks[0] if self.ranks else None

    def above(self, slot: int) -> tuple[int, ...]:
        """Slots with an edge to `slot`, best first. It sees their answers in the forward pass."""
        return self.ranks[: self.ranks.index(slot)]

    def below(self, slot: int) -> tuple[int, ...]:
        """Slots to which `slot` has an edge, best first. It sees their answers in the backward pass."""
        return self.ranks[self.ranks.index(slot) + 1 :]

    def relevance(self, neighbors: Sequence[int]) -> dict[int, Relevance]:
        """Slot → its relevance to an agent that reads exactly these: by its share of their scores."""
        total = sum(self.shares[slot] for slot in neighbors)
        return {slot: label(self.shares[slot] / total if total else 0.0) for slot in neighbors}


def label(share: float) -> Relevance:
    """Return the relevance of a share: above 0.7 high, above 0.4 moderate, else low.

    >>> [label(x) for x in (0.71, 0.7, 0.41, 0.4)]
    ['high', 'moderate', 'moderate', 'low']
    """
    share = round(share, _DIGITS)
    return "high" if share > HIGH else "moderate" if share > MODERATE else "low"


def means(rows: Sequence[Row]) -> list[float | None]:
    """Return every node's mean score over the judges that count; None for a node without such a judge."""
    averages: list[float | None] = []
    for slot in range(len(rows)):
        scores = [row[slot] for judge, row in enumerate(rows) if row is not None and judge != slot]
        averages.append(sum(scores) / len(scores) if scores else None)
    return averages


def shares(averages: Sequence[float | None]) -> list[float]:
    """Return the means scaled to a sum of 1. None counts as the average of the others; all are 0 without any mean."""
    known = [mean for mean in averages if mean is not None]
    if not known or not sum(known):
        return [0.0] * len(averages)
    overall = sum(known) / len(known)
    filled = [overall if mean is None else mean for mean in averages]
    return [mean / sum(filled) for mean in filled]


def graph_of(averages: Sequence[float | None], threshold: float, standing: Sequence[int]) -> Graph:
    """Return the graph over the nodes whose share is above `threshold`.

    Args:
        averages: the result of `means`.
        threshold: from 0 to 1.
        standing: for every slot its rank among equal shares; lower comes first, then the lower slot.
    """
    all_shares = shares(averages)
    stay = [slot for slot, share in enumerate(all_shares) if round(share, _DIGITS) > threshold]
    stay.sort(key=lambda slot: (-round(all_shares[slot], _DIGITS), standing[slot], slot))
    return Graph(tuple(all_shares), tuple(stay))


def waves(agents: Sequence[tuple[int, str]]) -> list[list[int]]:
    """Split slots into batches in which no agent occurs twice, each slot as early as possible.

    >>> waves([(0, "A"), (1, "B"), (2, "A")])
    [[0, 1], [2]]
    """
    batches: list[list[int]] = []
    counts: dict[str, int] = {}
    for slot, agent in agents:
        number = counts.get(agent, 0)
        counts[agent] = number + 1
        if number == len(batches):
            batches.append([])
        batches[number].append(slot)
    return batches
