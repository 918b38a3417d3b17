"""What follows from a failed request is written down once its engine has answered somebody again.

A request that fails after every retry is an error of its move, which stays in the results. But where an engine dies,
all its requests fail for a while before that is known, and what came of them had better not be kept: when the run goes
on, they are to be asked again. So a failure is in doubt until the engine's next answer. Until then the lines of its
episode are held back, other engines' answers in later turns among them: they were given to a history that may turn out
another. If the run stops before, they are gone, and it goes on from the turn that failed. Where all else
is played and there was no such answer, that stops the run as the engine's death would. Answers that were given to the
turn before it failed stand in the journal by then, as `UNFINISHED` moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harness.errors import EngineError, EngineFatalError, RequestError
from harness.storage import Journal, Line

_MAY_PASS = (RequestError.kind, EngineError.kind)
"""Kinds of failed requests that may go well another time."""


class Answering(Protocol):
    """An engine that counts its answers; one that is `lenient` has failures for results."""

    answered: int

    @property
    def model(self) -> str: ...
    @property
    def lenient(self) -> bool: ...


@dataclass
class _Held:
    batch: int
    failed: list[tuple[Answering, int]] = field(default_factory=list)  # and how much it had answered by then
    lines: list[Line] = field(default_factory=list)
    then: Callable[[], None] = lambda: None

    def silent(self) -> list[Answering]:
        """Those that have answered nobody since they failed."""
        return [engine for engine, answered in self.failed if engine.answered <= answered]


class Doubts:
    """Stands before a journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._held: dict[str, _Held] = {}

    def move(self, line: Line, engine: Answering | None) -> None:
        """Journal a move (`store.move_line`), or hold it back; `engine` is who was asked, None for a policy.

        Answers that were given beside a failure, to the same history, never wait.
        """
        answered = bool(line.get("calls"))
        failed = line.get("error_kind") in _MAY_PASS
        if self._held and answered:
            self._release_proven()
        held = self._held.get(line["e"])
        if failed and engine is not None and not engine.lenient:
            held = self._held.setdefault(line["e"], _Held(line["b"]))
            held.failed.append((engine, engine.answered))
        if held is None or (not failed and line["b"] == held.batch):
            self._journal.append(line)
        else:
            if "asked" in line:  # whatever is believed
                self.asked(line.pop("asked"))
            held.lines.append(line)

    def end(self, line: Line, then: Callable[[], None]) -> None:
        """Journal an episode's end, or hold it back with the episode; `then` is called once it is journaled."""
        held = self._held.get(line["e"])
        if held is None:
            self._journal.append(line)
            then()
        else:
            held.lines.append(line)
            held.then = then

    def asked(self, spent: Sequence[int]) -> None:
        """Journal what was asked (calls, tokens), where no line of a move says it."""
        self._journal.append({"k": "asked", "asked": list(spent)})

    def asked_now(self, spent: Sequence[int]) -> None:
        """As `asked`; returns when it outlives this process. Raises `StorageError`."""
        self.asked(spent)
        self.flush()

    def flush(self) -> None:
        """As `Journal.flush`."""
        self._journal.flush()

    def settle(self) -> None:
        """Nothing is left to be asked: believe what is proven.

        Raises:
            EngineFatalError: an engine has answered nobody since requests of it failed. What failed is to be asked
                again, by a run that goes on.
        """
        self._release_proven()
        for engine in (engine for held in self._held.values() for engine in held.silent()):
            model, errors = engine.model, [line["error"] for line in self._failures(engine)]
            raise EngineFatalError(
                f"the last requests to {model} failed, and nothing was answered since: {len(errors)} failures, the "
                f"last with: {errors[-1]} (max_error_rate 1 would take them as results)"
            )

    def _failures(self, engine: Answering) -> Iterator[Line]:
        for held in self._held.values():
            if engine in held.silent():
                yield from (line for line in held.lines if line.get("error_kind") in _MAY_PASS)

    def _release_proven(self) -> None:
        for name in [name for name, held in self._held.items() if not held.silent()]:
            held = self._held.pop(name)
            for line in held.lines:
                self._journal.append(line)
            held.then()
