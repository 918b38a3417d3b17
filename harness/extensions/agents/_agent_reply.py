"""What an A2A agent has answered: messages, tasks, and the events of a stream, gathered to a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from a2a.types import Message, Part, StreamResponse, Task, TaskState, TaskStatus
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct

from harness.api.errors import EngineFatalError, RefusedError, RequestError
from harness.api.printable import clean, cut
from harness.extensions.openai.wire import GarbledError

_WORKING = {TaskState.TASK_STATE_UNSPECIFIED, TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING}
_COUNTED = (
    "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "cost", "reasoning", "finish_reason",
)  # fmt: skip
"""What an agent may say of its reply in the metadata of its message or its task."""


@dataclass(frozen=True)
class Whereabouts:
    """Where a conversation with an agent goes on.

    Attributes:
        context: the agent's name for the conversation.
        task: the task that waits for the next message; "" for a new one.
        artifacts: those of that task that were part of earlier replies.
    """

    context: str
    task: str = ""
    artifacts: frozenset[str] = frozenset()


class Gathered:
    """An answer in the making.

    Args:
        before: where the conversation was; None at its beginning.

    Attributes:
        task: the id of the task that is being worked on; "" as long as there is none.
        is_over: whether nothing more will come.
    """

    def __init__(self, before: Whereabouts | None) -> None:
        self._old = before.artifacts if before is not None else frozenset()
        self.context = before.context if before is not None else ""
        self.task = ""
        self._message: Message | None = None
        self._status = TaskStatus()
        self._artifacts: dict[str, list[list[Part]]] = {}  # id → chunks
        self._facts: dict[str, Any] = {}

    @property
    def is_over(self) -> bool:
        return self._message is not None or self._status.state not in _WORKING

    def take(self, event: StreamResponse) -> None:
        """Take an event of a stream."""
        kind = event.WhichOneof("payload")
        if kind == "message":
            self._message = event.message
            self._note(event.message.context_id, "", event.message.metadata)
        elif kind == "task":
            self.take_task(event.task)
        elif kind == "status_update":
            update = event.status_update
            self._status = update.status
            self._note(update.context_id, update.task_id, update.metadata, update.status.message.metadata)
        elif kind == "artifact_update":
            change = event.artifact_update
            chunks = self._artifacts.setdefault(change.artifact.artifact_id, [])
            if not change.append:
                chunks.clear()
            chunks.append(list(change.artifact.parts))
            self._note(change.context_id, change.task_id, change.artifact.metadata)

    def take_task(self, task: Task) -> None:
        """Take a whole task as it is now."""
        self._status = task.status
        self._artifacts = {one.artifact_id: [list(one.parts)] for one in task.artifacts}
        self._note(task.context_id, task.id, task.metadata, task.status.message.metadata)

    def _note(self, context: str, task: str, *facts: Struct) -> None:
        self.context, self.task = context or self.context, task or self.task
        for one in facts:
            self._facts |= {key: _whole(one[key]) for key in _COUNTED if key in one}

    def answer(self) -> tuple[Mapping[str, Any], Whereabouts | None]:
        """The reply as a mapping with `text`, and where the conversation goes on: None where the agent does not say.

        Of a task the text is that of the artifacts that are new; where there are none, or it asks for input, that of
        its last message.

        Raises:
            RequestError: the task failed or was cancelled, or the answer holds something else than text.
            RefusedError: the agent rejects the task.
            EngineFatalError: it asks for authorization.
            GarbledError: there is no answer.
        """
        if self._message is not None:
            text = _text(self._message.parts)
            return {"text": text, **self._facts}, Whereabouts(self.context) if self.context else None
        state, said = self._status.state, self._status.message.parts
        if state in _WORKING:
            raise GarbledError("the agent's answer is neither a message nor a task")
        waits = state == TaskState.TASK_STATE_INPUT_REQUIRED
        if not waits and state != TaskState.TASK_STATE_COMPLETED:
            raise _ended(state, " ".join(part.text for part in said if part.text))
        new = [chunks for name, chunks in self._artifacts.items() if name not in self._old]
        parts = "\n".join("".join(_text(chunk) for chunk in chunks) for chunks in new)
        text = (_text(said) or parts) if waits else (parts or _text(said))
        if waits and not text:
            raise RequestError("the agent asks for input, and does not say which")
        goes_on = (
            Whereabouts(self.context, self.task, frozenset(self._artifacts)) if waits else Whereabouts(self.context)
        )
        return {"text": text, **self._facts}, goes_on if self.context else None


def _ended(state: int, why: str) -> RequestError | RefusedError | EngineFatalError:
    """The error of a task that ended without a reply."""
    words = f": {cut(clean(why), 500)}" if why else ""
    if state == TaskState.TASK_STATE_REJECTED:
        return RefusedError(f"the agent rejects the task{words}")
    if state == TaskState.TASK_STATE_AUTH_REQUIRED:
        return EngineFatalError(f"the agent asks for authorization{words}; name its key: api_key_env=MY_KEY")
    if state in (TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_CANCELED):
        verb = "failed" if state == TaskState.TASK_STATE_FAILED else "was cancelled by the agent"
        return RequestError(f"the agent's task {verb}{words}")
    return RequestError(f"the agent's task is in a state that is not known ({state}){words}")


def _text(parts: Iterable[Part]) -> str:
    """The text of parts, a line for each. Raises `RequestError` for parts of another kind."""
    texts = []
    for part in parts:
        kind = part.WhichOneof("content")
        if kind != "text":
            what = {"raw": "a file", "url": "a file's address", "data": "data"}.get(kind or "", "an empty part")
            media = f" ({cut(clean(part.media_type), 60)})" if part.media_type else ""
            raise RequestError(f"a reply is text, and the agent's has {what}{media} in it")
        texts.append(part.text)
    return "\n".join(texts)


def _whole(value: Any) -> Any:
    """A number of a `Struct`, which knows only floats, as the integer that it is; text as it is, all else as JSON."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    return value if value is None or isinstance(value, str | bool) else MessageToDict(value)
