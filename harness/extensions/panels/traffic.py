"""How many messages each agent sent to each other in an episode: what protocols record for `harness messages`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

EVERY_OTHER = "*"
"""The receiver of a message that goes to all other agents."""


class Traffic:
    """Counts messages as agents send them. `sent` is the fact of that name.

    Attributes:
        sent: sender → receiver → [messages, characters]. Every agent is a sender, even without messages.
    """

    def __init__(self, agents: Iterable[str]) -> None:
        self.sent: dict[str, dict[str, list[int]]] = {agent: {} for agent in agents}

    def note(self, sender: str, receivers: Sequence[str], text: str) -> None:
        """Count a message to each of these readers; one entry if they are all other agents."""
        everyone = len(self.sent) > 2 and len(receivers) == len(self.sent) - 1
        for receiver in (EVERY_OTHER,) if everyone else receivers:
            entry = self.sent[sender].setdefault(receiver, [0, 0])
            entry[0] += 1
            entry[1] += len(text)

    @property
    def characters(self) -> int:
        """The number of characters of all messages."""
        return sum(length for receivers in self.sent.values() for _, length in receivers.values())
