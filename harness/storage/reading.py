"""What the journals of a run hold: how far an unfinished run came, and the moves of finished episodes."""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path

from harness.api import Move
from harness.errors import DataError, Place

from .files import json_object
from .journal import MARKS, UNFINISHED, Line, lines, move_of
from .pending import Entry, PendingFailures


def confirmed(path: Path) -> Iterator[Entry]:
    """(byte offset, line) of every line of a journal that counts (`PendingFailures`). Raises `DataError`."""
    pending = PendingFailures()
    for number, (offset, line) in enumerate(lines(path), 1):
        with _naming(path, number):
            counting = pending.add(line, offset)
        yield from counting


class JournalState:
    """What journals already hold. An episode's moves may be in several; `only` leaves out all other episodes.

    Attributes:
        ends: episode → its end, of those that are finished.
        moves: episode → (agent, index of the agent's turn) → the move made there, of those that are not.
        calls, tokens: what was asked of engines by all processes that wrote them.
    """

    def __init__(self, *paths: Path, only: Container[str] | None = None) -> None:
        self.ends: dict[str, Line] = {}
        self.moves: dict[str, dict[tuple[str, int], Move]] = {}
        self.calls = self.tokens = 0
        for path in filter(Path.exists, paths):
            self._read(path, only)

    def _read(self, path: Path, only: Container[str] | None) -> None:
        pending = PendingFailures()
        for number, (_, line) in enumerate(lines(path), 1):
            with _naming(path, number):
                if "asked" in line:  # even if the move does not count
                    calls, tokens = line["asked"]
                    self.calls, self.tokens = self.calls + calls, self.tokens + tokens
                for _, counting in pending.add(line):
                    if only is None or counting.get("e") in only:
                        self._take(counting)

    def _take(self, line: Line) -> None:
        if line.get("k") == "end":
            end = {key: line[key] for key in ("condition", "labels", "numbers", "error")}
            self.ends[line["e"]] = end | {mark: line[mark] for mark in MARKS if mark in line}
            self.moves.pop(line["e"], None)
        elif line.get("k") in ("move", "part") and line["e"] not in self.ends:
            move, turn = move_of(line), (line["s"], line["i"])
            moves = self.moves.setdefault(line["e"], {})
            earlier = moves.get(turn)
            if earlier is None or move.error_kind != UNFINISHED:
                moves[turn] = move
            elif earlier.error_kind == UNFINISHED and len(move.calls) > len(earlier.calls):
                moves[turn] = move  # in which order they stand is not known where there are several journals


@contextlib.contextmanager
def _naming(path: Path, number: int) -> Iterator[None]:
    """Turn what a line of a strange shape raises into a `DataError` that names it."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        message = f"not a line of a journal: {type(error).__name__}: {error}"
        raise DataError(message, place=Place(str(path), number, 1)) from None


def located(paths: Sequence[Path]) -> Iterator[Entry]:
    """(place, line) of every line of these journals that counts; `read_places` finds it again by its place."""
    for file, path in enumerate(paths):
        for offset, line in confirmed(path):
            yield offset * len(paths) + file, line


def read_places(paths: Sequence[Path], places: Iterable[int]) -> Iterator[Line]:
    """The lines at places that `located` gave for the same journals. Raises `DataError` if there is none."""
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(path.open("rb")) for path in paths]
        for place in places:
            offset, file = divmod(place, len(paths))
            files[file].seek(offset)
            yield json_object(files[file].readline(), paths[file])


def in_batches(end: Line, moves: Iterable[Line], path: Path) -> list[list[Move]]:
    """An episode's moves, batch by batch. Raises `DataError`, which names the journal, if some are gone."""
    ordered: dict[int, dict[int, Move]] = {}
    with _naming(path, 0):
        for move in moves:
            ordered.setdefault(move["b"], {})[move["p"]] = move_of(move)
        count = sum(map(len, ordered.values()))
        if count < end.get("moves", 0):  # more: of the batch in which the episode failed
            raise DataError(f"journal: {count} of the {end['moves']} moves of episode {end['e']}: lines are gone")
        return [[ordered[b][p] for p in sorted(ordered[b])] for b in sorted(ordered)]


def batches(*paths: Path, episodes: set[str] | None = None) -> Iterator[tuple[Line, list[list[Move]]]]:
    """(end line, batches of moves) of every finished episode, one episode in memory at a time."""
    where: dict[str, array[int]] = {}  # of moves: their places, in 8 bytes, however many there are
    ends: dict[str, int] = {}
    for place, line in located(paths):
        if line.get("k") == "move":
            where.setdefault(line["e"], array("Q")).append(place)
        elif line.get("k") == "end" and (episodes is None or line["e"] in episodes):
            ends[line["e"]] = place
    lines_of_ends = read_places(paths, ends.values())
    for name, (place, end) in zip(list(ends), zip(ends.values(), lines_of_ends, strict=True), strict=True):
        yield end, in_batches(end, read_places(paths, where.pop(name, ())), paths[place % len(paths)])
