"""Who sent how much to whom in an episode: what protocols record for `harness messages`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

EVERY_OTHER = "*"
"""The receiver of a message that goes to all other agents."""


class Traffic:
    """Counts messages as they are sent; `sent` is the fact of that name.

    Attributes:
        sent: sender → receiver → [messages, characters]. Every agent is a sender, perhaps of nothing.
    """

    def __init__(self, agents: Iterable[str]) -> None:
        self.sent: dict[str, dict[str, list[int]]] = {agent: {} for agent in agents}

    def note(self, sender: str, receivers: Sequence[str], text: str) -> None:
        """A message to each of these; one entry where they are all the others."""
        everyone = len(self.sent) > 2 and len(receivers) == len(self.sent) - 1
        for receiver in (EVERY_OTHER,) if everyone else receivers:
            entry = self.sent[sender].setdefault(receiver, [0, 0])
            entry[0] += 1
            entry[1] += len(text)

    @property
    def characters(self) -> int:
        """Of all messages."""
        return sum(length for receivers in self.sent.values() for _, length in receivers.values())
