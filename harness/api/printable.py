"""Text of models, servers, specs and file names as a person may see it: nothing in it drives a terminal or hides.

What is taken out is written out, as Python would in a string: `\\x1b`, `\\u202e`, `\\ud800`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

# C0 and C1 but line feed and tab, marks and overrides of direction, two more line ends, lone surrogates.
_DRIVES: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def clean(text: str) -> str:
    r"""The text for a screen, its lines and tabs as they are.

    >>> clean("a\n\x1b[2Jb")
    'a\n\\x1b[2Jb'
    """
    return _DRIVES.sub(_written_out, text)


def clean_name(name: str) -> str:
    r"""The text as a name: on one line, and nothing invisible in it, so that no two look alike.

    >>> clean_name("gpt\u200b\n")
    'gpt\\u200b\\n'
    """
    if name.isprintable():
        return name
    return "".join(ascii(c)[1:-1] if unicodedata.category(c) in _INVISIBLE else c for c in name)


def cut(text: str, most: int) -> str:
    """The text; of a longer one its beginning and "…", which are `most` characters together.

    >>> cut("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def shortened(names: Iterable[str], most: int = 60) -> dict[str, str]:
    """Name → the name with at most so many characters, the middle of long ones cut out; no two become the same.

    >>> shortened(["a" * 9, "abcdefghi", "abc--fghi"], 7)
    {'aaaaaaaaa': 'aaa…aaa', 'abcdefghi': 'abc…ghi', 'abc--fghi': 'abc--…2'}
    """
    cuts: dict[str, str] = {}
    whole = dict.fromkeys(names)
    taken = {name for name in whole if len(name) <= most}
    for name in whole:
        if len(name) <= most:
            cuts[name] = name
            continue
        head = (most - 1) // 2
        cut, count = f"{name[:head]}…{name[head + 1 - most :]}", 1
        while cut in taken:
            count += 1
            end = f"…{count}"
            cut = name[: most - len(end)] + end
        taken.add(cut)
        cuts[name] = cut
    return cuts


def utf8(text: str) -> str:
    r"""The text, with U+FFFD for lone surrogates: UTF-8 has no bytes for them, and files and data frames refuse them.

    >>> utf8("a\ud800b")
    'a�b'
    """
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def csv_cell(value: object) -> object:
    """The value for a cell of a CSV file: texts cleaned, with an apostrophe before one that a spreadsheet would run.

    That is what begins with one of `=+-@` after any blanks, also in their full-width and small forms, which
    spreadsheets read as the plain ones.

    >>> csv_cell(" =1+1")
    "' =1+1"
    """
    if not isinstance(value, str):
        return value
    name = clean_name(value)
    return f"'{name}" if unicodedata.normalize("NFKC", name.lstrip()[:1]).startswith(_RUNS) else name


_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_RUNS: Final = ("=", "+", "-", "@", "\N{MINUS SIGN}")


def _written_out(match: re.Match[str]) -> str:
    return ascii(match[0])[1:-1]
