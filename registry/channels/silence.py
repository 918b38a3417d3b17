"""No communication: the lower baseline of every benchmark of coordination."""

from __future__ import annotations

import random

from harness.api import Case, Channel, plugin

from ._board import Board, Call, RefusedError


@plugin
class Silence(Channel):
    """No communication: what a group achieves without it, or one agent alone."""

    opens = Board

    def open(self, case: Case, rng: random.Random) -> Board:
        """Return a channel without calls."""
        return OpenSilence(case)


class OpenSilence(Board):
    """No calls, no messages."""

    kind = "silence"

    def execute(self, agent: str, call: Call) -> str:
        """Refuse every call."""
        raise RefusedError("nothing can be said here")
