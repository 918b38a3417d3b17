"""Replies that a model gives as the arguments of a tool instead of writing them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from harness.api import Action, Facts, Parsed, Reply, as_text

from .arguments import parameters, read_arguments
from .wrapped_reply import WrappedReply

TOOL = "reply"
"""The name of the tool."""
PURPOSE = "Give your reply: what you are asked to write goes into the arguments."


@dataclass(frozen=True, slots=True)
class ToolReply(WrappedReply):
    """A reply in the form `inner` that a model is offered as a tool, whose arguments are the form's fields.

    The arguments of the last call are read as a reply that has these fields, by the rule that reads them from text: as
    one JSON object or, where the form reads none (free text, published code), on the lines that the form asks for. A
    model that calls nothing has written its reply, and its text is read.
    """

    takes_text: ClassVar[bool] = True

    @property
    def tools(self) -> tuple[Facts, ...]:
        """The one tool."""
        return ({"name": TOOL, "description": PURPOSE, "parameters": parameters(self.inner)},)

    @property
    def without_tools(self) -> Reply:
        """The form itself."""
        return self.inner

    def calls_of(self, action: Action) -> tuple[Facts, ...]:
        """The call that says this."""
        if action is None and not self.inner.allows(None):
            return ()
        said = {name: value for name, value in self.inner.says(action).items() if value is not None}
        return ({"name": TOOL, "arguments": json.dumps(said, ensure_ascii=False)},)

    def parse_calls(self, calls: Sequence[Facts]) -> Parsed:
        """What the last call of the tool says."""
        call = last_call(calls)
        if call is None:
            other = " ".join(str(calls[-1]["name"])[:60].split()) if calls else ""
            return Parsed(error=f"there is no tool {other!r}; call {TOOL}")
        return read(self.inner, str(call["arguments"]))

    def constraint(self) -> Mapping[str, Any] | None:
        """None: decoding keeps to no form where the model may call the tool."""
        return None


def last_call(calls: Sequence[Facts]) -> Facts | None:
    """The last call of the tool; None if there is none."""
    return next((call for call in reversed(calls) if str(call["name"]).strip().lower() == TOOL), None)


def read(form: Reply, arguments: str) -> Parsed:
    """What a form reads of the arguments of a call, which may be broken JSON."""
    values = read_arguments(arguments)
    if isinstance(values, str):
        return form.parse(arguments)
    names = [one.name for one in form.fields if not _is_empty(values.get(one.name))]
    lines = (f"{one.lead} {_line(values[one.name], len(names))}" for one in form.fields if one.name in names)
    texts = ["\n".join(line.lstrip() for line in lines), json.dumps(values, ensure_ascii=False)]
    best: tuple[tuple[bool, int], Parsed] | None = None
    for text in texts if len(form.fields) == 1 else reversed(texts):
        parsed = form.parse(text)
        action = parsed.action if parsed.error is None else parsed.fallback_action
        said = {} if action is None else form.says(action)
        rank = parsed.error is None, sum(not _is_empty(said.get(name)) for name in names)
        if best is None or rank > best[0]:
            best = rank, parsed
        if rank == (True, len(names)):
            break
    assert best is not None
    return best[1]


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.strip(" \"'.").casefold() in ("", "none"))


def _line(value: Any, fields: int) -> str:
    """A value beside others has one line: it cannot pass for another field."""
    text = as_text(value)
    return text if fields == 1 else " ".join(text.split())
