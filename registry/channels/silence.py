"""No communication at all: the floor that every benchmark of coordination needs."""

from __future__ import annotations

import random

from harness.api import Case, Channel, plugin

from ._board import Board, Call, RefusedError


@plugin
class Silence(Channel):
    """No communication: what a group achieves without it, or one agent alone."""

    opens = Board

    def open(self, case: Case, rng: random.Random) -> Board:
        """Nothing to open."""
        return OpenSilence(case)


class OpenSilence(Board):
    """No calls, no messages."""

    kind = "silence"

    def do(self, agent: str, call: Call) -> str:
        """There is nothing to do."""
        raise RefusedError("nothing can be said here")
