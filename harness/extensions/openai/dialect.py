"""How requests are written for a server: what it has refused, and what it was sent in place of it ever since."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from harness.api import Completion
from harness.extensions.openai.card import MANY_STOPS, Card
from harness.extensions.openai.returned import own_fields, without
from harness.extensions.openai.strict import bounds_of, without_bounds

OLD, NEW = "max_tokens", "max_completion_tokens"
MOST_STOPS = 4
"""Stops that OpenAI's API takes."""
_NOT_TAKEN = (
    r"not supported|unsupported|unrecognized|unknown|unexpected|not (?:permitted|allowed)|extra inputs|no longer"
)
# OpenAI: "Unsupported parameter: 'stop' is not supported with this model.", "array too long. Expected … maximum length
# 4" with the param `stop`; Azure: "'$.stop' is invalid"; others: "at most 4 stop sequences".
_STOPS = re.compile(r"['\"$.`]stop\b|\bstop[ _](?:sequences?|words?|strings?|parameter)", re.IGNORECASE)
# Mistral: "Assistant message must have either content or tool_calls"; Anthropic: "all messages must have non-empty
# content", "text content blocks must be non-empty"; Bedrock: "The content field in the Message object at messages.1 is
# empty"; others: "content cannot be empty".
_EMPTY = re.compile(
    r"non-?empty|\bempty\b|\bblank\b|either content or tool_calls|content.{0,40}?required", re.IGNORECASE
)


# OpenAI: "Invalid value for 'content': expected a string, got null."; servers in Python: "none is not an allowed
# value", "Input should be a valid string"; gateways: "expected string, received null".
_NULL = re.compile(
    r"\bgot null\b|\bnone is not\b|valid string|\bnull\b.{0,40}?string|string.{0,40}?\bnull\b", re.IGNORECASE
)

# DeepSeek: "The `reasoning_content` in the thinking mode must be passed back to the API."; Kimi: "thinking is enabled
# but reasoning_content is missing in assistant tool call message at index 2"; Gemini: "Function call is missing a
# thought_signature in functionCall parts."
_LACKED = {
    name: re.compile(
        rf"missing.{{0,40}}?\b{name}\b|\b{name}\b.{{0,80}}?(?:missing|passed back|required)", re.IGNORECASE
    )
    for name in ("reasoning_content", "thought_signature")
}
BLANK_THOUGHT = " "
NO_SIGNATURE = "skip_thought_signature_validator"
"""What Gemini's documentation names for calls that are not its own."""


@dataclass
class Dialect:
    """What one server takes; the first refusal of something teaches it.

    Attributes:
        system: `merge` puts the system message before the first message of the user.
        empty_reply: what stands for an empty reply in a conversation where the server refuses empty ones.
        word: its name for the most tokens of a reply.
        most_stops: how many stops it takes; None: as many as there are.
        fills: whether it refuses empty replies.
        beside_calls: the content of a message that has nothing but calls of tools.
        thoughts: whether calls that came without a thought (a changed move, another model's turn) may get a blank one
            where the server wants one.
        wants: what it wants of such calls.
        leaves_out: fields of an assistant's message or of its calls that it has sent and does not take back, and
            keywords of a schema that it does not know.
    """

    system: Literal["role", "merge"]
    empty_reply: str
    word: str = OLD
    most_stops: int | None = None
    fills: bool = False
    beside_calls: str | None = None
    thoughts: bool = True
    wants: frozenset[str] = frozenset()
    leaves_out: frozenset[str] = frozenset()
    _renamed: bool = False

    def read(self, card: Card | None) -> None:
        """Know from the beginning what a card says."""
        if card is None:
            return
        if card.max_tokens and self.word not in card.max_tokens:
            self.word = card.max_tokens[0]
        if card.stops is not None and card.stops < MANY_STOPS:
            self.most_stops = card.stops
        self.fills = card.empty_turns == "refused"

    def write(self, body: Mapping[str, Any], most: int | None) -> dict[str, Any]:
        """The body as this server takes it.

        Args:
            body: with `max_tokens`.
            most: the most tokens that the reply may have; 0: as many as the server finds room for; None: as `body`
                says.
        """
        sent = dict(body)
        asked = sent.pop(OLD, None)
        if type(asked) is int and most != 0:
            asked = asked if most is None else min(asked, most)
        if asked is not None and most != 0:
            sent[self.word if "messages" in sent else OLD] = asked
        if self.most_stops is not None and "stop" in sent:
            sent["stop"] = sent["stop"][: self.most_stops]
            if not sent["stop"]:
                del sent["stop"]
        if self.leaves_out and "response_format" in sent:
            sent = without_bounds(sent, self.leaves_out)
        if "messages" in sent:
            sent["messages"] = self._messages(sent["messages"])
        return sent

    def learn(self, error: Exception, sent: Mapping[str, Any]) -> bool:
        """Whether the refusal of a request is of something that is written otherwise from now on."""
        if getattr(error, "status_code", 0) not in (400, 422, 500):
            return False
        text = f"{error} {getattr(error, 'body', '')}"[:10_000]
        word = next((name for name in (OLD, NEW) if name in sent), None)
        stops = len(sent.get("stop", ()))
        if word is not None and _not_taken(word).search(text):
            if word == self.word and not self._renamed:
                self.word, self._renamed = NEW if word == OLD else OLD, True
            return word != self.word
        if stops and _STOPS.search(text):
            if self.most_stops is None or stops <= self.most_stops:
                self.most_stops = MOST_STOPS if stops > MOST_STOPS else 0
            return True
        messages = sent.get("messages", ())
        if self.empty_reply and any(map(_is_empty, messages)) and _EMPTY.search(text):
            self.fills = True
            return True
        beside = {one["content"] for one in messages if _only_calls(one)}
        if beside == {self.beside_calls}:
            if None in beside and _NULL.search(text):
                self.beside_calls = ""
            elif _EMPTY.search(text):
                self.beside_calls = self.empty_reply
        if beside and beside != {self.beside_calls}:
            return True
        lacked = {name for name, says in _LACKED.items() if says.search(text)}
        if self.thoughts and lacked and any(_lacks(one, name) for one in messages for name in lacked):
            self.wants |= lacked
            return True
        names = own_fields(messages) | bounds_of(sent)
        refused = {name for name in names if _not_taken(re.escape(name)).search(text)}
        self.leaves_out |= refused
        return bool(refused)

    def cut(self, answer: Completion, body: Mapping[str, Any]) -> Completion:
        """A reply up to the first of the stops that the server was not sent."""
        stops: Sequence[str] = body.get("stop", ())
        if self.most_stops is None or len(stops) <= self.most_stops:
            return answer
        ends = [(at, stop) for stop in stops if (at := answer.text.find(stop)) >= 0]
        if not ends:
            return answer
        at, stop = min(ends)
        kept = at + len(stop) if body.get("include_stop_str_in_output") else at
        fields = answer.provider_fields
        if fields and "content" in fields.get("message", ()):  # it is not cut
            fields = {**fields, "message": {k: v for k, v in fields["message"].items() if k != "content"}}
        return replace(answer, text=answer.text[:kept], finish_reason="stop", provider_fields=fields)

    def _messages(self, messages: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        written = [self._message(one) if one["role"] == "assistant" else one for one in messages]
        if self.system == "merge" and written and written[0]["role"] == "system":
            first, *others = written
            if others and others[0]["role"] == "user":
                both = f"{first['content']}\n\n{others[0]['content']}"
                return [{**others[0], "content": both}, *others[1:]]
            return [{**first, "role": "user"}, *others]
        return written

    def _message(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """An assistant's message."""
        if self.leaves_out:
            message = without(message, self.leaves_out)
        for name in self.wants:
            message = _with_blank(message, name) if _lacks(message, name) else message
        if message["content"]:
            return message
        if message.get("tool_calls"):
            return {**message, "content": self.beside_calls}
        return {**message, "content": self.empty_reply} if self.fills else message


def _not_taken(word: str) -> re.Pattern[str]:
    """What says that a server does not take a parameter or field."""
    # OpenAI and Azure: "Unsupported parameter: 'max_tokens' is not supported with this model. Use
    # 'max_completion_tokens' instead."; Azure before 2024-09: "Unrecognized request argument supplied:
    # max_completion_tokens"; Groq and Cerebras: "property 'messages.2.assistant.reasoning_content' is unsupported";
    # Mistral: {"loc": […, "assistant", "reasoning_content"], "msg": "Extra inputs are not permitted"}.
    return re.compile(rf"\b{word}\b.{{0,80}}?(?:{_NOT_TAKEN})|(?:{_NOT_TAKEN}).{{0,80}}?\b{word}\b", re.IGNORECASE)


def _lacks(message: Mapping[str, Any], name: str) -> bool:
    """Whether a message of an assistant calls tools without the field that a server may want of it."""
    calls = message.get("tool_calls")
    if message["role"] != "assistant" or not calls:
        return False
    return name not in message if name == "reasoning_content" else "extra_content" not in calls[0]


def _with_blank(message: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    if name == "reasoning_content":
        return {**message, name: BLANK_THOUGHT}
    first, *others = message["tool_calls"]
    return {**message, "tool_calls": [{**first, "extra_content": {"google": {name: NO_SIGNATURE}}}, *others]}


def _is_empty(message: Mapping[str, Any]) -> bool:
    return message["role"] == "assistant" and not message["content"] and not message.get("tool_calls")


def _only_calls(message: Mapping[str, Any]) -> bool:
    return message["role"] == "assistant" and not message["content"] and bool(message.get("tool_calls"))


def advice(error: Exception) -> str:
    """What to change where a server refuses a parameter that the harness does not change by itself; "" for others."""
    text = f"{error} {getattr(error, 'body', '')}"[:10_000]
    if re.search(r"system role|role.{0,20}?system|roles? must alternate|got system", text, re.IGNORECASE):
        return "the model's chat template has no system role: --model_args system=merge puts it into the first message"
    for word in ("temperature", "top_p", "presence_penalty", "frequency_penalty", "top_k", "min_p"):
        if re.search(
            rf"\b{word}\b.{{0,80}}?(?:{_NOT_TAKEN}|does not support)|(?:{_NOT_TAKEN}).{{0,80}}?\b{word}\b", text
        ):
            return f"--gen_kwargs {word}=null leaves it out"
    if re.search(r"reasoning_(?:content|details).{0,60}?(?:passed back|missing)|thought_signature", text):
        return "a tool call lacks the thought that it came with: send_reasoning=tools sends it back, to the same model"
    if re.search(rf"(?:{_NOT_TAKEN}).{{0,80}}?\bseed\b|\bseed\b.{{0,80}}?(?:{_NOT_TAKEN})", text, re.IGNORECASE):
        return "--model_args send_seed=false leaves it out"
    return ""
