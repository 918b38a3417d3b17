"""The lower baseline of MAS-Bench: no communication."""

from __future__ import annotations

from harness.api import Turn, plugin

from ..silo._agent import Call, submit
from ._agent import Commander


@plugin
class Silent(Commander):
    """Any task of MAS-Bench: submits at once the answer for its own list alone."""

    def act(self, turn: Turn) -> list[Call]:
        """Submit the answer for the own list."""
        return [submit(self.local())]
