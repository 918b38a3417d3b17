"""MAS-Bench's Broadcasting (Appendix E.2, Table 5)."""

from __future__ import annotations

import random

from harness.api import Case, plugin
from harness.extensions.networks.calls import Verb

from .._board import Board, BoardChannel, Call, Message
from ._rows import Rows


@plugin
class Broadcasting(BoardChannel):
    """MAS-Bench's Broadcasting: a message goes to all other agents, which fetch it; submissions are announced."""

    def open(self, case: Case, rng: random.Random) -> Board:
        """Return a channel without messages."""
        return OpenBroadcasting(case, self.max_chars)


class OpenBroadcasting(Rows):
    """One row for every other agent, including those that have submitted."""

    kind = "broadcasting"
    word = "broadcast from"
    verbs = (Verb("receive_messages"), Verb("broadcast_message", (), "content"), Verb("list_agents"))

    def execute(self, agent: str, call: Call) -> str:
        """Execute receive_messages, broadcast_message or list_agents."""
        if call["call"] == "receive_messages":
            return self.receive(agent)
        if call["call"] == "list_agents":
            return ", ".join(self.agents)
        text = self.message_text(call)
        self.note(agent, "*", text)
        return f"delivered ({', '.join(self._all_others(agent, text))})"

    def on_submit(self, agent: str, text: str) -> str:
        """Announce the submission to all other agents."""
        announcement = f"{agent} submitted result {text}"
        self.announced_characters += len(announcement)
        return f"broadcasted to {', '.join(self._all_others(agent, announcement))}"

    def _all_others(self, agent: str, text: str) -> list[str]:
        others = [*self.others(agent)]
        self.insert(Message(agent, text, self.round, self.knowledge[agent]), others)
        return others
