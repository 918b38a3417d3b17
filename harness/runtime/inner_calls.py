"""The model calls that agent programs make while they play: through the inner engine's gate, counted, recorded, and
answered from the record where a resumed run plays a turn again.

`InnerCalls` is the door of one engine that `CallsModels`; a seat's part of it answers one call after another
(`SeatCalls.complete`). `InnerTurns` stands around such an engine: it opens and closes the turns.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
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
    Thread,
    TurnId,
    derive_seed,
)
from harness.api.errors import (
    BudgetSpentError,
    ContextLengthError,
    EngineError,
    EngineFatalError,
    InnerCallError,
    LimitReachedError,
    RefusedError,
    RequestError,
    SetupError,
    StorageError,
    UserError,
)
from harness.api.inner_calls import NoTurnError
from harness.engines.gate import Wrapper
from harness.engines.sampling import normalize
from harness.runtime.steps import Recorded
from harness.storage import PASSING, UNFINISHED, Line, completion_of
from harness.storage.inner_calls import DROPPED, InnerWriter, dropped_line

MAX_TOKENS = 4096
"""Tokens that a call gets where `inner_kwargs` does not say it."""
if TYPE_CHECKING:
    from harness.runtime.open_episodes import Episodes

_STOPS = (EngineFatalError, StorageError, BudgetSpentError, SetupError)
_KINDS: Mapping[str, type[EngineError]] = {
    kind.kind: kind for kind in (ContextLengthError, RefusedError, RequestError, EngineError)
}
Write = Callable[[Line, str | None], Coroutine[Any, Any, None]]
"""Journals a line and returns when it outlives this process; with it the engine that has answered."""


def connect(run: Episodes) -> Callable[[], Awaitable[None]]:
    """Give the doors of a run (`Episodes.inner`) their inner engines. Returns what ends calls still under way."""

    async def write(line: Line, name: str | None) -> None:
        if usage := run.usage.unjournaled():
            line["asked"] = usage
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

    async def close() -> None:
        await asyncio.gather(*(door.close() for door in run.inner.values()))

    return close


class InnerCalls:
    """The door of one engine to its inner engine.

    Args:
        outer: the engine whose programs call.
    """

    def __init__(self, outer: CallsModels) -> None:
        self.outer, self.limits = outer, outer.inner_limits
        self.defaults = normalize(outer.inner_kwargs)
        self.most = int(self.defaults.get("max_tokens", MAX_TOKENS))
        self._episodes: dict[str, _Episode] = {}
        self.tasks: set[asyncio.Task[Any]] = set()

    def connect(self, name: str, inner: Engine, write: Write) -> None:
        """Learn who answers."""
        self.name, self.inner, self.write = name, inner, write
        self.engine: Engine = inner.engine if isinstance(inner, Wrapper) else inner
        self.outer.connect(self)

    def begin(self, episode: str, moves: Recorded, lines: Iterable[Line]) -> None:
        """An episode begins, or goes on with these moves and these lines of inner calls."""
        self._episodes[episode] = _Episode(moves, lines)

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

    def request(self, turn: _Turn, ask: InnerRequest, occurrence: int, seed: int) -> Request:
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
        thread = Thread(turn.age, chat=ask.text is None)
        thread.messages = [dict(m) for m in ask.messages] if ask.text is None else [_user(ask.text)]
        request_id = f"{turn.id}/{ask.digest[:12]}-{occurrence}"
        return Request(request_id, thread, sampling, seed, ask.constraint, tools=tools)


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


class _Episode:
    """An open episode: its seats, and what is recorded of it."""

    def __init__(self, moves: Recorded, lines: Iterable[Line]) -> None:
        self.seats: dict[str, InnerSeat] = {}
        self.moves: dict[str, dict[int, tuple[InnerUsage, bool]]] = {}
        for (agent, index), move in moves.items():
            if move.inner_calls is not None:
                open_turn = move.error_kind == UNFINISHED
                self.moves.setdefault(agent, {})[index] = move.inner_calls, open_turn
        self.lines: dict[str, dict[tuple[int, int], list[Line]]] = {}
        for line in lines:
            attempts = self.lines.setdefault(line["s"], {})
            own = attempts.setdefault((line["i"], line["r"]), [])
            if line["k"] == DROPPED:
                own[:] = [one for one in own if one["n"] not in line["n"]]
            else:
                own.append(line)


class InnerSeat:
    """The model behind one seat: `harness.api.inner_calls.SeatCalls`."""

    def __init__(self, door: InnerCalls, episode: str, agent: str, own: _Episode) -> None:
        self.door, self.name, self.episode, self.agent = door, door.engine.model, episode, agent
        self.replaying: tuple[int, int] | None = None
        self.turn: _Turn | None = None
        self.usages = {index: usage for index, (usage, _) in own.moves.get(agent, {}).items()}
        self.lines: dict[tuple[int, int], list[Line]] = own.lines.get(agent, {})
        self.writer = InnerWriter(door.name)
        self.is_over = False
        self._replay: tuple[tuple[int, int] | None, dict[str, deque[Line]]] = None, {}
        self._opened = asyncio.Event()
        self._then: list[Callable[[], None]] = []

    def when_over(self, then: Callable[[], None]) -> None:
        """Call `then` once the episode is over."""
        self._then.append(then)

    def end(self) -> None:
        """The episode is over."""
        self.is_over = True
        self._opened.set()
        for then in self._then:
            then()

    def usage(self, index: int) -> InnerUsage | None:
        """What was asked in a turn so far, in all attempts; None if the program was not asked for a reply."""
        return self.usages.get(index)

    async def complete(self, ask: InnerRequest) -> Completion:
        """As `SeatCalls.complete`."""
        if self.replaying is not None and (line := self._replayed(ask.digest)) is not None:
            return _answer(line)
        while (turn := self.turn) is None and self.door.outer.waits_for_turn and not self.is_over:
            self._opened.clear()
            await self._opened.wait()
        if turn is None:
            raise NoTurnError(f"{self.agent} has no turn now" if not self.is_over else "the episode is over")
        return await turn.complete(ask)

    def _replayed(self, digest: str) -> Line | None:
        """The record of an earlier turn's call."""
        at, unused = self._replay
        if at != self.replaying:
            assert self.replaying is not None
            unused = _by_digest(self.lines.get(self.replaying, ()))
            self._replay = self.replaying, unused
        queue = unused.get(digest)
        if queue:
            return queue.popleft()
        index = self.replaying[0] if self.replaying is not None else -1
        if (usage := self.usages.get(index)) is not None and usage.refused:
            raise LimitReachedError("a limit allowed no further call in this turn")
        return None

    # ------------------------------------------------------------------------------ turns

    async def play(self, request: Request, reply: Awaitable[Completion]) -> Completion:
        """Wait for a reply, with a turn open for its inner calls; returns it with their tokens and cost.

        Raises:
            EngineFatalError, BudgetSpentError, StorageError: as an inner call; the reply is not waited for.
            LimitReachedError, InnerCallError: there is no reply, after a call that a limit refused, or that failed.
        ContextLengthError, RefusedError: there is none, after a call that the inner engine refused so.
        """
        turn = self.turn = _Turn(self, request)
        self._opened.set()
        replying: asyncio.Future[Completion] = asyncio.ensure_future(reply)
        try:
            waited: set[asyncio.Future[Any]] = {replying, turn.stopped}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            turn.cancel()
            raise
        finally:
            if not replying.done():
                replying.cancel()
                await asyncio.gather(replying, return_exceptions=True)
            self.turn = None
            await turn.close()
        if turn.stopped.done():
            raise turn.stopped.result()
        failure = replying.exception()
        limited = turn.refused_by if isinstance(failure, EngineError) else None
        if failure is None or limited is not None:
            await turn.drop()
        self._count(turn, limited is not None)
        if failure is None:
            return turn.counted(replying.result())
        if not isinstance(failure, EngineError) or isinstance(failure, EngineFatalError):
            raise failure
        if limited is not None:
            raise LimitReachedError(f"{limited}; then {failure}") from failure
        if turn.failed_last is not None:
            message = f"{failure}; its last call of {self.name} failed: {turn.failed_last}"
            is_outage = turn.failed_last.kind in PASSING
            raise (InnerCallError if is_outage else _KINDS[turn.failed_last.kind])(message) from failure
        raise failure

    def _count(self, turn: _Turn, limited: bool) -> None:
        """Add an attempt's calls to those of its turn."""
        now = replace(turn.usage, seconds=round(turn.seconds, 3), limited=limited)
        earlier = self.usages.get(turn.id.index)
        self.usages[turn.id.index] = now if earlier is None else added(earlier, now)

    def limit(self, turn: _Turn) -> str | None:
        """The limit that allows no further call, in words."""
        limits = self.door.limits
        if not limits:
            return None
        own = replace(turn.usage, seconds=turn.seconds)
        of_turn = self.usages.get(turn.id.index)
        whole = own if of_turn is None else added(of_turn, own)
        if (why := _reached(limits.get("turn", {}), whole, "turn")) is not None:
            return why
        if "seat" not in limits:
            return None
        for index, usage in self.usages.items():
            if index != turn.id.index:
                whole = added(usage, whole)
        return _reached(limits["seat"], whole, "seat")


def _reached(limits: Mapping[str, float], usage: InnerUsage, what: str) -> str | None:
    used = {
        "calls": usage.calls,
        "tokens": usage.input_tokens + usage.output_tokens,
        "cost": usage.cost or 0.0,
        "seconds": usage.seconds,
    }
    name = next((name for name, most in limits.items() if used[name] >= most), None)
    return None if name is None else f"the limit of {limits[name]:g} {name} a {what} is reached"


def added(one: InnerUsage, other: InnerUsage) -> InnerUsage:
    """What two attempts or turns used, together."""
    costs = [cost for cost in (one.cost, other.cost) if cost is not None]
    sums = {
        name: getattr(one, name) + getattr(other, name)
        for name in InnerUsage.__slots__
        if name not in ("cost", "limited", "seconds")
    }
    seconds = round(one.seconds + other.seconds, 3)
    return InnerUsage(**sums, cost=sum(costs) if costs else None, seconds=seconds, limited=one.limited or other.limited)


def _by_digest(lines: Iterable[Line]) -> dict[str, deque[Line]]:
    queues: dict[str, deque[Line]] = {}
    for line in sorted(lines, key=lambda line: int(line["n"])):
        queues.setdefault(line["digest"], deque()).append(line)
    return queues


def _answer(line: Line) -> Completion:
    """What a recorded call gave. Raises what it raised."""
    if "call" in line:
        return completion_of(line["call"])
    raise _KINDS.get(line["error_kind"], EngineError)(line["error"])


class _Turn:
    """One attempt at a reply, and the calls that are made meanwhile."""

    def __init__(self, seat: InnerSeat, request: Request) -> None:
        self.seat, self.door = seat, seat.door
        self.id = TurnId.of(request.id)
        self.seed, self.age = request.seed, request.thread.age
        self.stopped: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self.usage = InnerUsage()
        self.answers: list[Completion] = []
        self.refused_by: str | None = None
        self.failed_last: EngineError | None = None
        self._tasks: set[asyncio.Task[Completion]] = set()
        self._occurrences: Counter[str] = Counter()
        recorded = seat.lines.setdefault((self.id.index, self.id.attempt), [])
        # A failure may have been that of an outage, which is over now.
        kept = [line for line in recorded if line.get("error_kind") not in PASSING]
        self._unused = _by_digest(kept)
        self._next = 1 + max((line["n"] for line in recorded), default=-1)
        self._start = 1 + max((line.get("try", 0) for line in recorded), default=-1)
        self._began = time.monotonic()
        self._closed_after: float | None = None

    @property
    def seconds(self) -> float:
        """How long it is open, or was."""
        return time.monotonic() - self._began if self._closed_after is None else self._closed_after

    def counted(self, reply: Completion) -> Completion:
        """A reply with the tokens and the cost of its calls, in place of what the program says."""

        def total(name: str) -> Any:
            values = [getattr(answer, name) for answer in self.answers]
            return None if None in values else sum(values)

        return replace(
            reply,
            input_tokens=total("input_tokens"),
            output_tokens=total("output_tokens"),
            cached_tokens=total("cached_tokens"),
            reasoning_tokens=total("reasoning_tokens"),
            cost=total("cost") if self.answers else None,
        )

    async def complete(self, ask: InnerRequest) -> Completion:
        """Answer a call: from the record, else by the inner engine."""
        occurrence = self._occurrences[ask.digest]
        self._occurrences[ask.digest] += 1
        if queue := self._unused.get(ask.digest):
            line = queue.popleft()
            await asyncio.sleep(0)  # it never waits; let others, and Ctrl-C, in
            return self._recorded(line)
        if (limit := self.seat.limit(self)) is not None:
            self.refused_by = limit
            self.usage = replace(self.usage, refused=self.usage.refused + 1)
            raise LimitReachedError(limit)
        self.usage = replace(self.usage, calls=self.usage.calls + 1)
        number, self._next = self._next, self._next + 1
        # In a task of its own: a program that goes away does not take an answer with it that is paid for.
        task = asyncio.create_task(self._ask(ask, number, occurrence))
        for tasks in (self._tasks, self.door.tasks):
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        return await asyncio.shield(task)

    def _recorded(self, line: Line) -> Completion:
        self.usage = replace(self.usage, calls=self.usage.calls + 1)
        try:
            answer = _answer(line)
        except EngineError as error:
            self._failed(error)
            raise
        self._answered(answer)
        return answer

    async def _ask(self, ask: InnerRequest, number: int, occurrence: int) -> Completion:
        seed = derive_seed(self.seed, ask.digest, occurrence)
        answer = error = None
        try:
            answer = await self.door.request(self, ask, occurrence, seed).send(self.door.inner)
        except _STOPS as stop:
            self._stop(stop)
            raise
        except EngineError as failure:
            error = failure
        line = self.seat.writer.line(self.id, number, self._start, ask, seed, answer)
        if error is not None:
            line |= {"error": str(error), "error_kind": error.kind}
        kept = {name: value for name, value in line.items() if name != "ask"}
        self.seat.lines[self.id.index, self.id.attempt].append(kept)
        try:
            await self.door.write(line, self.door.name if error is None else None)
        except StorageError as stop:
            self._stop(stop)
            raise
        if error is not None:
            self._failed(error)
            raise error
        assert answer is not None
        self._answered(answer)
        return answer

    def _stop(self, error: BaseException) -> None:
        """The run ends, and with it the reply."""
        self.usage = replace(self.usage, calls=self.usage.calls - 1)
        if not self.stopped.done():
            self.stopped.set_result(error)

    def _failed(self, error: EngineError) -> None:
        self.failed_last = error
        self.usage = replace(self.usage, failed=self.usage.failed + 1)

    def _answered(self, answer: Completion) -> None:
        self.failed_last = None
        self.answers.append(answer)
        cost = self.usage.cost if answer.cost is None else (self.usage.cost or 0.0) + answer.cost
        self.usage = replace(
            self.usage,
            input_tokens=self.usage.input_tokens + (answer.input_tokens or 0),
            output_tokens=self.usage.output_tokens + (answer.output_tokens or 0),
            cached_tokens=self.usage.cached_tokens + (answer.cached_tokens or 0),
            cost=cost,
        )

    async def close(self) -> None:
        """Wait for what is under way, which is paid for."""
        self._closed_after = time.monotonic() - self._began
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def cancel(self) -> None:
        """End what is under way."""
        for task in self._tasks:
            task.cancel()

    async def drop(self) -> None:
        """Note what the program did not ask again."""
        left = [line for queue in self._unused.values() for line in queue]
        if left:
            numbers = {line["n"] for line in left}
            self.usage = replace(self.usage, dropped=len(numbers))
            own = self.seat.lines[self.id.index, self.id.attempt]
            own[:] = [line for line in own if line["n"] not in numbers]
            await self.door.write(dropped_line(self.id, numbers), None)


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

    async def start(self) -> None:
        await self.inner.start()

    async def complete(self, request: Request) -> Completion:
        turn = TurnId.of(request.id)
        return await self.calls.seat(turn.episode, turn.agent).play(request, request.send(self.inner))

    def stop_retrying(self, reason: Exception) -> None:
        self.inner.stop_retrying(reason)

    async def sleep(self) -> bool:
        return await self.inner.sleep()

    async def close(self) -> None:
        await self.inner.close()
