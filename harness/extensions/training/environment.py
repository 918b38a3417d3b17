"""A spec as an environment for trainers: its episodes, played with the trainer's model in chosen seats."""

from __future__ import annotations

import asyncio
import itertools
import weakref
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from harness.api import Completion, Engine
from harness.api.errors import DataError, Place, SpecError, near, raise_all
from harness.config import resolve
from harness.config.building import Reference
from harness.config.permissions import check_execution
from harness.config.plan import Plan, case_digest, prepare, survey
from harness.config.project import Project, find
from harness.config.spec import Spec, load, parse
from harness.engines.gate import Gate
from harness.plugins import approvals
from harness.runtime.abilities import lacking
from harness.runtime.seats import Seat, seats
from harness.runtime.session import Session

from .agent_numbers import metrics_of
from .declared_rewards import DeclaredRewards, reward_rule
from .game import SteppedRollout
from .holdout import Evaluation, refuse_overlap
from .league import League, opponent_of, result
from .learner import Generate, Learner, NoEngine, PendingTurn
from .rewards import RewardRule
from .rollout import EnvTask, Epoch, Rollout, RolloutRun
from .seating import seated

__all__ = ["EnvTask", "TrainingEnv"]

T = TypeVar("T")
Named = EnvTask | str
"""A task, or its id."""


class TrainingEnv:
    """The episodes of a spec, for a trainer. Close it, or use it as a context manager.

    Whatever `harness eval` does with a spec holds here: the same prompts, parsers, retries, limits, seeds and scores.
    An episode with the same replies has the same moves.

    Args:
        spec: a spec's file or name, its content as a mapping, or a loaded `Spec`.
        learn: the group under `agents:` whose agents the trainer's model plays, or several; None: those of the spec's
            `learn:`, else all that the model under test would play.
        opponents: group → the policy (as in YAML) or the engine that plays it, for groups that the model under test
            would play and that do not learn; or {"pool": […], "by": …}, as `opponents:` of a spec. By default that of
            the spec, else its `baseline`.
        overrides: `path=value` changes to the spec.
        limit, seed, repeats: as of `harness.evaluate`.
        holdout: evaluations whose cases must not be among those that are trained on: specs, runs or their folders.
        project: where names are looked up; default: the project around the working directory.
        allow_code_execution, sandbox: as of `harness.evaluate`.

    Attributes:
        tasks: all that can be played.
        plan: the spec, as objects.

    Raises:
        UserError: for every mistake in the spec or the arguments, with its place; for a case of `holdout`, with which.
    """

    def __init__(
        self,
        spec: str | Path | Mapping[str, Any] | Spec,
        *,
        learn: str | Iterable[str] | None = None,
        opponents: Mapping[str, Any] | None = None,
        overrides: Iterable[str] = (),
        limit: int | None = None,
        seed: int | None = None,
        repeats: int | None = None,
        holdout: Evaluation | Iterable[Evaluation] = (),
        project: Project | None = None,
        allow_code_execution: bool = False,
        sandbox: str = "process",
    ) -> None:
        project = project or find()
        with approvals.allowing(allow_code_execution):
            keys: dict[str, Any] = {"limit": limit, "seed": seed, "repeats": repeats}
            if isinstance(spec, str | Path):
                spec = load(str(spec), project, overrides, **keys)
            elif not isinstance(spec, Spec):
                spec = parse(spec, project, overrides, **keys)
            plan = resolve.plan(spec, project, NoEngine())
            self.sandbox = sandbox
            self._seating = seated(plan, learn, opponents or {})
            self.plan = self._seating.plan
            check_execution(self.plan, allow_code_execution, sandbox)
            prepare(self.plan)
            self.reward_rule: RewardRule = reward_rule(self.plan, sandbox)
        self.tasks: tuple[EnvTask, ...] = tuple(EnvTask(*job) for job in survey(self.plan).episodes)
        self._tasks = {task.id: task for task in self.tasks}
        refuse_overlap(self.tasks, holdout, project)
        raise_all(lacking(self.plan, [(task.condition, task.case, task.repeat) for task in self.tasks]))
        for engine in self._frozen.values():
            engine.check()
        self.engines: dict[str, Gate] = {}
        self._begun: Counter[tuple[str, int]] = Counter()  # how often (task, sample) was
        self._starting = asyncio.Lock()
        self._session = Session()
        weakref.finalize(self, self._session.close)  # where nobody closes it, as after an exception

    @property
    def _frozen(self) -> dict[str, Engine]:
        """The engines that play agents that do not learn."""
        return {name: one for name, one in self.plan.engines.items() if name != "model"} | self._seating.engines

    @property
    def learn(self) -> frozenset[str]:
        """The groups that learn."""
        return self._seating.learn

    @property
    def league(self) -> League | None:
        """The pool of opponents, with their ratings; None without one."""
        return self._seating.league

    def add_opponent(self, name: str, opponent: Reference | Engine) -> None:
        """Add one to the pool (`opponents: {pool: …}`), such as a checkpoint of the model: an engine, or a policy as in
        YAML.

        Raises `ValueError` for a name that there is already, `SpecError` without a pool and for a policy that cannot
        play.
        """
        if self.league is None:
            hint = "Declare one: opponents: {pool: [random], by: recent}."
            raise SpecError("there is no pool of opponents", place=self.plan.spec.place("opponents"), hint=hint)
        if isinstance(opponent, Engine):
            opponent.check()
        self.league.add(opponent_of(self.plan, name, opponent, Place(f"the opponent {name!r}")))

    def seats(self, plan: Plan, task: EnvTask, met: Mapping[str, str]) -> dict[str, Seat]:
        """Agent → who sits there. `plan`: with the seed of the epoch; `met`: group → name of its opponent."""
        seated = seats(plan, task.condition, task.case, task.repeat)
        if self.league is None or not met:
            return seated
        pool = self.league.pool
        return {a: pool[met[s.group.name]].seat(s) if s.group.name in met else s for a, s in seated.items()}

    def meet(self, task: EnvTask, epoch: Epoch) -> dict[str, str]:
        """Group → name of the opponent that is drawn for it."""
        if self.league is None:
            return {}
        return dict.fromkeys(sorted(self._seating.pooled), self.league.meet(task.id, epoch))

    def record(self, rollout: Rollout) -> None:
        """Rate the opponents by a rollout."""
        returns = rollout.episode.grade.get("returns")
        if self.league is None or rollout.error is not None or not isinstance(returns, Mapping):
            return
        task, roles = rollout.task, rollout.task.case.roles
        others = [agent for agent in returns if roles.get(agent, "default") in self._seating.pooled]
        found = result(returns, [agent for agent in returns if agent in self.learners(task)], others)
        for name in {*rollout.opponents.values()} if found is not None else ():
            self.league.record(name, found or 0.0)

    def learners(self, task: EnvTask) -> dict[str, str]:
        """The agents of a task that learn, in their order, each with its group."""
        agents = task.condition.protocol.possible_agents(task.case)
        groups = {agent: task.condition.group_of(task.case, agent).name for agent in agents}
        return {agent: name for agent, name in groups.items() if name in self.learn}

    def single_learner(self) -> None:
        """Raise `DataError` unless one agent learns in each task."""
        for task in self.tasks:
            if len(agents := self.learners(task)) != 1:
                message = f"{len(agents)} agents learn in {task.id}: {', '.join(agents) or 'none'}"
                hint = (
                    "Give learn= a group of one agent (`agents: {learner: {model: model, count: 1}}`) and opponents=."
                )
                raise DataError(message, hint=hint)

    def check_texts(self) -> None:
        """Raise `SpecError` where `rewards:` count tokens, for trainers whose replies are texts."""
        parts = self.reward_rule.parts if isinstance(self.reward_rule, DeclaredRewards) else {}
        counting = self.plan.project.load("metrics", "tokens")
        for part, declared in parts.items():
            if any(isinstance(metric, counting) for metric in metrics_of(declared.number, self.plan)):
                message = f"rewards: {part}: replies are texts here, whose tokens are not counted"
                hint = "Leave this part out, or play with env.rollouts, whose replies may have token ids."
                raise SpecError(message, place=self.plan.spec.place("rewards", part), hint=hint)

    def task(self, name: str) -> EnvTask:
        """The task with this id. Raises `DataError`."""
        found = self._tasks.get(name)
        if found is None:
            raise DataError(f"there is no task {name!r}", hint=near(name, self._tasks))
        return found

    def _own(self, task: Named) -> EnvTask:
        """The task of this environment that a trainer names by one, or by its id. Raises `DataError` for a task of
        another one, which no `holdout` was compared with."""
        if isinstance(task, str):
            return self.task(task)
        found = self.task(task.id)
        if found is not task and case_digest(found.case) != case_digest(task.case):
            hint = "Play the tasks of env.tasks."
            raise DataError(f"the task {task.id!r} has another case in this environment", hint=hint)
        return found

    @staticmethod
    def id_of(task: EnvTask, sample: int, epoch: Epoch = 0) -> str:
        """The id of an episode: `task`, `task#sample`, or after the first epoch `task#sample@epoch`."""
        if epoch != 0:
            return f"{task.id}#{sample}@{epoch}"
        return f"{task.id}#{sample}" if sample else task.id

    # ------------------------------------------------------------------ whole episodes

    async def rollout(
        self,
        task: Named,
        generate: Generate | Engine,
        sample: int = 0,
        *,
        timeout: float | None = None,
        decode: Callable[[Sequence[int]], str] | None = None,
        epoch: Epoch | None = None,
    ) -> Rollout:
        """Play one episode.

        Args:
            task: what to play, or its id.
            generate: writes the replies: `generate(messages, tools, sampling, seat)`, a function or a coroutine
                function that returns a text or a `harness.api.Completion`, or None if there is none; or an engine that
                is started.
            sample: which of a group of episodes it is. In one epoch all of them have the same chance of the
                environment, of policies and of other engines; the seeds of the learning agents differ.
            timeout: seconds that one reply may take. A plain function then runs in a thread.
            decode: token ids → text, to check that the trainer's token ids are its text.
            epoch: which pass over the tasks it belongs to. Each has another chance of everything: the environment,
                opponents, references of rewards, the learning agents' seeds. 0 has that of `harness eval`; the same
                epoch again has the same chance. None: how often this sample of the task was begun before (without
                an epoch that was given).

        Raises:
            DataError: the task is one of another environment.
            TrainerError: the trainer returned something that is no reply.
            EngineFatalError: an engine that plays other agents died.
        """
        [job] = self.jobs([(task, sample)], epoch=epoch)
        rollout, _ = await self._play(*job, generate, timeout, decode)
        self.record(rollout)
        return rollout

    async def _play(
        self,
        task: EnvTask,
        sample: int,
        epoch: Epoch,
        generate: Generate | Engine,
        timeout: float | None,
        decode: Callable[[Sequence[int]], str] | None,
    ) -> tuple[Rollout, BaseException | None]:
        """The episode, and what of `generate` has ended it."""
        met = self.meet(task, epoch)
        await self.start_engines()
        learner = Learner(generate, self.id_of(task, sample, epoch), self.learners(task), timeout, decode)
        run = RolloutRun(self, task, sample, epoch, learner, met)
        return await run.play(), run.raised

    def rollouts(
        self,
        generate: Generate | Engine,
        tasks: Iterable[Named | tuple[Named, int]] | None = None,
        group_size: int = 1,
        *,
        concurrency: int = 64,
        timeout: float | None = None,
        decode: Callable[[Sequence[int]], str] | None = None,
        epoch: Epoch | None = None,
    ) -> list[Rollout]:
        """Play tasks (default: all), each `group_size` times with the same chance of the environment.

        Returns the rollouts in the order of tasks, the samples of each one after another. `concurrency`: how many
        episodes are open at once; `tasks`, `group_size`, `epoch`: as in `jobs`; the rest is as in `rollout`.

        Raises as `rollout`; and what `generate` raises where the same ends all episodes.
        """
        jobs = self.jobs(tasks, group_size, epoch)
        gate = asyncio.Semaphore(concurrency)

        async def one(task: EnvTask, sample: int, epoch: Epoch) -> tuple[Rollout, BaseException | None]:
            async with gate:
                return await self._play(task, sample, epoch, generate, timeout, decode)

        async def play_all() -> list[tuple[Rollout, BaseException | None]]:
            await self.start_engines()
            async with asyncio.TaskGroup() as group:
                running = [group.create_task(one(*job)) for job in jobs]
            return [task.result() for task in running]

        try:
            played = self.run(play_all())
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        raised = [error for _, error in played if error is not None]
        if played and len(raised) == len(played) and len({(type(error), str(error)) for error in raised}) == 1:
            raise raised[0]
        rollouts = [rollout for rollout, _ in played]
        for rollout in rollouts:  # in their order, so that ratings do not depend on which ends first
            self.record(rollout)
        return rollouts

    def batched(
        self,
        generate: Callable[[list[PendingTurn]], Sequence[str | Completion | None]],
        tasks: Iterable[Named | tuple[Named, int]] | None = None,
        group_size: int = 1,
        *,
        concurrency: int = 64,
        decode: Callable[[Sequence[int]], str] | None = None,
        epoch: Epoch | None = None,
    ) -> list[Rollout]:
        """The same for trainers that write many replies at once: `generate` gets all turns that are pending in all open
        episodes, and returns a reply for each."""
        left = iter(self.jobs(tasks, group_size, epoch))
        every: list[SteppedRollout] = []
        is_open: list[SteppedRollout] = []
        try:
            while True:
                for job in itertools.islice(left, concurrency - len(is_open)):
                    every.append(SteppedRollout(self, *job, decode))
                    is_open.append(every[-1])
                if not is_open:
                    return [game.rollout for game in every]
                turns = [(game, turn) for game in is_open for turn in game.pending]
                replies = generate([turn for _, turn in turns]) if turns else ()
                if len(replies) != len(turns):
                    raise ValueError(f"generate returned {len(replies)} replies to {len(turns)} turns")
                own: dict[int, dict[str, str | Completion | None]] = {}
                for (game, turn), reply in zip(turns, replies, strict=True):
                    own.setdefault(id(game), {})[turn.agent] = reply
                for game in is_open:
                    if id(game) in own:
                        game.answer(own[id(game)])
                is_open = [game for game in is_open if not game.is_over]
        finally:
            for game in is_open:
                game.close()

    def jobs(
        self,
        tasks: Iterable[Named | tuple[Named, int]] | None = None,
        group_size: int = 1,
        epoch: Epoch | None = None,
    ) -> list[tuple[EnvTask, int, Epoch]]:
        """The episodes (task, sample, epoch) of one call, in the order of tasks.

        Args:
            tasks: what to play, or their ids; None: all. A pair (task, sample) is that sample alone.
            group_size: how many samples of each task.
            epoch: of all of them, as in `rollout`. None: how often a task's samples were begun before, the same for
                all of its samples; a sample that the call names again is of the next epoch.

        Raises `DataError` for a task of another environment.
        """
        samples: list[tuple[EnvTask, int]] = []
        for one in self.tasks if tasks is None else tasks:
            task, own = (one[0], [one[1]]) if isinstance(one, tuple) else (one, range(group_size))
            samples += [(self._own(task), sample) for sample in own]
        if epoch is not None:
            return [(task, sample, epoch) for task, sample in samples]
        first: Counter[str] = Counter()
        for task, sample in samples:
            first[task.id] = max(first[task.id], self._begun[task.id, sample])
        named: Counter[tuple[str, int]] = Counter()
        found: list[tuple[EnvTask, int, Epoch]] = []
        for task, sample in samples:
            key, number = (task.id, sample), first[task.id] + named[task.id, sample]
            named[key] += 1
            self._begun[key] = number + 1
            found.append((task, sample, number))
        return found

    def start(
        self,
        task: Named,
        sample: int = 0,
        *,
        decode: Callable[[Sequence[int]], str] | None = None,
        epoch: Epoch | None = None,
    ) -> SteppedRollout:
        """Begin an episode that is answered step by step. The arguments are those of `rollout`."""
        [job] = self.jobs([(task, sample)], epoch=epoch)
        return SteppedRollout(self, *job, decode)

    # ------------------------------------------------------------------ engines of other agents

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to completion, also inside a notebook, whose own loop is running."""
        return self._session.run(work)

    async def start_engines(self) -> None:
        """Start the engines of agents that do not learn, once."""
        if self.engines.keys() >= self._frozen.keys():
            return
        async with self._starting:  # an episode that comes meanwhile waits until they are started
            for name, engine in self._frozen.items():
                if name not in self.engines:
                    gate = next((one for one in self.engines.values() if one.engine is engine), None)
                    if gate is None:
                        gate = Gate(engine)
                        await gate.start()
                    self.engines[name] = gate

    async def aclose(self) -> None:
        """Close these engines, in the loop in which they were started."""
        gates, self.engines = set(self.engines.values()), {}
        for gate in gates:
            await gate.close()

    def close(self) -> None:
        """Close everything."""
        try:
            if self.engines:
                self.run(self.aclose())
        finally:
            self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
