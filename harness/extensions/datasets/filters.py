"""lm-eval's filters: steps that make an answer of a reply, by the names and with the defaults that its tasks use.

A filter of `filter_list` has a name and steps. Each step changes every reply by itself (`regex`, `lowercase`, …), or
chooses among the replies to one question (`take_first_k`, `majority_vote`).
"""

from __future__ import annotations

import re
import string
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from harness.api import Parsed, Reply
from harness.api.errors import PluginError, near
from harness.replies import says_nothing, valid

from .parameter_checks import Filter, check, check_arguments
from .regular_expression import regular_expression

INVALID = "[invalid]"
"""lm-eval's answer for a reply without a match, which is never right."""

Choices = Sequence[str] | None
"""The options of a question, for steps that look for their texts; None if it has none."""
Change = Callable[[Any, Choices], Any]
"""(a reply, or what an earlier step made of it; the question's options) → what it becomes."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step: `change` for each reply, or `choose` among all replies to a question.

    `needs`: how many replies it chooses among at least; None if each of them could also count by itself.
    """

    change: Change | None = None
    choose: Callable[[list[Any]], list[Any]] | None = None
    needs: int | None = None


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A filter.

    Attributes:
        name: the filter's name.
        steps: its steps, in order.
    """

    name: str
    steps: tuple[Step, ...]

    @property
    def chooses(self) -> bool:
        """Whether the number of replies to a question matters."""
        return any(step.needs is not None for step in self.steps)

    @property
    def needs(self) -> int:
        """How many replies to a question it needs."""
        return max((step.needs or 1 for step in self.steps), default=1)

    def one(self, reply: Any, choices: Choices) -> Any:
        """What it makes of a single reply (None is an empty one); None if that is not an answer."""
        values = self._run(["" if reply is None else reply], choices)
        return _answer(values[0]) if values else None

    def all(self, replies: Sequence[Any], choices: Choices, enough: bool = False) -> list[Any]:
        """The answers that count, of all replies to a question: None for one that cannot be read.

        Every reply counts by itself unless a step chooses among them; `enough` insists that these are as many as it
        needs.

        Raises:
            PluginError: if they are fewer.
        """
        if enough and len(replies) < self.needs:
            hint = f"With `protocol: {{use: single, repeats: {self.needs}}}` there are."
            message = f"the filter {self.name} needs {self.needs} replies to a question, and there are {len(replies)}"
            raise PluginError(message, hint=hint, at=("filter_list",))
        if not self.chooses:
            return [self.one(reply, choices) for reply in replies]
        return [_answer(x) for x in self._run(["" if reply is None else reply for reply in replies], choices)]

    def _run(self, values: list[Any], choices: Choices) -> list[Any]:
        for step in self.steps:
            if step.change is not None:
                values = [step.change(value, choices) for value in values]
            elif step.choose is not None and values:
                values = step.choose(values)
        return values


def _answer(value: Any) -> Any:
    """The value as text; None if it says nothing, or that nothing was found."""
    text = "" if value is None else value if isinstance(value, str) else str(value)
    return None if text == INVALID or says_nothing(text) else text


class _AsItIs(Pipeline):
    """No filter: an answer is what the reply form has read."""

    def one(self, reply: Any, choices: Choices) -> Any:
        return reply


def readings(filters: Sequence[Pipeline]) -> dict[str, Pipeline]:
    """What the names of grades end in → how replies are read for them."""
    if len(filters) < 2:
        return {"": filters[0] if filters else _AsItIs("none", ())}
    return {f",{pipeline.name}": pipeline for pipeline in filters}


@dataclass(frozen=True, slots=True)
class Filtered(Reply):
    """A reply that filters read.

    Attributes:
        pipeline: the filter that says whether there is an answer.
        choices: the question's options.
        whole: whether the action is the whole reply, because other filters, or other replies, matter too. Otherwise it
            is the answer.
    """

    pipeline: Pipeline
    choices: Choices = None
    whole: bool = False

    def parse(self, text: str) -> Parsed:
        """Read a text; one without an answer is an error."""
        reply = valid(text)
        answer = self.pipeline.one(reply, self.choices)
        if answer is not None:
            return Parsed(reply if self.whole else answer)
        error = f"the filter {self.pipeline.name} finds no answer in the reply"
        return Parsed(error=error, fallback_action=reply if self.whole and not says_nothing(reply) else None)


# ------------------------------------------------------------------------------------------------- steps


def _matches(pattern: str, text: str) -> list[Any]:
    """What `re.findall` gives, though a fraction (½) is not a word here; nothing where that takes too long."""
    try:
        matches = regular_expression(pattern).matches(text)
    except TimeoutError:
        return []
    return [m[0] if not m.groups() else m[1] or "" if len(m.groups()) == 1 else m.groups("") for m in matches]


def _selected(found: list[Any], select: int, otherwise: Any) -> Any:
    """One of the matches, of several groups the first that is not empty; `otherwise` if there is none."""
    if not -len(found) <= select < len(found):
        return otherwise
    match = found[select]
    if isinstance(match, tuple):
        match = next((group for group in match if group), otherwise)
    return match.strip() if isinstance(match, str) else match


def regex(
    regex_pattern: str = r"#### (\-?[0-9\.\,]+)",
    group_select: int = 0,
    fallback: str | int | float | bool | None = INVALID,
) -> Step:
    """The match of an expression: the first one, or the one of number `group_select`."""
    regular_expression(regex_pattern)
    return Step(lambda reply, _: _selected(_matches(regex_pattern, _text(reply)), group_select, fallback))


def regex_pos(regex_pattern: str = r"\['(.*?)'\]", group_select: int = 0, fallback: list[str] | None = None) -> Step:
    """The tags of a list of ('token', 'tag'); as in lm-eval the parameters but `fallback` change nothing."""

    def tags(reply: Any, _: Choices) -> Any:
        return [tag for _, tag in _matches(r"\('([^']*)', '([^']*)'\)", _text(reply))] or fallback or ["invalid"]

    return Step(tags)


def multi_choice_regex(
    regex_pattern: str = r"#### (\-?[0-9\.\,]+)",
    group_select: int = 0,
    fallback: str = INVALID,
    ignore_case: bool = False,
    ignore_punctuation: bool = False,
    regexes_to_ignore: list[str] | None = None,
) -> Step:
    """The match of an expression, else the letter "(A)" of the option whose text occurs, else a letter after a colon.

    The parameters after `fallback` are for the search for options' texts.
    """
    for pattern in (regex_pattern, *(regexes_to_ignore or ())):
        regular_expression(pattern)

    def plain(text: str) -> str:
        for pattern in regexes_to_ignore or ():
            try:
                text = regular_expression(pattern).substituted(text, "")
            except TimeoutError:
                continue
        text = text.lower() if ignore_case else text
        return text.translate(_punctuation()) if ignore_punctuation else text

    def letter(reply: Any, choices: Choices) -> Any:
        text = _text(reply)
        if choices is None:
            raise PluginError("the filter multi_choice_regex needs doc_to_choice", at=("filter_list",))
        letters = {letter: f"({letter})" for letter in string.ascii_uppercase[: len(choices)]}
        options = dict(zip((plain(choice.strip()) for choice in choices), letters.values(), strict=False))
        longest_first = "|".join(sorted(map(re.escape, options), key=len, reverse=True))
        return (
            _selected(_matches(regex_pattern, text), group_select, "")
            or _known(_selected(_matches(longest_first, plain(text)), group_select, ""), options)
            or _known(_selected(_matches(rf":[\s]*({'|'.join(letters)})", text), group_select, ""), letters)
            or fallback
        )

    return Step(letter)


def _known(match: str, names: Mapping[str, str]) -> str:
    return names.get(match, match)


@lru_cache(maxsize=1)
def _punctuation() -> dict[int, None]:
    return dict.fromkeys(i for i in range(sys.maxunicode) if unicodedata.category(chr(i)).startswith("P"))


def take_first() -> Step:
    """The first of the replies that are left; without an earlier step that chooses, every reply counts by itself."""
    return Step(choose=lambda values: values[:1])


def take_first_k(k: int) -> Step:
    """The first k replies; each of them counts."""
    if k < 1:
        raise ValueError(f"k is {k}, and must be 1 or more")
    return Step(choose=lambda values: values[:k], needs=k)


def majority_vote() -> Step:
    """The most frequent of the values, the first of equally frequent ones. "[invalid]" counts as a value."""

    def most_frequent(values: list[Any]) -> list[Any]:
        keys = list(map(repr, values))
        return [values[keys.index(Counter(keys).most_common(1)[0][0])]]

    return Step(choose=most_frequent, needs=1)


def remove_whitespace() -> Step:
    """Without blanks at both ends."""
    return _of_text(str.strip)


def lowercase() -> Step:
    """In small letters."""
    return _of_text(str.lower)


def uppercase() -> Step:
    """In capital letters."""
    return _of_text(str.upper)


def mapped(mapping_dict: dict[str, Any] | None = None, default_value: Any = None) -> Step:
    """The value that a mapping has for the text."""
    names = dict(mapping_dict or {})
    return Step(lambda reply, _: names.get(reply, default_value) if isinstance(reply, str) else default_value)


_LABELS = {
    **dict.fromkeys(("person", "people", "persons", "per"), "PER"),
    **dict.fromkeys(("location", "counties", "places", "country", "continent", "loc"), "LOC"),
    **dict.fromkeys(("organization", "company", "org"), "ORG"),
    **dict.fromkeys(("time", "date"), "DATE"),
}


def format_span() -> Step:
    """Named entities as "label: entity $ label: entity", of replies such as "PERSON: Ada, Grace $$ location: none"."""

    def spans(reply: Any, _: Choices) -> Any:
        text = _text(reply).lower()
        for word, label in _LABELS.items():
            text = re.sub(rf"\b{word}\s*:", f"{label}:", text)
        text = text.replace("$$", "$").rstrip("$").replace("\n", "$").strip()
        found = re.findall(r"\b(PER|LOC|ORG|DATE):\s*([^$]+)", text)
        pairs = [(label.lower(), value.strip()) for label, values in found for value in values.split(",")]
        return " $ ".join(f"{label}: {value}" for label, value in pairs if value != "none")

    return Step(spans)


def _of_text(change: Callable[[str], str]) -> Step:
    return Step(lambda reply, _: change(reply) if isinstance(reply, str) else reply)


def _text(reply: Any) -> str:
    return reply if isinstance(reply, str) else ""


STEPS: dict[str, Callable[..., Step]] = {
    "regex": regex,
    "regex_pos": regex_pos,
    "multi_choice_regex": multi_choice_regex,
    "take_first": take_first,
    "take_first_k": take_first_k,
    "majority_vote": majority_vote,
    "remove_whitespace": remove_whitespace,
    "lowercase": lowercase,
    "uppercase": uppercase,
    "map": mapped,
    "format_span": format_span,
}


def pipelines(filter_list: Sequence[Mapping[str, Any]]) -> tuple[Pipeline, ...]:
    """The filters of a task's `filter_list`.

    Raises:
        PluginError: for unknown steps, bad parameters, and two filters of one name.
    """
    check("filter_list", list(filter_list), list[Filter], ("filter_list",))
    done: list[Pipeline] = []
    for i, entry in enumerate(filter_list):
        name = entry.get("name", "none")
        if name in (pipeline.name for pipeline in done):
            hint = "Give each a name of its own: grades are called METRIC,FILTER."
            raise PluginError(f"filter_list: two filters are called {name!r}", hint=hint, at=("filter_list", i))
        steps = [_step(step, ("filter_list", i, "filter", j)) for j, step in enumerate(entry.get("filter", ()))]
        done.append(Pipeline(name, tuple(steps)))
    return tuple(done)


def _step(entry: Mapping[str, Any], at: tuple[str | int, ...]) -> Step:
    function = entry.get("function")
    if not isinstance(function, str) or function not in STEPS:
        hint = near(str(function), STEPS)
        if function == "custom":
            hint = "A function is Python: write a task of your own that overrides `measures`, or `prepare`."
        raise PluginError(f"filter_list: the filter {function!r} is not supported", hint=hint, at=(*at, "function"))
    settings = {key: value for key, value in entry.items() if key != "function"}
    check_arguments(f"the filter {function}", STEPS[function], settings, at)
    try:
        return STEPS[function](**settings)
    except ValueError as error:
        raise PluginError(f"the filter {function}: {error}", at=at) from None
