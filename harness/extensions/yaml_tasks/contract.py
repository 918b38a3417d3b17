"""A reply of a task in YAML: an act, and what the task's `reply:` asks for beside it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import ClassVar

from harness.api import Action, Facts, Reply
from harness.extensions.games.actions import ActionParameter
from harness.replies.action_with_message import ActionWithMessage
from harness.replies.contract import Contract, label
from harness.replies.wrapped_reply import WrappedReply, act_of, has_fields

ACT, SAID = "act", "said"
"""The keys of an action that has fields beside it."""


@dataclass(frozen=True, slots=True)
class ActWithFields(Contract):
    """An act with fields beside it: {"act": action, "said": {field: value, or None if nothing was said}}.

    An act alone is legal too, because policies need not say anything beside it.

    Attributes:
        act: the form of the act.
        beside: the fields, in the order in which a reply has them.
        place: how many of them precede the act.
        required: the names of those without which a reply is unreadable.
    """

    act: Reply = field()
    beside: tuple[ActionParameter, ...] = field()
    place: int = field(default=0)
    required: frozenset[str] = field(default=frozenset())

    announced: ClassVar[str] = "ANSWER:"

    def compose(self, act: Action, said: Facts) -> Action:
        """The act with these values; None for the others."""
        return {ACT: act, SAID: {one.name: said.get(one.name) for one in self.beside}}

    def split(self, action: Action) -> tuple[Action, Facts]:
        """The act, and the values."""
        return act_of(action), said_of(action)

    def well_formed(self, text: str) -> bool:
        """Whether every field can be read."""
        parsed = self.parse(text)
        return parsed.error is None and None not in parsed.action[SAID].values()


def format_line(one: ActionParameter, required: bool) -> str:
    """How a field is written, for prompts: `CONFIDENCE: [a number from 0 to 1, or None]`."""
    words = "one of the actions that are legal now" if is_of_moves(one) else one.words
    return f"{label(one.name)} [{f'{one.means}: ' if one.means else ''}{words}{'' if required else ', or None'}]"


def is_of_moves(one: ActionParameter) -> bool:
    """Whether a field says one of the moves, whose values are known only when an agent is asked."""
    return one.kind == "one_of" and not one.values


def contract_of(form: Reply) -> ActWithFields | None:
    """The act with fields that a form is or wraps; None if it is none."""
    while isinstance(form, WrappedReply):
        form = form.inner
    return form if isinstance(form, ActWithFields) else None


def with_fields(form: Reply, action: Action, rng: random.Random) -> Action:
    """An action with a value by chance for each field beside it, where the form has such fields."""
    if isinstance(form, ActionWithMessage):
        return {**action, ACT: with_fields(form.act, action[ACT], rng)}
    contract = contract_of(form)
    if contract is None or action is None:
        return action
    return contract.compose(action, {one.name: one.drawn(rng) for one in contract.beside})


def said_of(action: Action) -> Facts:
    """field → value of what an action says beside its act; {} if nothing is."""
    said: Facts = action[SAID] if has_fields(action) else {}
    return said
