"""What journals hold, for readers: the lines that count, and the moves of finished episodes. No run needs it."""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from harness.api import Move
from harness.api.errors import DataError

from .files import json_object, no_pipe
from .journal import Line, lines, move_of
from .journal_state import naming
from .pending_failures import Entry, PendingFailures
from .token_ids import PromptIds


def confirmed(path: Path) -> Iterator[Entry]:
    """(byte offset, line) of every line of a journal that counts (`PendingFailures`). Raises `DataError`."""
    pending = PendingFailures()
    for number, (offset, line) in enumerate(lines(path), 1):
        with naming(path, number):
            counting = pending.add(line, offset)
        yield from counting


def located(paths: Sequence[Path]) -> Iterator[Entry]:
    """(place, line) of every line of these journals that counts; `read_places` finds it again by its place."""
    for file, path in enumerate(paths):
        for offset, line in confirmed(path):
            yield offset * len(paths) + file, line


def read_places(paths: Sequence[Path], places: Iterable[int]) -> Iterator[Line]:
    """The lines at places that `located` gave for the same journals. Raises `DataError` if there is none."""
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(open(path, "rb", opener=no_pipe)) for path in paths]
        for place in places:
            offset, file = divmod(place, len(paths))
            files[file].seek(offset)
            yield json_object(files[file].readline(), paths[file])


def in_batches(end: Line, moves: Iterable[Line], path: Path) -> list[list[Move]]:
    """An episode's moves, batch by batch. Raises `DataError`, which names the journal, if some are gone."""
    ordered: dict[int, dict[int, Move]] = {}
    prompts = PromptIds()
    with naming(path, 0):
        for move in moves:
            ordered.setdefault(move["b"], {})[move["p"]] = move_of(move, prompts)
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
