"""A reply of several fields: an act in a form of its own, and what its task asks for beside it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from harness.api import Action, Facts, Parsed, Reply, ReplyField
from harness.replies.aside import spoken, unfenced
from harness.replies.characters import literal
from harness.replies.extract import Statement, field_of
from harness.replies.with_message import ActionWithMessage
from harness.replies.wrapped import WrappedReply, act_of, has_fields

ACT, SAID = "act", "said"
"""The keys of an action that has fields beside it."""

_NOTHING = ("", "none", "n/a", "-", "null", "nothing")


class Value(Protocol):
    """What a field says: `harness.extensions.worlds.actions.ActionParameter` is one."""

    @property
    def name(self) -> str:
        """Its key, such as "confidence"."""

    @property
    def means(self) -> str:
        """What it is; "" where its name says it."""

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

    def drawn(self, rng: random.Random) -> Any:
        """One of its values by chance."""

    def pattern(self) -> str:
        """A regular expression for its values."""


@dataclass(frozen=True, slots=True)
class Contract(Reply):
    """An act with fields beside it: {"act": action, "said": {field: value, or None where nothing was said}}.

    Each field stands on its line behind its name, `CONFIDENCE: 0.8`, and is found in every other way in which replies
    name their fields (`field_of`). It is taken out of the reply before the next one is looked for, and the act's form
    reads what is left. A field that is not required and cannot be read says nothing; without one that is, the reply is
    asked for again, and the act still counts if it stays away. An act alone is legal too, because policies need not say
    anything beside it.

    Attributes:
        act: the form of the act.
        beside: the fields, in the order in which a reply has them.
        place: how many of them stand before the act.
        required: the names of those without which a reply is unreadable.
    """

    act: Reply
    beside: tuple[Value, ...]
    place: int = 0
    required: frozenset[str] = field(default=frozenset())

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
        if not has_fields(action):
            return self.act.allows(action)
        said = action[SAID]
        return (
            isinstance(said, Mapping)
            and set(said) == {one.name for one in self.beside}
            and all(said[one.name] is None or one.allows(said[one.name]) for one in self.beside)
            and self.act.allows(action[ACT])
        )

    def with_values(self, act: Action, values: Mapping[str, Any]) -> Action:
        """An act with these values, those of its fields; None for the others."""
        return {ACT: act, SAID: {one.name: values.get(one.name) for one in self.beside}}

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The declared fields, and the act's among them."""
        beside = [ReplyField(one.name, lead(one), one.schema, one.name in self.required) for one in self.beside]
        act = [replace(one, lead="ANSWER:") if self._is_bare(one) else one for one in self.act.fields]
        return (*beside[: self.place], *act, *beside[self.place :])

    def says(self, action: Action) -> Facts:
        """What the act says, and the values."""
        return {**said_of(action), **self.act.says(act_of(action))}

    def written(self, action: Action) -> str:
        """Each field on its line, in order."""
        act = self.act.written(act_of(action))
        act = f"ANSWER: {act}" if any(map(self._is_bare, self.act.fields)) else act
        said = said_of(action)
        lines = [f"{lead(one)} {'None' if said.get(one.name) is None else said[one.name]}" for one in self.beside]
        return "\n".join([*lines[: self.place], act, *lines[self.place :]])

    @property
    def examples(self) -> tuple[Action, ...]:
        """The acts, each with values of the fields."""
        said = zip(*(itertools.cycle(one.examples) for one in self.beside), strict=False)
        names = [one.name for one in self.beside]
        return tuple(
            {ACT: act, SAID: dict(zip(names, each, strict=True))}
            for act, each in zip(self.act.examples, said, strict=False)
        )

    def parse(self, text: str) -> Parsed:
        """The act with what is said beside it; an error if there is no act, or a required field cannot be read."""
        text, said, missing = unfenced(spoken(text)), dict[str, Any](), None
        for one in self.beside:
            found = field_of(text, one.name.replace("_", " "))
            value = None if found is None else self._value(one, found.value)
            if value is None and one.name in self.required and missing is None:
                what = "is missing" if found is None else f"is {found.value.strip()[:60]!r}"
                missing = f"{one.name} {what}; it must be {one.words}. Write '{lead(one)} …' on a line of its own"
            said[one.name] = value
            text = text if found is None else _without(text, found, one.name)
        named = field_of(text, "answer") if any(map(self._is_bare, self.act.fields)) else None
        parsed = self.act.parse(text if named is None else text[named.start :] if named.inline else named.value)
        if parsed.error is not None and named is not None and named.inline:  # words below it
            parsed = self.act.parse(named.value.strip(" []<>"))
        if parsed.error is not None:
            kept = parsed.fallback_action
            return Parsed(error=parsed.error, fallback_action=None if kept is None else {ACT: kept, SAID: said})
        action = {ACT: parsed.action, SAID: said}
        return Parsed(action) if missing is None else Parsed(error=missing, fallback_action=action)

    def well_formed(self, text: str) -> bool:
        """Whether every field can be read."""
        parsed = self.parse(text)
        return parsed.error is None and None not in parsed.action[SAID].values()

    def constraint(self) -> Mapping[str, Any] | None:
        """All lines in order, where the act has texts of its own; else one object; None where the act is neither."""
        allowed = self.act.constraint() or {}
        texts = [*map(literal, allowed.get("choice", ())), *(allowed[key] for key in ("regex",) if key in allowed)]
        if texts:
            lines = [f"{literal(lead(one))} {one.pattern()}" for one in self.beside]
            return {"regex": "\\n".join([*lines[: self.place], f"({'|'.join(texts)})", *lines[self.place :]])}
        return {"json": self.json_schema} if any(one.name == "answer" for one in self.act.fields) else None

    @staticmethod
    def _value(one: Value, text: str) -> Any:
        bare = text.strip().strip("*_`").strip()
        if bare[:1] + bare[-1:] in ("[]", "<>", "()"):
            bare = bare[1:-1]
        value = None if bare.strip(" \"'.").casefold() in _NOTHING else one.read(bare)
        return value if value is not None and one.allows(value) else None

    @staticmethod
    def _is_bare(one: ReplyField) -> bool:
        """Whether nothing announces the act's answer."""
        return one.name == "answer" and not one.lead


def _without(text: str, found: Statement, name: str) -> str:
    """The reply without a field, nor the label on its line."""
    line = text.rfind("\n", 0, found.start) + 1
    begin = line if found.inline and found.start - line <= len(name) + 20 else found.start
    return replace(found, start=begin).rest(text)


def lead(one: Value) -> str:
    """What announces a field on its line."""
    return f"{one.name.upper().replace('_', ' ')}:"


def format_line(one: Value, required: bool) -> str:
    """How a field is written, for prompts: `CONFIDENCE: [a number from 0 to 1, or None]`."""
    return f"{lead(one)} [{f'{one.means}: ' if one.means else ''}{one.words}{'' if required else ', or None'}]"


def contract_of(form: Reply) -> Contract | None:
    """The contract that a form is or wraps; None if it is none."""
    while isinstance(form, WrappedReply):
        form = form.inner
    return form if isinstance(form, Contract) else None


def with_fields(form: Reply, action: Action, rng: random.Random) -> Action:
    """An action with a value by chance for each field beside it, where the form has such fields."""
    if isinstance(form, ActionWithMessage):
        return {**action, ACT: with_fields(form.act, action[ACT], rng)}
    contract = contract_of(form)
    if contract is None or action is None:
        return action
    return contract.with_values(action, {one.name: one.drawn(rng) for one in contract.beside})


def said_of(action: Action) -> Facts:
    """field → value of what an action says beside its act; {} if nothing is."""
    said: Facts = action[SAID] if has_fields(action) else {}
    return said
