"""The seats and turns in which agent programs call their model: limits, recorded answers, what a turn used.

Next: `harness.runtime.inner_calls`, which asks the inner engine.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.api import Completion, InnerRequest, InnerUsage, Request, Thread, TurnId, derive_seed
from harness.api.errors import (
    EngineError,
    EngineFatalError,
    InnerCallError,
    LimitReachedError,
    StorageError,
)
from harness.api.inner_calls import NoTurnError
from harness.engines.usage import billed
from harness.runtime.episode import STOPS
from harness.runtime.steps import Recorded
from harness.storage import PASSING, RECORDED_ERRORS, UNFINISHED, Line, completion_of
from harness.storage.inner_calls import DROPPED, InnerCall, InnerWriter, RecordedAttempt, dropped_line, in_order

if TYPE_CHECKING:
    from harness.runtime.inner_calls import CallRequest, InnerCalls

_THREADS = 8
"""Conversations of a seat that are kept, for calls that go on with them."""


class OpenSeats:
    """An open episode: its seats, and what is recorded of it."""

    def __init__(self, moves: Recorded, lines: Iterable[Line]) -> None:
        self.seats: dict[str, InnerSeat] = {}
        self.moves: dict[str, dict[int, tuple[InnerUsage, bool]]] = {}
        for (agent, index), move in moves.items():
            if move.inner_calls is not None:
                open_turn = move.error_kind == UNFINISHED
                self.moves.setdefault(agent, {})[index] = move.inner_calls, open_turn
        self.attempts: dict[str, dict[tuple[int, int], RecordedAttempt]] = {}
        for line in in_order(lines):
            attempts = self.attempts.setdefault(line["s"], {})
            own = attempts.setdefault((line["i"], line["r"]), RecordedAttempt())
            if line["k"] == DROPPED:
                own.drop(line["n"])
            else:
                own.add(line)


class InnerSeat:
    """The model behind one seat: `harness.api.inner_calls.SeatCalls`."""

    def __init__(self, door: InnerCalls, episode: str, agent: str, own: OpenSeats) -> None:
        self.door, self.name, self.episode, self.agent = door, door.engine.model, episode, agent
        self.seed = 0  # its player's, from which a turn's derives, by its index and the attempt
        self.replaying = None
        self.turn: InnerTurn | None = None
        self.usages = {index: usage for index, (usage, _) in own.moves.get(agent, {}).items()}
        self.whole = functools.reduce(added, self.usages.values(), InnerUsage())  # of all turns
        self.attempts: dict[tuple[int, int], RecordedAttempt] = own.attempts.get(agent, {})
        self.writer = InnerWriter()
        self.is_over = False
        self._threads: deque[Thread] = deque(maxlen=_THREADS)  # those that no call is under way of
        self._opened = asyncio.Event()
        self._then: list[Callable[[], None]] = []

    @property
    def replaying(self) -> tuple[int, int] | None:
        """As of `SeatCalls`."""
        return self._replaying

    @replaying.setter
    def replaying(self, turn: tuple[int, int] | None) -> None:
        self._replaying = turn
        self._occurrences = Counter[str]()  # of the calls of that turn

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
        if (replayed := self._replaying) is not None and (line := self._replayed(replayed, ask.digest)) is not None:
            return _answer(line)
        while (turn := self.turn) is None and self.door.outer.waits_for_turn and not self.is_over:
            self._opened.clear()
            await self._opened.wait()
        if turn is None:
            raise NoTurnError(f"{self.agent} has no turn now" if not self.is_over else "the episode is over")
        return await turn.complete(ask)

    def _replayed(self, turn: tuple[int, int], digest: str) -> Line | None:
        """The record of an earlier turn's call."""
        occurrence = self._occurrences[digest]
        self._occurrences[digest] += 1
        seed = derive_seed(derive_seed(self.seed, *turn), digest, occurrence)
        if (own := self.attempts.get(turn)) is not None and (line := own.by_seed.get(seed)) is not None:
            return line
        if (usage := self.usages.get(turn[0])) is not None and usage.refused:
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
        self.replaying = None  # a program that was given up may have been in an earlier turn
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
            kind = turn.failed_last.kind
            error = InnerCallError if kind in PASSING else RECORDED_ERRORS.get(kind, EngineError)
            raise error(message) from failure
        raise failure

    def _count(self, turn: InnerTurn, limited: bool) -> None:
        """Add an attempt's calls to those of its turn."""
        now = replace(turn.usage, seconds=round(turn.seconds, 3), limited=limited)
        earlier = self.usages.get(turn.id.index)
        self.usages[turn.id.index] = now if earlier is None else added(earlier, now)
        self.whole = added(self.whole, now)

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
        return self._reached(limits["seat"], added(self.whole, own), "seat")

    def _reached(self, limits: Mapping[str, float], usage: InnerUsage, what: str) -> str | None:
        used: dict[str, float] = {
            "calls": usage.calls,
            "tokens": usage.input_tokens + usage.output_tokens,
            "seconds": usage.seconds,
        }
        if "cost" in limits:
            used["cost"] = self.door.cost(usage)
        name = next((name for name, most in limits.items() if used[name] >= most), None)
        if name is None:
            return None
        most, unit = limits[name], "USD" if name == "cost" else name
        return f"the limit of {most:g} {unit.removesuffix('s') if most == 1 else unit} a {what} is reached"


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


def _answer(line: Line) -> Completion:
    """What a recorded call gave. Raises what it raised."""
    if "call" in line:
        return completion_of(line["call"])
    raise RECORDED_ERRORS.get(line["error_kind"], EngineError)(line["error"])


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
        self._tasks: dict[asyncio.Task[Completion], CallRequest | None] = {}
        self._occurrences: Counter[str] = Counter()
        self._recorded = seat.attempts.setdefault((self.id.index, self.id.attempt), RecordedAttempt())
        # A failure may have been that of an outage, which is over now.
        known = self._recorded.by_seed.items()
        self._unused = {seed: line for seed, line in known if line.get("error_kind") not in PASSING}
        self._start = self._recorded.starts
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
        seed = derive_seed(self.seed, ask.digest, occurrence)
        if (line := self._unused.pop(seed, None)) is not None:
            await asyncio.sleep(0)  # it never waits; let others, and Ctrl-C, in
            return self._again(line)
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
        number, self._recorded.next = self._recorded.next, self._recorded.next + 1
        # In a task of its own: a program that goes away does not take an answer with it that is paid for.
        task = asyncio.create_task(self._ask(ask, number, occurrence, seed))
        self.door.tasks.add(task)
        self._tasks[task] = None
        task.add_done_callback(self._forget)
        task.add_done_callback(_seen)
        return await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[Completion]) -> None:
        del self._tasks[task]
        self.door.tasks.discard(task)

    def _again(self, line: Line) -> Completion:
        self.usage = replace(self.usage, calls=self.usage.calls + 1)
        try:
            answer = _answer(line)
        except EngineError as error:
            self._failed(error)
            raise
        self._answered(answer)
        return answer

    async def _ask(self, ask: InnerRequest, number: int, occurrence: int, seed: int) -> Completion:
        answer = error = None
        try:
            if self._closed_after is not None:
                raise self._withdrawn()
            request = self.door.request(self, ask, occurrence, seed)
            task = asyncio.current_task()
            assert task is not None
            self._tasks[task] = request
            try:
                answer = await request.send(self.door.inner)
            except asyncio.CancelledError:
                if self._closed_after is None or request.is_under_way:
                    raise
                raise self._withdrawn() from None
            finally:
                self.seat.rest(request.thread)
        except STOPS as stop:
            self._stop(stop)
            raise
        except NoTurnError:
            raise
        except EngineError as failure:
            error = failure
        call = InnerCall(
            episode=self.id.episode,
            agent=self.id.agent,
            index=self.id.index,
            attempt=self.id.attempt,
            number=number,
            start=self._start,
            model=self.door.name,
            request=ask,
            seed=seed,
            completion=answer,
            error=None if error is None else str(error),
            error_kind=None if error is None else error.kind,
            digest=ask.digest,
        )
        line = self.seat.writer.line(call)
        self._recorded.add({name: value for name, value in line.items() if name != "ask"})
        try:
            await self.door.write(line, self.door.name if error is None else None)
        except StorageError as stop:
            self._stop(stop)
            raise
        if self.door.on_call is not None:
            self.door.on_call(call)
        if error is not None:
            self._failed(error)
            raise error
        assert answer is not None
        self._answered(answer)
        return answer

    def _withdrawn(self) -> NoTurnError:
        """A call that was never asked does not count."""
        self.usage = replace(self.usage, calls=self.usage.calls - 1)
        return NoTurnError(f"{self.id.agent} has no turn any more")

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
        bill = billed(answer)
        paid = InnerUsage(
            input_tokens=answer.input_tokens or 0,
            output_tokens=answer.output_tokens or 0,
            cached_tokens=answer.cached_tokens or 0,
            reasoning_tokens=answer.reasoning_tokens or 0,
            cost=None if answer.cost is None else float(answer.cost),
            unpriced_input_tokens=int(bill.get("input", 0)),
            unpriced_output_tokens=int(bill.get("output", 0)),
            unpriced_cached_tokens=int(bill.get("cached", 0)),
            uncounted=int(bill.get("uncounted", 0)),
        )
        self.usage = added(self.usage, paid)

    async def close(self) -> None:
        """Wait for what is under way, which is paid for; what waits for its turn at the engine is not asked."""
        self._closed_after = time.monotonic() - self._began
        for task, request in self._tasks.items():
            if request is not None and not request.is_under_way:
                task.cancel()
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def cancel(self) -> None:
        """End what is under way."""
        for task in self._tasks:
            task.cancel()

    async def drop(self) -> None:
        """Note what the program did not ask again."""
        if left := list(self._unused.values()):
            numbers = {line["n"] for line in left}
            for line in left:
                if "call" in line:
                    self._paid(completion_of(line["call"]))
            self.usage = replace(self.usage, dropped=len(numbers))
            self._recorded.drop(numbers)
            await self.door.write(dropped_line(self.id, numbers), None)
