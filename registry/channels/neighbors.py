"""The LOCAL model's channel (AgentsNet, Section 4)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Literal

from harness.api import Case, Channel, Facts, Move, plugin
from harness.extensions.networks import NeighborChannel, links
from harness.extensions.panels.peers import peer_text

from ._courier import CarriedChannel


class OpenNeighbors(NeighborChannel, CarriedChannel):
    """Delivers messages to neighbors, and drops those to other agents."""

    def __init__(self, topology: Mapping[str, tuple[str, ...]], keep: bool) -> None:
        self._topology, self._keep_latest = topology, keep
        self._reach = {agent: frozenset(neighbors) for agent, neighbors in topology.items()}
        self._inboxes: dict[str, dict[str, str]] | None = None  # None until a round has been played
        self._due: dict[int, list[tuple[str, str, str]]] = {}  # (receiver, sender, text), by round
        self._round = 0

    def observation(self, agent: str) -> Facts:
        """Return `inbox`: neighbor → its message, and `silent`: neighbors without one, both in neighbor order."""
        if self._inboxes is None:
            return {"inbox": {}, "silent": []}
        inbox, neighbors = self._inboxes.get(agent, {}), self._topology[agent]
        return {
            "inbox": {name: inbox[name] for name in neighbors if name in inbox},
            "silent": [name for name in neighbors if name not in inbox],
        }

    def commit(self, moves: Sequence[Move]) -> None:
        """Send the messages in `moves`, whose actions are None or neighbor → text."""
        self._inboxes = (self._inboxes if self._keep_latest else None) or {}
        arriving = self._due.pop(self._round, [])
        for move in moves:
            messages = move.action if isinstance(move.action, Mapping) else {}
            receivers = [name for name in messages if name in self._reach[move.agent]]
            lost = self.courier.lost(receivers)
            for name in receivers:
                if name not in lost:
                    message = name, move.agent, peer_text(messages[name])
                    for late in self.courier.delays():
                        (self._due.setdefault(self._round + late, []) if late else arriving).append(message)
        for receiver, sender, text in arriving:
            self._inboxes.setdefault(receiver, {})[sender] = text
        self._round += 1


@plugin
class Neighbors(Channel):
    """A message reaches the neighbor to which it is addressed; all messages of a round arrive at once.

    Attributes:
        lifetime: how long agents see a message: until the end of the next "round", or until its sender's next message
            ("latest").
    """

    lifetime: Literal["round", "latest"] = "round"

    opens = OpenNeighbors

    def open(self, case: Case, rng: random.Random) -> OpenNeighbors:
        """Return a channel for the case's topology; without one all agents are neighbors."""
        return OpenNeighbors(links(case), self.lifetime == "latest")
