"""A key of specs: `twice: true` plays every condition twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.config.keys import SpecKey

if TYPE_CHECKING:
    from harness.config.plan import Condition


class Twice(SpecKey):
    """Play every condition twice, in two voices."""

    entry = bool  # the type of the value of `twice:`
    labels = ("voice",)  # the labels by which the conditions differ

    def conditions(self, whole: Condition, before: int) -> Iterator[Condition]:
        """Yield both voices. `base` names the condition whose cases and random draws they share."""
        for voice in ("first", "second") if self.value else ("first",):
            labels = {**whole.labels, "voice": voice}
            yield replace(whole, id=f"{whole.id},voice={voice}", labels=labels, base=whole.origin)
