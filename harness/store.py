"""A run's folder: journal, metadata, lock. Append-only, so that killing the process loses nothing written.

results/<run>/
  run.json        what was run: digests, versions, command, hardware
  spec.yaml       the resolved spec
  journal.jsonl   every move as it came in, every episode's end   (this module's formats); with several
                  processes journal-0.jsonl, journal-1.jsonl, …, which readers take for one
  scores.jsonl    one line an episode: labels and numbers, in plan order
  results.json    standard result rows
  tables.md       the tables as printed
  samples.jsonl   whole conversations, with --log_samples
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from array import array
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from harness.api import Completion, Move, Outcome
from harness.errors import DataError, Place, StorageError

SCHEMA = 1
JOURNAL = "journal.jsonl"
_FLUSH_BYTES = 1 << 16
Line = dict[str, Any]


class Journal:
    """Appends JSON lines. A torn last line, left by a kill, is cut off when the file is opened."""

    def __init__(self, path: Path, *, lenient: bool = False) -> None:
        """`lenient`: write values that JSON does not know as their text, for files that nobody reads back."""
        self.path = path
        self._default = str if lenient else None
        self._buffer: list[bytes] = []
        self._size = 0
        try:
            _cut_torn_line(path)
            self._file: IO[bytes] = path.open("ab", buffering=0)
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror or error}") from None

    def append(self, line: Mapping[str, Any], *, now: bool = True) -> None:
        """Write one line; with `now=False` it may wait in memory until the next line that is due now.

        Raises `StorageError`, and `TypeError` or `ValueError` for a line that is not JSON.
        """
        data = json.dumps(line, separators=(",", ":"), default=self._default).encode("ascii") + b"\n"
        self._buffer.append(data)
        self._size += len(data)
        if now or self._size >= _FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand everything to the operating system. Raises `StorageError`."""
        data, self._buffer, self._size = b"".join(self._buffer), [], 0
        try:
            while data:  # a nearly full disk takes only a part
                data = data[self._file.write(data) or 0 :]
        except (OSError, ValueError) as error:
            # What stands there may be half a line: anything written after it would be damaged with it.
            self._file.close()
            reason = getattr(error, "strerror", None) or error
            raise StorageError(
                f"cannot write {self.path}: {reason}",
                hint="Everything written so far is readable. Make room, then give the same command again.",
            ) from None

    def close(self) -> None:
        """Flush and close."""
        try:
            self.flush()
        finally:
            self._file.close()


def _cut_torn_line(path: Path) -> None:
    if not path.exists():
        return
    with path.open("rb+") as file:
        end = file.seek(0, os.SEEK_END)
        keep = end
        while keep:
            start = max(0, keep - (1 << 16))
            file.seek(start)
            newline = file.read(keep - start).rfind(b"\n")
            if newline >= 0:
                keep = start + newline + 1
                break
            keep = start
        if keep < end:
            file.truncate(keep)


def lines(path: Path) -> Iterator[tuple[int, Line]]:
    """(byte offset, line) of every whole line. Raises `DataError` naming a line that is no JSON object."""
    try:
        with path.open("rb") as file:
            offset = 0
            for number, raw in enumerate(file, 1):
                if not raw.endswith(b"\n"):
                    return  # torn by a kill
                yield offset, _object(raw, path, number)
                offset += len(raw)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None


def _object(raw: bytes, path: Path, number: int) -> Line:
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        line = None
    if not isinstance(line, dict):
        raise DataError("not a JSON object: the file is damaged", place=Place(str(path), number, 1))
    return line


# --------------------------------------------------------------------------------------- line formats


def move_line(episode: str, batch: int, position: int, index: int, move: Move) -> Line:
    """A move as journaled: `p` is its place in the batch, `i` the index of the seat's turn in the episode.

    Moves are written in the order in which answers come in; empty fields are left out.
    """
    line: Line = {"k": "move", "e": episode, "b": batch, "p": position, "s": move.seat, "i": index, "t": move.turn}
    if move.action is not None:
        line["a"] = move.action
    if move.error is not None:
        line["error"], line["error_kind"] = move.error, move.error_kind
    if move.calls:
        line["calls"] = [_call(c) for c in move.calls]
    return line


def _call(call: Completion) -> Line:
    made: Line = {"text": call.text}
    for name in _CALL_FIELDS:
        value = getattr(call, name)
        if value is not None:
            made[name] = value
    return made


_CALL_FIELDS = tuple(f.name for f in dataclasses.fields(Completion) if f.name != "text")


def move_of(line: Line) -> Move:
    """The inverse of `move_line`."""
    calls = tuple(Completion(**call) for call in line.get("calls", ()))
    return Move(line["s"], line["t"], line.get("a"), line.get("error"), line.get("error_kind"), calls)


def outcome_line(outcome: Outcome | None) -> Line | None:
    """An outcome as plain JSON."""
    if outcome is None:
        return None
    return {"answers": dict(outcome.answers), "group": outcome.group, "facts": dict(outcome.facts)}


def outcome_of(line: Line | None) -> Outcome | None:
    """The inverse of `outcome_line`."""
    return None if line is None else Outcome(line["answers"], line["group"], line["facts"])


class Progress:
    """What journals already hold: the ends of finished episodes, the moves of unfinished ones.

    An episode's moves may stand in several journals. `only` leaves out all other episodes.
    """

    def __init__(self, *paths: Path, only: Container[str] | None = None) -> None:
        self.ends: dict[str, Line] = {}
        self.moves: dict[str, dict[tuple[str, int], Move]] = {}
        for path in filter(Path.exists, paths):
            self._read(path, only)

    def _read(self, path: Path, only: Container[str] | None) -> None:
        for number, (_, line) in enumerate(lines(path), 1):
            with _naming(path, number):
                if only is not None and line["e"] not in only:
                    continue
                if line.get("k") == "end":
                    end = {key: line[key] for key in ("condition", "labels", "numbers", "error")}
                    self.ends[line["e"]] = {**end, "simulated": line.get("simulated", False)}
                    self.moves.pop(line["e"], None)
                elif line.get("k") == "move" and line["e"] not in self.ends:
                    self.moves.setdefault(line["e"], {})[line["s"], line["i"]] = move_of(line)


@contextlib.contextmanager
def _naming(path: Path, number: int) -> Iterator[None]:
    """Turn what a line of a strange shape raises into a `DataError` that names it."""
    try:
        yield
    except (KeyError, TypeError, AttributeError) as error:
        message = f"not a line of a journal: {type(error).__name__}: {error}"
        raise DataError(message, place=Place(str(path), number, 1)) from None


def batches(*paths: Path, episodes: set[str] | None = None) -> Iterator[tuple[Line, list[list[Move]]]]:
    """(end line, batches of moves) of every finished episode, one episode in memory at a time."""
    where: dict[str, array[int]] = {}  # of moves: offset and number of the file, in 8 bytes, however many there are
    ends: dict[str, int] = {}
    for file, path in enumerate(paths):
        for number, (offset, line) in enumerate(lines(path), 1):
            with _naming(path, number):
                if line.get("k") == "move":
                    where.setdefault(line["e"], array("Q")).append(offset * len(paths) + file)
                elif line.get("k") == "end" and (episodes is None or line["e"] in episodes):
                    ends[line["e"]] = offset * len(paths) + file

    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(path.open("rb")) for path in paths]

        def at(place: int) -> Line:
            offset, file = divmod(place, len(paths))
            files[file].seek(offset)
            return _object(files[file].readline(), paths[file], 0)

        for name, end in ends.items():
            played: dict[int, dict[int, Move]] = {}
            with _naming(paths[end % len(paths)], 0):
                for move in map(at, where.pop(name, ())):
                    played.setdefault(move["b"], {})[move["p"]] = move_of(move)
                yield at(end), [[played[b][p] for p in sorted(played[b])] for b in sorted(played)]


# ------------------------------------------------------------------------------------------ the folder


def journals(folder: Path) -> list[Path]:
    """The journals of a run, that of a single process first; `journal.jsonl` alone where there is none yet."""
    found = sorted(folder.glob(of_worker(JOURNAL, "*")), key=lambda path: (len(path.name), path.name))
    found = [path for path in found if path.stem.rpartition("-")[2].isdecimal()]
    alone = folder / JOURNAL
    return [alone, *found] if alone.exists() or not found else found


def of_worker(name: str, worker: int | str) -> str:
    """What a file is called that one of several processes writes: `journal-3.jsonl`."""
    stem, dot, suffix = name.partition(".")
    return f"{stem}-{worker}{dot}{suffix}"


class Lock:
    """Holds a results folder for one process; the system frees it when the process dies, however it dies."""

    def __init__(self, folder: Path) -> None:
        self._file: IO[str] | None = None
        try:
            import fcntl
        except ImportError:  # no such locks on this system: go on without
            return
        file = (folder / ".lock").open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise DataError(
                f"another process is writing {folder}", hint="Wait for it, or choose another --output_path."
            ) from None
        self._file = file

    def release(self) -> None:
        """Let go."""
        if self._file is not None:
            self._file.close()
            self._file = None


def write_atomically(path: Path, text: str) -> None:
    """Replace a file in one step, so that a reader never sees half of it. Raises `StorageError`."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        temporary.write_text(text, "utf-8", errors="backslashreplace")
        temporary.replace(path)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from None


def read_json(path: Path) -> Line:
    """A JSON object from a file. Raises `DataError`."""
    try:
        return _object(path.read_bytes(), path, 1)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None
