"""A spec as an environment for trainers: its episodes, played with the trainer's model in chosen seats."""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from harness.api import Completion, Engine, Policy
from harness.api.errors import Place, SpecError, near, raise_all
from harness.config import resolve
from harness.config.building import Reference, make, parts_of
from harness.config.permissions import check_execution
from harness.config.plan import Condition, Group, Plan, prepare, survey
from harness.config.project import Project, find
from harness.config.spec import Spec, load, parse
from harness.engines.gate import Gate
from harness.plugins import approvals
from harness.runtime.abilities import lacking
from harness.runtime.session import Session

from .declared_rewards import reward_rule
from .game import SteppedRollout
from .learner import Generate, Learner, NoEngine, PendingTurn
from .rewards import RewardRule
from .rollout import EnvTask, Rollout, RolloutRun

__all__ = ["EnvTask", "TrainingEnv"]

T = TypeVar("T")
_OPPONENT = "opponent of "
"""What the name of an engine begins with that plays a group that does not learn."""


class TrainingEnv:
    """The episodes of a spec, for a trainer. Close it, or use it as a context manager.

    Whatever `harness eval` does with a spec holds here: the same prompts, parsers, retries, limits, seeds and scores.
    An episode with the same replies has the same moves.

    Args:
        spec: a spec's file or name, its content as a mapping, or a loaded `Spec`.
        learn: names of the groups under `agents:` whose agents the trainer's model plays; None: all that the model
            under test would play.
        opponents: group → the policy (as in YAML) or the engine that plays it, for groups that the model under test
            would play and that do not learn; by default the spec's `baseline`.
        overrides: `path=value` changes to the spec.
        limit, seed, repeats: as of `harness.evaluate`.
        project: where names are looked up; default: the project around the working directory.
        allow_code_execution, sandbox: as of `harness.evaluate`.

    Attributes:
        tasks: all that can be played.
        plan: the spec, as objects.

    Raises:
        UserError: for every mistake in the spec or the arguments, with its place.
    """

    def __init__(
        self,
        spec: str | Path | Mapping[str, Any] | Spec,
        *,
        learn: Iterable[str] | None = None,
        opponents: Mapping[str, Reference | Engine] | None = None,
        overrides: Iterable[str] = (),
        limit: int | None = None,
        seed: int | None = None,
        repeats: int | None = None,
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
            self.learn = _learning(plan, learn)
            self.plan, self._opponents = _seated(plan, self.learn, opponents or {})
            check_execution(self.plan, allow_code_execution, sandbox)
            prepare(self.plan)
        self.reward_rule: RewardRule = reward_rule(self.plan, sandbox)
        self.tasks: tuple[EnvTask, ...] = tuple(EnvTask(*job) for job in survey(self.plan).episodes)
        raise_all(lacking(self.plan, [(task.condition, task.case, task.repeat) for task in self.tasks]))
        for engine in self._frozen.values():
            engine.check()
        self.engines: dict[str, Gate] = {}
        self._session = Session()

    @property
    def _frozen(self) -> dict[str, Engine]:
        """The engines that play agents that do not learn."""
        return {name: one for name, one in self.plan.engines.items() if name != "model"} | self._opponents

    def learners(self, task: EnvTask) -> dict[str, str]:
        """The agents of a task that learn, in their order, each with its group."""
        agents = task.condition.protocol.possible_agents(task.case)
        groups = {agent: task.condition.group_of(task.case, agent).name for agent in agents}
        return {agent: name for agent, name in groups.items() if name in self.learn}

    @staticmethod
    def id_of(task: EnvTask, sample: int) -> str:
        """The id of an episode of a group."""
        return f"{task.id}#{sample}" if sample else task.id

    # ------------------------------------------------------------------ whole episodes

    async def rollout(
        self,
        task: EnvTask,
        generate: Generate | Engine,
        sample: int = 0,
        *,
        timeout: float | None = None,
        decode: Callable[[Sequence[int]], str] | None = None,
    ) -> Rollout:
        """Play one episode.

        Args:
            task: what to play.
            generate: writes the replies: `generate(messages, tools, sampling, seat)`, a function or a coroutine
                function that returns a text or a `harness.api.Completion`, or None if there is none; or an engine that
                is started.
            sample: which of a group of episodes it is. All of them have the same chance of the environment, of
                policies and of other engines; the seeds of the learning agents differ.
            timeout: seconds that one reply may take. A plain function then runs in a thread.
            decode: token ids → text, to check that the trainer's token ids are its text.

        Raises:
            TrainerError: the trainer returned something that is no reply.
            EngineFatalError: an engine that plays other agents died.
        """
        await self.start_engines()
        learner = Learner(generate, self.id_of(task, sample), self.learners(task), timeout, decode)
        return await RolloutRun(self, task, sample, learner).play()

    def rollouts(
        self,
        generate: Generate | Engine,
        tasks: Iterable[EnvTask] | None = None,
        group_size: int = 1,
        *,
        concurrency: int = 64,
        timeout: float | None = None,
        decode: Callable[[Sequence[int]], str] | None = None,
    ) -> list[Rollout]:
        """Play tasks (default: all), each `group_size` times with the same chance of the environment.

        Returns the rollouts in the order of tasks, the samples of each one after another. `concurrency`: how many
        episodes are open at once; the rest is as in `rollout`.
        """
        chosen = self.tasks if tasks is None else tasks
        jobs = [(task, sample) for task in chosen for sample in range(group_size)]
        gate = asyncio.Semaphore(concurrency)

        async def one(task: EnvTask, sample: int) -> Rollout:
            async with gate:
                return await self.rollout(task, generate, sample, timeout=timeout, decode=decode)

        async def play_all() -> list[Rollout]:
            await self.start_engines()
            async with asyncio.TaskGroup() as group:
                running = [group.create_task(one(*job)) for job in jobs]
            return [task.result() for task in running]

        try:
            return self.run(play_all())
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None

    def batched(
        self,
        generate: Callable[[list[PendingTurn]], Sequence[str | Completion | None]],
        tasks: Iterable[EnvTask] | None = None,
        group_size: int = 1,
        *,
        concurrency: int = 64,
        decode: Callable[[Sequence[int]], str] | None = None,
    ) -> list[Rollout]:
        """The same for trainers that write many replies at once: `generate` gets all turns that are pending in all open
        episodes, and returns a reply for each."""
        chosen = self.tasks if tasks is None else tasks
        left: Iterator[tuple[EnvTask, int]] = itertools.product(chosen, range(group_size))
        every: list[SteppedRollout] = []
        is_open: list[SteppedRollout] = []
        try:
            while True:
                for task, sample in itertools.islice(left, concurrency - len(is_open)):
                    every.append(self.start(task, sample, decode=decode))
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

    def start(
        self, task: EnvTask, sample: int = 0, *, decode: Callable[[Sequence[int]], str] | None = None
    ) -> SteppedRollout:
        """Begin an episode that is answered step by step. The arguments are those of `rollout`."""
        return SteppedRollout(self, task, sample, decode)

    # ------------------------------------------------------------------ engines of other agents

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to completion, also inside a notebook, whose own loop is running."""
        return self._session.run(work)

    async def start_engines(self) -> None:
        """Start the engines of agents that do not learn, once."""
        if not self.engines and self._frozen:
            self.engines = {name: Gate(engine) for name, engine in self._frozen.items()}
            for gate in self.engines.values():
                await gate.start()

    async def aclose(self) -> None:
        """Close these engines, in the loop in which they were started."""
        gates, self.engines = self.engines, {}
        for gate in gates.values():
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


def _learning(plan: Plan, learn: Iterable[str] | None) -> frozenset[str]:
    """The groups that learn. Raises `SpecError` for one that there is not, or that a policy or another model plays."""
    groups = [group for condition in plan.conditions for group in condition.groups]
    own = {group.name for group in groups if _is_under_test(group)}
    for name in dict.fromkeys(learn or ()):
        if name not in own:
            there = name in {group.name for group in groups}
            why = f"no model under test plays group {name!r}" if there else f"there is no group {name!r} under agents:"
            raise SpecError(f"learn: {why}", place=plan.spec.place("agents"), hint=near(name, own))
    return frozenset(own if learn is None else learn)


def _policy(plan: Plan, given: Reference, place: Place) -> Callable[[], Policy]:
    cls, arguments = parts_of("policies", given, plan.project, lambda *path: place)
    policy: Policy = make(cls, arguments, lambda *path: place)  # wrong values show now
    return functools.partial(type(policy), **arguments)


def _is_under_test(group: Group) -> bool:
    return group.policy is None and (group.model or "model") == "model"


def _seated(
    plan: Plan, learn: frozenset[str], opponents: Mapping[str, Reference | Engine]
) -> tuple[Plan, dict[str, Engine]]:
    """The plan with somebody else in the place of the model under test in groups that do not learn, and the engines
    that play some of them."""
    rest = {g.name for condition in plan.conditions for g in condition.groups if _is_under_test(g)} - learn
    if unknown := opponents.keys() - rest:
        name = min(unknown)
        why = "it learns" if name in learn else "the model under test plays no such group"
        raise SpecError(f"opponents: {name!r}: {why}", place=plan.spec.place("agents"), hint=near(name, rest))
    engines: dict[str, Engine] = {}
    policies: dict[str, Callable[[], Policy]] = {}
    for name in sorted(rest):
        given = opponents.get(name, plan.spec.get("baseline"))
        if given is None:
            message = f"nobody plays group {name!r}, which does not learn, and the spec has no baseline"
            hint = f"Say who does: opponents={{{name!r}: 'a policy, or an engine'}}."
            raise SpecError(message, place=plan.spec.place("agents"), hint=hint)
        if isinstance(given, Engine):
            engines[_OPPONENT + name] = given
            continue
        place = plan.spec.place("agents", name) if name in opponents else plan.spec.place("baseline")
        policies[name] = _policy(plan, given, place)

    def seat(group: Group) -> Group:
        if group.name not in rest or not _is_under_test(group):
            return group
        if group.name in policies:
            return replace(group, model=None, policy=policies[group.name])
        return replace(group, model=_OPPONENT + group.name)

    def seats_of(condition: Condition) -> Condition:
        return replace(condition, groups=tuple(map(seat, condition.groups)))

    return replace(plan, conditions=tuple(map(seats_of, plan.conditions))), engines
