"""Advantages in groups: a rollout's reward beside those of the same task, for methods such as GRPO."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from .rollout import Rollout

Baseline = Literal["shared", "group", "agent"]
_LEAST = 1e-9
"""A standard deviation of rewards below which they count as equal, relative to their size."""


@dataclass(frozen=True)
class Advantages:
    """Rewards less their group's mean.

    Attributes:
        each: for each rollout agent → its advantage; {} for one without rewards.
        groups: how many groups there are.
        flat: the names of groups without variance, from which nothing can be learned: `task` or `task who`, with
            `task@epoch` after the first epoch.
        unpaid: id of rollouts without rewards → why.
    """

    each: Sequence[Mapping[str, float]]
    groups: int
    flat: Sequence[str]
    unpaid: Mapping[str, str]

    def __str__(self) -> str:
        text = f"{self.groups} groups, {len(self.flat)} without variance"
        return f"{text}, {len(self.unpaid)} rollouts without rewards" if self.unpaid else text


def advantages(rollouts: Iterable[Rollout], baseline: Baseline = "shared", *, scale: bool = True) -> Advantages:
    """Each agent's total reward (`Rewards.total`) less the mean of its group.

    A group are the rollouts of one task in one epoch: they share the chance of the environment and the opponents.

    Args:
        rollouts: of any tasks, in any order.
        baseline: `shared`: one mean over all seats of a group's rollouts; `group`: one for each group under `agents:`;
            `agent`: one for each seat. Raises `ValueError` for another name.
        scale: whether to divide by the group's standard deviation (GRPO: Shao et al. 2024). Without it, questions of
            all difficulties weigh the same (Dr. GRPO: Liu et al. 2025).
    """
    if baseline not in get_args(Baseline):
        raise ValueError(f"there is no baseline {baseline!r}: it is one of {', '.join(get_args(Baseline))}")
    played = list(rollouts)
    found: list[dict[str, float]] = [{} for _ in played]
    members: dict[tuple[str, ...], list[tuple[int, str, float]]] = {}
    unpaid: dict[str, str] = {}
    for i, rollout in enumerate(played):
        if rollout.rewards is None:
            unpaid[rollout.id] = rollout.error or rollout.unpaid or "it has no rewards"
            continue
        task = rollout.task.id if rollout.epoch == 0 else f"{rollout.task.id}@{rollout.epoch}"
        for agent in rollout.rewards.agents:
            key = (task, *sorted(rollout.opponents.values()), *_who(rollout, agent, baseline))
            members.setdefault(key, []).append((i, agent, rollout.rewards.total(agent)))
    flat = []
    for key, group in members.items():
        rewards = [reward for _, _, reward in group]
        mean, spread = statistics.fmean(rewards), statistics.pstdev(rewards)
        is_flat = spread <= _LEAST * max(1.0, max(map(abs, rewards)))
        flat += [" ".join(key)] if is_flat else []
        for i, agent, reward in group:
            gain = 0.0 if is_flat else reward - mean
            found[i][agent] = gain / spread if scale and not is_flat else gain
    return Advantages(found, len(members), flat, unpaid)


def _who(rollout: Rollout, agent: str, baseline: Baseline) -> tuple[str, ...]:
    if baseline == "shared":
        return ()
    return (agent if baseline == "agent" else rollout.task.case.roles.get(agent, "default"),)
