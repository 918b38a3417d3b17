"""`--adaptive`: the option, and what it says. Imports next to nothing, because `harness eval --help` reads it."""

from __future__ import annotations

import math
from typing import Final

from harness.api.errors import Place, SpecError
from harness.cli.usage import Parser

PLACE: Final = Place("--adaptive")


def factor(value: object) -> float | None:
    """What the option says: how many times its lower end the upper end of an interval may be; None for what the table
    says. Raises `SpecError`."""
    if value is True:
        return None
    try:
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not 1 < number < math.inf:
        message = f"found {value!r:.40}: an interval's upper end cannot be so many times its lower end"
        raise SpecError(message, place=PLACE, hint="Give a number above 1, such as 1.3, or none for the table's.")
    return number


def of_eval(command: Parser) -> None:
    """Add the option to `harness eval`."""
    text = (
        "play only episodes that say most about the size solved by half, until its interval's ends are within this "
        "factor (default: `within` of the table with `ability:`)"
    )
    command.group("limits").add_argument("--adaptive", nargs="?", const=True, metavar="FACTOR", help=text)


def of_plan(command: Parser) -> None:
    """Add the option to `harness plan`."""
    text = "say how many episodes `harness eval --adaptive` is likely to play (default: `within` of the table)"
    command.group("how much is enough").add_argument("--adaptive", nargs="?", const=True, metavar="FACTOR", help=text)
