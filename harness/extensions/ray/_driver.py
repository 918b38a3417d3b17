"""The process that assigns episodes to Ray actors and collects their scores; it plays none itself."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from harness import storage
from harness.api import Facts, Range
from harness.api.errors import BudgetSpentError, EngineFatalError, SetupError, StorageError, UserError
from harness.api.version import __version__
from harness.config.plan import Job
from harness.extensions.ray import worker_locks
from harness.runtime.runner import Work
from harness.runtime.sources import code
from harness.tables import EpisodeScore

from ._budget import SharedBudget, Used
from ._scheduler import Scheduler
from ._worker import Failure, Worker, WorkerConfig, WorkerUpdate

ENDING_TIMEOUT = 30.0
"""Seconds a worker may take to close its engines and journal before it is killed."""
_log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Workers:
    """How many workers there are to be, what each needs, and how long the driver waits for them."""

    workers: Annotated[int, Range(ge=1)]
    num_cpus: Annotated[float, Range(ge=0)] = 1
    num_gpus: Annotated[float, Range(ge=0)] = 0
    resources: dict[str, Annotated[float, Range(ge=0)]] = field(default_factory=dict)
    max_restarts: Annotated[int, Range(ge=0)] = 3
    start_timeout: Annotated[float, Range(gt=0)] = 600
    ping_timeout: Annotated[float, Range(gt=0)] = 60

    @property
    def needs(self) -> dict[str, Any]:
        """What each of them needs, as Ray takes it."""
        return {"num_cpus": self.num_cpus, "num_gpus": self.num_gpus, "resources": self.resources}


class Driver:
    """The workers of a run.

    Args:
        work: what is left of the run.
        settings: what workers there are to be.
    """

    def __init__(self, work: Work, settings: Workers) -> None:
        import ray

        self.ray, self.work, self.settings = ray, work, settings
        self.room = {"CPU": settings.num_cpus, "GPU": settings.num_gpus, **settings.resources}  # of each worker
        workers = settings.workers
        self.config = _config(work)
        self.budget = SharedBudget(work.usage, workers)
        self.spent: BudgetSpentError | None = None
        self.changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._check_budget()
        width = work.options.most_open if work.plan.engines else 1
        self.scheduler = Scheduler(self._jobs(), work.moves, sum(1 for _ in work.jobs()), workers, width, work.inner)
        self.actors: dict[int, Any] = {}
        self.placed: dict[int, Mapping[str, Any]] = {}
        self.started: dict[int, dict[str, Any]] = {}
        self.lost: list[str] = []
        self.reports: dict[str, dict[str, Any]] = {name: {} for name in work.plan.engines}
        numbers = [
            int(path.stem.rpartition("-")[2]) for path in storage.journals(work.folder) if path.stem != "journal"
        ]
        self.numbers = itertools.count(max(numbers, default=-1) + 1)  # no two processes ever write to one file

    async def play(self) -> None:
        """Play everything; engines' reports go into the work, worker by worker. Raises as `Executor.play`."""
        try:
            await self._play_and_end()
        except StorageError:
            raise  # what is in flight could hardly be recorded
        except (UserError, EngineFatalError) as error:
            await self._end(str(error))
            raise
        finally:
            await self._end(None, now=True)
            for actor in self.actors.values():
                self.ray.kill(actor)
            worker_locks.sweep(self.work.folder)
            self.work.reports.update(self.reports)

    def report(self) -> Facts | None:
        """Which worker played how many episodes, for run.json; None if there was none."""
        if not self.started and not self.lost:
            return None
        return {"use": "ray", "workers": [self.started[number] for number in sorted(self.started)], "lost": self.lost}

    def _jobs(self) -> Iterator[Job]:
        """The episodes left to play; with a budget that is used up, those that may need nothing of it."""
        return (job for job in self.work.jobs() if self.spent is None or self.work.may_be_free(job))

    async def _play_and_end(self) -> None:
        try:
            async with asyncio.timeout(self.work.usage.time_left()) as clock:
                await self._play()
        except TimeoutError:
            if not clock.expired():
                raise
            self.spent = self.work.usage.time_over()
            await self._end(self.spent)
        else:
            for failure in await self._end(None):
                raise failure
        for number in [n for n, paused in self.scheduler.paused.items() if paused or self.spent is not None]:
            await self._recover_worker(number)  # it did not end: what it played last is in its journal
        if self.scheduler.remaining:
            raise self.spent or EngineFatalError(
                f"{self.scheduler.remaining} episodes were lost at the end with {self.lost[-1]}"
            )

    async def _play(self) -> None:
        """Until there is nothing more to play. Raises what stops the run."""
        if self.scheduler.done:
            return
        self._warn_of_room()
        slots = {asyncio.create_task(self._run_slot()) for _ in range(self.settings.workers)}
        waiting = set(slots)
        try:
            while waiting and not self.scheduler.done:
                ended, _ = await asyncio.wait({*waiting, self.changed}, return_when=asyncio.FIRST_COMPLETED)
                for slot in ended & waiting:
                    slot.result()
                waiting -= ended
        finally:
            await _cancel(slots)
        if not self.scheduler.done:
            times = self.settings.max_restarts + 1
            raise EngineFatalError(f"every worker was lost {times} times; the last: {self.lost[-1]}")

    async def _run_slot(self) -> None:
        """One worker after another in the same place, as they are lost."""
        for _ in range(self.settings.max_restarts + 1):
            number = next(self.numbers)
            try:
                await self._run_worker(number)
            except self.ray.exceptions.RayTaskError:
                raise  # a bug, with the worker's own traceback
            except self.ray.exceptions.RayError as error:  # the process, its machine, or the way there is gone
                self.lost.append(f"worker {number}: {_line(error)}")
                await self._recover_worker(number)
        self.scheduler.retire()
        self._notify()

    async def _run_worker(self, number: int) -> None:
        """Start a worker and assign episodes to it; ends only by an error or by being cancelled."""
        actor = self.actors[number] = worker_class(self.ray, self.settings.needs).remote()
        await self._place(number, actor)
        here, root = str(Path.cwd()), str(self.work.plan.project.root)
        pings = asyncio.create_task(self._keep_pinging(actor))
        update, last_limit, last_models = None, None, frozenset(self.work.live_models)
        try:
            failure = await actor.start.remote(number, here, root, self.config, self.spent, last_models)
            if failure is not None:
                raise failure
            self.started[number] = {"worker": number, **self.placed[number], "episodes": 0}
            self.scheduler.join(number)
            while True:
                changed, assignments = self.changed, self.scheduler.take(number)
                limit = self.spent or (self.budget.limit(number) if self.scheduler.active[number] else last_limit)
                live_models = frozenset(self.work.live_models)
                if limit is not None and (assignments or limit != last_limit or live_models != last_models):
                    assigned = [(each.job[0].id, *each.job[1:], each.moves, each.inner) for each in assignments]
                    await actor.add.remote(assigned, limit, live_models)
                    last_limit, last_models = limit, live_models
                update = update or asyncio.ensure_future(actor.updates.remote())
                await asyncio.wait({update, changed}, return_when=asyncio.FIRST_COMPLETED)
                if update.done():
                    self._keep(number, update.result())
                    update = None
        finally:
            await _cancel([pings, *filter(None, [update])])

    async def _place(self, number: int, actor: Any) -> None:
        """Wait for the cluster to have room for the worker. With no worker at all the waiting has an end."""
        placed = asyncio.ensure_future(actor.place.remote())
        try:
            await asyncio.wait({placed}, timeout=self.settings.start_timeout)
            if not placed.done() and not self.started:
                within, there = f"within {self.settings.start_timeout:g} s", _words(self.ray.cluster_resources())
                message = f"the cluster had no room {within} for a worker, which takes {_words(self.room)}"
                raise SetupError(message, hint=f"In all it has {there}. Ask for less, or raise start_timeout.")
            self.placed[number] = await placed
        finally:
            placed.cancel()

    def _keep(self, number: int, update: WorkerUpdate) -> None:
        """Note what a worker reports. Raises its failure."""
        before = len(self.work.live_models)
        self.work.live_models |= update.live_models
        if number in self.scheduler.active:
            finished = self.scheduler.finish(number, [score.id for score in update.scores])
            self.scheduler.pause(number, update.paused)
            self.started[number]["episodes"] += len(finished)
            for score in update.scores:
                if score.id in finished:
                    self.work.on_score(score)
            self._count(number, update.used)
        for model, counts in update.counts.items():
            self.work.on_turn_counts(model, counts, number)
        if len(self.work.live_models) > before:  # what others are refused is a result then
            self._notify()
        if update.failure is not None:
            raise update.failure
        if self.work.over is not None and not self.scheduler.done:
            raise EngineFatalError(self.work.over)

    def _count(self, number: int, used: Used) -> None:
        """A worker has used so much of the budget."""
        self.budget.count(number, used)
        if not self.scheduler.active.get(number):
            self.budget.release(number)
        self._check_budget()
        if self.scheduler.done or self.budget.used_up(number):  # others may use what it has not
            self._notify()

    def _check_budget(self) -> None:
        try:
            self.budget.check()
        except BudgetSpentError as spent:
            if self.spent is None:
                self.spent = spent
                self._notify()

    def _notify(self) -> None:
        """Let all workers' tasks look for what has changed."""
        self.changed.set_result(None)
        self.changed = asyncio.get_running_loop().create_future()

    async def _recover_worker(self, number: int) -> None:
        """Read what a lost worker recorded, and assign its open episodes again."""
        if number in self.actors:
            self.ray.kill(self.actors.pop(number))  # where only the way to it is lost
        await asyncio.to_thread(worker_locks.wait, worker_locks.path_of(self.work.folder, number))
        if number not in self.scheduler.active:
            return
        episodes = frozenset(self.scheduler.active[number] | self.scheduler.paused[number])
        journal = self.work.folder / storage.of_worker(storage.JOURNAL, number)
        progress = await asyncio.to_thread(storage.JournalState, journal, only=episodes)
        for name in self.scheduler.recover(number, progress.ends, progress.moves, progress.inner):
            self.started[number]["episodes"] += 1
            self.work.on_score(EpisodeScore.from_json({"id": name, **progress.ends[name]}))
        self._count(number, (progress.calls, progress.tokens))
        self._notify()

    async def _end(self, why: str | BudgetSpentError | None, now: bool = False) -> list[Failure]:
        """End all workers (`Worker.end`), and keep what they finish with it.

        Returns the workers' failures. Those that did not end stay among the actors.
        """
        for number in self.actors.keys() - self.placed.keys():  # the cluster never had room for them
            self.ray.kill(self.actors.pop(number))
        workers = dict(self.actors)
        if why is not None:  # answers in flight may take long, but their worker has to be there
            await asyncio.gather(*map(self._ping, workers.values()))
        patience = ENDING_TIMEOUT if why is None else None
        ends = [
            asyncio.wait_for(actor.end.remote(why, now, self.work.live_models), patience) for actor in workers.values()
        ]
        failures: list[Failure] = []
        for number, update in zip(workers, await asyncio.gather(*ends, return_exceptions=True), strict=True):
            if isinstance(update, WorkerUpdate):
                self.ray.kill(self.actors.pop(number))
                for name, report in update.reports.items():
                    self.reports[name][f"worker {number}"] = report
                try:
                    self._keep(number, update)
                except (UserError, EngineFatalError) as failure:
                    failures.append(failure)
                self.scheduler.recover(number, (), {})
            elif isinstance(update, self.ray.exceptions.RayTaskError) and why is None and not now:
                raise update  # a bug
            elif not now:
                self.lost.append(f"worker {number}: {_line(update) or 'it did not end'}")
        return failures

    async def _keep_pinging(self, actor: Any) -> None:
        while True:
            await asyncio.sleep(self.settings.ping_timeout / 2)
            await self._ping(actor)

    async def _ping(self, actor: Any) -> None:
        """Kill a worker that does not answer: its process may be frozen. What is asked of it ends with an error."""
        ping = actor.place.options(concurrency_group="pings")  # answers even while a model is loaded
        try:
            await asyncio.wait_for(ping.remote(), self.settings.ping_timeout)
        except (self.ray.exceptions.RayActorError, TimeoutError):
            self.ray.kill(actor)

    def _warn_of_room(self) -> None:
        """Where no machine is large enough for a worker the log says so: one that is may come yet."""
        machines = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        if not any(all(has.get(kind, 0) >= value for kind, value in self.room.items()) for has in machines):
            wants, there = _words(self.room), _words(self.ray.cluster_resources())
            message = "no machine of the cluster is large enough for a worker, which takes %s (in all there are %s): "
            _log.warning(message + "waiting %g s for one that is", wants, there, self.settings.start_timeout)


def worker_class(ray: Any, needs: Mapping[str, Any]) -> Any:
    """The class of workers' actors. Raises `SetupError` for needs that Ray does not know."""
    try:
        more = {"max_restarts": 0, "scheduling_strategy": "SPREAD", "concurrency_groups": {"pings": 1}}
        return ray.remote(**needs, **more)(Worker)
    except (ValueError, TypeError, OverflowError) as error:
        message = f"Ray cannot count num_cpus, num_gpus, resources of a worker: {error}"
        raise SetupError(message, hint=f"Found {dict(needs)}.") from None


async def _cancel(tasks: Iterable[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def _config(work: Work) -> bytes:
    """A pickled `WorkerConfig`. Raises `SetupError` for an engine that cannot be sent to another process."""
    from ray import cloudpickle

    plan, options = work.plan, work.options
    cache = options.use_cache.resolve() if options.use_cache else None
    reuse = options.reuse.resolve() if options.reuse else None
    options = replace(options, use_cache=cache, reuse=reuse, executor=None)
    engine = plan.engines.get("model")
    own = plan.digest, __version__, code(plan), dict(work.served)
    config = WorkerConfig(plan.spec, engine, options, work.folder.resolve(), *own)
    try:
        pickled: bytes = cloudpickle.dumps(config)
    except Exception as error:  # whatever an engine holds that does not go into another process
        message = f"{plan.model} cannot be sent to workers: {type(error).__name__}: {error}"
        raise SetupError(message, hint="Give an engine by name, with its arguments.") from None
    return pickled


def _words(resources: Mapping[str, Any]) -> str:
    """Resources in words, Ray's own bookkeeping left out."""
    counts = {kind: value for kind, value in resources.items() if ":" not in kind and "memory" not in kind and value}
    return ", ".join(f"{value:g} {kind}" for kind, value in counts.items())
