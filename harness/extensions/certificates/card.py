"""The card and the badge of certified benchmarks: `harness-card.json`, `harness-badge.svg`."""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness import __version__, storage
from harness.api.errors import DataError, Place
from harness.plugins.parameters import schema_problems
from harness.runtime.run_json import now

from .certify import Certificate

CARD: Final = "harness-card.json"
BADGE: Final = "harness-badge.svg"
FORMAT: Final = 1
MAX_BYTES: Final = 1 << 22
"""Bytes of a card that is read."""
_LINE: Final = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
_BENCHMARK: Final = {
    "type": "object",
    "required": ["spec", "passed", "lines"],
    "properties": {
        "spec": {"type": "string", "maxLength": 500},
        "passed": {"type": "boolean"},
        "lines": {"type": "array", "maxItems": 100, "items": _LINE},
    },
}
_SHAPE: Final = {
    "type": "object",
    "required": ["format", "harness", "date", "benchmarks"],
    "properties": {
        "format": {"const": FORMAT},
        "harness": {"type": "string"},
        "date": {"type": "string"},
        "benchmarks": {"type": "array", "minItems": 1, "maxItems": 10_000, "items": _BENCHMARK},
    },
}
"""What a register reads of a card, as JSON Schema."""
_CHAR: Final = 6.6
"""Pixels of a character of the badge, on average."""
_GREEN, _RED, _GRAY = "#2b7a3d", "#b3261e", "#444"


@dataclass(frozen=True)
class CardSource:
    """Where benchmarks come from: a package and its version, or a project."""

    name: str
    version: str | None = None


def card(certificates: Sequence[Certificate], source: CardSource) -> dict[str, Any]:
    """The card as JSON data."""
    return {
        "format": FORMAT,
        "harness": __version__,
        "date": now(),
        "source": {"name": source.name, "version": source.version},
        "passed": bool(certificates) and all(one.passed for one in certificates),
        "benchmarks": [one.as_data() for one in certificates],
    }


def badge(data: Mapping[str, Any]) -> str:
    """A card as an SVG image of one line, readable by screen readers and without fonts of its own."""
    some, passed = data["benchmarks"], sum(bool(one["passed"]) for one in data["benchmarks"])
    if len(some) == 1:
        verdict = "certified" if passed else "not certified"
    else:
        verdict = f"{passed} of {len(some)} certified"
    left, right = f"harness {data['harness']}", verdict
    widths = [round(_CHAR * len(text) + 14) for text in (left, right)]
    color = _GREEN if data["passed"] else _RED
    total, title = sum(widths), html.escape(f"{left}: {right}, {str(data['date'])[:10]}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="20" role="img" aria-label="{title}">'
        f"<title>{title}</title>"
        f'<rect width="{widths[0]}" height="20" fill="{_GRAY}"/>'
        f'<rect x="{widths[0]}" width="{widths[1]}" height="20" fill="{color}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{widths[0] / 2:g}" y="14">{html.escape(left)}</text>'
        f'<text x="{widths[0] + widths[1] / 2:g}" y="14">{html.escape(right)}</text></g></svg>\n'
    )


def write(data: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write card and badge into a folder, in place of earlier ones; returns their paths.

    Raises:
        DataError: the folder cannot be written.
    """
    texts = {CARD: json.dumps(data, indent=1, ensure_ascii=False) + "\n", BADGE: badge(data)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            storage.write_atomically(folder / name, text)
    except OSError as error:
        raise DataError(
            f"cannot write to {folder}: {error.strerror or error}", hint="Choose another --output."
        ) from None
    return [folder / name for name in texts]


def digest(raw: bytes) -> str:
    """The digest by which a register pins a card."""
    return f"sha256:{hashlib.sha256(raw).hexdigest()}"


def read(raw: bytes, place: str) -> dict[str, Any]:
    """The card in some bytes, which may come from a stranger.

    Raises:
        DataError: they are no card of this format.
    """
    try:
        data = json.loads(raw) if len(raw) <= MAX_BYTES else None
    except (ValueError, RecursionError):
        data = None
    if next(schema_problems(data, _SHAPE), None) is not None:
        hint = "`harness certify` writes cards."
        raise DataError(f"is no card of format {FORMAT}", place=Place(place), hint=hint)
    return dict(data or {})
