"""The base of MAS-Bench's two messaging backends: unread rows for receivers (Appendix E)."""

from __future__ import annotations

import re

from harness.api import Case

from .._board import Board, Message

_JOINER = re.compile(r"\|(?=\s*(?:broadcast\s+)?from\b)", re.IGNORECASE)
"""Text within a message that would look like the start of another row."""


class Rows(Board):
    """Messages as rows for a receiver, unread until it asks for them.

    A row exists at once: an agent whose commands are executed later in the same round can already receive it, and sees
    it in its next turn.
    """

    word: str
    """The first words of a received message."""

    def __init__(self, case: Case, max_chars: int) -> None:
        super().__init__(case, max_chars)
        self._unread: dict[str, list[Message]] = {agent: [] for agent in case.agents}
        self._due: dict[int, list[tuple[str, Message]]] = {}

    def insert(self, message: Message, receivers: list[str]) -> None:
        """Add a row for each receiver."""
        lost = self.courier.lost(receivers)
        for late in self.courier.delays():
            rows = [(receiver, message) for receiver in receivers if receiver not in lost]
            if late:
                self._due.setdefault(self.round + late, []).extend(rows)
            else:
                self._put(rows)

    def receive(self, agent: str) -> str:
        """Return the agent's unread rows in order of insertion, joined by " | ", and mark them as read."""
        messages, self._unread[agent] = self._unread[agent], []
        self.mark_read(messages)
        return (
            " | ".join(f"{self.word} {message.sender}: {_in_a_row(message)}" for message in messages)
            or "no new messages"
        )

    def deliver(self) -> None:
        """Add delayed rows."""
        self._put(self._due.pop(self.round, []))

    def _put(self, rows: list[tuple[str, Message]]) -> None:
        for receiver, message in rows:
            self._unread[receiver].append(message)


def _in_a_row(message: Message) -> str:
    """Return the message with joiners escaped, so that no part of it looks like another row."""
    return _JOINER.sub(r"\\|", message.view["text"])
