"""What the reply forms share: the two readings, and the characters that only decorate an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal

Parsing = Literal["tolerant", "reference"]

BLANK = re.compile(r"\s*")
DECORATION = re.compile("[\\s\u200b\"'“”‘’„«»`*_:=()\\[\\]{}<>#]*")
WRAPPING = " \t\r\n\v\f\u00a0\u200b\"'“”‘’„«»`*_()[]{}<>.!"

ASIAN = r"\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af"
"""Scripts without blanks between words, as a part of a class: a sign of these ends a Latin word."""


def end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Where `pattern`, matched at `start`, ends; `start` if it does not match."""
    match = pattern.match(text, start)
    return match.end() if match else start


QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“", "`": "`"}


def unquoted(text: str) -> str:
    """`text` without blanks and without quotes around all of it: "8" is 8, but "a" or "b" stays."""
    bare = text.strip()
    closing = QUOTES.get(bare[:1])
    if closing is None or len(bare) < 2 or bare[-1] != closing:
        return bare
    inner = bare[1:-1]
    return bare if bare[0] in inner or closing in inner else inner.strip()


_FILLERS = "\u115f\u1160\u2800\u3164\uffa0"
"""Characters that count as letters or signs and are empty."""


def says_nothing(text: str) -> bool:
    """Whether nothing of a text can be seen: it has only blanks, control and format characters, and fillers."""
    return all(char.isspace() or not char.isprintable() or char in _FILLERS for char in text)


_PLACEHOLDER = re.compile(
    r"(?i)[\s\"'“”*_`]*(?:…|\.{3}|\[(?:your|one of|one action|short|brief)\b[^\[\]\n]{0,200}\]|<(?:your [^<>\n]{1,99}"
    r"|answer|number|letters?|value|text|name|message|content|payload|formula|program)>)[\s\"'“”*_`.]*"
)


def is_placeholder(text: str) -> bool:
    """Whether a text is only what prompts write where a reply says something, such as <number>: weak models copy it."""
    return len(text) < 300 and _PLACEHOLDER.fullmatch(text) is not None


def valid(text: str) -> str:
    """`text` as valid Unicode: surrogate pairs joined, lone surrogates replaced."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def has_any(text: str, signs: Sequence[str]) -> bool:
    """Whether one of these is in a text: what every reply pays for, so without a generator."""
    for sign in signs:  # noqa: SIM110
        if sign in text:
            return True
    return False


def literal(text: str) -> str:
    """A regular expression for exactly `text`, in the plain dialect that constrained decoding understands."""
    return re.sub(r"([\\^$.|?*+(){}\[\]])", r"\\\1", text)


@lru_cache(maxsize=64)
def marker_pattern(marker: str) -> re.Pattern[str]:
    """What finds a marker's words in any case with bold or blanks between them, and two hashes before it if it has
    hashes."""
    parts = _parts_of(marker)
    edge = r"(?<![^\W_])(?<![^\W_]_)" if parts[0][0].isalnum() else ""
    hashes = r"[ \t*_`]*+#*" if marker.endswith("#") else ""
    patterns = ["[:：]" if part == ":" else re.escape(part) for part in parts]
    return re.compile(edge + r"[ \t*_`]*+".join(patterns) + hashes, re.IGNORECASE)


def _parts_of(marker: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s#]", marker) or [marker]


@lru_cache(maxsize=64)
def _beginning_of(marker: str) -> tuple[str, ...]:
    return (_parts_of(marker)[0].lower(),)


def markers(text: str, marker: str) -> Iterator[re.Match[str]]:
    """Where `marker_pattern` finds a marker."""
    return beginning_with(_beginning_of(marker), marker_pattern(marker), text)


def beginning_with(
    words: Sequence[str], pattern: re.Pattern[str], text: str, begin: int = 0
) -> Iterator[re.Match[str]]:
    """What `pattern.finditer(text, begin)` finds, if each match begins with one of these words, in lower case.

    Far faster: most replies have few of the words, and the pattern is tried nowhere else.
    """
    low, end = text.lower(), begin
    if len(low) != len(text) or ":" in words:  # a letter of which lower case has two, or a sign with another form
        yield from pattern.finditer(text, begin)
        return
    ahead = [(at, word) for word in words if word in low and (at := low.find(word, begin)) >= 0]
    while ahead:
        nearest = at, word = min(ahead) if len(ahead) > 1 else ahead[0]
        if at >= end and (match := pattern.match(text, at)) is not None:
            yield match
            end = match.end()
        ahead.remove(nearest)
        if (later := low.find(word, max(at + 1, end))) >= 0:
            ahead.append((later, word))


def first_word(text: str, words: Sequence[str]) -> int:
    """The position of the first of these lower-case words, in any case; -1 if there is none.

    Searching with a regular expression from there on finds the same as searching the whole text, and is far faster: the
    words come near the end of replies.
    """
    low = text.lower()
    if len(low) != len(text):
        return 0
    places = [low.find(word) for word in words if word in low]
    return min(places) if places else -1


_FENCE = re.compile(r"^[ \t]*(?:`{3,}\w*|\*+|_+|-{3,}|#+|</[\w-]{1,30}>)?[ \t]*$")


def last_line(text: str) -> str:
    """The last line that says anything, without blanks around it."""
    end = len(text.rstrip("\n"))
    while end > 0:
        start = text.rfind("\n", 0, end) + 1
        line = text[start:end]
        if len(line) > 100 or not _FENCE.match(line):
            return line.strip()
        end = start - 1
    return ""


_SEPARATORS = (" /", " →", " ·", " •", " –", " —", " -")


def before_separator(text: str) -> str:
    """`text` without what parts it from a label behind it on its line: "I go first / ACTION: WAIT"."""
    return text[:-2].rstrip() if text[-2:] in _SEPARATORS else text
