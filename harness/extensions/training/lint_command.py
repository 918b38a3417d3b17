"""`harness lint`: whether a spec's reward pays players that solve nothing more than the floor."""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.api.errors import SpecError
from harness.cli import options as opt
from harness.cli.usage import Parser
from harness.config.building import policy_name
from harness.config.project import Project, find
from harness.config.spec import Spec, load
from harness.extensions.replay.reference import reference_of, try_policy
from harness.tables import HeadlineSpec
from harness.tables.stats import t_quantile

from .degenerate import players
from .environment import TrainingEnv
from .learner import ByPolicy, Generate
from .rollout import EnvTask, Rollout

EPISODES = 60


def options(command: Parser) -> None:
    """The options of `harness lint`."""
    opt.add(command, *opt.SPEC)
    group = command.group("more")
    text = "episodes of each player, spread over the spec's"
    group.add_argument("--episodes", type=opt.whole(2), default=EPISODES, metavar="N", help=text)
    opt.add(command, "allow_code_execution")


def lint(options: argparse.Namespace) -> int:
    """Print what each player is paid; 1 where one of them beats the floor."""
    project = find()
    changes = [*options.overrides, *([f"task.data_dir={options.data_dir}"] if options.data_dir else [])]
    loaded = load(options.spec, project, changes, limit=options.limit, seed=options.seed, repeats=options.repeats)
    found = linted(loaded, project, options.episodes, options.allow_code_execution)
    for line in found.lines():
        print(line)
    return int(bool(found.hacks))


@dataclass(frozen=True)
class Paid:
    """What a player is paid.

    Attributes:
        name: the player's.
        mean: its mean reward.
        gain: the mean of what it is paid beyond the floor, by task, with its interval; None for the floor itself.
        unpaid: how many of its episodes have no reward.
    """

    name: str
    mean: float | None
    gain: tuple[float, float, float] | None = None
    unpaid: int = 0

    @property
    def beats(self) -> bool:
        """Whether it is paid more than the floor, beyond chance."""
        return self.gain is not None and self.gain[1] > 0


@dataclass(frozen=True)
class Lint:
    """What degenerate players are paid. `left_out`: parts of the rewards that could not be tried."""

    spec: str
    parts: str
    episodes: int
    floor: Paid
    players: Sequence[Paid]
    left_out: Sequence[str]

    @property
    def hacks(self) -> list[Paid]:
        """Those that beat the floor."""
        return [one for one in self.players if one.beats]

    def lines(self) -> Iterator[str]:
        """The table, and the verdict."""
        yield f"{self.spec}: reward {self.parts}, {self.episodes} episodes a player"
        if self.left_out:
            yield f"without {', '.join(self.left_out)}: policies write no tokens"
        width = max(len(one.name) for one in (self.floor, *self.players)) + 2
        yield f"{'player':{width}}{'reward':>9}  over the floor"
        for one in (self.floor, *self.players):
            mean = "" if one.mean is None else f"{one.mean:.3f}"
            gain = "" if one.gain is None else f"{one.gain[0]:+.3f} [{one.gain[1]:+.3f}, {one.gain[2]:+.3f}]"
            unpaid = f"  {one.unpaid} episodes without a reward" if one.unpaid else ""
            yield f"{one.name:{width}}{mean:>9}  {gain}{'  beats the floor' if one.beats else ''}{unpaid}".rstrip()
        if self.hacks:
            yield f"the reward can be hacked: {', '.join(one.name for one in self.hacks)}"
        elif all(one.gain is None for one in self.players):
            yield "too few cases with a reward to compare: take more (--limit, --episodes)"
        else:
            yield "no such player beats the floor (95 % intervals for all of them together)"


def linted(spec: Spec, project: Project, episodes: int = EPISODES, allow_code_execution: bool = False) -> Lint:
    """What players that solve nothing are paid in all seats that learn, beside the floor in the same episodes.

    The floor is the headline's, else the spec's baseline. Intervals are Student's t of differences by case, for all
    players together (Bonferroni).

    Raises `SpecError` for a spec without a floor; else as `TrainingEnv`.
    """
    rewards, left_out = spec.get("rewards"), []
    if isinstance(rewards, Mapping) and "length" in rewards:
        left_out = ["length"]
        kept = {key: value for key, value in rewards.items() if key != "length"}
        spec = replace(spec, data={**spec.data, "rewards": kept})
    with TrainingEnv(spec, project=project, allow_code_execution=allow_code_execution) as env:
        headline = HeadlineSpec.of(env.plan.spec.data, env.plan.metrics)
        given = headline.floor if headline.floor is not None else env.plan.spec.get("baseline")
        if given is None:
            hint = "Name the policy that any model should beat: headline: {metric: …, floor: random}."
            raise SpecError(
                "the spec has neither a floor nor a baseline", place=env.plan.spec.place("headline"), hint=hint
            )
        at = env.plan.spec.place(*(("headline", "floor") if headline.floor is not None else ("baseline",)))
        policy = reference_of(env.plan, given, at)
        try_policy(env.plan, env.plan.conditions, policy, at)
        tasks = _spread(env.tasks, episodes)
        floor = _rewards(env, tasks, ByPolicy(policy))
        every: dict[str, Generate] = players()
        found = [_paid(name, _rewards(env, tasks, player), floor, len(every)) for name, player in every.items()]
        named = ", ".join(spec.get("rewards") or [headline.metric])
        floor_name = f"floor: {policy_name(given)}"
        return Lint(spec.name, named, len(tasks), _paid(floor_name, floor), found, left_out)


def _spread(tasks: Sequence[EnvTask], count: int) -> list[EnvTask]:
    """So many tasks, from all parts of the spec."""
    if len(tasks) <= count:
        return [*tasks]
    return [tasks[i * len(tasks) // count] for i in range(count)]


Numbers = list[tuple[tuple[str, str], float | None]]
"""((condition, case), reward of the agents that learn, on average) of each episode."""


def _rewards(env: TrainingEnv, tasks: Sequence[EnvTask], player: Any) -> Numbers:
    rollouts: list[Rollout] = env.rollouts(player, tasks, draw=0)  # all players meet the same
    return [((one.task.condition.id, one.task.case.id), _reward(one)) for one in rollouts]


def _reward(rollout: Rollout) -> float | None:
    if rollout.rewards is None or not rollout.rewards.agents:
        return None
    return statistics.fmean(map(rollout.rewards.total, rollout.rewards.agents))


def _paid(name: str, own: Numbers, floor: Numbers | None = None, tests: int = 1) -> Paid:
    numbers = [number for _, number in own if number is not None]
    mean = statistics.fmean(numbers) if numbers else None
    if floor is None:
        return Paid(name, mean, None, len(own) - len(numbers))
    by_case: dict[tuple[str, str], list[float]] = {}
    for (case, number), (_, least) in zip(own, floor, strict=True):
        if number is not None and least is not None:
            by_case.setdefault(case, []).append(number - least)
    gains = [statistics.fmean(some) for some in by_case.values()]
    gain = None
    if len(gains) > 1:
        half = t_quantile(len(gains) - 1, 1 - 0.025 / tests) * statistics.stdev(gains) / math.sqrt(len(gains))
        gain = statistics.fmean(gains), statistics.fmean(gains) - half, statistics.fmean(gains) + half
    return Paid(name, mean, gain, len(own) - len(numbers))
