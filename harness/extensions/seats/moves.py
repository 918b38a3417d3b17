"""Acts of whoever plays a seat, read by the turn's form: calls of tools or a text, and the reply that they make."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.api import Action, Completion, Facts, Parsed, Reply, ReplyField, as_text
from harness.api.errors import near
from harness.api.printable import cut
from harness.replies.parse_guard import guarded, read, read_completion
from harness.replies.tool_reply import PURPOSE, TOOL, ToolReply

END = "end_turn"
"""The tool that ends a turn which takes several calls."""
TEXT = "text"
"""The argument with which a reply is given as a text."""
MAX_CHARS = 1_000_000
"""Characters of the arguments of a call, or of a text."""
_LISTED = 20
"""Legal values that an error lists."""
_TEXT_TOOL: Facts = {
    "name": TOOL,
    "description": PURPOSE,
    "parameters": {
        "type": "object",
        "properties": {TEXT: {"type": "string", "description": "Your reply, as you are asked to write it."}},
        "required": [TEXT],
        "additionalProperties": False,
    },
}
_END_TOOL: Facts = {
    "name": END,
    "description": "End your turn: the calls that you have made in it are your move.",
    "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
}


@dataclass(frozen=True, slots=True)
class Act:
    """An act that is legal: what it adds to the turn's move, or why it is none.

    Attributes:
        error: why it is refused, in words that help to correct it; None if it is legal.
        reply: the move, if the turn is over with it.
        call: a call that the turn's move will have, if more may follow.
    """

    error: str | None = None
    reply: Completion | None = None
    call: Mapping[str, str] | None = None


class MoveForm:
    """What may be done in a turn.

    Args:
        form: of the reply.
        offered: the tools that its request offers, with their descriptions; () if a text is asked for.

    Attributes:
        tools: each {"name", "description", "parameters"}.
    """

    def __init__(self, form: Reply | None, offered: Sequence[Facts] = ()) -> None:
        self.form, self.by_calls = form, bool(offered)
        self._acting = None if form is None else _acting(form)
        self.most = 1 if self._acting is None else self._acting.most_calls
        made = tuple(offered) or (() if self._acting is None else self._acting.tools) or (_TEXT_TOOL,)
        self.tools: tuple[Facts, ...] = (*made, _END_TOOL) if self.most > 1 else made

    @property
    def names(self) -> list[str]:
        """The names of the tools."""
        return [str(tool["name"]) for tool in self.tools]

    def usage(self) -> str:
        """The tools and their arguments, a line each, for agents that see no list of tools, or an old one."""
        return "\n".join(f"- {_usage(tool)}" for tool in self.tools)

    def call(self, name: str, arguments: Mapping[str, Any], before: Sequence[Mapping[str, str]] = ()) -> Act:
        """What a call does. `before`: those that the turn has already."""
        known = {str(tool["name"]): tool for tool in self.tools}
        if name not in known:
            name = cut(name, 80)
            return Act(f"there is no tool {name!r} in this turn. {near(name, known)}")
        text = json.dumps(arguments, ensure_ascii=False, default=str)
        if len(text) > MAX_CHARS:
            return Act(f"too long: arguments of {len(text):,} characters, at most {MAX_CHARS:,} are read")
        if self.most > 1 and name == END:
            if not before:
                return Act(f"you have made no call in this turn; the tools are: {', '.join(known)}")
            return Act(reply=self._of_calls(before))
        properties = known[name]["parameters"].get("properties", {})
        if set(arguments) == {TEXT} and TEXT not in properties and isinstance(arguments[TEXT], str):
            if name != TOOL:
                return Act(f"{name} takes {_listed(list(properties)) or 'no arguments'}, not {TEXT}")
            if len(properties) != 1:
                return self.say(arguments[TEXT])
            arguments = {next(iter(properties)): arguments[TEXT]}
        if self._acting is None or known[name] is _TEXT_TOOL:
            said = arguments.get(TEXT)
            return self.say(said) if isinstance(said, str) else Act(f"{TEXT} is missing: it is your reply")
        unknown = [one for one in arguments if one not in properties]
        if unknown and known[name]["parameters"].get("additionalProperties") is False:
            takes = ", ".join([*properties][:_LISTED]) or "no arguments"
            return Act(f"{name} has no argument {cut(unknown[0], 80)!r}; it takes {takes}")
        wrong = _wrong_arguments(name, known[name]["parameters"], arguments)
        call = {"id": f"call{len(before)}", "name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
        if self.most == 1:
            return self._whole(call, arguments, wrong)
        if (error := _error_of(self._parsed([call]))) is not None:
            return Act(wrong or error)
        if len(before) + 1 >= self.most:
            return Act(reply=self._of_calls([*before, call]))
        return Act(call=call)

    def say(self, text: str) -> Act:
        """What a reply in words does."""
        if len(text) > MAX_CHARS:
            return Act(f"too long: {len(text):,} characters, at most {MAX_CHARS:,} are read")
        completion = Completion(text, finish_reason="stop")
        if self.form is None:
            return Act(reply=completion)
        if self.by_calls and not self.form.takes_text:
            return Act(f"a text is no move here: call {' or '.join(self.names)}")
        parsed = read_completion(self.form, completion)
        if (error := _error_of(parsed)) is not None:
            return Act(f"that cannot be read: {error}")
        return Act(reply=completion)

    def unreadable(self, error: str, said: str) -> Completion:
        """The reply of a turn in which too many acts were refused: the last of them, which no form reads."""
        text = f"{said}\n[refused: {error}]" if said else f"[refused: {error}]"
        return Completion(cut(text, 4_000), finish_reason="stop")

    def action_of(self, message: Mapping[str, Any]) -> Action:
        """The action of an assistant's message of the conversation; None if it says none."""
        calls = [
            {"id": str(one.get("id", "")), **{key: str(one["function"][key]) for key in ("name", "arguments")}}
            for one in message.get("tool_calls", ())
        ]
        if self.form is None:
            return message["content"]
        parsed = read_completion(self.form, Completion(message["content"], tool_calls=calls or None))
        return parsed.action if parsed.error is None else None

    # ------------------------------------------------------------------------------ a call as a reply

    def _whole(self, call: Mapping[str, str], arguments: Mapping[str, Any], wrong: str | None) -> Act:
        """A call that is the whole move. `wrong`: what to say of its arguments, should the form not read them."""
        assert self._acting is not None and self.form is not None
        blank = [one for one, value in arguments.items() if isinstance(value, str) and not value.strip()]
        if needed := [one.name for one in self.form.fields if one.required and one.name in blank]:
            return Act(f"{needed[0]} is empty")
        parsed = self._parsed([call])
        error = _error_of(parsed) or self._unread(parsed.action, arguments)
        if error is not None:
            return Act(wrong or error)
        if self.by_calls:
            return Act(reply=Completion("", tool_calls=[call], finish_reason="tool_calls"))
        return self._written(parsed.action, arguments)

    def _of_calls(self, calls: Sequence[Mapping[str, str]]) -> Completion:
        """The reply that makes these calls."""
        assert self.form is not None
        if self.by_calls:
            return Completion("", tool_calls=list(calls), finish_reason="tool_calls")
        action = self._parsed(calls).action
        text = guarded("reply", self.form, lambda: self.form.written(action) if self.form else "", lambda bug: "")
        return Completion(text, finish_reason="stop")

    def _written(self, action: Action, arguments: Mapping[str, Any]) -> Act:
        """The reply in words that is read as this action."""
        form = self.form
        assert form is not None
        texts = [guarded("reply", form, lambda: form.written(action), lambda bug: ""), *_texts(form, arguments)]
        for text in filter(None, texts):
            parsed = read(form, text)
            if parsed.error is None and (parsed.action == action or self._says(parsed.action) == self._says(action)):
                return Act(reply=Completion(text, finish_reason="stop"))
        return Act("that cannot be written so that it is read again; say it in other words")

    def _parsed(self, calls: Sequence[Mapping[str, str]]) -> Parsed:
        acting = self._acting
        assert acting is not None
        return guarded(
            "reply", acting, lambda: acting.parse_calls(calls), lambda bug: Parsed(error=f"the call hits a bug: {bug}")
        )

    def _unread(self, action: Action, arguments: Mapping[str, Any]) -> str | None:
        """Which of the arguments the form has not read."""
        form = self.form
        assert form is not None
        fields, said = {one.name: one for one in form.fields}, self._says(action)
        for name, value in arguments.items():
            if name in fields and not _is_empty(value) and _is_empty(said.get(name)):
                return f"{name}={cut(as_text(value), 80)!r} cannot be read{_what(fields[name])}"
        return None

    def _says(self, action: Action) -> Facts:
        form = self.form
        assert form is not None
        return guarded("reply", form, lambda: form.says(action) or {}, lambda bug: {"action": action})


def _acting(form: Reply) -> Reply | None:
    """The form as tools offer it; None where only a text gives a reply."""
    acting = form.with_tools
    if acting.tools:
        return acting
    return ToolReply(form) if form.fields and form.ability is None else None


def _texts(form: Reply, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Replies that say these fields: on their lines, and as one object."""
    lines = (f"{one.lead} {as_text(arguments[one.name])}".lstrip() for one in form.fields if one.name in arguments)
    yield "\n".join(lines)
    yield json.dumps(dict(arguments), ensure_ascii=False)


def _error_of(parsed: Parsed) -> str | None:
    """Why nothing was read, or one of the calls that were is none."""
    if parsed.error is not None:
        return parsed.error
    calls = parsed.action if isinstance(parsed.action, list) else []
    return next((str(call["error"]) for call in calls if isinstance(call, Mapping) and call.get("error")), None)


def _wrong_arguments(name: str, schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str | None:
    """What is wrong with arguments that are missing, or of which there are finitely many values."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    for one in schema.get("required", ()):
        if arguments.get(one) is None:
            return f"{one} is missing: {_usage({'name': name, 'parameters': schema})}"
    for one, value in arguments.items():
        options = properties.get(one, {}).get("enum")
        if options is not None and value is not None and value not in options:
            texts = [as_text(option) for option in options]
            said = cut(as_text(value), 80)
            if said.casefold().strip() not in {text.casefold().strip() for text in texts}:
                return f"{one}={said!r} is not legal. {near(said, texts)}"
    return None


def _usage(tool: Facts) -> str:
    schema = tool["parameters"]
    required = set(schema.get("required", ()))
    parts = []
    for name, one in schema.get("properties", {}).items():
        options = one.get("enum")
        kind = one.get("type", "value")
        what = "one of " + _listed([json.dumps(option, ensure_ascii=False) for option in options]) if options else kind
        parts.append(f"{name}: {what}{'' if name in required else ' (may be left out)'}")
    return f"{tool['name']}({'; '.join(parts)})"


def _listed(names: Sequence[str]) -> str:
    more = f", … ({len(names)} in all)" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _what(field: ReplyField) -> str:
    return f": it must be {field.words}" if field.words else ""


def _is_empty(value: Any) -> bool:
    return value is None or value in ("", [], {}) or (isinstance(value, str) and not value.strip(" \"'."))
