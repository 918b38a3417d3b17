"""Regular expressions for decoding, made from what a form declares (`Reply.fields`): the lines of a reply."""

from __future__ import annotations

import math

from harness.api import Facts, Reply, as_text

from .characters import literal

_CHARS, _ITEMS, _DIGITS = 500, 200, 9
"""Characters of a text, items of a list and digits of a number that decoding may write where nothing bounds them."""
NO_NUMBER = r"^\D"
"""The `pattern` of a text that is no number."""


def lines(form: Reply, without: str = "") -> str:
    """A regular expression for a reply in a form: each field on its line, after its label, in order.

    It has no labels, brackets, quotes or marks in texts, so that each field is read as it stands. A text that says
    "None" says nothing.

    Args:
        form: the form.
        without: further characters that no text may have.
    """
    return "\\n".join(f"{literal(one.lead)} {pattern(one.schema, without)}".lstrip() for one in form.fields)


def pattern(schema: Facts, without: str = "") -> str:
    """A regular expression for the values that a schema allows, written as in `lines`."""
    if "enum" in schema:
        return f"({'|'.join(literal(as_text(value)) for value in schema['enum'])})"
    kind = schema.get("type", "string")
    if kind in ("integer", "number"):
        return _number(kind, schema.get("minimum", -math.inf), schema.get("maximum", math.inf))
    if kind == "boolean":
        return "(true|false)"
    if kind == "string":
        most = max(1, min(schema.get("maxLength", _CHARS), _CHARS))
        first = _WORD if schema.get("pattern") != NO_NUMBER else f"{_WORD[:-2]}0-9-]"
        return f"{first}([^{_MARKS}{without}]{{0,{most - 2}}}{_WORD})?" if most > 1 else first
    quoted = f'"{_WORD}{{1,40}}"'
    each = schema.get("items") or schema.get("additionalProperties") or {}
    item = quoted if each.get("type", "string") == "string" and "enum" not in each else pattern(each, without)
    item = f'"{item}"' if "enum" in each else item
    if kind == "object":
        item = f"{quoted}: {item}"
    least, most = schema.get("minItems", 0), min(schema.get("maxItems", _ITEMS), _ITEMS)
    many = f"{item}(, {item}){{{max(0, least - 1)},{max(0, most - 1)}}}"
    many = many if least else f"({many})?"
    return f"\\{{{many}\\}}" if kind == "object" else f"\\[{many}\\]"


_MARKS = r":：{}\[\]()<>`*_#|=→–—\"'“”‘’„«»\\\t\r\n"
"""What may begin or end a field, wrap it, or begin an escape."""
_WORD = rf"[^\s.,;!?…{_MARKS}-]"


def _number(kind: str, low: float, high: float) -> str:
    """Numbers between two bounds, both included; fractions have up to six digits."""
    if not (math.isfinite(low) and math.isfinite(high)):
        whole = ("" if low >= 0 else "-?") + f"[0-9]{{1,{_DIGITS}}}"
        return whole if kind == "integer" else rf"{whole}(\.[0-9]{{1,6}})?"
    first, last = math.ceil(low), math.floor(high)
    options = [_integers(first, last)] if first <= last else []
    if kind == "number":  # of a fraction, the whole numbers that enclose it are within the bounds
        options += [rf"{sign}{part}\.[0-9]{{1,6}}" for sign, part in (
            ("", _integers(max(first, 0), last - 1) if last > max(first, 0) else ""),
            ("-", _integers(max(-last, 0), -first - 1) if -first > max(-last, 0) else ""),
        ) if part]  # fmt: skip
        options += [literal(f"{end:.6f}".rstrip("0").rstrip(".")) for end in (low, high) if not float(end).is_integer()]
    return f"({'|'.join(options)})"


def _integers(low: int, high: int) -> str:
    """All whole numbers from `low` to `high`."""
    parts = []
    if low < 0:
        parts.append(f"-{_integers(max(1, -high), -low)}")
        low = 0
    for digits in range(len(str(max(low, 0))), len(str(max(high, 0))) + 1):
        first, last = max(low, 10 ** (digits - 1) if digits > 1 else 0), min(high, 10**digits - 1)
        if first <= last:
            parts.append(_of_length(str(first), str(last)))
    return f"({'|'.join(parts)})"


def _of_length(low: str, high: str) -> str:
    """The numbers between two of the same length."""
    if not low or low == high:
        return low
    if low[0] == high[0]:
        return low[0] + _of_length(low[1:], high[1:])
    rest = len(low) - 1
    any_digits = f"[0-9]{{{rest}}}" if rest else ""
    if low[1:].strip("0") == "" and high[1:].strip("9") == "":
        return f"[{low[0]}-{high[0]}]{any_digits}"
    parts = [low[0] + _of_length(low[1:], "9" * rest)]
    if int(high[0]) - int(low[0]) > 1:
        parts.append(f"[{int(low[0]) + 1}-{int(high[0]) - 1}]{any_digits}")
    parts.append(high[0] + _of_length("0" * rest, high[1:]))
    return f"({'|'.join(parts)})"
