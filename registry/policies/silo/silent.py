"""The floor of SILO-Bench: no communication."""

from __future__ import annotations

from harness.api import Turn, plugin

from ._agent import Agent, Call, submit


@plugin
class Silent(Agent):
    """SILO-Bench: solves its own shard as if that were all there is, and submits at once: what can be guessed."""

    def act(self, turn: Turn) -> list[Call]:
        """Submit the answer for the own shard."""
        return [submit(self.guess())]
