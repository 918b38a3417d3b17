"""The arithmetic of Graph-of-Agents: scores of nodes, who stays, who sees whom, and how relevant that is.

Yun et al., "Graph-of-agents: a graph-based framework for multi-agent LLM collaboration", arXiv:2604.17148. A node is a
slot, a number from 0; several slots can be of one agent. No chance, no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Relevance = Literal["high", "moderate", "low"]
Row = Mapping[int, float] | None
"""What a judge gives the other nodes, slot → score, together about 1; None: the judge is ignored."""

HIGH, MODERATE = 0.7, 0.4
"""Above these shares of its readers' attention a neighbor is of high, of moderate relevance."""
_DIGITS = 9  # 0.1 + 0.2 is 0.3: what differs by rounding alone is a tie


@dataclass(frozen=True, slots=True)
class Graph:
    """Who is left, best first; every node points to all below it.

    Attributes:
        shares: every slot's score; they sum to 1, or are all 0 if no slot could be scored.
        ranks: the slots that stay, best first.
    """

    shares: tuple[float, ...]
    ranks: tuple[int, ...]

    @property
    def top(self) -> int | None:
        """The best slot; None if none is left."""
        return self.ranks[0] if self.ranks else None

    def above(self, slot: int) -> tuple[int, ...]:
        """Those with an edge to `slot`, best first: whose answers it sees on the way down."""
        return self.ranks[: self.ranks.index(slot)]

    def below(self, slot: int) -> tuple[int, ...]:
        """Those `slot` has an edge to, best first: whose answers it sees on the way up."""
        return self.ranks[self.ranks.index(slot) + 1 :]

    def relevance(self, neighbors: Sequence[int]) -> dict[int, Relevance]:
        """Slot → how relevant it is to who reads just these: by its share of their scores."""
        total = sum(self.shares[slot] for slot in neighbors)
        return {slot: label(self.shares[slot] / total if total else 0.0) for slot in neighbors}


def label(share: float) -> Relevance:
    """The word for a share: above 0.7 high, above 0.4 moderate, else low.

    >>> [label(x) for x in (0.71, 0.7, 0.41, 0.4)]
    ['high', 'moderate', 'moderate', 'low']
    """
    share = round(share, _DIGITS)
    return "high" if share > HIGH else "moderate" if share > MODERATE else "low"


def means(rows: Sequence[Row]) -> list[float | None]:
    """Every node's mean over the judges that were not ignored; None if no judge is left for it."""
    found: list[float | None] = []
    for slot in range(len(rows)):
        given = [row[slot] for judge, row in enumerate(rows) if row is not None and judge != slot]
        found.append(sum(given) / len(given) if given else None)
    return found


def shares(found: Sequence[float | None]) -> list[float]:
    """Means made to sum to 1. A node without a judge counts as the average of the others; all 0 if none was judged."""
    judged = [mean for mean in found if mean is not None]
    if not judged or not sum(judged):
        return [0.0] * len(found)
    middle = sum(judged) / len(judged)
    filled = [middle if mean is None else mean for mean in found]
    return [mean / sum(filled) for mean in filled]


def graph_of(found: Sequence[float | None], threshold: float, standing: Sequence[int]) -> Graph:
    """The graph over those whose share is above `threshold`.

    Args:
        found: what `means` gives.
        threshold: from 0 to 1.
        standing: for every slot, which comes first among equal shares: the lower number; then the lower slot.
    """
    each = shares(found)
    stay = [slot for slot, share in enumerate(each) if round(share, _DIGITS) > threshold]
    stay.sort(key=lambda slot: (-round(each[slot], _DIGITS), standing[slot], slot))
    return Graph(tuple(each), tuple(stay))


def waves(agents: Sequence[tuple[int, str]]) -> list[list[int]]:
    """Slots in batches in which no agent comes twice, each as early as it can.

    >>> waves([(0, "A"), (1, "B"), (2, "A")])
    [[0, 1], [2]]
    """
    batches: list[list[int]] = []
    asked: dict[str, int] = {}
    for slot, agent in agents:
        number = asked.get(agent, 0)
        asked[agent] = number + 1
        if number == len(batches):
            batches.append([])
        batches[number].append(slot)
    return batches
