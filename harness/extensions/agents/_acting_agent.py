"""Agents that act by themselves (`interface: mcp`): a program is started once for a seat of an episode, reads its turns
and makes its moves through the seat's MCP server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from harness.api import Completion, Outcome, Request, TurnId
from harness.api.errors import RequestError
from harness.extensions.agents._acting_programs import Launcher, Running
from harness.extensions.agents._agent_log import AgentLog
from harness.extensions.agents._process_slots import ProcessSlots
from harness.extensions.games.game_end import ended
from harness.extensions.seats.board import OpenSeat, SeatTurn
from harness.extensions.seats.listener import SeatListener

URL, TOKEN, SEED = "HARNESS_MCP_URL", "HARNESS_MCP_TOKEN", "HARNESS_SEED"
"""The environment variables of a program: where its seat is, its secret, and a seed for the episode."""
LEAVE_SECONDS = 5.0
"""Seconds that a program has to end by itself when its episode is over."""


class Doors(Protocol):
    """How programs reach a model of the run: `harness.extensions.agents._agent_environment.SeatDoors`."""

    def calls(self, request: Request) -> Any:
        """The model behind the seat."""

    def facts(self, request: Request) -> dict[str, str]:
        """What a function has to know."""

    def variables(self, request: Request) -> dict[str, str]:
        """The same as variables of a process."""


@dataclass(eq=False)
class _Place:
    """A seat of an open episode, and the program that plays it.

    Attributes:
        moves: of the seat when the program was started.
    """

    seat: OpenSeat
    url: str
    program: Running | None = None
    moves: int = 0


class ActingAgent:
    """Lets programs play by themselves. Each has a place among at most `most`, as in `ProcessSlots`.

    Args:
        name: what errors call it.
        launcher: starts programs.
        timeout: seconds for a move.
        most: programs at a time.
        log: where they write, and what they did otherwise than before.
        doors: to the model that they may call; None: they have none of the run's.
    """

    def __init__(
        self, name: str, launcher: Launcher, timeout: float, most: int, log: AgentLog, doors: Doors | None = None
    ) -> None:
        self.name, self.launcher, self.timeout, self.most = name, launcher, timeout, most
        self.log, self.doors = log, doors
        self.counts = {"programs": 0, "restarted": 0, "turns": 0, "refused": 0, "recalled": 0, "differed": 0}
        self._listener = SeatListener()
        self._places: dict[str, dict[str, _Place]] = {}
        self._slots: ProcessSlots[Running] = ProcessSlots(most, self._end)
        self._ending: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Serve seats. Raises `SetupError`."""
        await self._listener.start()

    async def complete(self, request: Request) -> Completion:
        """Wait for the move of a seat. Raises `RequestError` where its program makes none."""
        turn = TurnId.of(request.id)
        place = await self._place(turn, request)
        if place.program is not None and place.program.is_over:
            await asyncio.shield(place.program.is_gone)  # until then it could take the turn of the next one
            place.program = None
            place.seat.restart()
        asked = asyncio.ensure_future(place.seat.ask(request))
        await asyncio.sleep(0)  # its turn is there before a program looks for it
        try:
            while not asked.done():
                await self._wait(place, request, asked)
            completion = asked.result()
        except BaseException:
            if place.program is not None:
                place.program.kill()
                self._end(place.program)
            raise
        finally:
            if not asked.done():
                asked.cancel()
                await asyncio.gather(asked, return_exceptions=True)
        if place.program is not None and not place.program.is_over:
            self._slots.rest(place.program, request.thread.age)
        return completion

    async def _wait(self, place: _Place, request: Request, asked: asyncio.Future[Completion]) -> None:
        """Wait until the move is there, or the program that is to make it has ended; start one if there is none."""
        if place.program is None:
            await self._slots.take(request.thread.age)
            await self._start(place, request)
        else:
            self._slots.work(place.program)
        program = place.program
        assert program is not None
        try:
            async with asyncio.timeout(self.timeout):
                waited: set[asyncio.Future[Any]] = {asked, program.is_gone}
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            raise RequestError(f"{self.name} made no move within {self.timeout:g} s") from None
        if asked.done():
            return
        open_turn = place.seat.turn
        has_moved = place.seat.answered > place.moves
        gives_up = open_turn is not None and open_turn.is_read and open_turn.recorded is None
        if gives_up or not has_moved:
            raise RequestError(f"{self.name} {await program.how_it_ended()}")
        self.counts["restarted"] += 1
        place.program = None
        place.seat.restart()

    async def _start(self, place: _Place, request: Request) -> None:
        """Start the program of a seat, which has a place among all."""
        seat, turn = place.seat, TurnId.of(request.id)
        asked = request.thread.questions
        seed = asked[0].seed if asked else request.seed
        facts: dict[str, Any] = {
            "mcp_url": place.url, "mcp_token": seat.secret, "agent": turn.agent, "episode": turn.episode, "seed": seed,
        }  # fmt: skip
        variables = {URL: place.url, TOKEN: seat.secret, SEED: str(seed)}
        if self.doors is not None:
            facts |= self.doors.facts(request)
            variables |= self.doors.variables(request)
        place.moves = seat.answered
        try:
            place.program = await self.launcher.start(
                turn.agent, {**os.environ, **variables}, facts, on_over=self._slots.free
            )
        except BaseException:
            self._slots.free()
            raise
        self.counts["programs"] += 1

    async def _place(self, turn: TurnId, request: Request) -> _Place:
        """The seat that a request is for."""
        seats = self._places.setdefault(turn.episode, {})
        if turn.agent not in seats:
            seat = OpenSeat(f"{turn.episode}/{turn.agent}", lambda text: self.log.write(f"{text}\n"))
            if self.doors is not None:
                calls = self.doors.calls(request)
                seat.on_turn = lambda now: _note_turn(calls, now)
            seats[turn.agent] = _Place(seat, await self._listener.open(seat))
        return seats[turn.agent]

    # ------------------------------------------------------------------------------ the end

    def end_episode(self, episode: str, outcome: Outcome | None) -> None:
        """Let the programs of an episode end: they hear how it has ended, and have some seconds."""
        for agent, place in self._places.pop(episode, {}).items():
            if outcome is None:
                place.seat.close()
            else:
                place.seat.end(ended(outcome.facts, [agent]))
            self._begin(self._leave(place, LEAVE_SECONDS if outcome is not None else 0.0))

    async def _leave(self, place: _Place, seconds: float) -> None:
        for name, count in place.seat.counts.items():
            self.counts[name] += count
        if (program := place.program) is not None and not program.is_gone.done():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await asyncio.shield(program.is_gone)
            if not program.is_gone.done():
                self._slots.leave(program)
                await program.end()
        await self._listener.shut(place.seat)

    def _end(self, program: Running) -> None:
        """Let a program end; nothing waits for that."""
        if not program.is_gone.done():
            program.retire()
            self._slots.leave(program)
            self._begin(program.end())

    def _begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """End all programs, and what they have started."""
        for episode in list(self._places):
            self.end_episode(episode, None)
        await asyncio.gather(*self._ending)
        await self.launcher.close()
        await self._listener.close()
        again = self._slots.ended_for_room
        if again > self.most:
            what = f"{again} programs of {self.name} were ended to make room, and started again for their next turn"
            warnings.warn(f"{what}: concurrency={self.most} is less than an episode's agents; raise it", stacklevel=2)

    def report(self) -> Mapping[str, int]:
        """How many programs were started, and what became of turns: `recalled` were played again after a resume as they
        are recorded, `differed` were not; `refused` acts were illegal."""
        counts = {**self.counts, "ended_for_room": self._slots.ended_for_room}
        for seats in self._places.values():
            for place in seats.values():
                for name, count in place.seat.counts.items():
                    counts[name] += count
        return counts


def _note_turn(calls: Any, turn: SeatTurn) -> None:
    """Let the model behind a seat know which turn its program plays: an earlier one again, or the present one."""
    calls.replaying = None if turn.recorded is None else (turn.index, turn.attempt)
