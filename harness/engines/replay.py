"""A recorded run in the model's place: the same answers again, with no model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.api import CallsTools, Completion, ContinuesText, Engine, Facts, Replays, Request, plugin
from harness.api.errors import (
    ContextLengthError,
    EngineError,
    EngineFatalError,
    InnerCallError,
    LimitReachedError,
    RefusedError,
    RequestError,
    SetupError,
)
from harness.api.run_files import META
from harness.storage import PromptIds, completion_of, lines
from harness.storage.journal_state import naming

_FIELDS = frozenset(Completion.__slots__)
_ERRORS: dict[str, type[EngineError]] = {
    error.kind: error
    for error in (EngineError, ContextLengthError, RequestError, RefusedError, InnerCallError, LimitReachedError)
}

Row = Mapping[str, Any]


@plugin
class Replay(Engine, CallsTools, ContinuesText, Replays):
    """Answers from a recorded run: every request gets the answer that the same request got then.

    Args:
        path: a run's folder (its `journal*.jsonl`), or a file that `--log_requests` wrote.
        model: the name shown in tables; empty: the recorded run's, so that its tables come out the same.
    """

    any_request = True
    path: str
    model: str = ""

    def __post_init__(self) -> None:
        self._answers: dict[str, Row] = {}
        self._errors: dict[str, Row] = {}
        self.model = self.model or self._recorded_model()

    @property
    def recorded(self) -> Path:
        return Path(self.path)

    def check(self) -> None:
        """Raises `SetupError` if there is no recording at `path`."""
        self._files()

    def _files(self) -> list[Path]:
        path = self.recorded
        files = sorted(path.glob("journal*.jsonl")) if path.is_dir() else [path] * path.is_file()
        if not files:
            raise SetupError(
                f"{self.path}: no recorded run there",
                hint="Give path= a folder below results/ with a journal.jsonl in it, or a requests.jsonl.",
            )
        return files

    async def start(self) -> None:
        """Read the recording.

        Raises:
            SetupError: if there is none at `path`, or nothing in it.
            DataError: if a line other than a file's last is damaged.
        """
        for file in self._files():
            prompts = PromptIds()
            for number, (_, row) in enumerate(lines(file, sealed=self.recorded.is_dir()), 1):
                with naming(file, number):
                    self._take(row, prompts)
        if not self._answers and not self._errors:
            raise SetupError(f"{self.path}: no recorded model calls", hint="A run of policies alone has none.")

    async def complete(self, request: Request) -> Completion:
        """The recorded answer, or the recorded error raised again.

        Raises:
            EngineFatalError: if the recorded run made no such request.
        """
        answer = self._answers.get(request.id)
        if answer is not None:
            return completion_of({k: v for k, v in answer.items() if k in _FIELDS})
        error = self._errors.get(request.id)
        if error is not None:
            raise _ERRORS[error["error_kind"]](error["error"])
        raise EngineFatalError(
            f"{self.path} holds no answer to {request.id!r}: the spec, the seed or the prompts differ from the "
            f"recorded run's, or it stopped before that call"
        )

    def report(self) -> Facts:
        return {"recorded_calls": len(self._answers)}

    def _recorded_model(self) -> str:
        path = self.recorded
        try:
            with (path / META if path.is_dir() else path).open(encoding="utf-8") as recorded:
                return str(json.loads(recorded.read() if path.is_dir() else next(recorded))["model"])
        except (OSError, ValueError, KeyError, TypeError, StopIteration):
            return "replay"

    def _take(self, row: Row, prompts: PromptIds) -> None:
        if row.get("k") == "move":
            start = f"{row['e']}/{row['s']}/{row['i']}/"
            calls = row.get("calls") or ()
            prompts.restore((row["e"], row["s"]), calls)
            for attempt, call in enumerate(calls):
                self._answers[f"{start}{attempt}"] = call
            if row.get("error_kind") in _ERRORS:  # the call after the last answered one failed
                self._errors[f"{start}{len(calls)}"] = row
        elif "id" in row and "completion" in row:
            prompts.restore(row.get("thread"), [row["completion"]])
            self._answers[row["id"]] = row["completion"]
            self._errors.pop(row["id"], None)
        elif "id" in row and row.get("error_kind") in _ERRORS and row["id"] not in self._answers:
            self._errors[row["id"]] = row
