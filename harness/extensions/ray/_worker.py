"""One of the processes that play episodes: a Ray actor. It has engines and a journal of its own."""

from __future__ import annotations

import asyncio
import os
import pickle
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import storage
from harness.api import Case, Engine, Facts
from harness.api.errors import BudgetSpentError, EngineFatalError, SetupError, StorageError, UserError
from harness.api.version import __version__
from harness.config import project, resolve
from harness.config.permissions import check_execution
from harness.config.plan import Job, Plan, episode_id, prepare
from harness.config.spec import Spec
from harness.extensions.ray import worker_locks
from harness.plugins import approvals
from harness.runtime.open_episodes import Episodes
from harness.runtime.options import Options
from harness.runtime.runner import Work
from harness.runtime.sources import changed, code
from harness.runtime.turn_shares import TurnCounts
from harness.storage.locks import Lock
from harness.tables import EpisodeScore

from ._budget import Used, WorkerUsage
from ._scheduler import Moves

Failure = UserError | EngineFatalError
Assigned = tuple[str, Case, int, Moves, list[storage.Line]]
"""Id of the condition, case, repeat, and what is recorded of the episode: its moves, and lines of inner calls."""


@dataclass(frozen=True)
class WorkerConfig:
    """All that a worker must know about a run. It travels in memory only: an engine may hold a key."""

    spec: Spec
    engine: Engine | None
    options: Options
    folder: Path
    digest: str
    version: str
    code: dict[str, dict[str, str]]
    served: dict[str, str]


@dataclass
class WorkerUpdate:
    """What became of a worker's episodes.

    Attributes:
        scores: of the finished ones.
        paused: ids of episodes that it plays no further, and whose end does not count yet: a failure is pending
            (`harness.storage.pending_failures`), or the budget is used up.
        failure: why it plays no more.
        used: calls and tokens since the worker began.
        live_models: names of the models that have answered.
        counts: model → what became of its first turns (`harness.runtime.turn_shares`).
        reports: what each engine reports of itself, at the worker's end.
    """

    scores: list[EpisodeScore] = field(default_factory=list)
    paused: list[str] = field(default_factory=list)
    failure: Failure | None = None
    used: Used = (0, 0)
    live_models: frozenset[str] = frozenset()
    counts: dict[str, TurnCounts] = field(default_factory=dict)
    reports: dict[str, Facts] = field(default_factory=dict)


class Worker:
    """Plays the episodes that are assigned to it. `place` and `add` return at once.

    What a person can mend, and a dead engine, come back as values: Ray would wrap them in tracebacks.
    """

    def __init__(self) -> None:
        self._jobs: asyncio.Queue[Job | None] = asyncio.Queue()  # None: there will be no more
        self._ready = asyncio.Event()
        self._news = asyncio.Event()
        self._scores: list[EpisodeScore] = []
        self._paused: list[str] = []
        self._reported = (0, 0)  # how many of these the last update had
        self._open: set[str] = set()  # episodes to be played, or being played
        self._current: dict[asyncio.Task[Any] | None, str] = {}
        self._moves: dict[str, Moves] = {}
        self._inner: dict[str, list[storage.Line]] = {}
        self._counts: dict[str, TurnCounts] = {}
        self._playing: asyncio.Task[None] | None = None
        self._lock: Lock | None = None

    async def place(self) -> Facts:
        """Where this is; returns as soon as the process exists."""
        return {"host": socket.gethostname(), "process": os.getpid()}

    async def start(
        self,
        number: int,
        here: str,
        root: str,
        config: bytes,
        spent: BudgetSpentError | None = None,
        live_models: Iterable[str] = (),
    ) -> Failure | None:
        """Resolve the plan and start the engines, then wait for episodes.

        Args:
            number: the worker's; its files are called after it.
            here: the working directory of the command.
            root: the project's folder.
            config: a pickled `WorkerConfig`; its engine may be of a class of the project.
            spent: that the budget is used up already.
            live_models: names of the models that have answered in this run before.
        """
        try:
            settings = _read(here, root, config)
            self._lock = worker_locks.hold(settings.folder, number)
            plan = _plan(settings, root)
        except UserError as failure:
            return failure
        self._conditions = {condition.id: condition for condition in plan.conditions}
        self._usage = WorkerUsage(settings.options.budget, self._news.set)
        work = Work(
            plan=plan,
            episodes=(),
            folder=settings.folder,
            options=settings.options,
            report_score=self._on_score,
            usage=self._usage,
            moves=self._moves,
            inner=self._inner,
            served=dict(settings.served),
            live_models=set(live_models),
            count_turns=self._on_counts,
        )
        self._episodes = Episodes(work, number)
        if spent is not None:
            self._use_up(spent)
        self._playing = asyncio.create_task(self._episodes.play_all(self._take))
        self._playing.add_done_callback(lambda _: self._news.set())
        ready = asyncio.create_task(self._ready.wait())
        await asyncio.wait({ready, self._playing}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        return self._failure()

    async def add(
        self, assigned: list[Assigned], limit: Used | BudgetSpentError, live_models: Iterable[str] = ()
    ) -> None:
        """Play these too.

        Args:
            assigned: episodes.
            limit: calls and tokens that the worker may use in all; or that the budget is used up. What needs no new
                call is still played then, unless the time is over.
            live_models: as of `start`, with what other workers have reported since.
        """
        self._know(live_models)
        if isinstance(limit, BudgetSpentError):
            self._use_up(limit)
        else:
            self._usage.allow(limit)
        for condition, case, repeat, moves, inner in assigned:
            job = (self._conditions[condition], case, repeat)
            self._moves[name := episode_id(*job)] = moves
            if inner:
                self._inner[name] = inner
            self._open.add(name)
            self._jobs.put_nowait(job)

    async def updates(self) -> WorkerUpdate:
        """What is new since the last call, as soon as there is anything."""
        scores, paused = self._reported  # the driver has them, since it asks for more
        del self._scores[:scores], self._paused[:paused]
        await self._news.wait()
        failure = self._failure()
        if self._playing is not None and not self._playing.done():
            self._news.clear()
            try:
                if not self._open:
                    self._usage.return_reserved()  # others may use what this worker has not
                self._episodes.journal.flush()  # what is reported as finished is not lost with this process
            except StorageError as error:
                failure = error
        return self._update(failure)

    async def end(
        self, why: str | BudgetSpentError | None = None, now: bool = False, live_models: Iterable[str] = ()
    ) -> WorkerUpdate:
        """Come to an end as a run in a single process does: close the engines and the journal.

        Args:
            why: the run stops. No new call is made; answers in flight are paid for, are waited for and recorded. None:
                there is nothing left to play; failures that are pending, and what goes wrong even now, are reported.
            now: wait for nothing. What is recorded of open episodes stays.
            live_models: as of `add`.
        """
        if self._playing is not None:
            self._know(live_models)
            if why is not None:
                while not self._jobs.empty():
                    self._jobs.get_nowait()
            if isinstance(why, BudgetSpentError):
                self._use_up(why)
            elif why is not None:
                self._episodes.stop.end(why)
                now = now or self._episodes.options.sequential_engines  # engines would be started for it
            if now or not self._ready.is_set():
                self._playing.cancel()
            self._jobs.put_nowait(None)
            await asyncio.gather(self._playing, return_exceptions=True)
        if self._lock is not None:
            self._lock.release()
        if self._playing is None:
            return WorkerUpdate()
        return self._update(self._failure() if why is None and not now else None, self._episodes.reports())

    # ------------------------------------------------------------------ inside

    async def _take(self) -> Job | None:
        self._ready.set()
        task = asyncio.current_task()
        episode = self._current.pop(task, None)
        if episode in self._open:
            self._open.remove(episode)
            self._paused.append(episode)
            self._news.set()
        job = await self._jobs.get()
        if job is None:
            self._jobs.put_nowait(None)  # for the next task
            self._episodes.stop.check()  # a run that stops does not end as one that has nothing left
            return None
        self._current[task] = episode_id(*job)
        return job

    def _on_score(self, score: EpisodeScore) -> None:
        self._open.discard(score.id)
        self._scores.append(score)
        self._news.set()

    def _on_counts(self, model: str, counts: TurnCounts) -> None:
        self._counts[model] = counts
        self._news.set()

    def _know(self, models: Iterable[str]) -> None:
        """Models have answered elsewhere, so what they refused here, before they had answered anything, is a result.
        Not so where other failures of theirs are pending."""
        if not self._ready.is_set() or self._playing is None or self._playing.done():
            return  # no journal is open
        episodes = self._episodes
        episodes.work.live_models.update(models)
        failures = episodes.pending.failures()
        for name in sorted(episodes.gates.keys() & models):
            kinds = {line["error_kind"] for line in failures if line["engine"][0] == name}
            if episodes.gates[name].answered == 0 and kinds.issubset(storage.REFUSALS):
                episodes.gates[name].answered = 1  # later failures are pending until it answers here
                if kinds:
                    try:
                        episodes.record(storage.refusals_line(name))
                    except StorageError:
                        self._news.set()  # `updates` reports it, as a value

    def _use_up(self, spent: BudgetSpentError) -> None:
        self._usage.halt(spent)
        if spent.by == "max_time":
            self._episodes.stop.stop_retrying(spent)

    def _update(self, failure: Failure | None, reports: dict[str, Facts] | None = None) -> WorkerUpdate:
        self._reported = len(self._scores), len(self._paused)
        live_models = frozenset(name for name, gate in self._episodes.gates.items() if gate.answered)
        return WorkerUpdate(
            self._scores.copy(),
            self._paused.copy(),
            failure,
            self._usage.used,
            live_models,
            self._counts.copy(),
            reports or {},
        )

    def _failure(self) -> Failure | None:
        """Why nothing is played any more. A bug is raised as it is."""
        if self._playing is None or not self._playing.done() or self._playing.cancelled():
            return None
        error = self._playing.exception()
        if error is None or isinstance(error, BudgetSpentError):
            return None
        if isinstance(error, Failure):
            return error
        raise error


def _read(here: str, root: str, config: bytes) -> WorkerConfig:
    """The configuration. Raises `SetupError` if this process does not see what it needs."""
    same_path, same_installation = "the project at the same path", "the same installation"
    try:
        os.chdir(here)
        with approvals.allowing():  # the driver has asked
            project.find(Path(root)).mount()
            settings: WorkerConfig = pickle.loads(config)
    except OSError as error:
        raise _mismatch(f"does not see {error.filename}", same_path) from None
    except (ImportError, AttributeError, EOFError, pickle.UnpicklingError) as error:
        raise _mismatch(f"cannot read its configuration: {error}", same_installation) from None
    if settings.version != __version__:
        raise _mismatch(f"has harness {__version__}, not {settings.version}", same_installation)
    if not settings.folder.is_dir():
        raise _mismatch(f"does not see {settings.folder}", "the results' folder, on a disk that all machines share")
    return settings


def _plan(config: WorkerConfig, root: str) -> Plan:
    """The plan, resolved from the same spec again. Raises `SetupError` if it comes out as another one."""
    with approvals.allowing():
        plan = resolve.plan(config.spec, project.find(Path(root)), config.engine)
    if plan.digest != config.digest:
        raise _mismatch("has other prompts", "the project in the same state")
    check_execution(plan, True, config.options.sandbox)  # this machine may lack more
    own = code(plan)
    if files := sorted({name for part in own for name in changed(config.code[part], own[part])}):
        raise _mismatch(f"has other code: {', '.join(files)}", "the project in the same state")
    prepare(plan)
    return plan


def _mismatch(difference: str, need: str) -> SetupError:
    """This machine is not like the others."""
    return SetupError(f"the worker on {socket.gethostname()} {difference}", hint=f"Every machine needs {need}.")
