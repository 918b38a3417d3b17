"""MAS-Bench's P2P messaging (Appendix E.3, Table 5)."""

from __future__ import annotations

import random

from harness.api import Case, plugin
from harness.extensions.networks.calls import Verb

from .._board import Board, BoardChannel, Call, Message, RefusedError
from ._rows import Rows


@plugin
class PeerToPeer(BoardChannel):
    """MAS-Bench's P2P: a message goes to one agent, which fetches it; agents that have submitted get none."""

    def open(self, case: Case, rng: random.Random) -> Board:
        """Return a channel with empty mailboxes."""
        return OpenPeerToPeer(case, self.max_chars)


class OpenPeerToPeer(Rows):
    """One row for the receiver, unless it is offline."""

    kind = "p2p"
    word = "from"
    verbs = (Verb("receive_messages"), Verb("send_message", ("target_id",), "content"))

    def __init__(self, case: Case, max_chars: int) -> None:
        super().__init__(case, max_chars)
        self._offline: set[str] = set()

    def execute(self, agent: str, call: Call) -> str:
        """Execute receive_messages or send_message."""
        if call["call"] == "receive_messages":
            return self.receive(agent)
        receiver = self.receiver(agent, call["target_id"])
        if receiver in self._offline:
            raise RefusedError(f"{receiver} has submitted its result and is offline; the message was not delivered")
        text = self.message_text(call)
        self.note(agent, receiver, text)
        self.insert(Message(agent, text, self.round, self.knowledge[agent]), [receiver])
        return f"delivered to {receiver}"

    def on_submit(self, agent: str, text: str) -> str:
        """Set the agent offline. Others do not notice."""
        self._offline.add(agent)
        return ""
