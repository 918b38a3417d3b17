"""Drive one protocol generator: the only loop that plays anything."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from harness.api import Case, Move, Outcome, Protocol, Task, Turn
from harness.players import ModelPlayer, Player

Recorded = Mapping[tuple[str, int], Move]
"""(seat, index of the seat's turn) → the move made there in an earlier attempt."""
Record = Callable[[int, int, Move], None]
"""Called with (batch, index of the seat's turn, move) as each new move comes in."""

MAX_BATCHES = 100_000


async def play(
    protocol: Protocol,
    task: Task,
    case: Case,
    players: Mapping[str, Player],
    rng: random.Random,
    recorded: Recorded,
    record: Record,
    keep: Callable[[list[Move]], None] = lambda moves: None,
) -> Outcome:
    """Play one episode to its end.

    A yielded batch is a barrier: its turns are answered side by side, and the protocol sees all moves or none.
    Turns found in `recorded` are not asked again. `keep` is given every whole batch of moves.

    Raises:
        EngineFatalError: an engine is gone; what was recorded so far allows a resume.
        RuntimeError: the protocol does not come to an end.
    """
    game = protocol.play(task, case, case.seats, rng)
    try:
        batch = next(game)
        for number in range(MAX_BATCHES):
            moves = await _answers(batch, number, players, recorded, record)
            keep(moves)
            batch = game.send(moves)
    except StopIteration as stop:
        outcome: Outcome = stop.value
        return outcome
    finally:
        game.close()
    raise RuntimeError(f"{type(protocol).__name__} is still playing after {MAX_BATCHES:,} batches")


async def _answers(
    batch: list[Turn], number: int, players: Mapping[str, Player], recorded: Recorded, record: Record
) -> list[Move]:
    moves: list[Move | None] = [None] * len(batch)
    waiting: list[Awaitable[Any]] = []

    async def ask(i: int, index: int, player: ModelPlayer, turn: Turn) -> None:
        move = moves[i] = await player.act(turn)
        record(number, index, move)

    for i, turn in enumerate(batch):
        player = players[turn.seat]
        index = player.turns
        known = recorded.get((turn.seat, index))
        if known is not None:
            player.recall(turn, known)
            moves[i] = known
        elif isinstance(player, ModelPlayer):
            waiting.append(ask(i, index, player, turn))
        else:
            move = moves[i] = player.decide(turn)
            record(number, index, move)
    if len(waiting) == 1:
        await waiting[0]
    elif waiting:
        # Wait for all even if one fails: its siblings' answers are paid for and must be recorded.
        results = await asyncio.gather(*waiting, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
    return [move for move in moves if move is not None]
