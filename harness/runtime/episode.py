"""Drives one protocol generator: the only loop that plays anything."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Container, Coroutine, Mapping
from functools import partial
from typing import Any

from harness.api import Case, Move, Outcome, Protocol, Task, Turn
from harness.config.limits import EpisodeLimits, Meter
from harness.errors import BudgetSpentError, EngineFatalError, SetupError, StorageError
from harness.runtime.players import ModelPlayer, Player
from harness.storage import UNFINISHED

Recorded = Mapping[tuple[str, int], Move]
"""(agent, index of the agent's turn) → the move made there in an earlier attempt, maybe an `UNFINISHED` one."""

MAX_BATCHES = 100_000
STOPS = (EngineFatalError, StorageError, BudgetSpentError, SetupError)
"""What ends the run, not the episode: a stopped episode can be gone on with."""


async def play(
    protocol: Protocol,
    task: Task,
    case: Case,
    players: Mapping[str, Player],
    rng: random.Random,
    recorded: Recorded,
    on_move: Callable[[int, int, int, Move], None],
    on_batch: Callable[[list[Move]], None] = lambda moves: None,
    limits: EpisodeLimits | None = None,
) -> Outcome:
    """Play one episode to its end.

    A yielded batch is a barrier: its turns are answered side by side, and the protocol sees all moves or none.

    Args:
        protocol, task, case, rng: what is played.
        players: agent → its player.
        recorded: turns in it are not asked again; those that are `UNFINISHED` are continued.
        on_move: called with (batch, position in it, index of the agent's turn, move) when a new move is complete, and
            with an `UNFINISHED` move before each retry.
        on_batch: called with the moves of each complete batch.
        limits: hold for the models' agents.

    Raises:
        EngineFatalError, BudgetSpentError: nothing more can or may be asked; what was recorded so far allows a resume.
        TypeError, RuntimeError: the protocol breaks its contract: see `turns`, or it does not come to an end.
    """
    game = protocol.play(task, case, protocol.possible_agents(case), rng)
    meter = Meter(limits) if limits else None
    answers: list[Move] | None = None
    try:
        for number in range(MAX_BATCHES + 1):
            try:
                batch = turns(next(game) if answers is None else game.send(answers), protocol, players)
            except StopIteration as stop:
                return outcome(stop.value, protocol)
            moves: dict[int, Move] = {}
            requests: dict[int, Callable[[], Coroutine[Any, Any, Move]]] = {}
            models = [turn for turn in batch if isinstance(players[turn.agent], ModelPlayer)]
            quotas = meter.allocate(models) if meter is not None else {}
            for position, turn in enumerate(batch):
                player = players[turn.agent]
                earlier = _recorded_move(turn, player, recorded)
                on_new = partial(on_move, number, position, player.turns)
                if earlier is not None and earlier.error_kind != UNFINISHED:
                    player.recall(turn, earlier)
                    moves[position] = earlier
                elif isinstance(player, ModelPlayer):
                    calls = earlier.calls if earlier is not None else ()
                    requests[position] = partial(player.act, turn, quotas.get(turn.agent), calls, on_new)
                else:
                    moves[position] = player.decide(turn)
                    on_new(moves[position])
            if len(requests) == 1:
                [(position, act)] = requests.items()
                moves[position] = await act()
            elif requests:
                # Wait for all even if one fails: its siblings' answers are paid for and must be recorded.
                results = await asyncio.gather(*(act() for act in requests.values()), return_exceptions=True)
                # What stops the run comes before what fails the episode: a stopped episode can still be gone on with.
                failures = [result for result in results if isinstance(result, BaseException)]
                for failure in sorted(failures, key=lambda failure: not isinstance(failure, STOPS)):
                    raise failure
                moves |= {at: move for at, move in zip(requests, results, strict=True) if isinstance(move, Move)}
            else:
                await asyncio.sleep(0)  # policies never wait; let others, and Ctrl-C, in
            answers = [moves[position] for position in range(len(batch))]
            if meter is not None:
                meter.take(answers)
            on_batch(answers)
    finally:
        game.close()
    raise RuntimeError(f"{type(protocol).__name__} is still playing after {MAX_BATCHES:,} batches")


def turns(batch: Any, protocol: Protocol, agents: Container[str]) -> list[Turn]:
    """What a protocol yielded, if it is a batch of turns for different agents that there are.

    Raises `TypeError`, `RuntimeError`: in words for the protocol's author.
    """
    name = type(protocol).__name__
    if not isinstance(batch, list | tuple):
        raise TypeError(f"{name} yielded {batch!r:.80}, not a list of turns")
    names: set[str] = set()
    for turn in batch:
        if not isinstance(turn, Turn):
            raise TypeError(f"{name} yielded {turn!r:.80} in a batch, not a Turn")
        if turn.agent not in agents:
            raise RuntimeError(f"{name} asks {turn.agent!r}, which is not an agent of this case")
        if turn.agent in names:
            raise RuntimeError(f"{name} asks {turn.agent!r} twice in one batch; a second turn needs a second batch")
        names.add(turn.agent)
    return list(batch)


def outcome(value: Any, protocol: Protocol) -> Outcome:
    """What a protocol returned, if it is an outcome. Raises `TypeError`."""
    if not isinstance(value, Outcome):
        raise TypeError(f"{type(protocol).__name__} returned {value!r:.80}, not an Outcome")
    return value


def _recorded_move(turn: Turn, player: Player, recorded: Recorded) -> Move | None:
    """What is recorded of the player's next turn. Raises `RuntimeError` where it was another turn."""
    move = recorded.get((turn.agent, player.turns))
    if move is not None and move.turn != turn.name:
        raise RuntimeError(
            f"turn {player.turns} of {turn.agent} is {turn.name!r} but was recorded as {move.turn!r}: "
            "the protocol is not deterministic, or was changed since"
        )
    return move
