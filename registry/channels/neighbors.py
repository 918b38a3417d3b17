"""The LOCAL model's channel (AgentsNet, Section 4)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Literal

from harness.api import Case, Channel, Facts, Move, plugin
from harness.authoring.networks import NeighborChannel
from harness.authoring.peers import peer_text

from ._courier import CarriedChannel


class OpenNeighbors(NeighborChannel, CarriedChannel):
    """Holds the messages that are seen now. An addressee that is no neighbor gets nothing."""

    def __init__(self, topology: Mapping[str, tuple[str, ...]], keep: bool) -> None:
        self._topology, self._keep = topology, keep
        self._reach = {agent: frozenset(neighbors) for agent, neighbors in topology.items()}
        self._inboxes: dict[str, dict[str, str]] | None = None  # None until a round has been played
        self._due: dict[int, list[tuple[str, str, str]]] = {}  # (receiver, sender, text), by round
        self._round = 0

    def observation(self, agent: str) -> Facts:
        """`inbox`: neighbor → its message; `silent`: neighbors that sent none. Both in neighbor order."""
        if self._inboxes is None:
            return {"inbox": {}, "silent": []}
        inbox = self._inboxes.get(agent, {})
        neighbors = self._topology[agent]
        return {
            "inbox": {name: inbox[name] for name in neighbors if name in inbox},
            "silent": [name for name in neighbors if name not in inbox],
        }

    def commit(self, moves: Sequence[Move]) -> None:
        """Take in the messages in `moves`: actions neighbor → text, or none."""
        if self._inboxes is None or not self._keep:
            self._inboxes = {}
        for move in moves:
            sent = move.action if isinstance(move.action, Mapping) else {}
            reached = [name for name in sent if name in self._reach[move.agent]]
            lost = self.courier.lost(reached)
            for name in reached:
                if name not in lost:
                    text = peer_text(sent[name], block=True)
                    for late in self.courier.delays():
                        self._due.setdefault(self._round + late, []).append((name, move.agent, text))
        for receiver, sender, text in self._due.pop(self._round, ()):
            self._inboxes.setdefault(receiver, {})[sender] = text
        self._round += 1


@plugin
class Neighbors(Channel):
    """Every message reaches the neighbor to which it is addressed, all messages of a round at once.

    Attributes:
        lifetime: a message is seen until the next "round" is committed, whoever speaks in it; or it is the "latest"
            of its sender, seen until that sender's next one.
    """

    lifetime: Literal["round", "latest"] = "round"

    opens = OpenNeighbors

    def open(self, case: Case, rng: random.Random) -> OpenNeighbors:
        """A channel along the case's topology; without one, all agents are neighbors."""
        if case.topology is not None:
            return OpenNeighbors(case.topology, self.lifetime == "latest")
        everybody = {agent: tuple(other for other in case.agents if other != agent) for agent in case.agents}
        return OpenNeighbors(everybody, self.lifetime == "latest")
