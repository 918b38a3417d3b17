"""The floor of MAS-Bench: no communication."""

from __future__ import annotations

from harness.api import Turn, plugin

from ..silo._agent import Call, submit
from ._agent import Commander


@plugin
class Silent(Commander):
    """Any task of MAS-Bench: submits at once the answer for its own list alone; in sorting, that list sorted."""

    def act(self, turn: Turn) -> list[Call]:
        """Submit, without a word."""
        return [submit(self.local())]
