"""What MAS-Bench's two messaging backends share: rows for receivers, delivered when they next ask (Appendix E)."""

from __future__ import annotations

import re

from harness.api import Case

from .._board import Board, Letter

_JOINER = re.compile(r"\|(?=\s*(?:broadcast\s+)?from\b)", re.IGNORECASE)
"""What would begin another row within a message."""


class Rows(Board):
    """Messages as rows: sender, receiver, text, read or not. A row is there at once, within a round too; who is carried
    out later in the round can receive it then, and sees it with its next reply.
    """

    word: str
    """What a received message begins with."""

    def __init__(self, case: Case, max_chars: int) -> None:
        super().__init__(case, max_chars)
        self._unread: dict[str, list[Letter]] = {agent: [] for agent in case.agents}
        self._due: dict[int, list[tuple[str, Letter]]] = {}

    def insert(self, letter: Letter, receivers: list[str]) -> None:
        """A row for each receiver."""
        lost = self.courier.lost(receivers)
        for late in self.courier.delays():
            rows = [(receiver, letter) for receiver in receivers if receiver not in lost]
            if late:
                self._due.setdefault(self.round + late, []).extend(rows)
            else:
                self._put(rows)

    def receive(self, agent: str) -> str:
        """The agent's unread rows in order of insertion, joined by " | "; they are read then."""
        letters, self._unread[agent] = self._unread[agent], []
        self.learn(letters)
        return (
            " | ".join(f"{self.word} {letter.sender}: {_in_a_row(letter)}" for letter in letters) or "no new messages"
        )

    def deliver(self) -> None:
        """Rows that were late."""
        self._put(self._due.pop(self.round, []))

    def _put(self, rows: list[tuple[str, Letter]]) -> None:
        for receiver, letter in rows:
            self._unread[receiver].append(letter)


def _in_a_row(letter: Letter) -> str:
    """The message, with no joiner in it that another row could seem to follow."""
    return _JOINER.sub(r"\\|", letter.shown["text"])
