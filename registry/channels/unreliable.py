"""Faults for any channel: lost, late and duplicate messages."""

from __future__ import annotations

import random
from typing import Annotated

from harness.api import Case, Channel, OpenChannel, PluginError, Range, plugin

from ._courier import CarriedChannel, Courier


@plugin
class Unreliable(Channel):
    """Makes another channel lose, delay or duplicate messages. Changes of files are lost or delayed.

    Attributes:
        channel: the channel.
        loss: probability that a message never reaches a receiver.
        duplication: probability that a message arrives twice.
        delay: a message arrives up to this many rounds late, drawn uniformly.
    """

    channel: Channel
    loss: Annotated[float, Range(ge=0, le=1)] = 0.0
    duplication: Annotated[float, Range(ge=0, le=1)] = 0.0
    delay: Annotated[int, Range(ge=0)] = 0

    def __post_init__(self) -> None:
        if isinstance(self.channel, Unreliable):
            hint = "Give loss, delay and duplication together."
            raise PluginError("a channel is made unreliable once", hint=hint, at=("channel",))
        if not issubclass(self.opens, CarriedChannel):
            message = f"{type(self.channel).__name__} cannot be made unreliable: it opens no CarriedChannel"
            raise PluginError(message, at=("channel",))

    @property
    def opens(self) -> type[OpenChannel]:
        """The class that the other channel opens."""
        return self.channel.opens

    def open(self, case: Case, rng: random.Random) -> OpenChannel:
        """Return the other channel, with an unreliable courier."""
        opened = self.channel.open(case, rng)
        assert isinstance(opened, CarriedChannel)
        opened.courier = Courier(self.loss, self.duplication, self.delay, random.Random(rng.getrandbits(63)))
        return opened
