"""A file of every call, which the engine `replay` can answer from."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

from harness.api import Completion
from harness.engine_api import Request
from harness.engines.cache import as_json
from harness.errors import EngineError, StorageError
from harness.storage import Journal


class RequestLog:
    """Appends calls to a JSONL file, without the torn line that a crash may have left.

    A line holds `id`, `model`, `sampling`, `seed`, `thread` (a number), `start` (index of the first message that stands
    in this line), `messages` (those of the thread that no earlier line of it holds), and `completion`, or `error` and
    `error_kind`.

    Raises:
        StorageError: if the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._threads = count()
        self._failure: StorageError | None = None  # not raised yet
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._journal = Journal(path, seal=False)
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror or error}") from None

    def begin(self, request: Request) -> int:
        """How many messages the engine sees: the thread may have grown when the answer is here. Raises `StorageError`
        if the file can be written no more."""
        self._raise_failure()
        return len(request.thread.messages)

    def answered(self, model: str, request: Request, shown: int, answer: Completion) -> None:
        """An answer to the first `shown` messages. Where it cannot be written the next call raises that: this one has
        its answer, which can be recorded as a move."""
        try:
            self._write(model, request, shown, {"completion": as_json(answer)})
        except StorageError as failure:
            self._failure = failure

    def failed(self, model: str, request: Request, shown: int, error: EngineError) -> None:
        """A call that failed. Raises `StorageError`."""
        self._write(model, request, shown, {"error": str(error), "error_kind": error.kind})

    def close(self) -> None:
        """Close the file. Raises `StorageError` where a line was not written."""
        self._journal.close()
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _write(self, model: str, request: Request, shown: int, result: Mapping[str, Any]) -> None:
        memo = request.thread.memo
        number, start = memo.get("request_log") or (next(self._threads), 0)
        memo["request_log"] = (number, shown)
        line = {
            "id": request.id,
            "model": model,
            "sampling": dict(request.sampling),
            "seed": request.seed,
            "thread": number,
            "start": start,
            "messages": request.thread.messages[start:shown],
            **result,
        }
        self._journal.append(line)
