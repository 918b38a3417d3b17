"""MAS-Bench's Broadcasting (Appendix E.2, Table 5)."""

from __future__ import annotations

import random
from typing import Annotated

from harness.api import Case, Channel, Range, plugin
from harness.replies import Verb

from .._board import MAX_CHARS, Board, Call, Letter, RefusedError
from ._rows import Rows


@plugin
class Broadcasting(Channel):
    """MAS-Bench: a message goes to all other agents, which see it when they next ask; submissions are announced to all.

    Attributes:
        max_chars: a longer message is refused.
    """

    max_chars: Annotated[int, Range(ge=1)] = MAX_CHARS

    opens = Board

    def open(self, case: Case, rng: random.Random) -> Board:
        """Nothing said yet."""
        return OpenBroadcasting(case, self.max_chars)


class OpenBroadcasting(Rows):
    """One row for every other agent, those that have submitted too."""

    kind = "broadcasting"
    word = "broadcast from"
    verbs = (Verb("receive_messages"), Verb("broadcast_message", (), "content"), Verb("list_agents"))

    def do(self, seat: str, call: Call) -> str:
        """receive_messages, broadcast_message or list_agents."""
        if call["call"] == "receive_messages":
            return self.receive(seat)
        if call["call"] == "list_agents":
            return ", ".join(self.seats)
        text = self.checked(call["content"], "message")
        if not text.strip():
            raise RefusedError("the message is empty; nothing was sent")
        self.note(seat, "*", text)
        return f"delivered ({', '.join(self._all_others(seat, text))})"

    def submitted(self, seat: str, text: str) -> str:
        """All others get the announcement."""
        announcement = f"{seat} submitted result {text}"
        self.announced += len(announcement)
        return f"broadcasted to {', '.join(self._all_others(seat, announcement))}"

    def _all_others(self, seat: str, text: str) -> list[str]:
        others = [other for other in self.seats if other != seat]
        self.insert(Letter(seat, text, self.round, self.known[seat]), others)
        return others
