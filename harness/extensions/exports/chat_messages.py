"""Conversations of an episode's agents as trainers take them: messages, each reply with its weight.

A model's replies are as it wrote them. What a policy did is written in the form that the prompt asks for, and left out
where that form would not read the same action of it.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from harness.api import Action, Completion, Facts, Reply
from harness.engines.tool_calls import with_objects
from harness.replies.parse_guard import guarded, read_completion
from harness.replies.wrapped_reply import WrappedReply
from harness.runtime.players import NOT_CARRIED_OUT
from harness.transcripts.view_api import RecordedTurn, Transcript

Message = dict[str, Any]
"""{"role", "content"}, in OpenAI's form: an assistant's has a "weight", and may have "tool_calls" and
"reasoning_content"; a tool's has the "tool_call_id" of its call."""

BEHIND: Final = "behind one of these in its conversation"
NO_PROMPT: Final = "whose prompts cannot be rendered again"


@dataclass(frozen=True, slots=True)
class TrainingConversation:
    """What an agent was sent and replied, from where its conversation began to the last reply to learn from.

    Attributes:
        agent: the agent.
        group: its group in the spec's `agents:`.
        messages: weight 1 is for a reply to learn from; 0 for examples that a prompt has, for replies that were not
            read, and for those of an earlier `TrainingConversation` that goes on here with other tools.
        tools: what the agent could call, each {"name", "description", "parameters"}.
    """

    agent: str
    group: str
    messages: Sequence[Message]
    tools: tuple[Facts, ...] = ()

    @property
    def learned(self) -> list[int]:
        """The places of the replies to learn from."""
        return [i for i, message in enumerate(self.messages) if message.get("weight") == 1]


@dataclass
class ChatReader:
    """Reads the conversations of episodes.

    Attributes:
        left_out: why turns were left out → how many.
    """

    left_out: Counter[str] = field(default_factory=Counter)

    def read(self, transcript: Transcript, wanted: Callable[[str, str], bool]) -> Iterator[TrainingConversation]:
        """The conversations of the agents that are `wanted` (agent, group), in order of play."""
        for agent in transcript.agents:
            group = transcript.roles.get(agent, "default")
            if wanted(agent, group):
                yield from self._of(agent, group, [turn for turn in transcript.turns if turn.agent == agent])

    def _of(self, agent: str, group: str, turns: Sequence[RecordedTurn]) -> Iterator[TrainingConversation]:
        messages: list[Message] = []
        tools: tuple[Facts, ...] = ()
        is_cut = False
        for turn in turns:
            if turn.move is None:
                continue
            if turn.fresh:
                yield from _whole(agent, group, messages, tools)
                messages, tools, is_cut = [], (), False
            if is_cut:
                self.left_out[BEHIND] += 1
                continue
            said = _said(turn, len(messages))
            if isinstance(said, str):
                self.left_out[said] += 1
                is_cut = True
                continue
            offered = turn.tools or (tools if turn.reply is not None and turn.reply.tools else ())
            if offered != tools and messages:  # a chat template shows tools at the top: this is another prompt
                yield from _whole(agent, group, messages, tools)
                messages = [{**one, "weight": 0} if "weight" in one else one for one in messages]
            tools = offered
            _add(messages, said)
        yield from _whole(agent, group, messages, tools)


def _whole(
    agent: str, group: str, messages: Sequence[Message], tools: tuple[Facts, ...]
) -> Iterator[TrainingConversation]:
    """The conversation to its last reply to learn from, if it has one."""
    last = max((i for i, message in enumerate(messages) if message.get("weight") == 1), default=-1)
    if last >= 0:
        yield TrainingConversation(agent, group, with_objects(messages[: last + 1]), tools)


def _add(messages: list[Message], said: Sequence[Message]) -> None:
    """Add a turn's messages; each call of the last reply gets its answer, and no answer stands without a call."""
    for message in said:
        waiting = _unanswered(messages)
        if message["role"] == "tool":
            if waiting:
                messages.append({**message, "tool_call_id": waiting[0]})
            continue
        answers = ({"role": "tool", "content": NOT_CARRIED_OUT, "tool_call_id": one} for one in waiting)
        messages += [*answers, message]


def _unanswered(messages: Sequence[Message]) -> list[str]:
    """The ids of the last reply's calls that have no answer yet."""
    for answered, message in enumerate(reversed(messages)):
        if message["role"] != "tool":
            return [call["id"] for call in message.get("tool_calls", ())][answered:]
    return []


def _said(turn: RecordedTurn, place: int) -> list[Message] | str:
    """A turn's messages, or why it is left out; `place`: how many messages precede it."""
    form, move = turn.reply, turn.move
    if form is None or not turn.messages or move is None:
        return NO_PROMPT
    if form.ability is not None:
        return f"whose form {_name(form)} takes no text from a model"
    prefill = turn.prompt[-1][1] if turn.prompt[-1][0] == "assistant" else ""
    asked = len(turn.prompt) - bool(prefill)
    # Examples that the prompt has are replies too, which other messages are not.
    messages = [_weighted(message, 0) for message in turn.messages[:asked]]
    if not move.calls and move.error_kind is None:
        reply = _written(form, move.action, prefill, place + asked)
        return reply if isinstance(reply, str) else [*messages, _weighted(reply, 1)]
    calls = iter(enumerate(move.calls, 1))
    for message in turn.messages[asked:]:
        if message["role"] == "assistant":
            number, call = next(calls, (0, None))
            is_read = number == len(move.calls) and move.error is None
            thought = {"reasoning_content": call.reasoning} if call is not None and call.reasoning else {}
            message = {**message, **thought}
            messages.append(_weighted(message, int(is_read)))
        else:
            messages.append(dict(message))
    return messages


def _weighted(message: Mapping[str, Any], weight: int) -> Message:
    return {**message, "weight": weight} if message["role"] == "assistant" else dict(message)


def _written(form: Reply, action: Action, prefill: str, place: int) -> Message | str:
    """The reply that says what a policy did, or why there is none; `place`: its own in the conversation."""
    calls = guarded("reply", form, lambda: form.calls_of(action), lambda bug: ()) if form.tools else ()
    if calls:
        named = [{"id": f"c{place:05}{i:03}", **call} for i, call in enumerate(calls)]
        if _is_read(form, Completion("", tool_calls=named), action):
            made = [
                {"id": one["id"], "type": "function", "function": {key: one[key] for key in ("name", "arguments")}}
                for one in named
            ]
            return {"role": "assistant", "content": "", "tool_calls": made}
    text = guarded("reply", form, lambda: form.written(action), lambda bug: "")
    text = text or (action if isinstance(action, str) else "")  # a form without fields may read the action itself
    if not text:
        return f"whose form {_name(form)} cannot write an action"
    if prefill:  # the reply goes on behind it, and what the prompt has begun is not said again
        text = text.removeprefix(prefill.strip())
        text = text.lstrip() if prefill[-1].isspace() else text
    if not _is_read(form, Completion(text), action):
        return f"whose form {_name(form)} reads another action than the policy's"
    return {"role": "assistant", "content": prefill + text}


def _is_read(form: Reply, completion: Completion, action: Action) -> bool:
    """Whether a form reads this action of a reply: the same value, or one that says the same in each of its fields."""
    parsed = read_completion(form, completion)
    if parsed.error is not None:
        return False
    if _json(parsed.action) == _json(action):
        return True
    said, wanted = (
        guarded("reply", form, functools.partial(form.says, one), lambda bug: dict[str, Any]())
        for one in (parsed.action, action)
    )
    filled = [{key: value for key, value in one.items() if value is not None} for one in (said, wanted)]
    return bool(filled[0]) and _json(filled[0]) == _json(filled[1])


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _name(form: Reply) -> str:
    while isinstance(form, WrappedReply):
        form = form.inner
    return type(form).__name__
