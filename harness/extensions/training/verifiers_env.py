"""A spec as an environment for the package `verifiers` and for prime-rl: its agents are the groups that learn.

    # my_ring/__init__.py, an installed package
    from harness.extensions.training.verifiers_env import SeatHarness, environment

    RingTaskset, RingEnv = environment("agentsnet_quick", learn=["default"])
    __all__ = ["RingEnv", "RingTaskset", "SeatHarness"]

`vf-eval my_ring` and prime-rl then play it. One episode is one `vf.Episode`, with a trace for each conversation of each
agent that learns; all others are policies or engines of the spec.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from harness.api import Engine
from harness.api.errors import SetupError, UserError
from harness.config.building import Reference
from harness.config.plan import case_digest
from harness.config.project import at, builtin

from .environment import TrainingEnv
from .new_environment import PROJECT, agent_names
from .rollout import EnvTask

try:
    import verifiers.v1 as vf
    from pydantic import Field, create_model, model_validator
except ModuleNotFoundError as error:
    hint = "Install it: pip install 'mas-eval-harness[verifiers]'"
    raise SetupError(f"the package verifiers, version 0.4, cannot be imported: {error}", hint=hint) from None

from .verifiers_seats import SeatConfig, SeatHarness, Seats

__all__ = ["SeatHarness", "environment"]


class SpecData(vf.TaskData):
    """Which episode it is: `id` is "condition/case/repeat"."""

    digest: str
    """Of the case: an environment of another version of the spec does not play it."""


class SpecTask(vf.Task[SpecData]):
    """An episode that can be played."""

    @property
    def key(self) -> str:
        """The same in every selection of tasks."""
        return f"{self.data.id}@{self.data.digest}"


class SpecTasksetConfig(vf.TasksetConfig):
    """Knobs of the spec, `--env.taskset.…`."""

    overrides: list[str] = Field(default_factory=list)
    """`path=value` changes to the spec, as of `harness eval --set`, after those of the package."""
    limit: int | None = None
    """Cases of each condition."""
    seed: int | None = None
    """Of the environment's chance."""
    repeats: int | None = None
    """How often each case is played, each time with another chance of the environment."""
    arguments: ClassVar[Mapping[str, Any]] = {}
    """Of `TrainingEnv`, from a subclass."""

    def games(self) -> TrainingEnv:
        """The spec with these knobs, for trainers. Raises `UserError`."""
        knobs = {name: getattr(self, name) for name in ("limit", "seed", "repeats")}
        given = {name: one for name, one in knobs.items() if one is not None}
        overrides = [*self.arguments.get("overrides", ()), *self.overrides]
        return TrainingEnv(**{**self.arguments, **given, "overrides": overrides})

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.overrides and self.arguments:
            try:
                self.games().close()
            except UserError as error:
                raise ValueError(str(error)) from None
        return self


class SpecTaskset(vf.Taskset[SpecTask, SpecTasksetConfig]):
    """The episodes of a spec.

    Attributes:
        games: the spec, for trainers.
    """

    def __init__(self, config: SpecTasksetConfig) -> None:
        super().__init__(config)
        if config.system_prompt is not None:
            raise ValueError("the prompts of a spec are its own: change its prompt set, not taskset.system_prompt")
        self.games = config.games()
        self._tasks = {task.id: task for task in self.games.tasks}

    def load(self) -> Iterator[SpecTask]:
        """All episodes, in the order of the spec."""
        for task in self._tasks.values():
            yield SpecTask(SpecData(id=task.id, name=task.id, digest=case_digest(task.case)), self.config.task)

    def find(self, data: SpecData) -> EnvTask:
        """The episode that a row names. Raises `ValueError` where this spec has no such one."""
        task = self._tasks.get(data.id or "")
        if task is None or case_digest(task.case) != data.digest:
            raise ValueError(
                f"the spec has no episode {data.id!r} with the case {data.digest}: its tasks are of another version"
            )
        return task


class SpecEnvConfig(vf.EnvConfig):
    """The agents, each a group of the spec; a subclass has them."""

    max_concurrent_agents: int | None = None
    """All agents of a batch of turns answer at once: turns of a batch are simultaneous."""


class SpecEnv(vf.Env[SpecEnvConfig]):
    """Plays the protocol of a spec."""

    names: Mapping[str, str] = {}
    """Group under `agents:` → its agent here, from a subclass."""

    def __init__(self, config: SpecEnvConfig) -> None:
        super().__init__(config)
        for name, program in config.agent_harnesses().items():
            if not isinstance(program, SeatConfig):
                raise ValueError(f"{name}.harness.id is {program.id!r}: the program of a seat is that of its package")

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        """Play one episode, and pay its traces.

        Nothing says which episodes are a group there: each has a chance of its own, by how often its task was played.
        """
        taskset: SpecTaskset = self.taskset
        played = taskset.find(task.data)
        async with Seats(agents, self.names, task) as seats:
            rollout = await taskset.games.rollout(played, seats.generate)
            if rollout.error is not None:
                raise seats.failure or vf.EnvError(rollout.error)
            if rollout.rewards is None:
                raise vf.EnvError(f"the episode {played.id} has no reward: {rollout.unpaid}")
            seats.pay(rollout)

    async def stop(self) -> None:
        """Close the engines of agents that do not learn."""
        await self.taskset.games.aclose()


def environment(
    spec: str | Path | Mapping[str, Any],
    *,
    learn: str | Iterable[str] | None = None,
    opponents: Mapping[str, Reference | Engine] | None = None,
    beside: str | Path | None = None,
    **more: Any,
) -> tuple[type[SpecTaskset], type[SpecEnv]]:
    """The taskset and the environment of a spec, for a package that `verifiers` loads.

    Args:
        spec, opponents: as of `TrainingEnv`.
        learn: the group under `agents:` that is an agent of `verifiers`, or several; None: all that the model under
            test would play, for which the spec is read now.
        beside: a file of the package; names are looked up in the folder `project` beside it, if there is one, else in
            what ships and what is installed.
        more: further arguments of `TrainingEnv`.

    Raises:
        UserError: for a mistake in the spec or the arguments.
    """
    own = Path(beside or "").parent / PROJECT
    project = at(own) if beside is not None and own.is_dir() else builtin()
    arguments = {"spec": spec, "opponents": opponents, "project": project, **more}
    if learn is None:
        with TrainingEnv(**arguments, limit=1) as games:
            learn = games.learn
    names = agent_names([learn] if isinstance(learn, str) else learn)
    arguments["learn"] = sorted(names)
    seat = vf.AgentConfig(runtime=vf.SubprocessConfig())  # no process runs in it
    fields: dict[str, Any] = dict.fromkeys(names.values(), (vf.AgentConfig, seat))
    config: Any = create_model("SpecAgents", __base__=SpecEnvConfig, **fields)

    class Knobs(SpecTasksetConfig):
        pass

    Knobs.arguments = arguments

    class Tasks(SpecTaskset, vf.Taskset[SpecTask, Knobs]):
        pass

    class Play(SpecEnv, vf.Env[config]):
        pass

    Play.names = names
    return Tasks, Play
