"""How far a run came, as its journals say. Next: `harness.storage.finished_episodes`, the moves of finished
episodes."""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterator
from pathlib import Path

from harness.api import Move
from harness.api.errors import DataError, Place

from .journal import MARKS, UNFINISHED, Line, lines, move_of
from .pending_failures import PendingFailures
from .token_ids import PromptIds


class JournalState:
    """What journals already hold. An episode's moves may be in several; `only` leaves out all other episodes.

    Attributes:
        ends: episode → its end, of those that are finished.
        moves: episode → (agent, index of the agent's turn) → the move made there, of those that are not.
        inner: episode → the lines of its inner calls (`harness.storage.inner_calls`) without what was asked, of those
            that are not.
        calls, tokens: what was asked of engines by all processes that wrote them.
        micros: what that cost, in millionths of a USD, where costs were bounded.
        served: name of an engine → the `Engine.weights` that it had when it first started, of those that had any.
    """

    def __init__(self, *paths: Path, only: Container[str] | None = None) -> None:
        self.ends: dict[str, Line] = {}
        self.moves: dict[str, dict[tuple[str, int], Move]] = {}
        self.inner: dict[str, list[Line]] = {}
        self.calls = self.tokens = self.micros = 0
        self.served: dict[str, str] = {}
        self._prompts = PromptIds()
        for path in filter(Path.exists, paths):
            self._read(path, only)

    def _read(self, path: Path, only: Container[str] | None) -> None:
        pending = PendingFailures()
        for number, (_, line) in enumerate(lines(path), 1):
            with naming(path, number):
                if "asked" in line:  # even if the move does not count
                    calls, tokens, *micros = line["asked"]
                    self.calls, self.tokens = self.calls + calls, self.tokens + tokens
                    self.micros += sum(micros)
                if line.get("k") == "served":
                    self.served.setdefault(str(line["m"]), str(line["weights"]))
                is_inner = line.get("k") in ("inner", "dropped") and line["e"] not in self.ends
                if is_inner and (only is None or line["e"] in only):
                    own = {key: value for key, value in line.items() if key != "ask"}
                    self.inner.setdefault(line["e"], []).append(own)  # an answer counts whatever becomes of its turn
                for _, counting in pending.add(line):
                    if only is None or counting.get("e") in only:
                        self._take(counting)

    def _take(self, line: Line) -> None:
        if line.get("k") == "end":
            end = {key: line[key] for key in ("condition", "labels", "numbers", "error")}
            self.ends[line["e"]] = end | {mark: line[mark] for mark in MARKS if mark in line}
            self.inner.pop(line["e"], None)
            for agent, _ in self.moves.pop(line["e"], ()):
                self._prompts.forget((line["e"], agent))
        elif line.get("k") in ("move", "part") and line["e"] not in self.ends:
            move, turn = move_of(line, self._prompts), (line["s"], line["i"])
            moves = self.moves.setdefault(line["e"], {})
            earlier = moves.get(turn)
            if earlier is None or move.error_kind != UNFINISHED:
                moves[turn] = move
            elif earlier.error_kind == UNFINISHED and len(move.calls) > len(earlier.calls):
                moves[turn] = move  # in which order they stand is not known where there are several journals


@contextlib.contextmanager
def naming(path: Path, number: int) -> Iterator[None]:
    """Turn what a line of a strange shape raises into a `DataError` that names it."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        message = f"not a line of a journal: {type(error).__name__}: {error}"
        raise DataError(message, place=Place(str(path), number, 1)) from None
