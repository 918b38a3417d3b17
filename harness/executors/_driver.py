"""The process that deals out episodes to Ray actors and collects their scores; it plays none itself."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import __version__, storage
from harness.api import Facts
from harness.errors import BudgetSpentError, EngineFatalError, SetupError, StorageError, UserError
from harness.runtime.runner import Job, Work
from harness.runtime.sources import code
from harness.tables import EpisodeScore

from . import _fence
from ._deal import Deal
from ._lease import Pair, Purse
from ._worker import Brief, Failure, News, Spent, Worker

_STOPPING = 30.0
"""Seconds a worker may take to close its engines and journal before it is killed."""
_DEAF = 60.0
"""Seconds after which a worker is given up that has not answered what takes it no time."""
_log = logging.getLogger(__name__)


class Driver:
    """The workers of a run and what they are given.

    Args:
        work: what is left of the run.
        workers: how many there are to be.
        needs: `num_cpus`, `num_gpus`, `resources` of each.
        max_restarts: how often one that was lost is replaced.
        start_timeout: seconds to wait for the cluster to have room for the first.
    """

    def __init__(
        self, work: Work, workers: int, needs: Mapping[str, Any], max_restarts: int, start_timeout: float
    ) -> None:
        import ray

        self.ray, self.work, self.count, self.needs = ray, work, workers, needs
        self.max_restarts, self.start_timeout = max_restarts, start_timeout
        self.brief = _brief(work)
        self.purse = Purse(work.usage, workers)
        self.over: BudgetSpentError | None = None
        try:
            work.usage.check()
        except BudgetSpentError as spent:
            self.over = spent
        width = work.options.max_concurrency if work.plan.engines else 1
        self.deal = Deal(self._jobs(), work.moves, work.left, workers, width)
        self.actors: dict[int, Any] = {}
        self.asked: dict[int, asyncio.Task[Any]] = {}
        self.there: set[Any] = set()
        self.started: dict[int, dict[str, Any]] = {}
        self.lost: list[str] = []
        taken = [int(path.stem.rpartition("-")[2]) for path in storage.journals(work.folder) if path.stem != "journal"]
        self.numbers = itertools.count(max(taken, default=-1) + 1)  # no two processes ever write to one file

    async def play(self) -> dict[str, Facts]:
        """Play everything; returns engines' reports, worker by worker. Raises as `Executor.play`."""
        over = asyncio.create_task(self.deal.over.wait())
        tasks: list[asyncio.Task[Any]] = [over, asyncio.create_task(self._clock()), asyncio.create_task(self._lend())]
        try:
            if not self.deal.over.is_set():
                self._tell_of_room()
                slots = [asyncio.create_task(self._slot()) for _ in range(self.count)]
                tasks += slots
                waiting = set(tasks)
                while not over.done() and not all(slot.done() for slot in slots):
                    done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        task.result()  # raises what stops the run
            await _cancelled(tasks)
            if not self.deal.over.is_set():
                times = self.max_restarts + 1
                raise EngineFatalError(f"every worker was lost {times} times; the last: {self.lost[-1]}")
            await self._finish()
        except StorageError:
            raise  # what is being answered could hardly be recorded
        except (UserError, EngineFatalError) as error:
            await _cancelled(tasks)
            await self._end(str(error))
            raise
        except BudgetSpentError as spent:
            await _cancelled(tasks)
            await self._bury_all(await self._end(str(spent), _said_of(spent)))
            if self.deal.left:
                raise
        finally:
            await _cancelled([*tasks, *self.asked.values()])
            self.work.reports.update(await self._stop())
        return dict(self.work.reports)

    def report(self) -> Facts | None:
        """Who played how much, for run.json; None where nobody did."""
        if not self.started and not self.lost:
            return None
        return {"use": "ray", "workers": [self.started[number] for number in sorted(self.started)], "lost": self.lost}

    def _jobs(self) -> Iterator[Job]:
        """The episodes left to play; with a budget that is spent, those that may need nothing of it."""
        return (job for job in self.work.jobs() if self.over is None or self.work.may_be_free(job))

    async def _clock(self) -> None:
        """Raises `BudgetSpentError` when the time is over, where it is bounded."""
        left = self.work.usage.time_left()
        if left is not None:
            await asyncio.sleep(left)
            self.over = self.work.usage.time_over()
            raise self.over

    async def _lend(self) -> None:
        """Give workers leases of the budget, and when it is spent tell them so. Raises it where it is one of time."""
        if self.over is None:
            self.over = await self.purse.serve(_Holders(self))
        if self.over.by == "max_time":
            raise self.over
        for actor in self.actors.values():
            actor.spend_no_more.remote(_said_of(self.over))

    async def _slot(self) -> None:
        """One worker after another in the same place, as they are lost."""
        for _ in range(self.max_restarts + 1):
            number = next(self.numbers)
            try:
                await self._serve(number)
            except self.ray.exceptions.RayTaskError:
                raise  # a bug, told with the worker's own traceback
            except self.ray.exceptions.RayError as error:  # the process, its machine, or the way there is gone
                self.lost.append(f"worker {number}: {_line(error)}")
                await self._bury(number)
        self.deal.retire()

    async def _serve(self, number: int) -> None:
        """Start a worker and give it episodes; ends only by an error or by being cancelled."""
        actor = self.actors[number] = hired(self.ray, self.needs)
        placed = await self._placed(actor)
        here, root = str(Path.cwd()), str(self.work.plan.project.root)
        failure = await actor.start.remote(number, here, root, self.brief, _said_of(self.over))
        if failure is not None:
            raise failure
        self.started[number] = {"worker": number, **placed, "episodes": 0}
        self.deal.join(number)
        while True:
            changed: asyncio.Task[Any] = asyncio.create_task(self.deal.changed.wait())
            try:
                await self._fill(number, actor)
                if number not in self.asked:
                    self.asked[number] = asyncio.create_task(_result(actor.finished.remote()))
                await asyncio.wait([self.asked[number], changed], return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()
            if self.asked[number].done():
                news = self.asked.pop(number).result()
                self._keep(number, news)
                if news.failure is not None:
                    raise news.failure

    async def _placed(self, actor: Any) -> Mapping[str, Any]:
        """Where the worker is, as soon as the cluster has room for it. With no worker at all the waiting has an end."""
        placed = asyncio.ensure_future(actor.place.remote())
        try:
            await asyncio.wait({placed}, timeout=self.start_timeout)
            if not placed.done() and not self.started:
                within, wants = f"within {self.start_timeout:g} s", _said(self.needs)
                message = f"the cluster had no room {within} for a worker, which takes {wants}"
                there = _said(self.ray.cluster_resources())
                raise SetupError(message, hint=f"In all it has {there}. Ask for less, or raise start_timeout.")
            found: Mapping[str, Any] = await placed
            self.there.add(actor)
            return found
        finally:
            placed.cancel()

    async def _fill(self, number: int, actor: Any) -> None:
        """Give a worker what it is to hold; when nothing is free, what another one has not begun with."""
        victim = self.deal.victim(number, self.actors)
        if victim is not None:
            with contextlib.suppress(self.ray.exceptions.RayActorError):  # if it is lost, its own slot sees to it
                names = await self.actors[victim[0]].give_back.remote(victim[1])
                self.deal.give_back(victim[0], names)
        hands = self.deal.take(number)
        if hands:
            await actor.add.remote([(hand.job[0].id, *hand.job[1:], hand.moves) for hand in hands])

    def _keep(self, number: int, news: News) -> None:
        if number not in self.deal.held:
            return
        self.purse.told(number, news.spent, news.wants)
        known = set(self.deal.finish(number, [score.id for score in news.scores]))
        self.deal.doubt(number, news.doubted)
        self.started[number]["episodes"] += len(known)
        for score in news.scores:
            if score.id in known:
                self.work.on_score(_shared(score))

    async def _bury(self, number: int) -> None:
        """Take over what a lost worker recorded, and deal its open episodes again."""
        await _cancelled([self.asked.pop(number)] if number in self.asked else [])
        self.deal.missing(number)
        if number in self.actors:
            self.ray.kill(self.actors.pop(number))  # where only the way to it is lost
        await asyncio.to_thread(_fence.wait, _fence.path_of(self.work.folder, number))
        if number not in self.deal.held:
            return
        journal = self.work.folder / storage.of_worker(storage.JOURNAL, number)
        found = await asyncio.to_thread(storage.Progress, journal, only=frozenset(self.deal.held[number]))
        self.purse.lost(number, (found.calls, found.tokens))
        for name in self.deal.settle(number, found.ends, found.moves):
            self.started[number]["episodes"] += 1
            self.work.on_score(EpisodeScore(name, **found.ends[name]))

    async def _finish(self) -> None:
        """There is nothing left to play: workers end, and what they doubted is finished. Raises as `Executor.play`."""
        ended = await self._end(None, patience=_STOPPING)
        for failure in ended.values():
            if isinstance(failure, Failure):
                raise failure
        await self._bury_all(ended)
        if self.deal.left:
            raise self.over or EngineFatalError(f"{self.deal.left} episodes were lost at the end with {self.lost[-1]}")

    async def _bury_all(self, ended: Mapping[int, BaseException | None]) -> None:
        """Those that have not told all, having died: what is missing stands in their journals."""
        for number, how in ended.items():
            # With a budget that is spent what they doubted stays so; what they have spent is to be known all the same.
            missing = self.deal.doubted.get(number) if self.over is None else how is not None
            if missing and not isinstance(how, Failure):
                self.lost.append(f"worker {number}: {_line(how) or 'it did not end'}")
                await self._bury(number)
        for number in [number for number in self.deal.held if self.over is not None and number not in ended]:
            await self._bury(number)  # its slot was about to when the run stopped

    async def _end(
        self, why: str | None, spent: Spent | None = None, patience: float | None = None
    ) -> dict[int, BaseException | None]:
        """All workers come to their end (`Worker.end`); what they finish with it is kept.

        Returns what went wrong in each: its own failure, or that of reaching it.
        """
        actors = [(number, actor) for number, actor in self.actors.items() if actor in self.there]
        if patience is None:  # answers under way may take long, whoever gives them has to be there
            found = await asyncio.gather(*(_reached(self.ray, actor, actor.place) for _, actor in actors))
            actors = [one for one, place in zip(actors, found, strict=True) if place is not None]
        ends = [asyncio.wait_for(_result(actor.end.remote(why, spent)), patience) for _, actor in actors]
        ended: dict[int, BaseException | None] = {}
        for (number, _), news in zip(actors, await asyncio.gather(*ends, return_exceptions=True), strict=True):
            earlier = self.asked.pop(number, None)  # what was on its way here when it was told to end
            if isinstance(news, News):
                for told in await asyncio.gather(*[earlier] if earlier else [], return_exceptions=True):
                    if isinstance(told, News):
                        self._keep(number, told)
                self._keep(number, news)
            elif earlier is not None:
                await _cancelled([earlier])
            ended[number] = news.failure if isinstance(news, News) else news
        return ended

    async def _stop(self) -> dict[str, Facts]:
        """Let all workers close their engines and journals; returns what the engines report."""
        for actor in set(self.actors.values()) - self.there:  # the cluster never had room for them
            self.ray.kill(actor)
        actors = [(number, actor) for number, actor in self.actors.items() if actor in self.there]
        stops = [asyncio.wait_for(_result(actor.stop.remote()), _STOPPING) for _, actor in actors]
        ended = await asyncio.gather(*stops, return_exceptions=True)
        reports: dict[str, dict[str, Any]] = {name: {} for name in self.work.plan.engines}
        for (number, actor), told in zip(actors, ended, strict=True):
            self.ray.kill(actor)
            for name, report in told.items() if isinstance(told, dict) else ():
                reports.setdefault(name, {})[f"worker {number}"] = report
        _fence.sweep(self.work.folder)
        return dict(reports)

    def _tell_of_room(self) -> None:
        """Where no machine is large enough for a worker the log says so: one that is may come yet."""
        needs = {"CPU": self.needs["num_cpus"], "GPU": self.needs["num_gpus"], **self.needs["resources"]}
        machines = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        if not any(all(has.get(kind, 0) >= value for kind, value in needs.items()) for has in machines):
            wants, there = _said(self.needs), _said(self.ray.cluster_resources())
            message = "no machine of the cluster is large enough for a worker, which takes %s (in all there are %s): "
            _log.warning(message + "waiting %g s for one that is", wants, there, self.start_timeout)


class _Holders(Mapping[int, "_Holder"]):
    """The workers that there are, as the purse reaches them."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def __getitem__(self, number: int) -> _Holder:
        return _Holder(self._driver.ray, self._driver.actors[number])

    def __iter__(self) -> Iterator[int]:
        return iter(self._driver.actors)

    def __len__(self) -> int:
        return len(self._driver.actors)


class _Holder:
    """A worker that holds a lease. One that is lost is seen to by its slot, which takes back what it held."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray, self._actor = ray, actor

    async def grant(self, granted: Pair) -> None:
        await _reached(self._ray, self._actor, self._actor.grant, granted)

    async def give_back(self) -> Pair | None:
        spent: Pair | StorageError | None = await _reached(self._ray, self._actor, self._actor.spend_nothing)
        if isinstance(spent, StorageError):
            raise spent
        return spent


def hired(ray: Any, needs: Mapping[str, Any], now: bool = True) -> Any:
    """A worker's actor, or with `now=False` only its class. Raises `SetupError` for needs that Ray does not know."""
    try:
        made = ray.remote(Worker).options(**needs, max_restarts=0, scheduling_strategy="SPREAD")
        return made.remote() if now else made
    except (ValueError, TypeError, OverflowError) as error:
        message = f"Ray cannot count num_cpus, num_gpus, resources of a worker: {error}"
        raise SetupError(message, hint=f"Found {dict(needs)}.") from None


async def _cancelled(tasks: Iterable[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _said_of(spent: BudgetSpentError | None) -> Spent | None:
    return None if spent is None else (spent.by, spent.at)


def _line(error: BaseException | None) -> str:
    return str(error).partition("\n")[0]


def _shared(score: EpisodeScore) -> EpisodeScore:
    """The score without texts of its own that all scores have: each that comes has its own copies."""
    labels = {sys.intern(k): sys.intern(v) if type(v) is str else v for k, v in score.labels.items()}
    numbers = {sys.intern(k): v for k, v in score.numbers.items()}
    return replace(score, condition=sys.intern(score.condition), labels=labels, numbers=numbers)


async def _reached(ray: Any, actor: Any, method: Any, *arguments: Any) -> Any:
    """What a worker's method gives that takes no time; None where the worker, or only the way to it, is lost."""
    try:
        return await asyncio.wait_for(_result(method.remote(*arguments)), _DEAF)
    except (ray.exceptions.RayActorError, TimeoutError):
        ray.kill(actor)  # its requests would wait for ever
        return None


async def _result(reference: Any) -> Any:
    return await reference


def _brief(work: Work) -> bytes:
    """What workers are told. Raises `SetupError` for an engine that cannot be sent to another process."""
    from ray import cloudpickle

    plan, options = work.plan, work.options
    cache = options.use_cache.resolve() if options.use_cache else None
    options = replace(options, use_cache=cache, executor=None)
    engine = plan.engines.get("model")
    brief = Brief(plan.spec, engine, options, work.folder.resolve(), plan.digest, __version__, code(plan))
    try:
        made: bytes = cloudpickle.dumps(brief)
    except Exception as error:  # whatever an engine holds that does not go into another process
        message = f"{plan.model} cannot be sent to workers: {type(error).__name__}: {error}"
        raise SetupError(message, hint="Give an engine by name, with its arguments.") from None
    return made


def _said(resources: Mapping[str, Any]) -> str:
    """Resources in words, Ray's own bookkeeping left out."""
    flat = {**resources, **(resources.get("resources") or {})}
    kinds = {"num_cpus": "CPU", "num_gpus": "GPU"}
    return ", ".join(
        f"{value:g} {kinds.get(name, name)}"
        for name, value in flat.items()
        if isinstance(value, int | float) and ":" not in name and "memory" not in name and value
    )
