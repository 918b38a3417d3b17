"""A reply of several fields, declared once: an act in a form of its own, and what is said beside it."""

from __future__ import annotations

import itertools
import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Protocol

from harness.api import Action, Facts, Parsed, Reply, ReplyField

from .answers import run_on
from .characters import before_separator, is_placeholder, literal, marker_pattern
from .extract import field_of, members_of
from .fields import Statement, line_end
from .strip_reasoning import strip_reasoning, unfenced

_EMPTY = re.compile(r"\{\s*+\}")
_NOTHING = ("", "none", "n/a", "-", "null", "nothing")


class Value(Protocol):
    """A field beside an act: `MessageLine` and `harness.extensions.games.actions.ActionParameter` are such."""

    @property
    def name(self) -> str:
        """Its key, such as "confidence"."""

    @property
    def words(self) -> str:
        """What it can be, in words."""

    @property
    def schema(self) -> Mapping[str, Any]:
        """The same as JSON Schema."""

    @property
    def examples(self) -> tuple[Any, ...]:
        """Some of its values."""

    def allows(self, value: Any) -> bool:
        """Whether it can be this value."""

    def read(self, text: str) -> Any:
        """The value that a text states; None if it states none."""

    def pattern(self) -> str:
        """A regular expression for its values."""


class Contract(Reply):
    """An act with fields beside it; a subclass says how an action holds both (`compose`, `split`).

    Each field is on its line after its name, `CONFIDENCE: 0.8`, and is found in every other way in which replies
    name their fields (`field_of`). It is taken out of the reply before the next one is looked for, and the act's form
    reads what is left. The act is not looked for in a field, unless its label stands nowhere else (then the reply is a
    single line, and each label in it begins a field). A field that is not required and cannot be read says nothing;
    without one that is, the reply is asked for again, and the act still counts if it stays away. If the act is
    unreadable, what is said beside it still counts, with the idle act.

    Attributes:
        announced: what announces an answer whose form has no label of its own; "" for nothing.
    """

    __slots__ = ()
    announced: ClassVar[str] = ""

    @property
    @abstractmethod
    def act(self) -> Reply:
        """The form of the act."""

    @property
    @abstractmethod
    def beside(self) -> tuple[Value, ...]:
        """The fields, in the order in which a reply has them."""

    @property
    def place(self) -> int:
        """How many of them precede the act: all of them."""
        return len(self.beside)

    @property
    def required(self) -> frozenset[str]:
        """The names of those without which a reply is unreadable: none."""
        return frozenset()

    @abstractmethod
    def compose(self, act: Action, said: Facts) -> Action:
        """The action of an act and what is said beside it: field → value, None or missing where nothing is."""

    @abstractmethod
    def split(self, action: Action) -> tuple[Action, Facts]:
        """(act, what is said beside it) of an action; ({} beside an act alone)."""

    def lead(self, one: Value) -> str:
        """What announces a field on its line."""
        return label(one.name)

    @property
    def options(self) -> tuple[Action, ...] | None:
        """The legal acts, alone."""
        return self.act.options

    @property
    def noop(self) -> Action:
        """The act of an agent that does nothing, alone."""
        return self.act.noop

    def allows(self, action: Action) -> bool:
        """A legal act, alone or with values that its fields can have, or None."""
        act, said = self.split(action)
        if not said and act is action:
            return self.act.allows(act)
        return (
            isinstance(said, Mapping)
            and set(said) == {one.name for one in self.beside}
            and all(said[one.name] is None or one.allows(said[one.name]) for one in self.beside)
            and self.act.allows(act)
        )

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The declared fields, and the act's among them."""
        beside = [
            ReplyField(one.name, self.lead(one), one.schema, one.name in self.required, described(one))
            for one in self.beside
        ]
        act = [replace(one, lead=self.announced) if self._is_bare(one) else one for one in self.act.fields]
        return (*beside[: self.place], *act, *beside[self.place :])

    def says(self, action: Action) -> Facts:
        """What is said beside the act, and what the act says."""
        act, said = self.split(action)
        return {**said, **self.act.says(act)}

    def written(self, action: Action) -> str:
        """Each field on its line, in order; the word None where nothing is said."""
        act, said = self.split(action)
        text = self.act.written(act)
        text = f"{self.announced} {text}" if any(map(self._is_bare, self.act.fields)) else text
        lines = [f"{self.lead(one)} {'None' if said.get(one.name) is None else said[one.name]}" for one in self.beside]
        return "\n".join([*lines[: self.place], text, *lines[self.place :]])

    @property
    def examples(self) -> tuple[Action, ...]:
        """The acts, each with values of the fields."""
        values = [itertools.cycle(one.examples) for one in self.beside]
        return tuple(
            self.compose(act, {one.name: next(some) for one, some in zip(self.beside, values, strict=True)})
            for act in self.act.examples
        )

    def parse(self, text: str) -> Parsed:
        """The act with what is said beside it; an error if there is no act, or a required field cannot be read."""
        whole = text = unfenced(strip_reasoning(text))
        if (head := self._before_others(text)) is not None:
            return self.parse(head)
        if (parsed := self._of_object(text)) is not None:
            return parsed
        said, absent, missing, hollow = dict[str, Any](), list[str](), None, 0
        for one in self.beside:
            field, said[one.name], rest = self.take(one, text)
            if said[one.name] is None and one.name in self.required and missing is None:
                what = "is missing" if field is None else f"is {field.value.strip()[:60]!r}"
                missing = f"{one.name} {what}; it must be {one.words}. Write '{self.lead(one)} …' on a line of its own"
            absent += [self.lead(one)] if field is None else []
            hollow = hollow if field is None else max(0, hollow + _hollow(whole, text, field, rest))
            text = rest
        parsed = self._parsed(text)
        if parsed.action == {} and hollow >= len(_EMPTY.findall(text)) > 0:
            parsed = self._parsed(_EMPTY.sub("", text))  # all of them are objects with only fields beside the act
        absent += [self._act_lead] if parsed.error is not None else []
        if absent and (apart := self._apart(whole, absent)) is not None:
            again = Contract.parse(self, apart)
            if again.error is None and (parsed.error or _count(self.split(again.action)[1]) > _count(said)):
                return again
        if parsed.error is not None:
            kept = self.unread(said) if parsed.fallback_action is None else self.compose(parsed.fallback_action, said)
            return Parsed(error=parsed.error, fallback_action=kept)
        action = self.compose(parsed.action, said)
        return Parsed(action) if missing is None else Parsed(error=missing, fallback_action=action)

    def _before_others(self, text: str) -> str | None:
        """What precedes the turn of someone else with which a reply runs on, where that already has an act."""
        following = run_on(text)
        head = "" if following is None else text[: following.start()]
        lead = self._act_lead
        has_both = head and lead and all(marker_pattern(lead).search(part) for part in (head, text[len(head) :]))
        return head if has_both and self.act.parse(head).error is None else None

    def take(self, one: Value, text: str) -> tuple[Statement | None, Any, str]:
        """A field of a reply, what it says, and the reply without it; (None, None, `text`) if it is nowhere."""
        field = self.stated(one, text)
        return (None, None, text) if field is None else (field, self.value(one, field.value), field.without(text))

    def stated(self, one: Value, text: str) -> Statement | None:
        """A field of a reply; None if it has none."""
        name = one.name.replace("_", " ")
        leads = [self._act_lead, *(self.lead(other) for other in self.beside if other.name != one.name)]
        others = tuple(bare for lead in leads if (bare := lead.strip(" #:*").lower()))
        return field_of(text, name, others=others, whole=one.schema.get("type") == "string")

    def _of_object(self, text: str) -> Parsed | None:
        """What a JSON object says that has everything; None for any other reply."""
        bare = any(map(self._is_bare, self.act.fields))
        names = [one.name.replace("_", " ") for one in self.beside] + ["answer"] * bare
        members = members_of(text, names)
        if members is None:
            return None
        said = {one.name: self.value(one, value) for one, value in zip(self.beside, members[0], strict=False)}
        act = self.act.parse(members[0][-1] if bare else members[1])
        return None if act.error is not None or None in said.values() else Parsed(self.compose(act.action, said))

    def unread(self, said: Facts) -> Action:
        """The action of a reply whose act is unreadable: the idle act, if there is one and something is said."""
        return self.compose(self.act.noop, said) if self.act.noop is not None and _count(said) else None

    def value(self, one: Value, text: str) -> Any:
        """What a field says, from the text that is there; None if it says nothing that it can say."""
        bare = before_separator(text.strip().strip("*_`").strip())
        if bare[:1] + bare[-1:] in ("[]", "<>", "()"):
            bare = bare[1:-1]
        value = None if bare.strip(" \"'.").casefold() in _NOTHING else one.read(bare)
        return value if value is not None and one.allows(value) else None

    def constraint(self) -> Mapping[str, Any] | None:
        """All lines in order, where the act has texts of its own; else one object where its answer needs no label; None
        where it is neither."""
        allowed = self.act.constraint() or {}
        texts = [*map(literal, allowed.get("choice", ())), *(allowed[key] for key in ("regex",) if key in allowed)]
        if texts:
            lines = [f"{literal(self.lead(one))} {one.pattern()}" for one in self.beside]
            return {"regex": "\\n".join([*lines[: self.place], f"({'|'.join(texts)})", *lines[self.place :]])}
        one_object = self.announced and any(one.name == "answer" for one in self.act.fields)
        return {"json": self.json_schema} if one_object else None

    def _parsed(self, text: str) -> Parsed:
        """What the act's form reads of the rest of a reply."""
        named = field_of(text, "answer") if any(map(self._is_bare, self.act.fields)) else None
        parsed = self.act.parse(text if named is None else text[named.start :] if named.inline else named.value)
        if parsed.error is not None and named is not None and named.inline and not is_placeholder(named.value):
            parsed = self.act.parse(named.value.strip(" []<>"))  # words below it
        return parsed

    def _apart(self, text: str, absent: list[str]) -> str | None:
        """The reply with each label on a line of its own, where one of those that are `absent` is in the line of
        another field, and nowhere else; None where none does."""
        leads = [self._act_lead, *map(self.lead, self.beside)]
        low = text.lower()
        for pattern in (marker_pattern(lead) for lead in absent if lead and lead.strip(" #:*").lower() in low):
            places = [*pattern.finditer(text)]
            if not places:
                continue
            start, end = text.rfind("\n", 0, places[0].start()) + 1, line_end(text, places[0].end())
            here = [
                one.pattern for one in (marker_pattern(lead) for lead in leads if lead)
                if not (one.search(text, 0, start) or one.search(text, end))
            ]  # fmt: skip
            labels = re.compile("|".join(f"(?:{one})" for one in here), re.IGNORECASE)
            if places[-1].end() <= end and labels.search(text, start, places[0].start()):
                return text[:start] + labels.sub(r"\n\g<0>", text[start:end]) + text[end:]
        return None

    @property
    def _act_lead(self) -> str:
        """What announces the act; "" if nothing does."""
        return next((one.lead or self.announced for one in self.act.fields), "")

    def _is_bare(self, one: ReplyField) -> bool:
        """Whether nothing announces the act's answer that should be announced."""
        return bool(self.announced) and one.name == "answer" and not one.lead


def label(name: str) -> str:
    """What announces a field of that name on its line, where nothing else does: "SECOND CHOICE:"."""
    return f"{name.upper().replace('_', ' ')}:"


def described(one: Value) -> str:
    """What a field is, and what it can be: "how sure you are: a number from 0 to 1"."""
    means = getattr(one, "means", "")
    return f"{means}: {one.words}" if means else one.words


def _hollow(whole: str, before: str, field: Statement, after: str) -> int:
    """How many more objects are empty because a field was taken out of them. Those of its own text do not count, if the
    whole reply has that text; what a field says to the end of its line may include some that were counted before."""
    cut = before[field.start : field.end]
    there, left, inside, said = (len(_EMPTY.findall(text)) for text in (before, after, cut, field.value))
    return left - there + (min(inside, said) if field.value in whole or cut in whole else 0)


def _count(said: Facts) -> int:
    """How many fields say something."""
    return sum(value is not None for value in said.values())
