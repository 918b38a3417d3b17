"""Plays an episode: its players answer the batches of `harness.runtime.steps`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from harness.api import Move, Outcome
from harness.api.errors import BudgetSpentError, EngineFatalError, SetupError, StorageError
from harness.runtime.players import ModelPlayer, Player
from harness.runtime.steps import Recorded, Steps, recorded_move
from harness.storage import UNFINISHED

if TYPE_CHECKING:
    from harness.config.limits import EpisodeLimits

STOPS = (EngineFatalError, StorageError, BudgetSpentError, SetupError)
"""What ends the run, not the episode: a stopped episode can be gone on with."""


async def play(
    game: Steps,
    players: Mapping[str, Player],
    recorded: Recorded,
    on_move: Callable[[int, int, int, Move], None],
    on_batch: Callable[[list[Move]], None] = lambda moves: None,
    limits: EpisodeLimits | None = None,
) -> Outcome:
    """Play one episode to its end.

    A yielded batch is a barrier: its turns are answered side by side, and the protocol sees all moves or none.

    Args:
        game: what is played; it is closed at the end.
        players: agent → its player.
        recorded: turns in it are not asked again; those that are `UNFINISHED` are continued.
        on_move: called with (batch, position in it, index of the agent's turn, move) when a new move is complete, and
            with an `UNFINISHED` move before each retry.
        on_batch: called with the moves of each complete batch.
        limits: hold for the models' agents.

    Raises:
        EngineFatalError, BudgetSpentError: nothing more can or may be asked; what was recorded so far allows a resume.
        TypeError, RuntimeError: as `Steps`; RuntimeError also where a recorded turn was another one.
    """
    meter = limits.meter() if limits is not None else None
    with game:
        while (batch := game.batch) is not None:
            moves: dict[int, Move] = {}
            requests: dict[int, Callable[[], Coroutine[Any, Any, Move]]] = {}
            models = [turn for turn in batch if isinstance(players[turn.agent], ModelPlayer)]
            quotas = meter.allocate(models) if meter is not None else {}
            for position, turn in enumerate(batch):
                player = players[turn.agent]
                earlier = recorded_move(recorded, turn, player.turns)
                on_new = partial(on_move, game.number, position, player.turns)
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
            game.send(answers)
        return game.result()
