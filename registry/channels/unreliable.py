"""Faults for any channel: lost, late and doubled messages."""

from __future__ import annotations

import random
from typing import Annotated

from harness.api import Case, Channel, OpenChannel, Range, plugin
from harness.errors import PluginError

from ._courier import Courier


@plugin
class Unreliable(Channel):
    """Makes another channel lose, delay or double messages (files: loses or delays changes).

    Attributes:
        channel: the channel that is made unreliable.
        loss: probability that a message never reaches a receiver.
        duplication: probability that a message comes twice.
        delay: a message comes up to so many rounds late.
    """

    channel: Channel
    loss: Annotated[float, Range(ge=0, le=1)] = 0.0
    duplication: Annotated[float, Range(ge=0, le=1)] = 0.0
    delay: Annotated[int, Range(ge=0)] = 0

    def open(self, case: Case, rng: random.Random) -> OpenChannel:
        """The other channel, with a courier that makes mistakes. Raises `PluginError` if it takes none."""
        opened = self.channel.open(case, rng)
        if not isinstance(getattr(opened, "courier", None), Courier):
            raise PluginError(f"{type(self.channel).__name__} cannot be made unreliable: it takes no courier")
        if isinstance(self.channel, Unreliable):
            raise PluginError("a channel is made unreliable once", hint="Give loss, delay and duplication together.")
        opened.courier = Courier(self.loss, self.duplication, self.delay, random.Random(rng.getrandbits(63)))  # type: ignore[attr-defined]
        return opened
