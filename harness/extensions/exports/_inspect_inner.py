"""The prompts of inner calls as Inspect has them: each message once, however many calls were sent it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from harness.storage.inner_calls import InnerCall
from harness.transcripts.inner_rows import common
from harness.transcripts.plain import finite

Json = dict[str, Any]
_ROLES: Final = frozenset({"system", "user", "assistant", "tool"})
_SAMPLING: Final = {
    **{name: name for name in ("temperature", "top_p", "top_k", "max_tokens", "frequency_penalty", "presence_penalty")},
    "seed": "seed",
    "stop": "stop_seqs",
}
"""Words of `generation_kwargs` → Inspect's."""


class InnerPrompts:
    """The inner prompts of one agent as ranges of a sample's messages.

    Args:
        messages: of the sample; grows.
        name: what ids of messages begin with.
    """

    def __init__(self, messages: list[Json], name: str) -> None:
        self._messages, self._name = messages, name
        self._last: InnerCall | None = None
        self._places: list[int] = []

    def refs(self, call: InnerCall) -> list[list[int]]:
        """The ranges of a call's prompt; messages that are not those of the call before are added."""
        ask = call.request
        sent = ask.messages if ask.text is None else [{"role": "user", "content": ask.text}]
        shared = common(self._last.request.messages, sent) if self._last is not None else 0
        self._places = self._places[:shared]
        for message in sent[shared:]:
            self._places.append(len(self._messages))
            self._messages.append(message_of(message, f"{self._name}{len(self._messages)}"))
        self._last = call
        ranges: list[list[int]] = []
        for place in self._places:
            if ranges and ranges[-1][1] == place:
                ranges[-1][1] += 1
            else:
                ranges.append([place, place + 1])
        return ranges


def config_of(sampling: Mapping[str, Any]) -> Json:
    """What Inspect knows of a sampling; its stops are a list."""
    known = {_SAMPLING[name]: value for name, value in sampling.items() if name in _SAMPLING}
    return known if isinstance(known.get("stop_seqs", []), list) else {**known, "stop_seqs": [known["stop_seqs"]]}


def message_of(message: Mapping[str, Any], name: str) -> Json:
    """A message that a program sent, as Inspect knows one: it may say anything."""
    role, content = message.get("role"), message.get("content")
    text = content if isinstance(content, str) else "" if content is None else json.dumps(content, ensure_ascii=False)
    made: Json = {"id": name, "role": role if role in _ROLES else "user", "content": text}
    if role == "tool":
        made["tool_call_id"] = str(message.get("tool_call_id", ""))
    calls = [one for one in message.get("tool_calls") or () if isinstance(one, dict)] if role == "assistant" else []
    if calls:
        made["tool_calls"] = [_call(i, one) for i, one in enumerate(calls)]
    return made


def _call(number: int, call: Mapping[str, Any]) -> Json:
    inner = call.get("function")
    own = inner if isinstance(inner, dict) else call
    made: Json = {
        "id": str(call.get("id") or f"call_{number}"),
        "function": str(own.get("name", "")),
        "type": "function",
    }
    arguments: Any = own.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            return {**made, "arguments": {}, "parse_error": f"no JSON object: {arguments}"}
    return {**made, "arguments": finite(arguments) if isinstance(arguments, dict) else {}}


def tool_of(tool: Mapping[str, Any]) -> Json:
    """A function that a program offered; its parameters are left out where they are no schema of an object."""
    parameters = tool.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    names = [str(name) for name in properties] if isinstance(properties, dict) else []
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": []}
    return {"name": str(tool.get("name", "")), "description": str(tool.get("description", "")), "parameters": schema}
