"""The gate before an engine: how many requests are in flight, which goes first, and whether any more may go.

    gate = Gate(engine, max_concurrency=64)

A run has one gate for each engine. They share what ends them all (`Stop`), what the run may use (`Usage`), the log of
requests, and the switcher where only one engine fits at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from harness.api import CallsTools, Completion, ContinuesText, Engine, Facts, Request
from harness.api.errors import (
    BudgetSpentError,
    ContextLengthError,
    EngineError,
    EngineFatalError,
    RefusedError,
    SetupError,
)
from harness.engines.priority import PriorityGate
from harness.engines.usage import Usage

if TYPE_CHECKING:
    from harness.engines.call_keys import EngineKeys
    from harness.engines.rate import Rate
    from harness.engines.width import Width

_COUNTS, _COUNTED_CHARS = 1024, 20_000
"""How many texts, and of how many characters at most, have their tokens remembered: all that hear one ask the same."""


class Wrapper(Engine, CallsTools, ContinuesText):
    """Passes on what every engine before another one passes on.

    Attributes:
        inner: answers what this one does not.
        engine: the engine behind all of them.
    """

    any_request = True

    def __init__(self, inner: Engine) -> None:
        self.inner = inner
        self.engine: Engine = inner.engine if isinstance(inner, Wrapper) else inner
        self.keeps_questions = inner.keeps_questions
        self._counted = lru_cache(_COUNTS)(inner.count_tokens)

    @property
    def model(self) -> str:
        return self.inner.model

    @property
    def width(self) -> int | None:
        return self.inner.width

    @property
    def collects(self) -> bool:
        return self.engine.collects

    def count_tokens(self, text: str) -> int | None:
        return self._counted(text) if len(text) <= _COUNTED_CHARS else self.inner.count_tokens(text)

    def report(self) -> Facts:
        return self.inner.report()

    async def start(self) -> None:
        await self.inner.start()

    def stop_retrying(self, reason: Exception) -> None:
        self.inner.stop_retrying(reason)

    async def sleep(self) -> bool:
        return await self.inner.sleep()

    async def close(self) -> None:
        await self.inner.close()


class Log(Protocol):
    """Writes down every call."""

    def check(self) -> None:
        """Raise `StorageError` if it can write no more."""

    def write(self, model: str, request: Request, messages: int, result: Completion | EngineError) -> None:
        """Write down what became of a call. `messages`: how many the engine saw of its thread."""


class Switcher(Protocol):
    """Lets one of several engines be started at a time. `switches`: how often one was."""

    switches: int

    async def enter(self, engine: Gate) -> None:
        """Wait until `engine` is the one that works; `leave` must follow. Raises `EngineFatalError` if it cannot."""

    def leave(self) -> None:
        """One request is done."""

    async def close(self) -> None:
        """Switch no more."""


def _width(most: int) -> Width:
    from harness.engines.width import Width  # what only a server needs

    return Width(most)


given_up: list[str] = []
"""What engines had begun and was given up, such as loading a model: `python -m harness` then ends at once. Python would
wait for what that has started, or die of what it does in a process that is half gone."""


def is_cancelled() -> bool:
    """Whether the present task is to end, as after Ctrl-C."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Stop:
    """Whether a run is to end: the first reason is kept. One for all gates of the run.

    Args:
        goes_on: whether there is something to play without any engine.
    """

    def __init__(self, goes_on: bool = False) -> None:
        self.goes_on = goes_on
        self.reason: str | None = None
        self.gates: list[Gate] = []

    def end(self, reason: str) -> None:
        """It is to end, for this reason unless there was one before; no engine tries anything again."""
        if self.reason is None:
            self.reason = reason
            self.stop_retrying(EngineFatalError(reason))

    def stop_retrying(self, reason: Exception) -> None:
        """No engine tries a failed request again."""
        for gate in self.gates:
            gate.stop_retrying(reason)

    def check(self) -> None:
        """Raise `EngineFatalError` if there is a reason."""
        if self.reason is not None:
            raise EngineFatalError(self.reason)


@dataclass(frozen=True)
class Shared:
    """What the gates of a run share.

    Attributes:
        stop: whether the run is to end.
        usage: what the run has used of its budget.
        log: where calls are logged.
        switcher: starts an engine when its turn comes; None: `Gate.start` does.
    """

    stop: Stop = field(default_factory=Stop)
    usage: Usage = field(default_factory=Usage)
    log: Log | None = None
    switcher: Switcher | None = None


class Gate(Wrapper):
    """Lets requests through to an engine: the oldest conversation first, and none once the run is to end.

    A server that is dying fails request after request. Each failure that the engine gives up on is an error of its
    move and stays in the results; where that becomes the rule, the run had better stop and continue later. So the gate
    is a circuit breaker too: it gives the engine up when too many of its last requests failed. It also does when an
    engine that has answered nothing yet has failed `FIRST` times, for whatever reason: a context window that holds no
    prompt, or a parameter that the server does not know, is a mistake of set-up. That ends the run, unless other
    engines can go on without this one.

    Args:
        engine: the engine; what it retries with success is not a failure here.
        max_concurrency: the most requests in flight; fewer where the engine says that it works on fewer at once
            (`Engine.width`).
        max_error_rate: the share of the last `WINDOW` requests that may fail. A conversation that does not fit the
            context window is the conversation's fault and counts as answered; so does what a program of an agent asks
            and the engine refuses (`Request.by_program`).
        shared: what the run's gates share; None: it is the only one.
        is_known: whether the engine has answered elsewhere: before the run was resumed, or to fill a cache.
        adapts: whether to find out how many help, where requests may wait out of sight (`Engine.queues_unseen`) and the
            engine does not say how many it works on.

    Attributes:
        answered: how many requests the engine has answered.
        broken: why the engine is asked no more; None while it is.
        rate: how many requests and tokens a minute there may be; None: no bound.
        keep: takes an engine in good order in place of closing it, and says whether it does.
        behind: the gate of the inner engine of an engine that `CallsModels`, without which this one is of no use.
    """

    WINDOW = 100
    FIRST = 10

    def __init__(
        self,
        engine: Engine,
        max_concurrency: int = 256,
        max_error_rate: float = 0.25,
        *,
        shared: Shared | None = None,
        is_known: Callable[[], bool] = lambda: False,
        adapts: bool = False,
    ) -> None:
        if not (type(max_concurrency) is int and max_concurrency >= 1):
            raise SetupError(f"max_concurrency must be a whole number, at least 1, not {max_concurrency!r:.40}")
        if not (type(max_error_rate) in (int, float) and 0 <= max_error_rate <= 1):
            raise SetupError(f"max_error_rate must be from 0 to 1, not {max_error_rate!r:.40}")
        super().__init__(engine)
        self.max_error_rate = max_error_rate
        shared = shared or Shared()
        self.stop, self.usage, self.log, self.switcher = shared.stop, shared.usage, shared.log, shared.switcher
        self.stop.gates.append(self)
        self.is_known = is_known
        self.answered = 0
        self.broken: str | None = None
        self._most = max_concurrency
        self.rate: Rate | None = None
        self._width = _width(max_concurrency) if adapts and engine.queues_unseen else None
        self._queue = PriorityGate(lambda in_flight: in_flight < self.most_in_flight)
        self._last: deque[bool] = deque(maxlen=self.WINDOW)
        self._failed = self._unanswered = 0
        self._awake, self._to_close = False, self.switcher is None
        self._keys: EngineKeys | None = None
        self.keep: Callable[[Engine], bool] = lambda engine: False
        self.behind: Gate | None = None

    @property
    def in_flight(self) -> int:
        """How many requests the engine has at present."""
        return self._queue.in_flight

    @property
    def most_in_flight(self) -> int:
        """How many it gets at once, at present."""
        if self.usage.is_unproven(self.engine):  # a budget may turn out not to be kept
            return 1
        if (width := self.inner.width) is None and self._width is not None:
            width = self._width.now
        return self._most if width is None else min(self._most, width)

    @property
    def is_of_use(self) -> bool:
        """Whether it is not given up, nor the one behind it."""
        return self.broken is None and (self.behind is None or self.behind.broken is None)

    @property
    def lenient(self) -> bool:
        """Whether any share may fail: failures then are results like others."""
        return self.max_error_rate >= 1

    # ------------------------------------------------------------------------------ life

    async def start(self) -> None:
        """Start the engine, unless a switcher does."""
        if self.switcher is None:
            await self.wake()

    async def wake(self) -> None:
        """Start the engine, unless the budget is used up: recorded and cached replies need no engine."""
        with contextlib.suppress(BudgetSpentError):
            self.usage.check()
            self._to_close = True
            await self.inner.start()
            self._awake = True

    async def make_room(self) -> None:
        """Put the engine to sleep if it can, else close it."""
        if self._awake:
            self._awake = False
            if not await self.inner.sleep():
                await self._close_engine()

    async def close(self) -> None:
        if self.switcher is not None:
            await self.switcher.close()
        if self._to_close:
            await self._close_engine()

    async def _close_engine(self) -> None:
        self._to_close = False
        in_order = self._awake and self.stop.reason is None and not is_cancelled()
        self._awake = False
        if not (in_order and self.keep(self.inner)):
            await self.inner.close()

    # ------------------------------------------------------------------------------ one request

    async def complete(self, request: Request) -> Completion:
        """Ask the engine, when it is the request's turn.

        Raises:
            EngineFatalError: at once where the run is to end, or the engine was given up; what is in flight then comes
                to its own end.
            BudgetSpentError: the budget is used up.
            StorageError: the log of requests can be written no more.
            EngineError: what the engine raises.
        """
        await self._queue.enter(request.thread.age)
        answer = None
        try:
            if self.rate is not None:
                await self.rate.take()
            self.stop.check()
            if self.broken is not None:
                raise EngineFatalError(self.broken)
            if self.log is not None:
                self.log.check()
            messages = len(request.thread.messages)
            try:
                if self.switcher is not None:
                    await self.switcher.enter(self)
                try:
                    if self.usage.bounded:
                        await self.usage.take()
                    else:
                        self.usage.calls += 1
                    began = round(time.time(), 6)
                    answer = await request.send(self.inner)
                    known = answer.request_digest or self._digest(request)  # a recording knows what was asked then
                    if answer.latency is not None and 0 <= answer.latency <= 1e9:  # it leaves out what the engine waits
                        began = max(began, round(time.time() - answer.latency, 6))  # for, such as an agent's process
                    answer = replace(answer, request_digest=known, began=began)
                finally:
                    if self.switcher is not None:
                        self.switcher.leave()
            except EngineError as error:
                if self.log is not None:
                    self.log.write(self.model, request, messages, error)
                self._count_failure(error, request.by_program)
                raise
            self._note(False)
            self.answered += 1
            self.usage.answered(answer, self.inner)
            if self._width is not None:
                self._width.answered(answer.output_tokens or 0, self._queue.in_flight, self._queue.waiting)
            if self.log is not None:
                self.log.write(self.model, request, messages, answer)
            return answer
        finally:
            if self.rate is not None:
                self.rate.give(answer)
            self._queue.leave()

    def _digest(self, request: Request) -> str:
        if self._keys is None:
            from harness.engines.call_keys import EngineKeys  # what only a run with models needs

            self._keys = EngineKeys(self.engine, location=False)
        return self._keys.digest(request)

    def _count_failure(self, error: EngineError, by_program: bool) -> None:
        """Count a failure, and give the engine up where it is one too many."""
        if isinstance(error, EngineFatalError):
            self.give_up(str(error))
            return
        refused = by_program and isinstance(error, RefusedError)
        failed = error.is_fault and not refused
        self._note(failed)
        self._unanswered += failed or refused or isinstance(error, ContextLengthError)
        if not self.answered and self._unanswered >= self.FIRST and not self.lenient and not self.is_known():
            summary = f"the first {self._unanswered} requests to {self.model} all failed, the last with: {error}"
            self.give_up(f"{summary} (max_error_rate 1 would take that as results)")
            return
        allowed = round(self.max_error_rate * self.WINDOW, 6)  # .29 * 100 is a little less than 29
        if failed and self._failed > allowed:
            summary = f"{self._failed} of the last {len(self._last)} requests to {self.model} failed, the last with: "
            self.give_up(f"{summary}{error} (max_error_rate allows {allowed:g} in {self.WINDOW})")

    def give_up(self, reason: str) -> None:
        """Ask the engine no more; end the run where nothing can be played without it.

        Engines that are started in turn end it too, since others would be started for what is left.
        """
        if self.broken is not None:
            return
        self.broken = reason
        others = self.stop.goes_on or any(gate.is_of_use for gate in self.stop.gates)
        if self.switcher is not None or not others:
            self.stop.end(reason)
        else:
            self.inner.stop_retrying(EngineFatalError(reason))

    def _note(self, failed: bool) -> None:
        if len(self._last) == self.WINDOW:
            self._failed -= self._last[0]
        self._last.append(failed)
        self._failed += failed

    def stop_retrying(self, reason: Exception) -> None:
        self.usage.halt(reason)
        if self.rate is not None:
            self.rate.halt()
        self.inner.stop_retrying(reason)

    def report(self) -> Facts:
        own = super().report()
        return own if self.switcher is None else {**own, "engine_switches": self.switcher.switches}
