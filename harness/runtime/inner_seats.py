"""The seats and turns in which agent programs call their model: limits, recorded answers, what a turn used.

Next: `harness.runtime.inner_calls`, which asks the inner engine.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.api import (
    Completion,
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
)
from harness.api.inner_calls import NoTurnError
from harness.engines.usage import billed
from harness.runtime.steps import Recorded
from harness.storage import PASSING, UNFINISHED, Line, completion_of
from harness.storage.inner_calls import DROPPED, InnerCall, InnerWriter, dropped_line

if TYPE_CHECKING:
    from harness.runtime.inner_calls import InnerCalls

_THREADS = 8
"""Conversations of a seat that are kept, for calls that go on with them."""
_STOPS = (EngineFatalError, StorageError, BudgetSpentError, SetupError)
_KINDS: Mapping[str, type[EngineError]] = {
    kind.kind: kind for kind in (ContextLengthError, RefusedError, RequestError, EngineError)
}


class OpenSeats:
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

    def __init__(self, door: InnerCalls, episode: str, agent: str, own: OpenSeats) -> None:
        self.door, self.name, self.episode, self.agent = door, door.engine.model, episode, agent
        self.replaying: tuple[int, int] | None = None
        self.turn: InnerTurn | None = None
        self.usages = {index: usage for index, (usage, _) in own.moves.get(agent, {}).items()}
        self.lines: dict[tuple[int, int], list[Line]] = own.lines.get(agent, {})
        self.writer = InnerWriter(door.name)
        self.is_over = False
        self._replay: tuple[tuple[int, int] | None, dict[str, deque[Line]]] = None, {}
        self._threads: deque[Thread] = deque(maxlen=_THREADS)  # those that no call is under way of
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

    def thread(self, age: int, ask: InnerRequest) -> Thread:
        """The conversation of a call: an earlier one of this seat that it goes on with, so that engines need not read
        again what they have read; `rest` must follow."""
        if ask.text is not None:
            thread = Thread(age, chat=False)
            thread.add("user", ask.text)
            return thread
        messages: list[Any] = list(ask.messages)
        for thread in reversed(self._threads):
            if thread.messages == messages[: len(thread.messages)]:
                self._threads.remove(thread)
                break
        else:
            thread = Thread(age)
        thread.messages += messages[len(thread.messages) :]
        return thread

    def rest(self, thread: Thread) -> None:
        """A call of this conversation is over."""
        if thread.chat:
            self._threads.append(thread)

    # ------------------------------------------------------------------------------ turns

    async def play(self, request: Request, reply: Awaitable[Completion]) -> Completion:
        """Wait for a reply, with a turn open for its inner calls; returns it with their tokens and cost.

        Raises:
            EngineFatalError, BudgetSpentError, StorageError: as an inner call; the reply is not waited for.
            LimitReachedError, InnerCallError: there is no reply, after a call that a limit refused, or that failed.
        ContextLengthError, RefusedError: there is none, after a call that the inner engine refused so.
        """
        turn = self.turn = InnerTurn(self, request)
        self._opened.set()
        replying: asyncio.Future[Completion] = asyncio.ensure_future(reply)
        replying.add_done_callback(_seen)
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

    def _count(self, turn: InnerTurn, limited: bool) -> None:
        """Add an attempt's calls to those of its turn."""
        now = replace(turn.usage, seconds=round(turn.seconds, 3), limited=limited)
        earlier = self.usages.get(turn.id.index)
        self.usages[turn.id.index] = now if earlier is None else added(earlier, now)

    def limit(self, turn: InnerTurn) -> str | None:
        """The limit that allows no further call, in words. Raises `EngineFatalError` for one that cannot be kept."""
        limits = self.door.limits
        if not limits:
            return None
        own = replace(turn.usage, seconds=turn.seconds)
        of_turn = self.usages.get(turn.id.index)
        whole = own if of_turn is None else added(of_turn, own)
        if (why := self._reached(limits.get("turn", {}), whole, "turn")) is not None:
            return why
        if "seat" not in limits:
            return None
        for index, usage in self.usages.items():
            if index != turn.id.index:
                whole = added(usage, whole)
        return self._reached(limits["seat"], whole, "seat")

    def _reached(self, limits: Mapping[str, float], usage: InnerUsage, what: str) -> str | None:
        used: dict[str, float] = {
            "calls": usage.calls,
            "tokens": usage.input_tokens + usage.output_tokens,
            "seconds": usage.seconds,
        }
        if "cost" in limits:
            used["cost"] = self.door.cost(usage)
        name = next((name for name, most in limits.items() if used[name] >= most), None)
        return None if name is None else f"the limit of {limits[name]:g} {name} a {what} is reached"


def _seen(task: asyncio.Future[Any]) -> None:
    """Whoever waited for it may be gone: no one need be warned of its error."""
    if not task.cancelled():
        task.exception()


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


class InnerTurn:
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
        try:
            limit = self.seat.limit(self)
        except EngineFatalError as stop:
            self._end(stop)
            raise
        if limit is not None:
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
        task.add_done_callback(_seen)
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
            request = self.door.request(self, ask, occurrence, seed)
            try:
                answer = await request.send(self.door.inner)
            finally:
                self.seat.rest(request.thread)
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
        if self.door.on_call is not None:
            why, kind = (None, None) if error is None else (str(error), error.kind)
            own, name = self.id, self.door.name
            call = InnerCall(
                own.episode, own.agent, own.index, own.attempt, number, self._start, name, ask, seed, answer, why, kind,
                ask.digest,
            )  # fmt: skip
            self.door.on_call(call)
        if error is not None:
            self._failed(error)
            raise error
        assert answer is not None
        self._answered(answer)
        return answer

    def _stop(self, error: BaseException) -> None:
        """The run ends, and with it the reply."""
        self.usage = replace(self.usage, calls=self.usage.calls - 1)
        self._end(error)

    def _end(self, error: BaseException) -> None:
        if not self.stopped.done():
            self.stopped.set_result(error)

    def _failed(self, error: EngineError) -> None:
        self.failed_last = error
        self.usage = replace(self.usage, failed=self.usage.failed + 1)

    def _answered(self, answer: Completion) -> None:
        self.failed_last = None
        self.answers.append(answer)
        self.usage = replace(self.usage, priced=self.usage.priced + (answer.cost is not None))
        self._paid(answer)

    def _paid(self, answer: Completion) -> None:
        bill, cost = billed(answer), self.usage.cost
        cost = cost if answer.cost is None else (cost or 0.0) + answer.cost
        self.usage = replace(
            self.usage,
            input_tokens=self.usage.input_tokens + (answer.input_tokens or 0),
            output_tokens=self.usage.output_tokens + (answer.output_tokens or 0),
            cached_tokens=self.usage.cached_tokens + (answer.cached_tokens or 0),
            cost=cost,
            unpriced_input_tokens=self.usage.unpriced_input_tokens + int(bill.get("input", 0)),
            unpriced_output_tokens=self.usage.unpriced_output_tokens + int(bill.get("output", 0)),
            unpriced_cached_tokens=self.usage.unpriced_cached_tokens + int(bill.get("cached", 0)),
            uncounted=self.usage.uncounted + int(bill.get("uncounted", 0)),
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
            for line in left:
                if "call" in line:
                    self._paid(completion_of(line["call"]))
            self.usage = replace(self.usage, dropped=len(numbers))
            own = self.seat.lines[self.id.index, self.id.attempt]
            own[:] = [line for line in own if line["n"] not in numbers]
            await self.door.write(dropped_line(self.id, numbers), None)
