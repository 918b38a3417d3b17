"""How numbers are drawn: places in SVG pictures. Templates write them, with the numbers beside them as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.extensions.charts.style import compact, reach

LEFT, TOP, BOTTOM, WIDE, NARROW = 64, 16, 268, 632, 500
"""The edges of the axes of a plot; on the right a narrow one leaves room for names."""
STRIP_WIDTH: Final = 160
RANKS_WIDTH: Final = 48
_EDGE: Final = 5


@dataclass(frozen=True)
class Scale:
    """A straight or logarithmic axis: numbers from `low` to `high` lie from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def __call__(self, x: float) -> float:
        """The place of a number; one beyond an end lies at the end."""
        low, high, x = (math.log(v) if self.is_log else v for v in (self.low, self.high, self._within(x)))
        share = (x - low) / (high - low) if high > low else 0.5
        return round(self.start + share * (self.end - self.start), 1)

    def _within(self, x: float) -> float:
        return min(self.high, max(self.low, x))

    def ticks(self) -> list[tuple[float, float]]:
        """(number, place) of about five round numbers."""
        if self.is_log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            found = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
        else:
            step = 10.0 ** math.floor(math.log10((self.high - self.low or 1.0) / 4))
            step *= next((factor for factor in (1, 2, 5, 10) if (self.high - self.low) / (factor * step) <= 5), 10)
            first = math.ceil(self.low / step - 1e-9)
            found = [round(i * step, 12) for i in range(first, math.floor(self.high / step + 1e-9) + 1)]
        inside = [x for x in found if self.low * (1 - 1e-9) <= x <= self.high * (1 + 1e-9) or x == 0 == self.low]
        return [(x, self(x)) for x in (inside[:: 3 if len(inside) > 9 else 1])]


def extent(numbers: Sequence[float | None], unit: bool) -> tuple[float, float]:
    """From where to where an axis goes that shows all these; `unit`: of shares, from 0 to 1 at least."""
    known = [x for x in numbers if x is not None and math.isfinite(x)] + ([0.0, 1.0] if unit else [])
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if not unit and 0 < low <= 0.5 * high:
        low = 0.0
    return (low, high) if high > low else (low - 0.5, low + 0.5)


Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


@dataclass(frozen=True)
class Strip:
    """A number with its interval on a line, between floor and ceiling; the others as ticks."""

    at: float | None
    low: float | None
    high: float | None
    floor: float | None
    ceiling: float | None
    others: Sequence[float] = ()
    beside: float | None = None
    width: int = STRIP_WIDTH


def strip(
    within: tuple[float, float],
    value: float | None,
    interval: tuple[float | None, float | None] = (None, None),
    ends: tuple[float | None, float | None] = (None, None),
    others: Sequence[float] = (),
    beside: float | None = None,
) -> Strip:
    """Places of a number, of its interval, of floor and ceiling, of other numbers, and of one `beside` it."""
    axis = Scale(*within, _EDGE, STRIP_WIDTH - _EDGE)
    at, low, high, floor, ceiling, other = (None if x is None else axis(x) for x in (value, *interval, *ends, beside))
    return Strip(at, low, high, floor, ceiling, sorted({axis(x) for x in others}), other)


@dataclass(frozen=True)
class Ranks:
    """The ranks that are possible, as a bar on a line of all ranks."""

    x: float
    width: float


def ranks(span: tuple[int, int] | None, of: int) -> Ranks | None:
    """The bar for a span of ranks among so many; None without ranks."""
    if span is None or of < 1:
        return None
    one = RANKS_WIDTH / of
    return Ranks(round((span[0] - 1) * one, 1), round(max(3.0, (span[1] - span[0] + 1) * one), 1))


@dataclass(frozen=True)
class PlotAxis:
    """A title, and the texts along an axis with their places."""

    title: str
    ticks: Sequence[tuple[str, float]]


@dataclass(frozen=True)
class Mark:
    """A point or a line of a plot with a name.

    Attributes:
        name: what it is.
        at: its place, of a line the last one's.
        bars: (x, from where, to where) of intervals, which are upright.
        path: the places of a line.
        color: a number of the palette; None: in the background.
        label: where its name stands, if there is room.
    """

    name: str
    at: tuple[float, float]
    bars: Sequence[tuple[float, float, float]] = ()
    path: Sequence[tuple[float, float]] = ()
    color: int | None = None
    label: tuple[float, float, str] | None = None

    @property
    def points(self) -> str:
        """The places of its line as SVG writes them."""
        return " ".join(f"{x:g},{y:g}" for x, y in self.path)


@dataclass(frozen=True)
class Plot:
    """Points or lines between two axes."""

    x: PlotAxis
    y: PlotAxis
    marks: Sequence[Mark]
    right: int
    front: str = ""
    width: int = 640
    height: int = 320
    left: int = LEFT
    top: int = TOP
    bottom: int = BOTTOM


def axes(xs: Sequence[float | None], ys: Sequence[float | None], unit: bool, right: int) -> tuple[Scale, Scale]:
    """The two axes of a plot, x a logarithmic one where the numbers lie far apart. `unit`: y are shares."""
    known = [x for x in xs if x is not None]
    is_log = bool(known) and min(known) > 0 and max(known) / min(known) >= 16
    low, high = (min(known), max(known)) if is_log else reach(*extent(xs, False))
    pad = 0.0 if is_log else 0.04 * (high - low)
    across = (low / 1.25, high * 1.25) if is_log else (max(0.0, low - pad) if low >= 0 else low - pad, high + pad)
    return (
        Scale(*across, LEFT, right, is_log),
        Scale(*extent(ys, unit), BOTTOM, TOP),
    )


def placed_names(
    marks: Sequence[tuple[str, float, float]], right: float, lines: Sequence[Box] = ()
) -> list[tuple[float, float, str] | None]:
    """Where names stand beside their points, up to `right`: on the right if there is room, else on the left, above or
    below; None where one would lie on another. `lines` (and points) may run through a name that has no other place."""
    taken: list[Box] = []
    found: list[tuple[float, float, str] | None] = []
    for name, x, y in marks:
        wide = 6.4 * len(name)
        places = [
            (start, start if anchor == "start" else x - 8, y + lift, anchor)
            for lift in (0, -11, 11)
            for anchor, start in (("start", x + 8), ("end", x - 8 - wide))
        ]
        boxes = [(start, at - 7, start + wide, at + 7) for start, _, at, _ in places]
        free = [
            (box, at)
            for box, at in zip(boxes, places, strict=True)
            if box[0] >= 66 and box[2] <= right and not any(_touch(box, other) for other in taken)
        ]
        if not free:
            found.append(None)
            continue
        box, (_, at, middle, anchor) = next(
            (one for one in free if not any(_touch(one[0], line) for line in lines)), free[0]
        )
        taken.append(box)
        found.append((at, middle + 4, anchor))
    return found


def _touch(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def apart(places: Sequence[float], step: float, top: float, bottom: float) -> list[float]:
    """Places moved so that no two are nearer than `step`, in the same order of size."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = [*places]
    least = top
    for i in order:
        moved[i] = max(moved[i], least)
        least = moved[i] + step
    most = bottom
    for i in reversed(order):
        moved[i] = min(moved[i], most)
        most = moved[i] - step
    return moved


def shown(numbers: Sequence[float], unit: Any) -> list[str]:
    """Numbers at an axis, in the unit of tables, with as many digits as it takes to tell them apart."""
    factor, sign = (100, " %") if unit == "percent" else (1, "")
    texts: list[str] = []
    for digits in range(3, 16):
        texts = [f"{compact(factor * x, digits)}{sign}" for x in numbers]
        if len({*texts}) == len({*numbers}):
            break
    return texts
