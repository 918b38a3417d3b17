"""The rules of a PettingZoo environment: the documentation of its module, without what is for programmers."""

from __future__ import annotations

import importlib
import itertools
import re
from collections.abc import Mapping
from typing import Any

MAX_CHARS = 8_000
"""Characters of rules in a prompt."""
_FENCES = re.compile(r"^```[{]?(?:figure|python|bash|eval-rst)\b.*?^```[^\S\n]*$", re.MULTILINE | re.DOTALL)
_TABLE_OF_FACTS = re.compile(r"^\|[^\n]*(?:Import|Creation)[^\n]*\n(?:\|[^\n]*\n)*", re.MULTILINE)
_REFERRAL = re.compile(r"^This environment is part of [^\n]*(?:\n(?!\n)[^\n]*)*\n", re.MULTILINE)
_LEFT_OUT = ("version history", "arguments", "usage", "legal actions mask", "citation", "installation")
"""Sections about the package: the legal actions stand in every turn."""
_HEADING = re.compile(r"^#{1,6}[ \t]+(.*)$", re.MULTILINE)


def rules_of(environment: Any) -> str:
    """The documentation that the package ships with an environment, for prompts; "" if it ships none."""
    kind = type(environment.unwrapped)
    text = (importlib.import_module(kind.__module__).__doc__ or kind.__doc__ or "").replace("\r\n", "\n").strip()
    for what in (_FENCES, _TABLE_OF_FACTS, _REFERRAL):
        text = what.sub("", text)
    text = re.sub(r"<(?:a|/a|br|img)\b[^<>]*>|</a>", "", text)
    kept = [part for title, part in _sections(text) if not title.strip(" *").casefold().startswith(_LEFT_OUT)]
    return re.sub(r"\n{3,}", "\n\n", "".join(kept)).strip()[:MAX_CHARS]


def _sections(text: str) -> list[tuple[str, str]]:
    """(heading, heading and text) of each part of a Markdown text."""
    starts = [match.start() for match in _HEADING.finditer(text)]
    cuts = [0, *starts, len(text)]
    parts = [text[begin:end] for begin, end in itertools.pairwise(cuts) if begin < end]
    return [(match[1] if (match := _HEADING.match(part)) else "", part) for part in parts]


def seats_in_words(names: Mapping[str, str]) -> str:
    """Who is who in the documentation: its names of players, and those of agents."""
    return f"In these rules {', '.join(f'{seat} is {agent}' for seat, agent in names.items())}."
