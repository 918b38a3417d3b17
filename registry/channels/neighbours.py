"""The LOCAL model's channel (AgentsNet, Section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from harness.api import Case, Channel, Facts, Move, OpenChannel, plugin


@plugin
class Neighbours(Channel):
    """Every message reaches the neighbour it is addressed to, all of a round at once.

    Attributes:
        lifetime: a message is seen until the next "round" is committed, whoever speaks in it; or it is the "latest"
            of its sender, seen until that sender's next one.
    """

    lifetime: Literal["round", "latest"] = "round"

    def open(self, case: Case) -> OpenChannel:
        """A channel along the case's topology; without one, everybody is everybody's neighbour."""
        if case.topology is not None:
            return OpenNeighbours(case.topology, self.lifetime == "latest")
        everybody = {seat: tuple(other for other in case.seats if other != seat) for seat in case.seats}
        return OpenNeighbours(everybody, self.lifetime == "latest")


class OpenNeighbours(OpenChannel):
    """Holds the messages that are seen now. Whoever is addressed but no neighbour gets nothing."""

    def __init__(self, topology: Mapping[str, tuple[str, ...]], keep: bool) -> None:
        self._topology, self._keep = topology, keep
        self._reach = {seat: frozenset(neighbours) for seat, neighbours in topology.items()}
        self._inboxes: dict[str, dict[str, str]] | None = None  # None until a round has been played

    def view(self, seat: str) -> Facts:
        """`inbox`: neighbour → its message; `silent`: neighbours that sent none. Both in neighbour order."""
        if self._inboxes is None:
            return {"inbox": {}, "silent": []}
        inbox = self._inboxes.get(seat, {})
        neighbours = self._topology[seat]
        return {
            "inbox": {name: inbox[name] for name in neighbours if name in inbox},
            "silent": [name for name in neighbours if name not in inbox],
        }

    def commit(self, moves: Sequence[Move]) -> None:
        """Take in the messages in `moves`: actions neighbour → text, or none."""
        if self._inboxes is None or not self._keep:
            self._inboxes = {}
        for move in moves:
            sent = move.action if isinstance(move.action, Mapping) else {}
            for name, text in sent.items():
                if name in self._reach[move.seat]:
                    self._inboxes.setdefault(name, {})[move.seat] = text
