"""How charts look: sizes and type for a column of a paper, colors that the color-blind can tell apart, files that are
the same bytes for the same data."""

from __future__ import annotations

import contextlib
import io
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

from harness.api.errors import DataError, SetupError, near
from harness.api.printable import clean_name, shortened
from harness.tables.table import Units

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6BB1", "#8A8A8A")
"""Okabe and Ito (2008), without black and yellow, which a dark and a white page swallow; then purple and gray."""
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*")
INK: Final = "#1f2328"
"""Text, axes, ticks. In a page it becomes the page's own text color."""
BLUE: Final = PALETTE[0]
"""The one color that is too dark for small type on a dark page: there the page lightens it."""
FAINT: Final = "#8a9199"
"""Grids and guides; legible on white and on dark pages."""
WIDTH: Final = 3.5
"""Inches: a column of a paper. Type has 8 points there, and is legible on a phone."""
FORMATS: Final = ("svg", "png", "pdf")
_MAX_LABEL_CHARS: Final = 44
_TICK: Final = 26
"""Characters of a line beside a bar."""
_LEAST_REACH: Final = 0.1
"""So much of the largest cost is the least that an axis of costs spans."""
_BREAKS: Final = " /-_:,;.=("
_LINE: Final = 0.16
"""Inches: a line of a legend."""
_SETTINGS: Final[dict[str, Any]] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Helvetica", "Arial"],
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.parse_math": False,
    "savefig.dpi": 300,
    "svg.fonttype": "none",
    "svg.hashsalt": "harness",
    "pdf.fonttype": 42,
}
_SVG: Final = "{http://www.w3.org/2000/svg}"
_LINK: Final = "{http://www.w3.org/1999/xlink}href"


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """Draw and write in this style, without warnings about letters that the font lacks.

    Raises:
        SetupError: if matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError as error:
        hint = 'Install it with: pip install "mas-eval-harness[plots]"'
        raise SetupError("drawing figures needs matplotlib, which is not installed", hint=hint) from error
    with matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def blank(height: float, width: float = WIDTH) -> Figure:
    """An empty figure of so many inches that belongs to no window; within `styled`."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def write(figure: Figure, path: Path) -> None:
    """Write a figure as svg, png or pdf, whatever the suffix says; within `styled`.

    Raises:
        DataError: for another suffix, or a place that cannot be written.
    """
    form = path.suffix.removeprefix(".").lower()
    if form not in FORMATS:
        hint = f"{near(form, FORMATS)} End its name in .svg, .png or .pdf."
        raise DataError(f"cannot write the figure to {path}: it is svg, png or pdf", hint=hint)
    undated: dict[str, Any] = {"svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None}}
    try:
        figure.savefig(path, format=form, metadata=undated.get(form))
    except (OSError, ValueError) as error:
        raise DataError(f"cannot write the figure to {path}: {getattr(error, 'strerror', None) or error}") from error


def inline(figure: Figure, name: str, title: str, description: str, scale: float = 1.4) -> str:
    """The figure as an `<svg>` element for an HTML page; within `styled`.

    Its text takes the color of the page's text, its background is the page's, and the page sets `--blue`.

    Args:
        figure: what to show.
        name: makes its ids unique in the page; letters, digits and dashes.
        title, description: what a screen reader says instead.
        scale: how much larger than in print it may stand where there is room.
    """
    buffer = io.BytesIO()
    for patch in (figure.patch, *(axis.patch for axis in figure.axes)):
        patch.set_visible(False)
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    root = ElementTree.fromstring(buffer.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.endswith("}metadata") or child.tag == f"{_SVG}style":
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        for key, value in list(element.attrib.items()):
            del element.attrib[key]
            element.set("href" if key == _LINK else key.rpartition("}")[2], _renamed(key, value, name))
    width, height = (float(x) for x in root.get("viewBox", "0 0 1 1").split()[2:])
    body = "".join(ElementTree.tostring(child, encoding="unicode", short_empty_elements=False) for child in root)
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" style="max-width: {scale * width:.0f}pt" role="img"'
        f' aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(clean_name(title))}</title>'
        f'<desc id="{name}-desc">{escape(clean_name(description))}</desc>{body}</svg>'
    )


def _renamed(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == _LINK:
        return value.replace("#", f"#{name}-", 1) if value.startswith("#") else value
    value = re.sub(r"url\(#", f"url(#{name}-", value).replace(INK, "currentColor")
    return value.replace(BLUE.lower(), "var(--blue)")


def label(name: object, longest: int = _MAX_LABEL_CHARS) -> str:
    """A name as a figure shows it: on one line, and shortened in the middle if it is long."""
    plain = clean_name(str(name))
    if len(plain) <= longest:
        return plain
    head = (longest - 1) // 2
    return f"{plain[:head]}…{plain[-(longest - 1 - head) :]}"


def labels(names: Iterable[str], longest: int = _MAX_LABEL_CHARS) -> list[str]:
    """`label` of names that stand side by side: different ones stay different."""
    plain = [clean_name(name) for name in names]
    cuts = shortened(plain, longest)
    return [cuts[name] for name in plain]


def ticks(names: Iterable[str]) -> list[str]:
    """Names beside bars: long ones on two lines, longer ones cut in the middle; different ones stay different."""
    return [_wrapped(name) for name in labels(names, 2 * _TICK - 2)]


def _wrapped(name: str) -> str:
    """On two lines if it is long, parted behind the sign nearest to its middle that leaves both short enough."""
    if len(name) <= _TICK:
        return name
    middle = len(name) // 2
    places = range(len(name) - _TICK, _TICK + 1)
    signs = [place for place in places if name[place - 1] in _BREAKS]
    place = min(signs, key=lambda at: abs(at - middle), default=middle)
    return f"{name[:place].rstrip()}\n{name[place:].lstrip()}"


def look(i: int) -> dict[str, Any]:
    """Color and marker of the i-th series."""
    return {"color": PALETTE[i % len(PALETTE)], "marker": MARKERS[(i + i // len(PALETTE)) % len(MARKERS)]}


def compact(x: float, digits: int = 3) -> str:
    """A number at an axis: 950, 1.5K, 20K, 3M, 0.05."""
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "K")):
        if abs(x) >= limit:
            return f"{x / limit:.{digits}g}{suffix}"
    return f"{x:.{digits}g}"


def reach(low: float, high: float) -> tuple[float, float]:
    """From where to where an axis of costs goes: over a tenth of the largest at least, so that a difference of a
    thousandth does not fill it.

    >>> reach(100, 200), reach(990, 1000)
    ((100, 200), (945.0, 1045.0))
    """
    lacking = ((_LEAST_REACH * max(abs(low), abs(high)) or 1.0) - (high - low)) / 2
    return (low - lacking, high + lacking) if lacking > 0 else (low, high)


def in_unit(axis: Axes, unit: Units) -> None:
    """The numbers of the y axis in the unit that tables show: percent, thousands."""
    if unit == "percent":
        axis.yaxis.set_major_formatter(lambda y, _: f"{100 * y:.3g}%")
    elif unit == "thousands":
        axis.yaxis.set_major_formatter(lambda y, _: f"{y / 1000:.3g}K")


def guide(axis: Axes) -> None:
    """A faint grid behind everything."""
    axis.grid(True, color=FAINT, alpha=0.3, linewidth=0.5)
    axis.set_axisbelow(True)


def legend(axis: Axes, names: Sequence[str], columns: int | None = None) -> None:
    """A legend above the axes, as many columns as the names leave room for; the figure grows by its further lines."""
    longest = max(map(len, names), default=0)
    columns = columns or max(1, min(len(names), int(52 / (longest + 5))))
    figure, lines = axis.get_figure(root=True), math.ceil(len(names) / columns)
    if figure is not None:
        figure.set_figheight(figure.get_figheight() + _LINE * max(0, lines - 1))
    axis.legend(loc="lower left", bbox_to_anchor=(0, 1.01), ncols=columns, borderaxespad=0, columnspacing=1.2)


def name_lines(axis: Axes, ends: Sequence[tuple[float, str, str]], x: float) -> None:
    """Names right of the lines' ends: (y, name, color), pushed apart where they would touch."""
    low, high = axis.get_ylim()
    step = (high - low) * 0.075
    places: list[tuple[float, str, str]] = []
    for y, name, color in sorted(ends):
        places.append((max(y, places[-1][0] + step) if places else y, name, color))
    over = max(0.0, places[-1][0] - high) if places else 0.0
    for y, name, color in places:
        axis.annotate(name, (x, y - over), (5, 0), textcoords="offset points", color=color, va="center", fontsize=7)
