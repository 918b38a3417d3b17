"""`--until`: what it says, and the option itself. Imports next to nothing, because `harness eval --help` reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from harness.api.errors import Place, SpecError
from harness.cli.usage import Parser

PLACE: Final = Place("--until")
HEADLINE: Final = "headline"
_SIGNS: Final = ("±", "+/-", "+-")
_WIDTH: Final = re.compile(r"(\d{1,12}(?:\.\d{1,12})?|\.\d{1,12})\s?(%?)(?:\s+(per condition))?", re.ASCII)
_FORMS: Final = (
    'It takes a number and how well it is to be known: "headline ±2%", "score ±0.02", or of each condition: '
    '"headline ±5% per condition". +- is the same as ±.'
)


@dataclass(frozen=True)
class Wanted:
    """How well which number is to be known.

    Attributes:
        name: `HEADLINE`, or a metric.
        width: half of the interval's width: in units of the number, or of `percent`.
        percent: whether it is a share of the range of the number, or of the number where it has no bounds.
        per_condition: whether each condition's own number is to be known so well.
    """

    name: str
    width: float
    percent: bool = False
    per_condition: bool = False

    @classmethod
    def parse(cls, text: object) -> Wanted:
        """Read what `--until` says. Raises `SpecError`."""
        from decimal import Decimal

        if not isinstance(text, str):
            raise _mistake(text, "not a text")
        sign = next((sign for sign in _SIGNS if sign in text), None)
        if sign is None:
            raise _mistake(text, "without ±")
        name, _, width = (part.strip() for part in text.partition(sign))
        found = _WIDTH.fullmatch(width)
        if not name or found is None:
            raise _mistake(text, "no metric before ±" if not name else f"{width!r:.40} is no width")
        if not float(found[1]):
            raise _mistake(text, "no number is ever known within 0")
        exact = Decimal(found[1]) / (100 if found[2] else 1)  # so that the nearest float has no more digits
        return cls(name, float(exact), bool(found[2]), bool(found[3]))

    def __str__(self) -> str:
        """As `parse` reads it: the same width, with no exponent."""
        from decimal import Decimal

        width = Decimal(repr(self.width)) * (100 if self.percent else 1)
        return f"{self.name} ±{width.normalize():f}" + "%" * self.percent + " per condition" * self.per_condition


def _mistake(text: object, what: str) -> SpecError:
    return SpecError(f"found {text!r:.80}: {what}", place=PLACE, hint=_FORMS)


def of_eval(command: Parser) -> None:
    """Add the option to `harness eval`."""
    text = "stop once a number is known well enough: 'headline ±2%%', 'score ±0.02'"
    command.group("limits").add_argument("--until", metavar="NUMBER±WIDTH", help=text)
