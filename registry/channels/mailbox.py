"""Directed messages (SILO-Bench's P2P, Appendix A.2)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Annotated, Literal

from harness.api import Case, Channel, Facts, Range, plugin
from harness.extensions.networks.calls import Verb

from ._board import MAX_CHARS, Board, Call, Letter, RefusedError, as_lines


@plugin
class Mailbox(Channel):
    """SILO-Bench's P2P: every agent has a mailbox; a message arrives in it in the next round.

    Attributes:
        inbox: "push": agents also see new messages at the start of a round. "pull": only `receive_messages` shows them.
        reach: in a task with a network, messages go to "neighbors" only, or to "all".
        max_chars: longer messages are refused.
    """

    inbox: Literal["push", "pull"] = "push"
    reach: Literal["neighbors", "all"] = "neighbors"
    max_chars: Annotated[int, Range(ge=1)] = MAX_CHARS

    opens = Board

    def open(self, case: Case, rng: random.Random) -> Board:
        """Return a channel with empty mailboxes."""
        board = OpenMailbox(case, self.max_chars, self.inbox == "push")
        if self.reach == "all":
            board.topology = None
        return board


class OpenMailbox(Board):
    """Mailboxes in order of arrival: by round, then sender, then order of sending."""

    kind = "mailbox"
    verbs = (Verb("send_message", ("target_id",), "content"), Verb("receive_messages"))

    def __init__(self, case: Case, max_chars: int, push: bool) -> None:
        super().__init__(case, max_chars)
        self._push = push
        self._boxes: dict[str, list[Letter]] = {agent: [] for agent in case.agents}
        self._seen = dict.fromkeys(case.agents, 0)  # shown at the start of a round
        self._read = dict.fromkeys(case.agents, 0)  # received by a call
        self._due: dict[int, list[tuple[str, Letter]]] = {}

    @property
    def description(self) -> Facts:
        """`inbox`: push or pull. `reach`: all, or in a network neighbors."""
        reach = "all" if self.topology is None else "neighbors"
        return {"kind": self.kind, "inbox": "push" if self._push else "pull", "reach": reach}

    def incoming(self, agent: str) -> Sequence[Letter]:
        """Messages that have arrived since the agent's last decision."""
        return self._boxes[agent][self._seen[agent] :] if self._push else ()

    def mark_seen(self, agent: str) -> None:
        """Move the cursor to the end."""
        self._seen[agent] = len(self._boxes[agent])

    def execute(self, agent: str, call: Call) -> str:
        """Execute send_message or receive_messages."""
        if call["call"] == "receive_messages":
            letters = self._boxes[agent][self._read[agent] :]
            self.mark_read(letters, max(0, self._seen[agent] - self._read[agent]) if self._push else 0)
            self._read[agent] = len(self._boxes[agent])
            return as_lines(letters)
        receiver = self.receiver(agent, call["target_id"])
        text = self.check_length(call["content"], "message")
        if not text.strip():
            raise RefusedError("the message is empty; nothing was sent")
        letter = Letter(agent, text, self.round, self.knowledge[agent])
        self.note(agent, receiver, text)
        if receiver not in self.courier.lost((receiver,)):
            for late in self.courier.delays():
                self._due.setdefault(self.round + 1 + late, []).append((receiver, letter))
        return f"sent to {receiver}"

    def deliver(self) -> None:
        """Put due messages into the mailboxes."""
        due = self._due.pop(self.round, [])
        for receiver, letter in sorted(due, key=lambda one: (one[1].round, self.number[one[1].sender])):
            self._boxes[receiver].append(letter)
