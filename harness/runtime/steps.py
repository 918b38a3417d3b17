"""One machine for every episode: moves in, batches of turns or the outcome out.

It asks no model, chooses nothing and writes nothing: its driver decides which moves answer a batch. A
run sends what players do (`harness.runtime.episode`); a resumed run sends recorded moves first, and all that reads a
journal sends no others.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Final, Self

from harness.api import Action, Case, Move, Outcome, Protocol, Task, Turn

MAX_BATCHES = 100_000
"""Batches after which an episode counts as one without end."""
FAILED: Final = "the request failed"

Recorded = Mapping[tuple[str, int], Move]
"""(agent, index of the agent's turn) → the move made there in an earlier attempt, maybe an `UNFINISHED` one."""


class Steps:
    """One episode, step by step. Close it, or use it as a context manager.

        with Steps(protocol, task, case, rng) as game:
            while (batch := game.batch) is not None:
                game.send([answer(turn) for turn in batch])
            return game.result()

    The same moves give the same batches and the same outcome, if `rng` has the same state. The players are the agents
    that the protocol names for the case (`Protocol.possible_agents`).

    Attributes:
        batch: the turns to answer now; the protocol sees all their moves at once. May be empty. None at the end.
        outcome: the episode's result; None before its end.
        number: how many batches were answered.

    Raises:
        TypeError, RuntimeError: the protocol breaks its contract, or it does not end; in words for its
            author. Whatever else its code raises.
    """

    def __init__(self, protocol: Protocol, task: Task, case: Case, rng: random.Random) -> None:
        agents = protocol.possible_agents(case)
        self.number = 0
        self.batch: list[Turn] | None = None
        self.outcome: Outcome | None = None
        self._name, self._agents = type(protocol).__name__, frozenset(agents)
        self._game = protocol.play(task, case, agents, rng)
        self._go_on(None)

    def send(self, moves: list[Move]) -> None:
        """Answer the batch: one move for each of its turns, in its order. Raises as the class."""
        self.number += 1
        if self.number > MAX_BATCHES:
            raise RuntimeError(
                f"{self._name} does not come to an end: it is still playing after {MAX_BATCHES:,} batches"
            )
        self._go_on(moves)

    def result(self) -> Outcome:
        """The episode's outcome. Raises `RuntimeError` before its end."""
        if self.outcome is None:
            raise RuntimeError(f"{self._name} has not come to an end: it waits for {len(self.batch or ())} moves")
        return self.outcome

    def close(self) -> None:
        """End the protocol where it is."""
        self._game.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _go_on(self, moves: list[Move] | None) -> None:
        try:
            batch = next(self._game) if moves is None else self._game.send([*map(_as_seen, moves)])
        except StopIteration as stop:
            self.batch, self.outcome = None, self._outcome(stop.value)
        else:
            self.batch = self._checked(batch)

    def _checked(self, batch: Any) -> list[Turn]:
        """What the protocol yielded, if it is a batch of turns for different agents that there are."""
        if not isinstance(batch, list | tuple):
            raise TypeError(f"{self._name} yielded {batch!r:.80}, not a list of turns")
        names: set[str] = set()
        for turn in batch:
            if not isinstance(turn, Turn):
                raise TypeError(f"{self._name} yielded {turn!r:.80} in a batch, not a Turn")
            if turn.agent not in self._agents:
                raise RuntimeError(f"{self._name} asks {turn.agent!r}, which is not an agent of this case")
            if turn.agent in names:
                raise RuntimeError(
                    f"{self._name} asks {turn.agent!r} twice in one batch; a second turn needs a second batch"
                )
            names.add(turn.agent)
        return list(batch)

    def _outcome(self, value: Any) -> Outcome:
        if not isinstance(value, Outcome):
            raise TypeError(f"{self._name} returned {value!r:.80}, not an Outcome")
        return value


def _as_seen(move: Move) -> Move:
    """A move as protocols see it: no agent may read what a server answers in an error."""
    return move if move.error_kind in (None, "parse", "limit") else replace(move, error=FAILED)


def recorded_move(recorded: Recorded, turn: Turn, index: int) -> Move | None:
    """What is recorded of an agent's turn with this index. Raises `RuntimeError` if it was another turn."""
    move = recorded.get((turn.agent, index))
    if move is not None and move.turn != turn.name:
        raise RuntimeError(
            f"turn {index} of {turn.agent} is {turn.name!r} but was recorded as {move.turn!r}: "
            "the protocol is not deterministic, or was changed since"
        )
    return move


def by_turn(batches: Iterable[Iterable[Move]]) -> dict[tuple[str, int], Move]:
    """Recorded batches as `Recorded`."""
    counts: Counter[str] = Counter()
    recorded: dict[tuple[str, int], Move] = {}
    for move in itertools.chain.from_iterable(batches):
        recorded[move.agent, counts[move.agent]] = move
        counts[move.agent] += 1
    return recorded


@dataclass(frozen=True)
class Drive:
    """One episode driven by hand: batches of (turn, move), and the outcome."""

    batches: list[list[tuple[Turn, Move]]]
    outcome: Outcome

    def turns(self) -> Iterable[Turn]:
        """Every turn in order."""
        return (turn for batch in self.batches for turn, _ in batch)


def drive(
    protocol: Protocol,
    task: Task,
    case: Case,
    answer: Callable[[Turn], Action] = lambda turn: turn.reply.noop,
    seed: int = 0,
) -> Drive:
    """Play one episode with a function for every agent (by default all agents are idle).

    Raises as `Steps`, and whatever plugins raise.
    """
    batches: list[list[tuple[Turn, Move]]] = []
    with Steps(protocol, task, case, random.Random(seed)) as game:
        while (batch := game.batch) is not None:
            moves = [Move(turn.agent, turn.name, answer(turn)) for turn in batch]
            batches.append(list(zip(batch, moves, strict=True)))
            game.send(moves)
        return Drive(batches, game.result())
