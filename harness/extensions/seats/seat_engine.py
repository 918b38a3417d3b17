"""The engine `outside`: whoever connects to a seat plays it, one episode after another (`harness serve`)."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import sys
from collections import Counter
from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal

from harness.api import CallsTools, Completion, Engine, Facts, Outcome, Range, Request, TurnId, plugin
from harness.api.errors import EngineError, EngineFatalError, SetupError
from harness.api.printable import clean_name
from harness.config.plan import Plan, episode_id
from harness.extensions.endpoints.keys import TOKEN
from harness.extensions.games.game_end import ended
from harness.extensions.seats.board import OpenSeat
from harness.extensions.seats.packages import require

PORT = 8500
_LAST_SECONDS = 3.0
"""Seconds at the end in which clients may hear that it is the end."""


@plugin
class ServedSeat(Engine, CallsTools):
    """An outside agent: whoever connects to a seat of this run and shows its secret (`harness serve`).

    Args:
        served_as: how: an MCP server, or an A2A agent.
        port: where, on this machine; 0 for any free one.
        stdio: the MCP client is at this process's standard input and output, in place of HTTP.
        label: who it is: tables call it "outside (label)".
    """

    served_as: Literal["mcp", "a2a"] = "mcp"
    port: Annotated[int, Range(ge=0, le=65535)] = PORT
    stdio: bool = False
    label: str = "agent"
    seating: dict[str, dict[str, int]] = field(default_factory=dict, init=False, repr=False)
    output: int = field(default=1, init=False, repr=False)

    asks_people: ClassVar[bool] = True
    incidental: ClassVar[frozenset[str]] = frozenset({"port", "stdio"})

    def __post_init__(self) -> None:
        self._names: list[str] = []
        self._seats: list[OpenSeat] = []
        self._listener: Any = None
        self._server: asyncio.Task[None] | None = None
        self._ended: EngineError | None = None
        self._counts: Counter[str] = Counter()

    @property
    def model(self) -> str:
        return f"outside ({clean_name(self.label).strip() or 'agent'})"

    def prepare(self, plan: Plan, name: str) -> None:
        """Learn who sits where in every episode of a run, in which this engine has a name.

        Raises:
            SetupError: no agent of the run is played by it; or several agents, and there is one client.
        """
        self.seating, self._names = {}, []
        for job in plan.episodes():
            condition, case, _ = job
            agents = condition.protocol.possible_agents(case)
            own = [
                one for one in agents if (group := condition.group_of(case, one)).policy is None and group.model == name
            ]
            self.seating[episode_id(*job)] = {agent: place for place, agent in enumerate(own)}
            self._names = own if len(own) > len(self._names) else self._names
        if not self._names:
            raise SetupError("no agent of this run is played from outside", hint="Name another seat.")
        if self.stdio and len(self._names) > 1:
            hint = "Leave --stdio out: each seat then has a URL of its own."
            raise SetupError(f"--stdio serves one seat, and {len(self._names)} agents are to be played", hint=hint)

    def announcement(self, plan: Plan, limit: int | None) -> str:
        """How many seats wait for an agent."""
        seats, episodes = len(self._names), len(self.seating)
        those = f"{episodes:,} episode{'s, one after another' * (episodes != 1)}"
        return f"{seats} seat{'s' * (seats != 1)} for {self.model} in {those}"

    def check(self) -> None:
        """Raises `SetupError` without its package."""
        require(self.served_as)

    async def start(self) -> None:
        """Serve the seats, and say on standard error how to connect. Raises `SetupError`."""
        if not self.seating:
            hint = "Give the command harness serve --spec SPEC --seat NAME."
            raise SetupError("the engine outside is for harness serve", hint=hint)
        self._ended = None
        if self.stdio:
            from harness.extensions.seats.mcp_server import SeatServer

            self._seats = [OpenSeat(self._names[0], goes_on=True)]
            self._server = asyncio.create_task(SeatServer(self._seats[0]).run_stdio(self.output))
            self._server.add_done_callback(lambda task: self._client_left())
            return
        from harness.extensions.seats.listener import SeatListener

        self._listener = SeatListener(self.port)
        await self._listener.start()
        given = os.environ.get(TOKEN, "")
        for number, name in enumerate(self._names):
            seat = OpenSeat(name, goes_on=True, secret=_secret(given, number if len(self._names) > 1 else None))
            self._seats.append(seat)
            url = await self._listener.open(seat, str(number), self.served_as, self.label)
            is_known = given and len(self._names) == 1
            secret = f"that of ${TOKEN}" if is_known else seat.secret
            print(f"seat {number} ({clean_name(name)}): {url}\n  Authorization: Bearer {secret}", file=sys.stderr)
        sys.stderr.flush()

    async def complete(self, request: Request) -> Completion:
        """Wait for the move of a seat, as long as it takes. Raises `EngineFatalError` where the client is gone."""
        if self._ended is not None:
            raise self._ended
        turn = TurnId.of(request.id)
        place = self.seating.get(turn.episode, {}).get(turn.agent)
        if place is None or place >= len(self._seats):
            raise EngineFatalError(f"{turn.agent} has no seat for an outside agent in {turn.episode}")
        return await self._seats[place].ask(request)

    def end_episode(self, episode: str, outcome: Outcome | None) -> None:
        """Say at the seats that an episode is over, and how."""
        if outcome is not None:
            for agent, place in self.seating.get(episode, {}).items():
                self._seats[place].end("\n".join(filter(None, (f"You were {agent}.", ended(outcome.facts, {agent})))))

    def stop_retrying(self, reason: Exception) -> None:
        """The run ends: no move is waited for any more."""
        self._end(reason if isinstance(reason, EngineError) else EngineFatalError(str(reason)))

    async def close(self) -> None:
        """Serve no more."""
        for seat in self._seats:
            seat.close()
        hear = [asyncio.ensure_future(seat.has_heard.wait()) for seat in self._seats if seat.was_read]
        if hear and self._ended is None:
            await asyncio.wait(hear, timeout=_LAST_SECONDS)
        for task in hear:
            task.cancel()
        if self._listener is not None:
            await self._listener.close()
        self._counts += self._counted()
        self._seats, self._listener = [], None
        if self._server is not None:
            self._server.cancel()
            await asyncio.gather(self._server, return_exceptions=True)
            self._server = None

    def report(self) -> Facts:
        """Turns, and acts that were refused."""
        return dict(self._counts + self._counted())

    def _counted(self) -> Counter[str]:
        """What is counted at the seats that are open."""
        return Counter({name: sum(seat.counts[name] for seat in self._seats) for name in ("turns", "refused")})

    def _client_left(self) -> None:
        """The client closed standard input."""
        self._end(EngineFatalError("the agent at standard input has left; the same command goes on"))

    def _end(self, reason: EngineError) -> None:
        self._ended = self._ended or reason
        for seat in self._seats:
            seat.fail(reason)


def _secret(given: str, number: int | None) -> str:
    """The secret of a seat: what was given, for several seats one of its own made of it; "" for a random one."""
    if not given or number is None:
        return given
    return hmac.new(given.encode(), f"seat {number}".encode(), hashlib.sha256).hexdigest()[:32]
