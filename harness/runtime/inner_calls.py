"""The model calls that agent programs make while they play: through the inner engine's gate, counted, recorded, and
answered from the record where a resumed run plays a turn again.

`InnerCalls` is the door of one engine that `CallsModels`; a seat's part of it answers one call after another
(`harness.runtime.inner_seats`). `InnerTurns` stands around such an engine: it opens and closes the turns.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harness.api import (
    CallsModels,
    CallsTools,
    Completion,
    ContinuesText,
    Engine,
    InnerRequest,
    InnerUsage,
    Request,
    TurnId,
)
from harness.api.errors import (
    EngineFatalError,
    RefusedError,
    UserError,
)
from harness.api.inner_calls import NoTurnError
from harness.engines.gate import Wrapper
from harness.engines.sampling import normalize
from harness.engines.usage import billed_inner
from harness.runtime.inner_seats import InnerSeat, InnerTurn, OpenSeats
from harness.runtime.steps import Recorded
from harness.storage import Line
from harness.storage.inner_calls import InnerCall

if TYPE_CHECKING:
    from harness.runtime.open_episodes import Episodes
    from harness.tables.cost import Price

MAX_TOKENS = 4096
"""Tokens that a call gets where `inner_kwargs` does not say it."""
Write = Callable[[Line, str | None], Coroutine[Any, Any, None]]
"""Journals a line and returns when it outlives this process; with it the engine that has answered."""


def connect(run: Episodes) -> Callable[[], Awaitable[None]]:
    """Give the doors of a run (`Episodes.inner`) their inner engines. Returns what ends calls still under way."""

    async def write(line: Line, name: str | None) -> None:
        if usage := run.usage.unjournaled():
            line["asked"] = usage
        run.usage.inner_calls += name is not None
        if run.samples is not None:
            run.samples.note(line)
        if name is not None and run.pending:
            line["engine"] = [name, run.gates[name].answered]
        run.record(line)
        written, loop = asyncio.Event(), asyncio.get_running_loop()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is over
                loop.call_soon_threadsafe(written.set)

        run.journal.when_written(wake)
        await written.wait()
        run.journal.check()

    for outer, door in run.inner.items():
        inner = run.plan.inner[outer]
        run.gates[outer].behind = run.gates[inner]
        door.connect(inner, run.engines[inner], write)
        if any("cost" in limits for limits in door.limits.values()):
            from harness.config.user_prices import known_prices

            door.price = known_prices(run.plan.spec.get("prices")).get(door.engine.model)

    async def close() -> None:
        await asyncio.gather(*(door.close() for door in run.inner.values()))

    return close


class CallRequest(Request):
    """A call, as any request, that knows whether an engine has it: `is_under_way`; until then it waits at a gate."""

    by_program = True
    is_under_way = False

    @property
    def key(self) -> list[Any]:
        return [self.sampling, self.constraint, self.seed]

    def send(self, engine: Engine) -> Awaitable[Completion]:
        if not isinstance(engine, Wrapper):
            object.__setattr__(self, "is_under_way", True)
        return super().send(engine)


class InnerCalls:
    """The door of one engine to its inner engine.

    Args:
        outer: the engine whose programs call.

    Attributes:
        on_call: called with each call that is journaled.
    """

    def __init__(self, outer: CallsModels) -> None:
        self.outer, self.limits = outer, outer.inner_limits
        self.defaults = normalize(outer.inner_kwargs)
        self.most = int(self.defaults.get("max_tokens", MAX_TOKENS))
        self._episodes: dict[str, OpenSeats] = {}
        self.tasks: set[asyncio.Task[Any]] = set()
        self.price: Price | None = None  # known where a limit is money
        self.on_call: Callable[[InnerCall], None] | None = None

    def connect(self, name: str, inner: Engine, write: Write) -> None:
        """Learn who answers."""
        self.name, self.inner, self.write = name, inner, write
        self.engine: Engine = inner.engine if isinstance(inner, Wrapper) else inner
        self.outer.connect(self)

    def begin(self, episode: str, moves: Recorded, lines: Iterable[Line]) -> None:
        """An episode begins, or goes on with these moves and these lines of inner calls."""
        self._episodes[episode] = OpenSeats(moves, lines)

    def seat(self, episode: str, agent: str) -> InnerSeat:
        """The model behind a seat of an open episode. Raises `NoTurnError` for another one."""
        if (own := self._episodes.get(episode)) is None:
            raise NoTurnError(f"the episode {episode} is not being played")
        if agent not in own.seats:
            own.seats[agent] = InnerSeat(self, episode, agent, own)
        return own.seats[agent]

    def end(self, episode: str) -> None:
        """An episode is over."""
        if (own := self._episodes.pop(episode, None)) is not None:
            for seat in own.seats.values():
                seat.end()

    async def close(self) -> None:
        """End all calls: the run is over."""
        for episode in list(self._episodes):
            self.end(episode)
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def cost(self, usage: InnerUsage) -> float:
        """USD that calls have cost. Raises `EngineFatalError` where that is not known."""
        from harness.tables.cost import usd_of  # what only limits of money need

        amount = usd_of(billed_inner(usage), self.price)
        if amount is None or not amount.whole:
            remedy = "Give the spec prices: {MODEL: {input: …, output: …}}, in USD per million tokens"
            raise EngineFatalError(f"inner_limits: cost cannot be kept: {self.engine.model} has no price. {remedy}")
        return amount.value

    def request(self, turn: InnerTurn, ask: InnerRequest, occurrence: int, seed: int) -> CallRequest:
        """What the inner engine is asked. Raises `RefusedError` for what it cannot do."""
        tools = tuple(ask.tools)
        if isinstance(ask.tool_choice, Mapping):
            tools = tuple(tool for tool in tools if tool.get("name") == ask.tool_choice.get("name"))
        elif ask.tool_choice == "none":
            tools = ()
        name, engine = self.engine.model, self.engine
        why = engine.tools_problem if isinstance(engine, CallsTools) else "it is offered no tools"
        if tools and why is not None:
            raise RefusedError(f"{name} calls no tools: {why}")
        if ask.text is not None and not isinstance(engine, ContinuesText):
            raise RefusedError(f"{name} continues no text: ask it with messages")
        if ask.constraint is not None and (why := engine.constraint_problem(ask.constraint)) is not None:
            raise RefusedError(f"{name} cannot hold its reply to this form: {why}")
        try:
            sampling = {**self.defaults, **normalize(ask.sampling)}
        except UserError as error:
            raise RefusedError(str(error)) from None
        sampling["max_tokens"] = min(int(sampling.get("max_tokens", self.most)), self.most)
        thread = turn.seat.thread(turn.age, ask)
        request_id = f"{turn.id}/{ask.digest[:12]}-{occurrence}"
        return CallRequest(request_id, thread, sampling, seed, ask.constraint, tools=tools)


class InnerTurns(Wrapper):
    """Stands around an engine that `CallsModels`: each of its replies is a turn of its seat.

    Args:
        inner: the engine.

    Attributes:
        calls: its door.
    """

    def __init__(self, inner: Engine) -> None:
        super().__init__(inner)
        assert isinstance(inner, CallsModels)
        self.calls = InnerCalls(inner)

    async def complete(self, request: Request) -> Completion:
        turn = TurnId.of(request.id)
        return await self.calls.seat(turn.episode, turn.agent).play(request, request.send(self.inner))
