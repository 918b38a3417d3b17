"""Faults for any channel: lost, late and doubled messages."""

from __future__ import annotations

import random
from typing import Annotated

from harness.api import Case, Channel, OpenChannel, Range, plugin
from harness.errors import PluginError

from ._courier import CarriedChannel, Courier


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

    def __post_init__(self) -> None:
        if isinstance(self.channel, Unreliable):
            hint = "Give loss, delay and duplication together."
            raise PluginError("a channel is made unreliable once", hint=hint, at=("channel",))
        if not issubclass(self.opens, CarriedChannel):
            message = f"{type(self.channel).__name__} cannot be made unreliable: it opens no CarriedChannel"
            raise PluginError(message, at=("channel",))

    @property
    def opens(self) -> type[OpenChannel]:
        """What the other channel opens."""
        return self.channel.opens

    def open(self, case: Case, rng: random.Random) -> OpenChannel:
        """The other channel, with a courier that makes mistakes."""
        opened = self.channel.open(case, rng)
        assert isinstance(opened, CarriedChannel)
        opened.courier = Courier(self.loss, self.duplication, self.delay, random.Random(rng.getrandbits(63)))
        return opened
