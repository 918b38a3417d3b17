"""`harness lint`: whether a spec's reward pays players that solve nothing more than the floor."""

from __future__ import annotations

import argparse
import hashlib
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.api import UNBOUNDED
from harness.api.errors import SpecError
from harness.cli import options as opt
from harness.cli.usage import Parser
from harness.config.building import policy_name
from harness.config.project import Project, find
from harness.config.spec import Spec, load
from harness.extensions.replay.reference import reference_of, try_policy
from harness.tables import HeadlineSpec
from harness.tables.stats import Interval, is_rounding, t_quantile

from .degenerate import players
from .environment import TrainingEnv
from .learner import ByPolicy
from .rewards import HeadlineReward, is_zero_sum
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
        unpaid: how many of its episodes have no reward.
        gain: the mean over cases of what it is paid beyond the floor; None for the floor itself, and of a single case.
        interval: of the gain; None where that is the same in all cases, which says nothing of how it varies.
        beats: whether it is paid more than the floor, beyond chance.
    """

    name: str
    mean: float | None
    unpaid: int
    gain: float | None = None
    interval: Interval | None = None
    beats: bool = False


@dataclass(frozen=True)
class Lint:
    """What degenerate players are paid.

    Attributes:
        spec: its name.
        parts: the parts of its rewards.
        episodes, cases: how many each player played, and of how many cases.
        asked: how many episodes were asked for.
        floor: what the floor is paid.
        players: those that play differently.
        alike: further players, each with the one that says the same in every turn.
        left_out: parts of the rewards that could not be tried.
    """

    spec: str
    parts: str
    episodes: int
    cases: int
    asked: int
    floor: Paid
    players: Sequence[Paid]
    alike: Mapping[str, str]
    left_out: Sequence[str]

    @property
    def hacks(self) -> list[Paid]:
        """Those that beat the floor."""
        return [one for one in self.players if one.beats]

    def lines(self) -> Iterator[str]:
        """The table, and the verdict."""
        yield f"{self.spec}: reward {self.parts}, {self.episodes} episodes of {self.cases} cases a player"
        if self.episodes < self.asked:
            yield f"fewer than --episodes {self.asked}: the spec has no more; --repeats plays its cases more often"
        if self.left_out:
            yield f"without {', '.join(self.left_out)}: policies write no tokens"
        width = max(map(len, [self.floor.name, *(one.name for one in self.players), *self.alike])) + 2
        yield f"{'player':{width}}{'reward':>9}  over the floor"
        for one in (self.floor, *self.players):
            mean = "" if one.mean is None else f"{one.mean:.3f}"
            gain = "" if one.gain is None else f"{one.gain:+.3f}"
            gain += "" if one.interval is None else f" [{one.interval[0]:+.3f}, {one.interval[1]:+.3f}]"
            unpaid = f"  {one.unpaid} episodes without a reward" if one.unpaid else ""
            yield f"{one.name:{width}}{mean:>9}  {gain}{'  beats the floor' if one.beats else ''}{unpaid}".rstrip()
        for name, other in self.alike.items():
            yield f"{name:{width}}{'':>9}  plays as {other}"
        if self.hacks:
            yield f"the reward can be hacked: {', '.join(one.name for one in self.hacks)}"
        elif all(one.gain is None for one in self.players):
            yield "too few cases with a reward to compare: take more (--limit, --episodes)"
        else:
            yield from self._not_beaten()

    def _not_beaten(self) -> Iterator[str]:
        most, name = max(((one.interval[1], one.name) for one in self.players if one.interval), default=(0.0, ""))
        unknown = [one.name for one in self.players if one.interval is None]
        if most <= 0 and not unknown:
            yield f"no such player beats the floor in {self.cases} cases (95 % intervals for all of them together)"
            return
        yield "no such player is shown to beat the floor (95 % intervals for all of them together)"
        if most > 0:
            yield f"a gain of up to {most:.3f} is not excluded ({name}): take more cases"
        if unknown:
            yield f"a gain that is the same in every case has no interval ({', '.join(unknown)}): take more cases"


def linted(spec: Spec, project: Project, episodes: int = EPISODES, allow_code_execution: bool = False) -> Lint:
    """What players that solve nothing are paid in all seats that learn, beside the floor in the same episodes.

    The floor is the headline's, else the spec's baseline. Intervals are Student's t of differences by case, for all
    players together (Bonferroni), cut at what the headline's bounds leave possible. Equal differences have none; the
    sign test then says whether the player beats the floor.

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
        floor, _ = _played(env, tasks, ByPolicy(policy))
        rewards_of: dict[str, Numbers] = {}
        alike: dict[str, str] = {}
        first: dict[str, str] = {}  # conversations → who had them first
        for name, player in players().items():
            numbers, conversations = _played(env, tasks, player)
            if (other := first.setdefault(conversations, name)) == name:
                rewards_of[name] = numbers
            else:
                alike[name] = other
        within = _bounds(env)
        found = [_compared(name, numbers, floor, len(rewards_of), within) for name, numbers in rewards_of.items()]
        named = ", ".join(spec.get("rewards") or [headline.metric])
        paid = _paid(f"floor: {policy_name(given)}", floor)
        cases = len({case for case, _ in floor})
        return Lint(spec.name, named, len(tasks), cases, episodes, paid, found, alike, left_out)


def _spread(tasks: Sequence[EnvTask], count: int) -> list[EnvTask]:
    """So many tasks, from all parts of the spec."""
    if len(tasks) <= count:
        return [*tasks]
    return [tasks[i * len(tasks) // count] for i in range(count)]


Numbers = list[tuple[tuple[str, str], float | None]]
"""((condition, case), reward of the agents that learn, on average) of each episode."""


def _played(env: TrainingEnv, tasks: Sequence[EnvTask], player: Any) -> tuple[Numbers, str]:
    """What a player is paid, and a digest of all conversations."""
    rollouts: list[Rollout] = env.rollouts(player, tasks, epoch=0)  # all players meet the same chance
    said = repr([talk.messages for one in rollouts for talk in one.conversations])
    numbers = [((one.task.condition.id, one.task.case.id), _reward(one)) for one in rollouts]
    return numbers, hashlib.sha256(said.encode(errors="backslashreplace")).hexdigest()


def _reward(rollout: Rollout) -> float | None:
    if rollout.rewards is None or not rollout.rewards.agents:
        return None
    return statistics.fmean(map(rollout.rewards.total, rollout.rewards.agents))


def _bounds(env: TrainingEnv) -> tuple[float, float]:
    """Between which numbers a reward lies: those of the headline's metric, where that is what is paid."""
    rule = env.reward_rule
    if not isinstance(rule, HeadlineReward) or any(map(is_zero_sum, env.plan.conditions)):
        return UNBOUNDED
    low, high = env.plan.metrics[rule.headline.metric].bounds
    return (low, high) if rule.headline.better == "higher" else (-high, -low)


def _paid(name: str, own: Numbers) -> Paid:
    numbers = [number for _, number in own if number is not None]
    return Paid(name, statistics.fmean(numbers) if numbers else None, len(own) - len(numbers))


def _compared(name: str, own: Numbers, floor: Numbers, tests: int, within: tuple[float, float]) -> Paid:
    by_case: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for (case, number), (_, least) in zip(own, floor, strict=True):
        if number is not None and least is not None:
            by_case.setdefault(case, []).append((number, least))
    paid, count, level = _paid(name, own), len(by_case), 0.025 / tests
    if count < 2:
        return paid
    gains = [statistics.fmean(number - least for number, least in some) for some in by_case.values()]
    gain, stderr = statistics.fmean(gains), statistics.stdev(gains) / math.sqrt(count)
    rewards = [reward for some in by_case.values() for pair in some for reward in pair]
    if is_rounding(stderr, rewards):
        return replace(paid, gain=gain, beats=gain > 0 and 0.5**count <= level)
    half = t_quantile(count - 1, 1 - level) * stderr
    low, high = within if all(within[0] <= reward <= within[1] for reward in rewards) else UNBOUNDED
    base = statistics.fmean(statistics.fmean(least for _, least in some) for some in by_case.values())
    interval = max(gain - half, low - base), min(gain + half, high - base)
    return replace(paid, gain=gain, interval=interval, beats=interval[0] > 0)
