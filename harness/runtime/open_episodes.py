"""The open episodes of one process: many at once, journaled as they go, scored as they end.

Next: `harness.runtime.episode`, which plays one of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import storage
from harness.api import Engine, Facts, Replays
from harness.api.errors import BudgetSpentError, EngineFatalError, SetupError
from harness.api.run_files import ENGINE_LOG, ERRORS, REQUESTS, SAMPLES, SHARED_CALLS
from harness.config.permissions import confined
from harness.config.plan import Job, Plan, episode_id
from harness.engines.gate import Gate, Shared, Stop, Wrapper
from harness.engines.usage import Usage
from harness.runtime import session
from harness.runtime.episode import STOPS, play
from harness.runtime.interrupts import first_interrupt
from harness.runtime.open_episode import OpenEpisode
from harness.runtime.players import ModelPlayer
from harness.runtime.runner import Work
from harness.runtime.seats import seats
from harness.runtime.steps import Steps
from harness.runtime.turn_shares import TurnShares
from harness.storage.error_log import ErrorLog

if TYPE_CHECKING:
    from harness.api import InnerUsage
    from harness.engines.recorded_calls import RecordedCalls
    from harness.engines.repeats import Repeats
    from harness.engines.waves import Waves
    from harness.runtime.inner_calls import InnerCalls

_log = logging.getLogger(__name__)
_NEW_OBJECTS = 10_000
"""New objects before Python looks for garbage in cycles, of which episodes make hardly any: its default, 700, takes a
tenth of a run's CPU time."""
Take = Callable[[], Awaitable[Job | None]]
"""Gives the next episode to play; None when there will be no more."""


class Episodes:
    """The open episodes of one process and what they share: engines and journal.

    Args:
        work: the run. An instance plays only the episodes that it takes.
        worker: number of the process among several; the names of its files contain it.

    Attributes:
        stop: ends the run for a reason other than an engine.
        journal: what is recorded, once `play_all` has started.
        errors: where to write down what a plugin raised (`ErrorLog.record`), even if it fails no episode.
    """

    def __init__(self, work: Work, worker: int | None = None) -> None:
        self.work, self.folder, self.options = work, work.folder, work.options
        self.moves, self.on_score, self.usage, self.worker = work.moves, work.on_score, work.usage, worker
        self.engines: dict[str, Wrapper] = {}
        self.waves: Waves | None = None
        self.errors = ErrorLog(self._file(ERRORS))
        alone = any(all(group.policy is not None for group in c.groups) for c in self.plan.conditions)
        self.stop, self.gates = Stop(goes_on=alone), dict[str, Gate]()
        self.inner: dict[str, InnerCalls] = {}  # by the engine whose programs make them
        self.inner_usage: dict[str, Callable[[str, str, int], InnerUsage | None]] = {}  # of programs of a recorded run
        self.playing: set[asyncio.Task[None] | None] = set()
        self._changed = asyncio.Event()
        self.spent: BudgetSpentError | None = None
        self.recorded: RecordedCalls | None = None
        self.repeats: list[Repeats] = []  # of engines that are to repeat themselves
        self.shares = self.plan.dedupe_calls
        self.pending = storage.PendingFailures()
        self._when_counting: dict[int, Callable[[], None]] = {}  # id of a line that is journaled → what follows
        self.turn_shares = TurnShares(work.count_turns or work.on_turn_counts)
        work.on_over = self.stop.end

    @property
    def plan(self) -> Plan:
        """What is played; it grows where `extend` finds more."""
        return self.work.plan

    async def play_all(self, take: Take, extend: Callable[[], bool] = lambda: False) -> None:
        """Play what `take` gives until it gives no more.

        `take` is first called when all engines are started. Where all that it gave is finished, and `extend` says that
        there is more, it is called again. Raises as `Play`.
        """
        async with contextlib.AsyncExitStack() as stack:  # everything is closed, even if closing something fails
            await self._start(stack)
            stack.enter_context(first_interrupt(self._in_flight, self._interrupt))
            before = gc.get_threshold()
            stack.callback(gc.set_threshold, *before)
            if 0 < before[0] < _NEW_OBJECTS:  # 0: someone switched it off
                gc.set_threshold(_NEW_OBJECTS, *before[1:])
            has_more = True
            while has_more:
                # With policies alone more tasks would only hold more episodes open. A person plays one after another.
                people = any(engine.asks_people for engine in self.plan.engines.values())
                width = self.options.most_open if self.engines and not people else 1
                if self.waves is not None and self.options.max_concurrency is None:
                    width = self.work.remaining
                tasks = [asyncio.create_task(self._play_jobs(take)) for _ in range(width)]
                if self.waves is not None:
                    self.waves.watch(tasks)
                try:
                    await asyncio.gather(*tasks)
                except (EngineFatalError, SetupError) as error:
                    await self._end(tasks, str(error))
                    raise
                finally:
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)
                self._check_end()
                has_more = extend()
            self.turn_shares.report_all()
            for repeats in self.repeats:
                await repeats.ask_again()

    def _in_flight(self) -> int:
        """Requests that a stop had better wait for: not those to people, those in batches, or those of engines that
        others have to make room for."""
        if self.options.sequential_engines:
            return 0
        gates = [(gate, gate.engine) for gate in self.gates.values()]
        return sum(gate.in_flight for gate, engine in gates if not engine.asks_people and not engine.collects)

    def _interrupt(self, count: int) -> None:
        """The user ends the run."""
        self.work.interrupted = True
        requests = "request, whose reply is" if count == 1 else "requests, whose replies are"
        text = "stopping: waiting for %d %s kept; nothing new is asked. Ctrl-C again stops at once."
        _log.warning(text, count, requests)
        self.stop.end("the run was interrupted")

    async def _end(self, tasks: Sequence[asyncio.Task[None]], why: str) -> None:
        """Ask nothing new; what other engines are answering just now is paid for, and is waited for."""
        self.stop.end(why)
        if not self.options.sequential_engines:  # others would be started for it
            for task in set(tasks) - self.playing:  # they wait for an episode that may never come
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _check_end(self) -> None:
        """Raise what ended the playing of episodes before all were played, as `Play`."""
        if reason := self.spent or self.usage.exhausted:
            raise reason
        self.work.broken |= {name: gate.broken for name, gate in self.gates.items() if gate.broken is not None}
        if broken := self.work.broken.values():
            others = any(not self._needs_broken(job) for job in self.work.episodes)
            played = "; all episodes without this engine are played" if others else ""
            raise EngineFatalError(f"{'; '.join(broken)}{played}")
        self.usage.check_kept()
        self._confirm_failures()

    async def _start(self, stack: contextlib.AsyncExitStack) -> None:
        """Open the files and start the engines; `stack` closes them."""
        self.journal = storage.Journal(self._file(storage.JOURNAL))
        stack.enter_context(contextlib.closing(self.journal))
        if self.journal.resumes:
            self.journal.append({"k": storage.RESUME})
        self.usage.write = self._journal_usage
        self.samples = None
        if self.options.log_samples:
            from harness.runtime.samples import SampleLog

            self.samples = stack.enter_context(contextlib.closing(SampleLog(self._file(SAMPLES))))
        stack.callback(self._journal_rest)
        log = None
        if self.options.log_requests and self.plan.engines:
            from harness.engines.request_log import RequestLog

            log = stack.enter_context(contextlib.closing(RequestLog(self._file(REQUESTS))))
        if any(engine.confined for engine in self.plan.engines.values()):
            stack.enter_context(confined(self.options.sandbox))
        if self.options.reuse is not None and self.plan.engines:
            from harness.engines.recorded_calls import RecordedCalls

            self.recorded = RecordedCalls(self.options.reuse, self.folder)
        switcher = None
        if self.options.sequential_engines:
            from harness.engines.switcher import EngineSwitcher

            switcher = EngineSwitcher(self.plan.engines.keys() - self.plan.inner.keys())
        shared = Shared(self.stop, self.usage, log, switcher)
        one = session.current() if switcher is None else None
        engines = self.plan.engines if one is None else await one.take(self.plan.engines)
        if any(engine.collects for engine in engines.values()):
            from harness.engines.waves import Waves

            self.waves = Waves(engines, self._file)
        for name, engine in engines.items():
            engine.log_to(self._file(ENGINE_LOG))
            self.engines[name] = gated = self._gated(name, engine, shared)
            if one is not None:
                self.gates[name].keep = one.keep
            stack.push_async_callback(gated.close)
        if self.inner:
            from harness.runtime.inner_calls import connect

            stack.push_async_callback(connect(self))
        await self._start_engines()
        if (left := self.usage.time_left()) is not None:
            timer = asyncio.get_running_loop().call_later(left, self.stop.stop_retrying, self.usage.time_over())
            stack.callback(timer.cancel)

    async def _start_engines(self) -> None:
        """Start them all. One that does not start drops out where the others can play on (`SpecKey.plays_on`).

        Raises `SetupError` or `EngineFatalError` of the first that does not start, if it may not, or no other starts.
        """
        down: dict[str, SetupError | EngineFatalError] = {}
        for name, engine in self.engines.items():
            called = engine.model
            try:
                await engine.start()
                if engine.model != called or engine.engine.weights is not None:
                    from harness.runtime.served import note  # what only an engine needs that learns who answers

                    note(self, name, engine.engine, called)
            except (SetupError, EngineFatalError) as error:
                down[name] = error
                if len(down) == len(self.engines) or not any(key.plays_on for key in self.plan.keys):
                    raise down[next(iter(down))] from None
        for name, why in down.items():
            reason = f"{name} did not start: {why.message if isinstance(why, SetupError) else why}"
            self.gates[name].give_up(reason)
            _log.warning("%s; the others play on without it", reason)

    def reports(self) -> dict[str, Facts]:
        """What each engine reports of itself, with the weights that it had."""
        had = {name: {"weights": weights} for name, weights in self.work.served.items()}
        return {name: {**engine.report(), **had.get(name, {})} for name, engine in self.engines.items()}

    def _file(self, name: str) -> Path:
        return self.folder / (name if self.worker is None else storage.of_worker(name, self.worker))

    def _gated(self, name: str, engine: Engine, shared: Shared) -> Wrapper:
        # What failed in a recorded run is its result.
        rate = 1.0 if isinstance(engine, Replays) else self.options.max_error_rate
        width, adapts = self.options.most_open, self.options.max_concurrency is None
        if engine.collects and adapts:
            width, adapts = sys.maxsize, False
        caches: list[Any] = []

        def is_known() -> bool:
            return name in self.work.live_models or any(cache.hits for cache in caches)

        if engine.calls_models and name in self.plan.inner:
            from harness.api.inner_calls import RepeatsPrograms
            from harness.runtime.inner_calls import InnerTurns

            if isinstance(engine, RepeatsPrograms):
                self.inner_usage[name] = engine.inner_usage
            else:
                engine = turns = InnerTurns(engine)
                self.inner[name] = turns.calls
                turns.calls.on_call = None if self.work.listeners is None else self.work.listeners.inner_call
                shared = replace(shared, usage=Usage(), switcher=None)  # its inner calls count, and take their turn
        self.gates[name] = gate = Gate(engine, width, rate, shared=shared, is_known=is_known, adapts=adapts)
        gate.rate = self.options.pace
        gated: Wrapper = gate
        if engine.deterministic:
            from harness.engines.repeats import Repeats

            self.repeats.append(gated := Repeats(gate))
        if name in self.inner:  # its inner engine's answers are kept; without a program, a turn would have no calls
            return gated
        if self.recorded is not None:
            from harness.engines.recorded_calls import Recorded

            caches.append(gated := Recorded(gated, self.recorded))
        if self.options.use_cache or self.shares:
            from harness.engines.cache import Cache

            if self.options.use_cache:
                caches.append(gated := Cache(gated, self.options.use_cache))
            if self.shares:
                caches.append(gated := Cache(gated, self.folder / SHARED_CALLS, share=True))
        return gated

    def _journal_rest(self) -> None:
        """Journal what was asked and has no move: calls that Ctrl-C cut off."""
        if usage := self.usage.unjournaled(ending=True):
            self.journal.append({"k": "asked", "asked": list(usage)})

    def _journal_usage(self, usage: Sequence[int]) -> None:
        """Journal what is about to be asked; returns when that outlives this process. Raises `StorageError`."""
        self.journal.append({"k": "asked", "asked": list(usage)})
        self.journal.flush()

    def record(self, line: storage.Line, when_counting: Callable[[], None] | None = None) -> None:
        """Journal a move, or an episode's end; `when_counting` is called when that counts
        (`harness.storage.pending_failures`)."""
        self.journal.append(line)
        if when_counting is not None:
            self._when_counting[id(line)] = when_counting  # `pending` has the line until then
        for _, counting in self.pending.add(line):
            if (follows := self._when_counting.pop(id(counting), None)) is not None:
                follows()

    def _confirm_failures(self) -> None:
        """Nothing is left to be asked. Raises `EngineFatalError` if the last requests to an engine all failed."""
        failures = self.pending.failures()
        if all(line["error_kind"] in storage.REFUSALS for line in failures):
            for name in {line["engine"][0] for line in failures}:  # no mistake of set-up stopped the run before
                self.record(storage.refusals_line(name))
            return
        for name in [line["engine"][0] for line in failures]:
            errors = [line["error"] for line in failures if line["engine"][0] == name]
            self.work.broken[name] = errors[-1]
            raise EngineFatalError(
                f"the last requests to {self.engines[name].model} failed, and nothing was answered since: "
                f"{len(errors)} failure{'s' * (len(errors) != 1)}, the last with: {errors[-1]} "
                "(max_error_rate 1 would count them as results)"
            )

    def _needs_broken(self, job: Job) -> bool:
        """Whether an engine that was given up may be asked in an episode."""
        broken = {name for name, gate in self.gates.items() if not gate.is_of_use}
        return bool(broken) and any(g.policy is None and (g.model or "model") in broken for g in job[0].groups)

    async def _wait_until_due(self, job: Job) -> None:
        """Wait while a rule may end the run without this episode, and others play. Raises as `Stop.check`."""
        rule = self.work.rule
        while rule is not None and self.playing and self.spent is None and not rule.is_due(episode_id(*job)):
            await self._changed.wait()
            self.stop.check()

    async def _play_jobs(self, take: Take) -> None:
        """Play one episode after another."""
        this = asyncio.current_task()
        while True:
            self.stop.check()
            if (job := await take()) is None:
                return
            await self._wait_until_due(job)
            if (self.spent is not None or self._needs_broken(job)) and not self.work.may_be_free(job):
                continue
            self.playing.add(this)
            condition, case, _ = job
            episode = OpenEpisode(self, *job)
            try:
                self.usage.check_time()
                try:
                    engines = self.engines if self.waves is None else self.waves.engines(self.engines, episode.id)
                    seated = seats(self.plan, *job)
                    for agent, seat in seated.items():
                        episode.players[agent] = player = seat.player(engines, episode.id)
                        if isinstance(player, ModelPlayer):
                            player.on_ask = functools.partial(self.turn_shares.begin, seat.model, episode.id, agent)
                            if (inner := self.inner.get(seat.model)) is not None:
                                calls = inner.seat(episode.id, agent)
                                player.inner_usage, calls.seed = calls.usage, player.seed
                            elif (recorded := self.inner_usage.get(seat.model)) is not None:
                                player.inner_usage = functools.partial(recorded, episode.id, agent)
                    if self.work.listeners is not None:
                        known = episode.players, episode.recorded, episode.inner
                        self.work.listeners.episode_began(job, seated, *known)
                    outcome = await play(
                        Steps(condition.protocol, condition.task, case, episode.rng),
                        episode.players,
                        episode.recorded,
                        episode.on_move,
                        episode.batches.append,
                        condition.limits,
                    )
                    json.dumps(storage.outcome_line(outcome))  # one that is not JSON could never be read back
                    episode.outcome = outcome
                except STOPS:
                    raise
                except (Exception, SystemExit) as failure:  # a plugin's bug: this episode is lost, the run is not
                    episode.error = self.errors.record(failure, "play", episode.id)
                await episode.end()
            except EngineFatalError:
                if self.stop.reason is not None or not self._needs_broken(job):
                    raise
                # Others go on: what is recorded of this one stays, for when its engine is back.
            except BudgetSpentError as error:  # others continue, and what needs nothing new is played
                self.spent = self.spent or error
                if error.by == "max_time":
                    return
            finally:
                for inner in self.inner.values():
                    inner.end(episode.id)
                for gate in self.gates.values():
                    gate.engine.end_episode(episode.id, episode.outcome)
                self.playing.discard(this)
                self._changed.set()
                self._changed = asyncio.Event()
            await asyncio.sleep(0)  # episodes of policies never wait; let others and Ctrl-C in
