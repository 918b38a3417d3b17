"""What the harness asks a user's own agent, and what it answers: the same for a function, a program and a server."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

from harness.api import Completion, Request, Thread
from harness.api.errors import RequestError
from harness.api.printable import cut
from harness.extensions.endpoints.keys import without_keys
from harness.extensions.openai.wire import count_of

MAX_REPLY_CHARS = 1_000_000
"""Characters of a reply."""
_DEAREST = 1e9
"""USD that a reply may say it cost; more is a mistake."""
_numbers = itertools.count()


class Conversation:
    """What an agent knows about a thread, so that it is sent only what is new to it.

    Args:
        request: the first request that the agent gets of this thread.

    Attributes:
        name: unique among those that the agent has at a time.
        agent, episode: as in the request's id.
        session: what the agent's form keeps of it; None: it knows nothing.
    """

    def __init__(self, request: Request) -> None:
        self.episode, self.agent, turn, _ = request.id.rsplit("/", 3)
        self.name = f"{self.episode}/{self.agent}/{turn}"
        self.session: Any = None
        self._known, self._last = 0, ""

    def start(self, thread: Thread) -> int:
        """Index of the first message that is new to the agent; 0 if it needs all of them.

        Where another answer than its own is in the thread (one of a cache, one that failed), it has to.
        """
        if self.session is None or self._known > len(thread.messages):
            return 0
        own = thread.messages[self._known - 1] == {"role": "assistant", "content": self._last}
        later = thread.messages[self._known :]
        return self._known if own and all(message["role"] != "assistant" for message in later) else 0

    def answered(self, messages: int, text: str) -> None:
        """The agent knows so many messages, and its answer to them."""
        self._known, self._last = messages + 1, text


class Conversations:
    """The conversations of one engine. Each is kept in its thread and ends with it."""

    def __init__(self) -> None:
        self._key = f"agent/{next(_numbers)}"

    def of(self, request: Request) -> Conversation:
        """The conversation that a request belongs to."""
        memo = request.thread.memo
        if self._key not in memo:
            memo[self._key] = Conversation(request)
        conversation: Conversation = memo[self._key]
        return conversation


def question_of(
    request: Request,
    conversation: Conversation,
    start: int,
    args: Mapping[str, Any],
    endpoint: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """What a program or a server is sent. `endpoint`: how it reaches its model, if it has one of the run's."""
    question = {
        "id": request.id,
        "conversation": conversation.name,
        "episode": conversation.episode,
        "agent": conversation.agent,
        "seed": request.seed,
        "sampling": dict(request.sampling),
        "start": start,
        "messages": request.thread.messages[start:],
    }
    if request.constraint:
        question["constraint"] = request.constraint
    if endpoint is not None:
        question["endpoint"] = endpoint
    return {**question, "args": dict(args)} if args else question


REPLY = '{"text": …}'
"""What a program or a server answers."""
ONLY = "standard output is for replies alone, one line of JSON each; print everything else to standard error"


def read_reply(line: bytes, request: Request) -> Completion:
    """A line of a program as a completion. Raises `RequestError`."""
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        text = cut(line.decode("utf-8", "replace").strip(), 200)
        raise RequestError(f"a reply is {REPLY}, found {text!r}; {ONLY}") from None
    return read_object(answer, request)


def read_object(answer: Any, request: Request) -> Completion:
    """The JSON of a program or a server as a completion. Raises `RequestError`."""
    if not isinstance(answer, dict):
        raise RequestError(f"a reply is {REPLY}, found {_preview(answer)}")
    if answer.get("id", request.id) != request.id:
        raise RequestError(f"the reply has another id: {_preview(answer['id'])}, not {request.id!r}")
    if answer.get("text") is None and answer.get("error"):
        raise RequestError(f"the agent reports: {cut(_plain(str(answer['error'])), 500)}")
    return read_answer(answer)


def read_answer(answer: Any) -> Completion:
    """What an agent gave, as a completion: a text, or a mapping with `text`, or a `Completion`.

    Raises:
        RequestError: it is none of these, or too long.
    """
    if isinstance(answer, Completion):
        answer = {name: getattr(answer, name) for name in Completion.__slots__}
    if isinstance(answer, Mapping):
        facts = {name: answer[name] for name in list(answer) if isinstance(name, str)}
        if "text" not in facts:
            keys = cut(", ".join(sorted(facts)), 200) or "no keys"
            raise RequestError(f"a reply is a text, or a mapping with `text`; found a mapping with {keys}")
    else:
        facts = {"text": answer}
    text = facts["text"]
    if not isinstance(text, str):
        raise RequestError(f"a reply must be text, found {type(text).__name__}: {_preview(text)}")
    if str.__len__(text) > MAX_REPLY_CHARS:
        raise RequestError(f"a reply has at most {MAX_REPLY_CHARS:,} characters, found {str.__len__(text):,}")
    reasoning, reason, latency = (facts.get(name) for name in ("reasoning", "finish_reason", "latency"))
    return Completion(
        text=without_keys(_plain(text)),
        reasoning=without_keys(_plain(reasoning))[:MAX_REPLY_CHARS] or None if isinstance(reasoning, str) else None,
        finish_reason=_plain(reason)[:40] if isinstance(reason, str) else None,
        latency=_number(latency),
        cost=_number(facts.get("cost")),
        input_tokens=count_of(facts.get("input_tokens")),
        output_tokens=count_of(facts.get("output_tokens")),
        cached_tokens=count_of(facts.get("cached_tokens")),
        reasoning_tokens=count_of(facts.get("reasoning_tokens")),
    )


def _plain(text: str) -> str:
    """Text as files and sockets take it: "?" for lone surrogates, and no class of the agent's own."""
    return str.encode(text, errors="replace").decode()


def _number(value: Any) -> float | None:
    """A number of seconds or USD that can be."""
    return float(value) if type(value) in (int, float) and 0 <= value <= _DEAREST else None


def _preview(value: Any) -> str:
    try:
        return cut(repr(value), 80)
    except Exception:  # the agent's own class
        return "what cannot be shown"
