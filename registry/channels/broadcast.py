"""Messages to all agents (SILO-Bench's BP, Appendix A.3)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from harness.api import Case, plugin
from harness.extensions.networks.calls import Verb

from ._board import Board, Call, InboxBoard, InboxChannel, Message, as_lines


@plugin
class Broadcast(InboxChannel):
    """SILO-Bench's BP: a message reaches all other agents in the next round; in a network, the neighbors."""

    def open(self, case: Case, rng: random.Random) -> Board:
        """Return a channel without messages."""
        return OpenBroadcast(case, self)


class OpenBroadcast(InboxBoard):
    """One log for all agents, in order of rounds, then senders. Each reader has a cursor in it."""

    kind = "broadcast"
    verbs = (Verb("broadcast_message", (), "content"), Verb("receive_messages"), Verb("list_agents"))

    def __init__(self, case: Case, channel: InboxChannel) -> None:
        super().__init__(case, channel)
        self._log: list[Message] = []
        self._due: dict[int, list[Message]] = {}

    def incoming(self, agent: str) -> Sequence[Message]:
        """Messages of others since the agent's last decision."""
        return self._of_others(agent, self._seen[agent]) if self._push else ()

    def mark_seen(self, agent: str) -> None:
        """Move the cursor to the end."""
        self._seen[agent] = len(self._log)

    def execute(self, agent: str, call: Call) -> str:
        """Execute broadcast_message, receive_messages or list_agents."""
        if call["call"] == "list_agents":
            return ", ".join(self.agents)
        if call["call"] == "receive_messages":
            messages = self._of_others(agent, self._read[agent])
            old = self._of_others(agent, self._read[agent], self._seen[agent]) if self._push else ()
            self._read[agent] = len(self._log)
            self.mark_read(messages, len(old))
            return as_lines(messages)
        text = self.message_text(call)
        others = self.others(agent)
        lost = self.courier.lost(self.agents)
        if self.topology is not None:
            lost |= {*self.agents} - {*others}
        message = Message(agent, text, self.round, self.knowledge[agent], lost)
        self.note(agent, "*", text)
        for late in self.courier.delays():
            self._due.setdefault(self.round + 1 + late, []).append(message)
        return f"sent to all {len(others)} {'others' if self.topology is None else 'neighbors'}"

    def deliver(self) -> None:
        """Append due messages to the log."""
        due = self._due.pop(self.round, [])
        self._log += sorted(due, key=lambda message: (message.round, self.number[message.sender]))

    def _of_others(self, agent: str, start: int, end: int | None = None) -> list[Message]:
        return [message for message in self._log[start:end] if message.sender != agent and agent not in message.lost]
