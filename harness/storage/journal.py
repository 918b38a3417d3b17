"""A run's folder: journal and metadata. Append-only, so that killing the process loses nothing written.

results/<run>/
  run.json        what was run: digests, versions, command, hardware; how it ended
  spec.yaml       the resolved spec
  journal.jsonl   every move as it came in, every episode's end   (this module's formats); with several
                  processes journal-0.jsonl, journal-1.jsonl, …, which readers take for one
  scores.jsonl    one line per episode: labels and numbers, in plan order
  results.json    standard result rows
  tables.md       the tables, whole
  tables.json     the same with the headline, for other programs
  samples.jsonl   whole conversations, with --log_samples
"""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from harness import api
from harness.api import Episode, Move, Outcome
from harness.api.errors import DataError, Place, StorageError
from harness.api.run_files import JOURNAL

from .files import DAMAGED, json_object, no_link, no_pipe
from .token_ids import TOKEN_FIELDS, PromptIds, completion_of, fields_of

SCHEMA = 4
UNFINISHED = "unfinished"
"""The `Move.error_kind` of a turn that is about to be asked again, with its answers so far; no protocol sees it."""
_GATHER = 0.02
_SYNC = 1.0
_MAX_WAITING_BYTES = 1 << 24  # bytes
MARKS = ("uses_ground_truth", "limited", "turns", "dropped_fields", "usage", "problem")
"""What lines of episodes' ends and of scores have only where it says something."""
RESUME = "resume"
"""The `k` of the line with which a process begins that continues writing a journal."""
Line = dict[str, Any]


class Journal:
    """Appends JSON lines. When it opens the file, it cuts off an incomplete last line, which a kill may leave.

    The last key of every line, `crc`, is a checksum of the rest of it (`sealed`): `lines` notices later changes by a
    disk or an editor. While it writes, the journal notices that something else has cut its file or written into it.

    A thread writes the lines, all of the last `_GATHER` seconds at once. So no call waits for the disk, and a killed
    process loses at most what it appended in the last tenth of a second. Every `_SYNC` seconds the thread also flushes
    the system's cache, which reveals delayed failures (of a network disk, for example). If the disk is slower than the
    run for long, `append` waits.

    When writing fails, nothing more is written, and every later call raises `StorageError`.

    Attributes:
        resumes: whether the file held lines when it was opened.
    """

    def __init__(self, path: Path, *, lenient: bool = False, seal: bool = True) -> None:
        """`lenient`: write values that JSON does not know as their text, for files that are not read back; `seal`: give
        lines a checksum. Raises `StorageError` for a file that cannot be written."""
        self.path, self._seal = path, seal
        self._encode = json.JSONEncoder(separators=(",", ":"), default=str if lenient else None).encode
        self._change = threading.Condition()  # holds what follows
        # None: there will be no more; a function: called when what stood before it is written
        self._waiting: list[bytes | Callable[[], object] | None] = []
        self._size = 0  # bytes appended and not yet written
        self._unfinished = 0  # lines and functions that came and are not yet dealt with
        self._hurry = threading.Event()
        self._failure: StorageError | None = None
        self._was_raised = False
        try:
            self._file: IO[bytes] = open(path, "ab", buffering=0, opener=no_link)  # noqa: SIM115
            if (keep := whole(path)) < os.fstat(self._file.fileno()).st_size:
                os.truncate(self._file.fileno(), keep)
            self._length = os.fstat(self._file.fileno()).st_size
            self.resumes = self._length > 0
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror or error}") from None
        self._thread = threading.Thread(target=self._write_all, name=f"journal {path}", daemon=True)
        self._thread.start()

    def append(self, line: Mapping[str, Any]) -> None:
        """Hand over one line.

        Raises `StorageError` if an earlier one could not be written, `TypeError` or `ValueError` for what is not JSON.
        """
        data = self._encode(line).encode("ascii")
        data = sealed(data) if self._seal else data + b"\n"
        with self._change:
            self._change.wait_for(lambda: self._size <= _MAX_WAITING_BYTES)
            self.check()
            self._size += len(data)
            self._put(data)

    def when_written(self, then: Callable[[], object]) -> None:
        """Call `then`, in another thread, once everything so far is with the operating system, or writing failed."""
        with self._change:
            self._put(then)
        self._hurry.set()

    def flush(self) -> None:
        """Wait until everything is with the operating system. Raises `StorageError`."""
        self._hurry.set()
        with self._change:
            self._change.wait_for(lambda: not self._unfinished)
        self.check()

    def close(self) -> None:
        """Write everything and close. Raises `StorageError` for a failure that no other call has raised."""
        self._hurry.set()
        with self._change:
            self._put(None)
        self._thread.join()
        self._file.close()
        if not self._was_raised:
            self.check()

    def check(self) -> None:
        """Raise `StorageError` if an earlier line could not be written."""
        if self._failure is not None:
            self._was_raised = True
            raise self._failure.with_traceback(None)

    def _put(self, item: bytes | Callable[[], object] | None) -> None:
        """Hand it to the thread; the caller holds `_change`. The thread is woken by the first of many."""
        self._waiting.append(item)
        self._unfinished += 1
        if len(self._waiting) == 1:
            self._change.notify_all()

    def _write_all(self) -> None:
        """The thread: gather, write, let those go on that wait. After a failure it only takes what comes."""
        synced, ending = time.monotonic(), False
        while not ending:
            with self._change:
                self._change.wait_for(lambda: self._waiting)
            self._hurry.wait(_GATHER)
            self._hurry.clear()  # who sets it from here on waits for a later line
            with self._change:
                lines, self._waiting = self._waiting, []
            ending = None in lines
            data = b"".join(line for line in lines if isinstance(line, bytes))
            try:
                if self._failure is None:
                    self._write(data)
                    if ending or time.monotonic() - synced >= _SYNC:
                        self._sync()
                        synced = time.monotonic()
            except Exception as error:  # whatever it is: no call may wait for this thread forever
                self._fail(error)
            with self._change:
                self._size -= len(data)
                self._change.notify_all()
            for line in lines:
                if callable(line):
                    line()
            with self._change:
                self._unfinished -= len(lines)
                self._change.notify_all()

    def _write(self, data: bytes) -> None:
        while data:  # a nearly full disk takes only a part
            size = self._file.write(data) or 0
            self._length += size
            data = data[size:]

    def _sync(self) -> None:
        status = os.fstat(self._file.fileno())
        if status.st_nlink == 0:
            raise OSError(errno.ENOENT, "something else has removed it")
        # Files without checksums may have several writers.
        if self._seal and stat.S_ISREG(status.st_mode) and status.st_size != self._length:
            change = "cut it" if status.st_size < self._length else "written into it"
            message = f"something else has {change}: {status.st_size:,} bytes are there, not {self._length:,}"
            raise OSError(errno.ESTALE, message)
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a pipe, a device: nothing to be pushed out
                raise

    def _fail(self, error: Exception) -> None:
        # What is there may be half a line: anything written after it would be damaged with it.
        message = getattr(error, "strerror", None) or error or type(error).__name__
        hint = "What was written is readable. Make room, or fix the disk; then give the same command again."
        if getattr(error, "errno", None) == errno.ESTALE:
            hint = "Restore the missing part from a copy; otherwise the same command requests it again."
        self._failure = StorageError(f"cannot write {self.path}: {message}", hint=hint)


def whole(path: Path) -> int:
    """How many bytes of a file are whole lines. Raises `OSError`."""
    with open(path, "rb", opener=no_pipe) as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - (1 << 16))
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            end = start
    return 0


def sealed(line: bytes) -> bytes:
    """A JSON object on one line as journals hold it: with the CRC-32 of its bytes for a last key, and a newline.

    >>> sealed(b'{"k":"end"}')
    b'{"k":"end","crc":"92cdc395"}\\n'
    """
    return b'%b,"crc":"%08x"}\n' % (line[:-1], zlib.crc32(line))


def is_intact(raw: bytes) -> bool:
    """Whether a line is as `sealed` gave it."""
    rest = zlib.crc32(b"}", zlib.crc32(memoryview(raw)[:-_SEAL]))
    return raw[-_SEAL:] == b',"crc":"%08x"}\n' % rest


def first_damaged(path: Path) -> int | None:
    """The number of the first line of a journal that is not as it was written, from 1; None if all of them are.

    It reads the file at the speed of the disk, and parses nothing. Raises `OSError`.
    """
    with open(path, "rb", opener=no_pipe) as file:
        return next((n for n, raw in enumerate(file, 1) if raw.endswith(b"\n") and not is_intact(raw)), None)


def lines(path: Path, *, sealed: bool = True) -> Iterator[tuple[int, Line]]:
    """(byte offset, line) of every whole line of a journal, or of a file whose lines have no checksum (`sealed`).

    Raises `DataError` naming a line that is not a JSON object, or not as it was written.
    """
    try:
        with open(path, "rb", opener=no_pipe) as file:
            offset = 0
            for number, raw in enumerate(file, 1):
                if not raw.endswith(b"\n"):
                    return  # torn by a kill
                line = json_object(raw, path, number)
                if sealed and not is_intact(raw):
                    message = "the line is not as it was written (its checksum differs): the file is damaged"
                    raise DataError(message, place=Place(str(path), number, 1), hint=DAMAGED)
                yield offset, line
                offset += len(raw)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None


_SEAL = len(b',"crc":"00000000"}\n')


# --------------------------------------------------------------------------------------- line formats


def move_line(
    episode: str, batch: int, position: int, index: int, move: Move, prompts: PromptIds | None = None
) -> Line:
    """A move as journaled: `p` is its place in the batch, `i` the index of the agent's turn in the episode. Without the
    `prompts` of the lines before it, it holds nothing of tokens.

    The writer keeps the order in which answers come in, and leaves empty fields out. An `UNFINISHED` move is a line of
    the kind "part": a resumed run continues its calls; all other readers wait for the move that follows.
    """
    kind = "part" if move.error_kind == UNFINISHED else "move"
    line: Line = {"k": kind, "e": episode, "b": batch, "p": position, "s": move.agent, "i": index, "t": move.turn}
    if move.action is not None:
        line["a"] = move.action
    if move.error is not None:
        line["error"], line["error_kind"] = move.error, move.error_kind
    if move.calls:
        line["calls"] = calls = [fields_of(call) for call in move.calls]
        if any(call.keys() & TOKEN_FIELDS for call in calls):
            if prompts is None:
                line["calls"] = [{k: v for k, v in call.items() if k not in TOKEN_FIELDS} for call in calls]
            else:
                prompts.shorten((episode, move.agent), calls, keep=kind == "move")
    if move.dropped_fields:
        line["dropped_fields"] = move.dropped_fields
    if move.inner_calls is not None:
        line["inner"] = move.inner_calls.as_json()
    return line


def move_of(line: Line, prompts: PromptIds | None = None) -> Move:
    """The inverse of `move_line`. `prompts`: of the moves that were read before it; None: where a prompt repeats a part
    of them, its ids are left out.

    Raises `KeyError`, `TypeError` or `ValueError` for a line of a strange shape.
    """
    calls = line.get("calls", ())
    if prompts is not None:
        prompts.restore((line["e"], line["s"]), calls, keep=line["k"] == "move")
    calls = tuple(map(completion_of, calls))
    kind = UNFINISHED if line["k"] == "part" else line.get("error_kind")
    dropped = tuple(line.get("dropped_fields", ()))
    inner = api.InnerUsage(**line["inner"]) if "inner" in line else None
    return Move(line["s"], line["t"], line.get("a"), line.get("error"), kind, calls, dropped, inner)


def outcome_line(outcome: Outcome | None) -> Line | None:
    """An outcome as plain JSON."""
    if outcome is None:
        return None
    return {"answers": dict(outcome.answers), "group": outcome.group, "facts": dict(outcome.facts)}


def outcome_of(line: Line | None) -> Outcome | None:
    """The inverse of `outcome_line`."""
    return None if line is None else Outcome(line["answers"], line["group"], line["facts"])


def end_line(
    episode: Episode,
    labels: Mapping[str, Any],
    numbers: Mapping[str, Any],
    error: str | None,
    marks: Mapping[str, Any],
) -> Line:
    """The end of an episode as journaled, with its scores, and those of the `marks` that say something."""
    return {
        "k": "end",
        "e": episode.id,
        "condition": episode.condition,
        "case": episode.case,
        "repeat": episode.repeat,
        "labels": labels,
        "roles": dict(episode.roles),
        "moves": sum(map(len, episode.batches)),
        "outcome": outcome_line(episode.outcome),
        "grade": dict(episode.grade),
        "numbers": numbers,
        "error": error,
        **{mark: value for mark, value in marks.items() if value},
    }


# --------------------------------------------------------------------------------------------- file names


def journals(folder: Path) -> list[Path]:
    """The journals of a run, that of a single process first; `journal.jsonl` alone if there is none yet."""
    numbered = sorted(folder.glob(of_worker(JOURNAL, "*")), key=lambda path: (len(path.name), path.name))
    numbered = [path for path in numbered if path.stem.rpartition("-")[2].isdecimal()]
    alone = folder / JOURNAL
    return [alone, *numbered] if alone.exists() or not numbered else numbered


def of_worker(name: str, worker: int | str) -> str:
    """What a file is called that one of several processes writes: `journal-3.jsonl`."""
    stem, dot, suffix = name.partition(".")
    return f"{stem}-{worker}{dot}{suffix}"
