"""Layout that is around fields and never in what they say: tags of HTML, rules below labels, tables of one row.

`plain` writes such a reply as the lines that it shows, so that no part of a tag or a table ends up in a field.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from .fields import KNOWN
from .literals import objects

_TAG = re.compile(
    r"<(?P<close>/)?(?P<name>b|strong|i|em|u|span|font|p|div|li|ul|ol|h[1-6]|td|th|tr|table|tbody|thead|br|hr)"
    r"(?:\s[^<>]{0,200})?/?>",
    re.IGNORECASE,
)
_ALONE = ("br", "hr")
_INLINE = frozenset(("b", "strong", "i", "em", "u", "span", "font"))
_RULE = r"(?=[ \t|+:]{0,40}(?:-{2}|={3}|_{3}|\*{3}))[ \t|+:=_*-]++"
_BELOW_LABEL = re.compile(rf"^([ \t>#*_`|]*+(?:\w++[ _-]?){{1,4}}[*_`:：| \t]*+)\n{_RULE}$", re.MULTILINE)
_NEAR_RULE = re.compile(r"\n[ \t|+:]{0,40}(?:-{2}|={3}|_{3}|\*{3})")
_IS_RULE = re.compile(_RULE)
_BOLD_LABEL = re.compile(r"^\\textbf\{([\w][\w ]{0,40}[:：]?)\}", re.MULTILINE)
_LABEL_CELL = re.compile(r"[*_` ]*[A-Za-z]+(?:[_ ][A-Za-z]+)?[*_`: ]*")


def plain(text: str) -> str:
    """`text` without tags of HTML that have no meaning for fields, rules below labels, and tables whose head names
    fields. Linear; what JSON objects say stays as it is, and so does a text that has none of these."""
    if "<" in text and _TAG.search(text):
        text = _without_tags(text)
    if "\\textbf{" in text:
        text = _BOLD_LABEL.sub(r"\1", text)
    if "--" in text or "==" in text or "__" in text or "**" in text:
        text = _with_lines(text) if "|" in text and "--" in text else text
        text = _BELOW_LABEL.sub(r"\1", text) if _NEAR_RULE.search(text) else text
    return text


def _without_tags(text: str) -> str:
    """Tags of blocks as line breaks, others as nothing; only those of elements that are closed somewhere."""
    closed = {match["name"].lower() for match in _TAG.finditer(text) if match["close"]}.union(_ALONE)
    spans = [(start, end) for start, end, _ in objects(text)] if "{" in text else []

    def instead(tag: re.Match[str]) -> str:
        name = tag["name"].lower()
        at = bisect_right(spans, (tag.start(), len(text))) - 1
        if name not in closed or (at >= 0 and tag.start() < spans[at][1]):
            return tag[0]
        if name in _INLINE:
            return ""
        if name in ("td", "th"):
            return "" if tag["close"] else " | "
        return "\n### " if name[0] == "h" and name != "hr" and not tag["close"] else "\n"

    return _TAG.sub(instead, text)


def _with_lines(text: str) -> str:
    """`text` with each table of a head that names fields and one row as a line for each cell."""
    lines, kept, at = text.split("\n"), list[str](), 0
    while at < len(lines):
        head = _cells(lines[at]) if at + 2 < len(lines) and _IS_RULE.fullmatch(lines[at + 1]) else []
        row = _cells(lines[at + 2]) if head else []
        alone = at + 3 >= len(lines) or "|" not in lines[at + 3]
        is_column = len(head) > 1 and bool(row) and _is_known(row[0]) and not _is_known(head[1])  # of names, too
        names = not is_column and all(map(_LABEL_CELL.fullmatch, head))
        if head and len(head) == len(row) and alone and names:
            kept += [f"{name.strip(' *_`:')}: {cell}" for name, cell in zip(head, row, strict=True)]
            at += 3
        else:
            kept.append(lines[at])
            at += 1
    return "\n".join(kept)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")] if "|" in line else []


def _is_known(cell: str) -> bool:
    return KNOWN.fullmatch(cell.strip(" *_`:")) is not None
