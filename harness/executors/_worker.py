"""One of the processes that play episodes: a Ray actor. It has engines and a journal of its own."""

from __future__ import annotations

import asyncio
import os
import pickle
import socket
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import __version__
from harness.api import Case, Engine, Facts
from harness.config import project, resolve
from harness.config.calibration import load_parameters
from harness.config.plan import Plan, check_execution, episode_id
from harness.config.spec import Spec
from harness.errors import BudgetSpentError, EngineFatalError, SetupError, StorageError, UserError
from harness.runtime.options import Options
from harness.runtime.runner import Episodes, Job, Work
from harness.runtime.sources import changed, code
from harness.storage.locks import Lock
from harness.tables import EpisodeScore

from . import _fence
from ._deal import Moves
from ._lease import Lease, Pair

Failure = UserError | EngineFatalError
Dealt = tuple[str, Case, int, Moves]
"""Id of the condition, case, repeat, and what is recorded of the episode."""
Spent = tuple[str, float]
"""Of a budget that is spent: what and at which value, as `BudgetSpentError` has it."""


@dataclass(frozen=True)
class Brief:
    """All that a worker is told of a run. It travels in memory only: an engine may hold a key."""

    spec: Spec
    engine: Engine | None
    options: Options
    folder: Path
    digest: str
    version: str
    code: dict[str, dict[str, str]]


@dataclass
class News:
    """What became of episodes since the last time.

    Attributes:
        scores: of the finished ones.
        doubted: ids of episodes that are played, with failures that are pending (`harness.storage.pending`); they are
            told as finished once the engine has answered again.
            They are also those that end for want of a budget: they are to be gone on with by another run.
        failure: why there will be no more.
        spent: calls and tokens since the worker began.
        wants: whether requests wait until it may spend more.
    """

    scores: list[EpisodeScore] = field(default_factory=list)
    doubted: list[str] = field(default_factory=list)
    failure: Failure | None = None
    spent: Pair = (0, 0)
    wants: bool = False


class Worker:
    """Plays the episodes that it is given. Every method returns quickly, but `start` (engines), `finished` and `end`.

    What a person can mend, and a dead engine, come back as values: Ray would wrap them in tracebacks.
    """

    def __init__(self) -> None:
        self._queue: deque[Job] = deque()
        self._ending = False
        self._more = asyncio.Condition()
        self._ready = asyncio.Event()
        self._news = asyncio.Event()
        self._scores: list[EpisodeScore] = []
        self._doubted: list[str] = []
        self._unscored: set[str] = set()  # of the episodes that are or were played
        self._playing_now: dict[asyncio.Task[Any] | None, str] = {}
        self._moves: dict[str, Moves] = {}
        self._playing: asyncio.Task[dict[str, Facts]] | None = None
        self._episodes: Episodes | None = None
        self._lease: Lease | None = None
        self._spent: Spent | None = None
        self._lock: Lock | None = None

    async def place(self) -> Facts:
        """Where this is; returns as soon as the process exists."""
        return {"host": socket.gethostname(), "process": os.getpid()}

    async def start(
        self, number: int, here: str, root: str, brief: bytes, spent: Spent | None = None
    ) -> Failure | None:
        """Resolve the plan and start the engines, then wait for episodes.

        Args:
            number: the worker's; its files are called after it.
            here: the working directory of the command.
            root: the project's folder.
            brief: a pickled `Brief`; its engine may be of a class of the project.
            spent: the budget is, already.
        """
        try:
            told = _read(here, root, brief)
            self._lock = _fence.hold(told.folder, number)
            plan = _plan(told, root)
        except UserError as failure:
            return failure
        self._conditions = {condition.id: condition for condition in plan.conditions}
        lease = self._lease = Lease(told.options.budget, self._news.set)
        work = Work(plan, told.folder, told.options, self._moves, (), 0, self._scored, lease, {})
        self._episodes = Episodes(work, number)
        if (spent := spent or self._spent) is not None:
            await self.spend_no_more(spent)
        self._playing = asyncio.create_task(self._episodes.play_all(self._take))
        self._playing.add_done_callback(lambda _: self._news.set())
        ready = asyncio.create_task(self._ready.wait())
        await asyncio.wait({ready, self._playing}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        return self._failure()

    async def add(self, hands: list[Dealt]) -> None:
        """Play these too."""
        for condition, case, repeat, moves in hands:
            job = (self._conditions[condition], case, repeat)
            self._moves[episode_id(*job)] = moves
            self._queue.append(job)
        async with self._more:
            self._more.notify(len(hands))

    async def finished(self) -> News:
        """What is new, as soon as there is anything."""
        await self._news.wait()
        if self._playing is None or self._episodes is None:
            raise RuntimeError("it was never started")
        if not self._playing.done():
            self._news.clear()
            try:
                self._episodes.flush()  # what is told as finished is not lost with this process
            except StorageError as failure:
                return News(failure=failure)
        return self._told(self._failure())

    async def give_back(self, most: int) -> list[str]:
        """Up to so many episodes that were not begun with, and will not be."""
        names = [episode_id(*self._queue.pop()) for _ in range(min(most, len(self._queue)))]
        for name in names:
            self._moves.pop(name, None)
        return names

    async def grant(self, granted: Pair) -> None:
        """It may spend so many calls and tokens in all."""
        if self._lease is not None:
            self._lease.grant(granted)

    async def spend_nothing(self) -> Pair | StorageError:
        """It may spend nothing beyond what it has spent, until it is granted more: returns that."""
        try:
            return (0, 0) if self._lease is None else self._lease.give_back()
        except StorageError as failure:
            return failure

    async def spend_no_more(self, spent: Spent) -> None:
        """The budget is spent. What needs nothing new is still played, unless it is one of time."""
        self._spent = spent
        if self._lease is not None and self._episodes is not None:
            reason = BudgetSpentError(*spent)
            self._lease.halt(reason)
            if reason.by == "max_time":
                self._episodes.no_more_tries(reason)

    async def end(self, why: str | None = None, spent: Spent | None = None) -> News:
        """Come to an end as a run in a single process does, and tell what is new.

        Args:
            why: the run stops. Nothing new is asked; answers under way are paid for, are waited for and recorded. None:
                there is nothing left to play; failures that are pending, and what goes wrong even now, are told.
            spent: it stops because the budget is spent.
        """
        if self._playing is None or self._episodes is None:
            return News()
        if why is not None:
            self._queue.clear()
            if spent is not None:
                await self.spend_no_more(spent)
            else:
                self._episodes.halt(why)
            # Engines would be started for it; without a budget none is.
            if not self._ready.is_set() or (self._episodes.options.one_engine_at_a_time and spent is None):
                self._playing.cancel()
        self._ending = True
        self._news.set()  # who waits for news is told these, and the caller what comes after
        async with self._more:
            self._more.notify_all()
        [ended] = await asyncio.gather(self._playing, return_exceptions=True)
        return self._told(ended if why is None and isinstance(ended, Failure) else None)

    async def stop(self) -> dict[str, Facts]:
        """Let go of engines, journal and open episodes (what is recorded of them stays); returns engines' reports."""
        if self._playing is not None:
            self._playing.cancel()
            await asyncio.gather(self._playing, return_exceptions=True)
        if self._lock is not None:
            self._lock.release()
        return {} if self._episodes is None else {n: engine.report() for n, engine in self._episodes.engines.items()}

    # ------------------------------------------------------------------ inside

    async def _take(self) -> Job | None:
        self._ready.set()
        task = asyncio.current_task()
        played = self._playing_now.pop(task, None)
        if played in self._unscored:
            self._doubted.append(played)
            self._news.set()
        async with self._more:
            await self._more.wait_for(lambda: self._queue or self._ending)
            if not self._queue:
                if self._episodes is not None:
                    self._episodes.stop.check()  # a run that stops does not end as one that has nothing left
                return None
            job = self._queue.popleft()
        name = self._playing_now[task] = episode_id(*job)
        self._unscored.add(name)
        return job

    def _scored(self, score: EpisodeScore) -> None:
        self._unscored.discard(score.id)
        self._scores.append(score)
        self._news.set()

    def _told(self, failure: Failure | None) -> News:
        doubted = [name for name in self._doubted if name in self._unscored]
        lease = self._lease
        spent, wants = ((0, 0), False) if lease is None else (lease.spent, lease.wants)
        news = News(self._scores, doubted, failure, spent, wants)
        self._scores, self._doubted = [], []
        return news

    def _failure(self) -> Failure | None:
        """Why nothing is played any more. A bug is raised as it is."""
        if self._playing is None or not self._playing.done() or self._playing.cancelled():
            return None
        error = self._playing.exception()
        if isinstance(error, Failure):
            return error
        if isinstance(error, BudgetSpentError) or (error is None and self._ending):
            return None
        raise error or RuntimeError("episodes came to an end while there were more")


def _read(here: str, root: str, brief: bytes) -> Brief:
    """The brief. Raises `SetupError` where this process does not see what it needs."""
    try:
        os.chdir(here)
        project.find(Path(root)).mount()
        told: Brief = pickle.loads(brief)
    except OSError as error:
        raise _elsewhere(
            f"does not see {error.filename}", "Every machine needs the project at the same path."
        ) from None
    except (ImportError, AttributeError, EOFError, pickle.UnpicklingError) as error:
        raise _elsewhere(f"cannot read its brief: {error}", "Every machine needs the same installation.") from None
    if told.version != __version__:
        raise _elsewhere(f"has harness {__version__}, not {told.version}", "Every machine needs the same installation.")
    if not told.folder.is_dir():
        raise _elsewhere(f"does not see {told.folder}", "The results' folder has to be one that all machines share.")
    return told


def _plan(told: Brief, root: str) -> Plan:
    """The plan, made of the same spec again. Raises `SetupError` where it comes out as another one, and its kin."""
    plan = resolve.plan(told.spec, project.find(Path(root)), told.engine)
    if plan.digest != told.digest:
        raise _elsewhere("has other prompts", "Every machine needs the project in the same state.")
    check_execution(plan, told.options.allow_code_execution, told.options.sandbox)  # this machine may lack more
    own = code(plan)
    if files := sorted({name for part in own for name in changed(told.code[part], own[part])}):
        raise _elsewhere(f"has other code: {', '.join(files)}", "Every machine needs the project in the same state.")
    load_parameters(plan)
    return plan


def _elsewhere(what: str, hint: str) -> SetupError:
    return SetupError(f"the worker on {socket.gethostname()} {what}", hint=hint)
