"""Drive one protocol generator: the only loop that plays anything."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Container, Mapping
from typing import Any

from harness.api import Case, Completion, Move, Outcome, Protocol, Task, Turn
from harness.config.limits import Allowance, Limits, Meter
from harness.errors import BudgetSpentError, EngineFatalError, SetupError, StorageError
from harness.runtime.players import ModelPlayer, Player
from harness.storage import UNFINISHED

Recorded = Mapping[tuple[str, int], Move]
"""(seat, index of the seat's turn) → the move made there in an earlier attempt, maybe an `UNFINISHED` one."""
Record = Callable[[int, int, int, Move], None]
"""Called with (batch, position in it, index of the seat's turn, move) as each new move comes in."""

MAX_BATCHES = 100_000
_STOPS = (EngineFatalError, StorageError, BudgetSpentError, SetupError)


async def play(
    protocol: Protocol,
    task: Task,
    case: Case,
    players: Mapping[str, Player],
    rng: random.Random,
    recorded: Recorded,
    record: Record,
    keep: Callable[[list[Move]], None] = lambda moves: None,
    limits: Limits | None = None,
    unread: Record = lambda batch, position, index, move: None,
) -> Outcome:
    """Play one episode to its end.

    A yielded batch is a barrier: its turns are answered side by side, and the protocol sees all moves or none.
    Turns found in `recorded` are not asked again, those that are `UNFINISHED` are gone on with. `keep` is given every
    whole batch of moves. `limits` hold for the models' seats. `unread` is given what there is of a move, `UNFINISHED`,
    before its turn is asked again.

    Raises:
        EngineFatalError, BudgetSpentError: nothing more can or may be asked; what was recorded so far allows a resume.
        TypeError, RuntimeError: the protocol breaks its contract: see `turns`, or it does not come to an end.
    """
    game = protocol.play(task, case, protocol.seats(case), rng)
    meter = Meter(limits) if limits else None
    try:
        batch = turns(next(game), protocol, players)
        for number in range(MAX_BATCHES):
            allowed = _allowed(batch, players, meter)
            moves = await _answers(batch, allowed, number, players, recorded, record, unread)
            if meter is not None:
                meter.take(moves)
            keep(moves)
            batch = turns(game.send(moves), protocol, players)
    except StopIteration as stop:
        return outcome(stop.value, protocol)
    finally:
        game.close()
    raise RuntimeError(f"{type(protocol).__name__} is still playing after {MAX_BATCHES:,} batches")


def turns(batch: Any, protocol: Protocol, seats: Container[str]) -> list[Turn]:
    """What a protocol yielded, if it is a batch of turns for different seats that there are.

    Raises `TypeError`, `RuntimeError`: in words for the protocol's author.
    """
    name = type(protocol).__name__
    if not isinstance(batch, list | tuple):
        raise TypeError(f"{name} yielded {batch!r:.80}, not a list of turns")
    asked: set[str] = set()
    for turn in batch:
        if not isinstance(turn, Turn):
            raise TypeError(f"{name} yielded {turn!r:.80} in a batch, not a Turn")
        if turn.seat not in seats:
            raise RuntimeError(f"{name} asks {turn.seat!r}, who has no seat")
        if turn.seat in asked:
            raise RuntimeError(f"{name} asks {turn.seat!r} twice in one batch; who speaks twice has two batches")
        asked.add(turn.seat)
    return list(batch)


def outcome(value: Any, protocol: Protocol) -> Outcome:
    """What a protocol returned, if it is an outcome. Raises `TypeError`."""
    if not isinstance(value, Outcome):
        raise TypeError(f"{type(protocol).__name__} returned {value!r:.80}, not an Outcome")
    return value


def _allowed(batch: list[Turn], players: Mapping[str, Player], meter: Meter | None) -> Mapping[str, Allowance]:
    """Seat of a model → what its turn of the batch may take; nothing where there are no limits."""
    if meter is None:
        return {}
    asked = [turn for turn in batch if isinstance(players[turn.seat], ModelPlayer)]
    return {turn.seat: allowance for turn, allowance in zip(asked, meter.deal(asked), strict=True)}


async def _answers(
    batch: list[Turn],
    allowed: Mapping[str, Allowance],
    number: int,
    players: Mapping[str, Player],
    recorded: Recorded,
    record: Record,
    unread: Record,
) -> list[Move]:
    moves: list[Move | None] = [None] * len(batch)
    waiting: list[tuple[int, int, ModelPlayer, Turn]] = []

    async def ask(i: int, index: int, player: ModelPlayer, turn: Turn) -> None:
        begun = recorded.get((turn.seat, index))

        def part(calls: tuple[Completion, ...]) -> None:
            unread(number, i, index, Move(turn.seat, turn.name, None, None, UNFINISHED, calls))

        try:
            calls = begun.calls if begun is not None else ()
            move = moves[i] = await player.act(turn, allowed.get(turn.seat), calls, part)
        except SystemExit as error:  # would leave the event loop at once, and every other episode with it
            raise RuntimeError(f"SystemExit: {error}") from error
        record(number, i, index, move)

    for i, turn in enumerate(batch):
        player = players[turn.seat]
        index = player.turns
        known = recorded.get((turn.seat, index))
        if known is not None and known.turn != turn.name:
            raise RuntimeError(
                f"turn {index} of {turn.seat} is {turn.name!r} but was recorded as {known.turn!r}: "
                "the protocol is not deterministic, or was changed since"
            )
        if known is not None and known.error_kind != UNFINISHED:
            player.recall(turn, known)
            moves[i] = known
        elif isinstance(player, ModelPlayer):
            waiting.append((i, index, player, turn))
        else:
            move = moves[i] = player.decide(turn)
            record(number, i, index, move)
    if len(waiting) == 1:
        await ask(*waiting[0])
    elif waiting:
        # Wait for all even if one fails: its siblings' answers are paid for and must be recorded.
        results = await asyncio.gather(*(ask(*one) for one in waiting), return_exceptions=True)
        failures = [result for result in results if isinstance(result, BaseException)]
        # What stops the run comes before what fails the episode: a stopped episode can still be gone on with.
        failures.sort(key=lambda failure: not isinstance(failure, _STOPS))
        if failures:
            raise failures[0]
    else:
        await asyncio.sleep(0)  # policies never wait; let others, and Ctrl-C, in
    return [move for move in moves if move is not None]
