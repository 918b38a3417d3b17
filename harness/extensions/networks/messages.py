"""Messages to neighbors as a JSON object (AgentsNet, Algorithm 1)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from harness.api import Action, Facts, Parsed, Reply, ReplyField
from harness.replies.characters import Parsing, is_placeholder, valid
from harness.replies.extract import field_of
from harness.replies.json_fields import fields_by_key
from harness.replies.literals import objects
from harness.replies.strip_reasoning import strip_reasoning

MAX_TEXT = 400_000
"""Characters of a reply that are searched for messages: the last ones, where they should be."""
_FENCE = " \t\r\n`"
_STRING = r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"'
_MEMBER = rf"[ \t\r\n]*+{_STRING}[ \t\r\n]*+:[ \t\r\n]*+{_STRING}[ \t\r\n]*+"
_FLAT = re.compile(rf"\{{(?:{_MEMBER}(?:,{_MEMBER})*+|[ \t\r\n]*+)\}}")
"""A JSON object of strings. Two that end at the same place would differ in which quotes open a string: so at most one
matches, and attempts from many places take linear time together."""


@dataclass(frozen=True, slots=True)
class Messages(Reply):
    """A flat JSON object: neighbor → message. A neighbor without a key gets no message; `{}` is silence.

    The tolerant mode takes every object in the text that has a neighbor's name among its keys, also in lists and other
    objects. Objects to different neighbors form one set of messages. An object that writes to the same neighbor again
    starts a new set, and the last set counts. An empty object is silence if there is no other, or if it stands alone at
    the end. Raw and escaped line breaks, trailing commas, comments and curly quotes are allowed, other keys are left
    out, `null` is not a message, and any other value that is not a string becomes its JSON text. Case and outer blanks
    of a name do not matter. An object may also say to whom it goes: `[{"to": "Emma", "message": "hi"}]`. If no object
    can be read, because a brace is missing, say, each name counts with the whole text after it. Thinking is left out.

    Attributes:
        to: the neighbors, in order.
        max_chars: longer messages are cut to this many characters; None for no limit.
        parsing: "reference" first turns every backslash-n into a line break (so JSON with an escaped line break is
            refused), then takes the first object that reaches from a brace to the last closing brace, has no key
            outside `known`, and strings only.
        known: the names that the reference mode accepts as keys; those that are not in `to` get nothing.
    """

    to: tuple[str, ...]
    max_chars: int | None = None
    parsing: Parsing = "tolerant"
    known: tuple[str, ...] = ()

    @property
    def noop(self) -> dict[str, str]:
        """Silence."""
        return {}

    def allows(self, action: Action) -> bool:
        """A text each to some of the neighbors. Longer ones than `max_chars` are legal: only parsing cuts."""
        return isinstance(action, Mapping) and all(
            name in self.to and isinstance(text, str) for name, text in action.items()
        )

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """A text for each neighbor; none has to get one."""
        return _fields(self.to)

    def says(self, action: Action) -> Facts:
        """The messages."""
        said: Facts = action
        return said

    def written(self, action: Action) -> str:
        """One JSON object."""
        return json.dumps(action, ensure_ascii=False)

    @property
    def examples(self) -> tuple[Action, ...]:
        """Examples: a message to one neighbor, to all, to none."""
        to_all = "Hello {}: I wait." if self.parsing == "reference" else 'Hello {}: I am "here"\nand wait.'
        return dict.fromkeys(self.to[:1], "My color is red."), {name: to_all.format(name) for name in self.to}, {}

    def parse(self, text: str) -> Parsed:
        """The messages in `text`: a dict whose keys are in `to`, in the order in which they were written."""
        text = text[-MAX_TEXT:]
        messages = self._exact(text) if self.parsing == "reference" else _sets(self.to, text)[0]
        if messages is None:
            return Parsed(error=self._complaint())
        return Parsed({name: valid(message)[: self.max_chars] for name, message in messages.items()})

    def dropped(self, text: str) -> int:
        """How many messages in `text` the tolerant mode does not send.

        These are messages of earlier sets, those to unknown names, and those that are cut off. 0 for the reference
        mode, which takes one object or none.
        """
        return 0 if self.parsing == "reference" else _sets(self.to, text[-MAX_TEXT:])[1]

    def constraint(self) -> Mapping[str, Any]:
        """A JSON schema: one optional string per neighbor and nothing else."""
        limit = {} if self.max_chars is None else {"maxLength": self.max_chars}
        properties = {name: {"type": "string", **limit} for name in self.to}
        return {"json": {"type": "object", "properties": properties, "additionalProperties": False}}

    def _exact(self, text: str) -> dict[str, str] | None:
        text = text.replace("\\n", "\n")
        end = text.rfind("}") + 1
        for brace in re.finditer(r"\{", text):
            if _FLAT.fullmatch(text, brace.start(), end):
                value = json.loads(text[brace.start() : end])
                legal = {*self.known, *self.to}.issuperset(value)
                return {name: value[name] for name in value if name in self.to} if legal else None
        return None

    def _complaint(self) -> str:
        listed = ", ".join(self.to[:20]) + (f", … ({len(self.to)} in all)" if len(self.to) > 20 else "")
        return f"no JSON object with messages was found; its keys must be names of your neighbors: {listed}"


@lru_cache(maxsize=256)
def _fields(to: tuple[str, ...]) -> tuple[ReplyField, ...]:
    return tuple(ReplyField(name, required=False) for name in to)


@lru_cache(maxsize=256)
def _sets(to: tuple[str, ...], text: str) -> tuple[Mapping[str, str] | None, int]:
    """The last set of messages, and how many others there are. Remembered: a reply is first read, then counted."""
    neighbors = {name.casefold(): name for name in to} | {name: name for name in to}
    text = strip_reasoning(text)
    messages: dict[str, str] | None = None
    names: set[str] = set()  # to which the set has written, or said that it does not
    dropped = 0
    end_of_text = len(text.rstrip(_FENCE))
    for start, end, outer in objects(text):
        alone = end == end_of_text and not text[text.rfind("\n", 0, start) + 1 : start].strip(_FENCE)
        if not outer and (alone or messages is None):
            dropped, messages, names = dropped + len(messages or ()), {}, set()
        stack: list[Any] = [outer]
        while stack:  # an object without a neighbor's name may hold one that has
            value = stack.pop()
            if isinstance(value, list):
                stack.extend(reversed(value))
            if not isinstance(value, dict):
                continue
            given, value = value, _addressed(value)
            named = {key: neighbors.get(key) or neighbors.get(key.strip().casefold()) for key in value}
            if not any(named.values()):
                dropped += len(value) if value is not given else 0
                stack.extend(reversed(value.values()))
                continue
            addressed = {name for name in named.values() if name}
            if not names.isdisjoint(addressed):
                dropped, messages, names = dropped + len(messages or ()), None, set()
            names |= addressed
            sent = {name: _as_text(value[key]) for key, name in named.items() if name and value[key] is not None}
            messages = {**(messages or {}), **{to: text for to, text in sent.items() if not is_placeholder(text)}}
            dropped += sum(name is None and value[key] is not None for key, name in named.items())
    if messages is None and any(mark in text for mark in ("{", "}", "```")):
        values, lost = fields_by_key(text, to)
        said = {name: value for name, value in values.items() if isinstance(value, str) and value[:1] not in ("[", "{")}
        if said or any(value is None for value in values.values()):
            messages, dropped = said, dropped + lost
    if messages is None and "</" in text:
        fields = {name: field for name in to if (field := field_of(text, name)) is not None and not field.inline}
        messages = {name: field.value.strip() for name, field in fields.items()} or None
    return messages, dropped


_TO = ("to", "recipient", "receiver", "neighbor", "neighbour", "target", "agent", "name")
_SAYS = ("message", "content", "text", "body", "msg")


def _addressed(value: dict[str, Any]) -> dict[str, Any]:
    """Name → message, of an object such as {"to": "Emma", "message": "hi"}; any other object as it is."""
    by_key = {key.strip().casefold(): item for key, item in value.items()}
    receivers = next((by_key[key] for key in _TO if key in by_key), None)
    said = next((key for key in _SAYS if key in by_key), None)
    if said is None or receivers is None:
        return value
    many = receivers if isinstance(receivers, list) else [receivers]
    return dict.fromkeys((name for name in many if isinstance(name, str)), by_key[said]) or value


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
