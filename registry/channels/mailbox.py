"""Directed messages (SILO-Bench's P2P, Appendix A.2)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from harness.api import Case, plugin
from harness.extensions.networks.calls import Verb

from ._board import Board, Call, InboxBoard, InboxChannel, Message, as_lines


@plugin
class Mailbox(InboxChannel):
    """SILO-Bench's P2P: every agent has a mailbox; a message arrives in it in the next round."""

    def open(self, case: Case, rng: random.Random) -> Board:
        """Return a channel with empty mailboxes."""
        return OpenMailbox(case, self)


class OpenMailbox(InboxBoard):
    """Mailboxes in order of arrival: by round, then sender, then order of sending."""

    kind = "mailbox"
    verbs = (Verb("send_message", ("target_id",), "content"), Verb("receive_messages"))

    def __init__(self, case: Case, channel: InboxChannel) -> None:
        super().__init__(case, channel)
        self._boxes: dict[str, list[Message]] = {agent: [] for agent in case.agents}
        self._due: dict[int, list[tuple[str, Message]]] = {}

    def incoming(self, agent: str) -> Sequence[Message]:
        """Messages that have arrived since the agent's last decision."""
        return self._boxes[agent][self._seen[agent] :] if self._push else ()

    def mark_seen(self, agent: str) -> None:
        """Move the cursor to the end."""
        self._seen[agent] = len(self._boxes[agent])

    def execute(self, agent: str, call: Call) -> str:
        """Execute send_message or receive_messages."""
        if call["call"] == "receive_messages":
            messages = self._boxes[agent][self._read[agent] :]
            self.mark_read(messages, max(0, self._seen[agent] - self._read[agent]) if self._push else 0)
            self._read[agent] = len(self._boxes[agent])
            return as_lines(messages)
        receiver = self.receiver(agent, call["target_id"])
        text = self.message_text(call)
        message = Message(agent, text, self.round, self.knowledge[agent])
        self.note(agent, receiver, text)
        if receiver not in self.courier.lost((receiver,)):
            for late in self.courier.delays():
                self._due.setdefault(self.round + 1 + late, []).append((receiver, message))
        return f"sent to {receiver}"

    def deliver(self) -> None:
        """Put due messages into the mailboxes."""
        due = self._due.pop(self.round, [])
        for receiver, message in sorted(due, key=lambda one: (one[1].round, self.number[one[1].sender])):
            self._boxes[receiver].append(message)
