"""A file of every call, which the engine `replay` can answer from."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

from harness.api import Completion, Request
from harness.api.errors import EngineError, StorageError
from harness.storage import Journal, PromptIds, fields_of


class RequestLog:
    """Appends calls to a JSONL file, without the torn line that a crash may have left.

    A line holds `id`, `model`, `sampling`, `seed`, `thread` (a number), `start` (index of the first message that stands
    in this line), `messages` (those of the thread that no earlier line of it holds), and `completion`, or `error` and
    `error_kind`. Requests of another kind have their own fields in place of `sampling` and `seed`. `chat: false` is a
    thread without chat template, `prefill` the text with which the reply begins. `tools` are those that the model is
    offered from this line of the thread on. Token ids of a prompt are kept as in the journal
    (`harness.storage.token_ids`), in place of an agent with the thread.

    Raises:
        StorageError: if the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._threads = count()
        self._failure: StorageError | None = None  # not raised yet
        self._journal = Journal(path, seal=False)

    def check(self) -> None:
        """Raise `StorageError` if the file can be written no more."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def write(self, model: str, request: Request, messages: int, result: Completion | EngineError) -> None:
        """Log the result of a call. If that fails, the next `check` raises the error: this call has its answer, which
        the run can record as a move.

        Args:
            model: the model's name.
            request: the request.
            messages: how many messages the engine saw: the thread may have grown by the time of the answer.
            result: the answer, or why there is none.
        """
        memo = request.thread.memo
        number, start = memo.get("request_log") or (next(self._threads), 0)
        memo["request_log"] = (number, messages)
        line: dict[str, Any] = {
            "id": request.id,
            "model": model,
            **request.log_fields,
            "thread": number,
            "start": start,
            "messages": request.thread.messages[start:messages],
        }
        if not request.thread.chat:
            line["chat"] = False
        if request.prefill:
            line["prefill"] = request.prefill
        if request.tools != memo.get("request_log_tools", ()):
            line["tools"] = memo["request_log_tools"] = request.tools
        if isinstance(result, Completion):
            line["completion"] = call = fields_of(result)
            if result.prompt_token_ids is not None:
                memo.setdefault("request_log_ids", PromptIds()).shorten(number, [call])
        else:
            line |= {"error": str(result), "error_kind": result.kind}
        try:
            self._journal.append(line)
        except StorageError as failure:
            self._failure = failure

    def close(self) -> None:
        """Close the file. Raises `StorageError` if a line was not written."""
        self._journal.close()
        self.check()
