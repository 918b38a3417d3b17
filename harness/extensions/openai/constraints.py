"""What of a request's body holds a reply to its form, in the words of each kind of server."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from harness.api import Completion
from harness.api.errors import SetupError
from harness.extensions.openai.strict import response_format, restored

_parser: Any = importlib.import_module("re._parser")  # Python's own: what it reads is what `re` would match
_MAX_REPETITIONS = 2000
"""Repetitions that llama.cpp takes in one grammar rule."""


REMEDY = (
    "Name the kind of server: structured=llama.cpp or structured=vllm, which hold replies to every form; or "
    "structured=none, which holds them to none."
)


def constrained(constraint: Mapping[str, Any], how: str) -> dict[str, Any]:
    """What of a request's body holds the reply to a form; `how` is the engine's `structured`.

    Raises:
        SetupError: a server of that kind cannot.
    """
    if how == "vllm":
        return {"structured_outputs": dict(constraint)}
    if how == "llama.cpp":
        return _for_llama(constraint)
    if how != "openai":
        return {}
    if "json" not in constraint:
        raise SetupError(
            f"structured=openai holds replies to JSON schemas only, and this one needs a {_kind(constraint)}",
            hint=REMEDY,
        )
    return {"response_format": response_format(constraint["json"])}


def as_held(answer: Completion, constraint: Mapping[str, Any] | None, how: str) -> Completion:
    """An answer in the form's own words, where the server had to be asked for a reply in others (`restored`)."""
    if not constraint or how != "openai":
        return answer
    text = restored(answer.text, constraint["json"])
    return answer if text == answer.text else replace(answer, text=text)


def _kind(constraint: Mapping[str, Any]) -> str:
    return " and a ".join(constraint)


def _for_llama(constraint: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of llama.cpp's server: `json_schema`, or `grammar` in GBNF."""
    if "json" in constraint:
        return {"json_schema": constraint["json"]}
    if "grammar" in constraint:
        return {"grammar": constraint["grammar"]}
    if "choice" in constraint:
        return {"grammar": f"root ::= {' | '.join(map(gbnf_string, constraint['choice']))}"}
    return {"grammar": gbnf(constraint["regex"])}


def gbnf_string(text: str) -> str:
    """A text as a literal of GBNF."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\x7F")


def gbnf(pattern: str) -> str:
    """A regular expression as a grammar in GBNF, llama.cpp's own form: its `root` matches the same whole texts.

    What is repeated and holds repetitions itself is a rule of its own: llama.cpp multiplies the numbers of those within
    one rule, and refuses a product of 2,000.

    Raises:
        SetupError: the pattern has what no grammar can say, such as a look-ahead or a back-reference.
    """
    try:
        rules: list[str] = []
        root = _sequence(_parser.parse(pattern), rules)
        return "\n".join([f"root ::= {root}", *rules])
    except _parser.error as error:
        raise SetupError(f"no regular expression: {error}: {pattern[:200]!r}", hint=REMEDY) from None
    except LookupError as error:
        what = f"{error.args[0]} of a regular expression"
        raise SetupError(
            f"structured=llama.cpp cannot hold a reply to {what}: {pattern[:200]!r}", hint=REMEDY
        ) from None


def _sequence(parts: Iterable[tuple[Any, Any]], rules: list[str]) -> str:
    """The right side of a rule; `rules` gets those that it names."""
    texts: list[str] = []
    literal = ""
    for kind, value in parts:
        if str(kind) == "LITERAL":
            literal += chr(value)
            continue
        if literal:
            texts.append(gbnf_string(literal))
            literal = ""
        texts.append(_PARTS[str(kind)](value, rules))
    return " ".join(filter(None, [*texts, gbnf_string(literal) if literal else ""])) or '""'


def _repetition(value: tuple[int, Any, Any], rules: list[str]) -> str:
    low, high, item = value
    one = f"({_sequence(item, rules)})"
    if "_REPEAT" in str(item):
        rules.append(f"r{len(rules)} ::= {one}")
        one = f"r{len(rules) - 1}"
    if high is _parser.MAXREPEAT:
        return {0: f"{one}*", 1: f"{one}+"}.get(low, f"{one}{{{low},}}")
    parts = []
    while high > _MAX_REPETITIONS:
        parts.append(f"{one}{{{min(low, _MAX_REPETITIONS)},{_MAX_REPETITIONS}}}")
        low, high = max(0, low - _MAX_REPETITIONS), high - _MAX_REPETITIONS
    return " ".join([*parts, f"{one}{{{low},{high}}}"])


def _one_of(items: Iterable[tuple[Any, Any]]) -> str:
    return f"[{''.join(_ITEMS[str(kind)](value) for kind, value in items)}]"


def _in_class(number: int) -> str:
    """A character between the brackets of a class."""
    char = chr(number)
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", "]": "\\]", "[": "\\["}
    return named.get(char) or (
        char if char.isalnum() or char == " " else f"\\u{number:04X}" if number < 65536 else char
    )


_CATEGORIES = {"CATEGORY_DIGIT": "0-9", "CATEGORY_SPACE": " \\t\\n\\r", "CATEGORY_WORD": "a-zA-Z0-9_"}
_ITEMS: Mapping[str, Callable[[Any], str]] = {
    "NEGATE": lambda value: "^",
    "LITERAL": _in_class,
    "RANGE": lambda ends: f"{_in_class(ends[0])}-{_in_class(ends[1])}",
    "CATEGORY": lambda value: _CATEGORIES[str(value)],
}
"""Parts of a class of characters, by Python's names."""
_PARTS: Mapping[str, Callable[[Any, list[str]], str]] = {
    "NOT_LITERAL": lambda value, rules: f"[^{_in_class(value)}]",
    "ANY": lambda value, rules: "[^\\n]",
    "IN": lambda value, rules: _one_of(value),
    "BRANCH": lambda value, rules: f"({' | '.join(_sequence(branch, rules) for branch in value[1])})",
    "SUBPATTERN": lambda value, rules: f"({_sequence(value[-1], rules)})",
    "MAX_REPEAT": _repetition,
    "MIN_REPEAT": _repetition,
    "AT": lambda value, rules: {"AT_BEGINNING": "", "AT_END": ""}[str(value)],
}
"""Parts of an expression, by Python's names."""
