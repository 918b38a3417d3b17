"""Reports of a local engine's scheduler: how full it is, how long it was idle."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from harness.api import Facts
from harness.engines.priority import PriorityGate

KV_BOUND = 0.9
"""Share of the key-value cache from which on no more requests are handed over: those that run still grow, and vLLM
throws a running request's work away when they find no room."""


class Load:
    """A scheduler's state, step by step, and what it comes to over time.

    Args:
        capacity: how many requests the engine runs at once, over all its replicas.
        clock: seconds, never running backwards.
    """

    def __init__(self, capacity: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self.capacity, self._clock = capacity, clock
        self.running = self.waiting = 0
        self.kv_use = 0.0
        self._replicas: dict[int, tuple[int, int, float]] = {}
        self._reports = self._preempted = 0
        self._in_flight = self._handed = self._begun = 0
        self._is_idle = False
        self._last: float | None = None  # the time of the last event; None: the time stands still
        self._seconds = self._idle_seconds = 0.0
        self._sums, self._most = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]

    # ------------------------------------------------------------------------------ from the client

    def handed(self) -> None:
        """A request was handed to the engine."""
        self._advance()
        self._is_idle = False
        self._in_flight += 1
        self._handed += 1

    def finished(self) -> None:
        """A request that was handed over is done, or failed."""
        self._advance()
        self._in_flight -= 1
        if self._in_flight == 0:
            self._handed = self._begun = 0
            self._is_idle = True

    def stopped(self) -> None:
        """The engine is put away; time continues with the first request after its next start."""
        self._last = None
        self._in_flight = self._handed = self._begun = 0
        self._replicas.clear()
        self.running = self.waiting = 0
        self.kv_use = 0.0

    def begin(self) -> None:
        """Count again."""
        self.stopped()
        self._is_idle = False
        self._seconds = self._idle_seconds = 0.0
        self._reports = self._preempted = 0
        self._sums, self._most = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]

    # ------------------------------------------------------------------------------ from the engine

    def observe(self, stats: Any, replica: int = 0) -> None:
        """Take in one step's `SchedulerStats` of vLLM."""
        waiting = stats.num_waiting_reqs + stats.num_skipped_waiting_reqs
        state = stats.num_running_reqs, waiting, stats.kv_cache_usage
        begun, preempted = stats.prefix_cache_stats.requests, stats.prefix_cache_stats.preempted_requests
        if self._in_flight:
            self._advance()
        self._replicas[replica] = state
        self.running = sum(state[0] for state in self._replicas.values())
        self.waiting = sum(state[1] for state in self._replicas.values())
        self.kv_use = max(state[2] for state in self._replicas.values())
        for i, value in enumerate((self.running, self.waiting, self.kv_use)):
            self._most[i] = max(self._most[i], value)
        self._reports += 1
        self._begun += begun
        self._preempted += preempted
        # It may say so while a request that was just handed over has not reached it yet: that one has not begun.
        if not self.running and not self.waiting and self._begun >= self._handed:
            self._is_idle = True

    def admits(self, in_flight: int) -> bool:
        """Whether the engine should get one more, `in_flight` being how many it has.

        It gets as many as it can run, and a few more, so that it never waits for this process; but none while its
        key-value cache is nearly full. Without reports the number in flight alone decides.
        """
        if self.kv_use >= KV_BOUND:
            return False
        under_way = max(0, in_flight - self.running - self.waiting)  # not in the last report yet
        free = 0 if self.waiting else max(0, self.capacity - self.running)
        return self.waiting + max(0, under_way - free) < max(16, self.capacity // 4)

    # ------------------------------------------------------------------------------ in sum

    def report(self) -> Facts:
        """Over the time from the first request to the end of the last: `seconds`, `engine_idle_share`, and, if the
        engine reports, means over time and maxima of requests running and waiting and of the key-value cache in use
        (a share), and how often a running request was thrown back."""
        seconds = self._seconds
        if seconds <= 0:
            return {}
        idle = round(self._idle_seconds / seconds, 4)
        facts: dict[str, Any] = {"seconds": round(seconds, 3), "engine_idle_share": idle}
        if self._reports:
            for i, (name, digits) in enumerate((("running", 3), ("waiting", 3), ("kv_cache_use", 6))):
                facts[f"{name}_mean"] = round(self._sums[i] / seconds, digits)
                facts[f"{name}_max"] = round(self._most[i], digits)
            facts["preemptions"] = self._preempted
        return facts

    def with_rates(self, counts: Mapping[str, int]) -> Facts:
        """The counts of an engine, this report, and what follows from both."""
        load = self.report()
        rates = {
            f"{kind}_tokens_per_second": round(counts.get(f"{kind}_tokens", 0) / load["seconds"], 1)
            for kind in ("prompt", "output")
            if load
        }
        share = counts.get("cached_tokens", 0) / max(1, counts.get("prompt_tokens", 0))
        return {**counts, **load, **rates, "prefix_cache_hit_rate": share}

    def _advance(self) -> None:
        """Add the time since the last event to the sums, with the state in which it passed."""
        now = self._clock()
        span, self._last = 0.0 if self._last is None else now - self._last, now
        self._seconds += span
        if self._is_idle:
            self._idle_seconds += span
        if self._in_flight:
            for i, value in enumerate((self.running, self.waiting, self.kv_use)):
                self._sums[i] += value * span


class Listener:
    """What vLLM calls a stat logger, of the smallest kind: hands on what the scheduler says."""

    def __init__(self, load: Load, gate: PriorityGate, replica: int) -> None:
        self._load, self._gate, self._replica = load, gate, replica

    def record(self, scheduler_stats: Any = None, *_: Any, **__: Any) -> None:
        if scheduler_stats is not None:
            # An error here would end the task that takes in vLLM's replies. An unchecked version may lack an attribute;
            # then there are no statistics.
            with contextlib.suppress(AttributeError):
                self._load.observe(scheduler_stats, self._replica)
            self._gate.advance()

    def log_engine_initialized(self) -> None: ...

    def log(self) -> None: ...

    def record_sleep_state(self, *_: Any) -> None: ...


def listen_only(engine: Any) -> None:
    """Leave the scheduler's statistics on, and turn those off that this process would work out for every token.

    With a stat logger vLLM also keeps times of every request and updates its Prometheus metrics in every step: half as
    much work again as all the rest of its client. There is no argument for one without the other.
    """
    if engine.output_handler is not None:  # started just now, and not run yet: the next request starts it again
        engine.output_handler.cancel()
        engine.output_handler = None
    engine.log_stats = engine.output_processor.log_stats = False
    loggers = engine.logger_manager.stat_loggers
    loggers[:] = [logger for logger in loggers if "Prometheus" not in type(logger).__name__]
