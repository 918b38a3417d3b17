"""Amounts on the command line: `3%` of the range of a metric, or `0.5` in its own unit."""

from __future__ import annotations

import math
from dataclasses import dataclass

from harness.api.errors import SpecError


@dataclass(frozen=True, slots=True)
class Amount:
    """How much.

    Attributes:
        number: 0.03 of 3 %.
        is_share: whether it is a share of a metric's range.
    """

    number: float
    is_share: bool

    @classmethod
    def read(cls, words: str, option: str) -> Amount:
        """Read `3%`, `±3%` or `0.5`. Raises `SpecError` for anything but a number above 0, and of a share below 1."""
        bare = words.strip().removeprefix("±").strip()
        is_share = bare.endswith("%")
        try:
            number = float(bare.removesuffix("%"))
        except ValueError:
            number = math.nan
        number = number / 100 if is_share else number
        if not 0 < number < (1 if is_share else math.inf):
            hint = "Give a share of what is possible, such as 3%, or a number in the metric's unit, such as 0.5."
            raise SpecError(f"{option} {words!r:.40} is no amount", hint=hint)
        return cls(number, is_share)

    def of(self, width: float, name: str) -> float:
        """The amount in the unit of a metric whose numbers are at most `width` apart.

        Raises:
            SpecError: for a share of a range without ends.
        """
        if not self.is_share:
            return self.number
        if not math.isfinite(width):
            raise SpecError(f"{name} has no bounds, so nothing is {self} of it", hint="Give a number in its own unit.")
        return self.number * width

    def __str__(self) -> str:
        return f"{100 * self.number:.10g} %" if self.is_share else f"{self.number:.10g}"
