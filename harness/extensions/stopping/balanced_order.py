"""A random order of a run's episodes, in blocks of equal make-up: each holds as many cases of every condition.

A unit is what tables take for one observation (`cluster:` of the spec, by default the repeats of a case, in all
conditions that have it), whole. Units come in random order, which the run's seed decides. So blocks are independent,
each is a small picture of the whole plan, and a sequence may be ended after any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from harness.api import derive_seed
from harness.config.plan import Job, Plan, episode_id, problem_digest
from harness.runtime.scoring import labels
from harness.tables import EpisodeScore
from harness.tables.scores import cluster_of

Weight = dict[str, float]
"""Id of an episode → its weight in the mean of all."""


@dataclass
class _Unit:
    """Episodes that are one observation: their places in the plan, and the conditions that they are of."""

    jobs: list[int] = field(default_factory=list)
    conditions: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True)
class Blocks:
    """The episodes of a plan in blocks.

    Attributes:
        order: the episodes, block by block.
        ids: ids of the episodes of each block.
        scale: id → by how much the episode's weight counts more in its block, so that every block estimates the whole.
    """

    order: Sequence[Job]
    ids: Sequence[Sequence[str]]
    scale: Weight

    @classmethod
    def of(
        cls, plan: Plan, episodes: Sequence[Job], cluster: Sequence[str], covers: Callable[[EpisodeScore], bool]
    ) -> Blocks:
        """Those of a plan. There are as many as the condition with the fewest units has.

        Args:
            plan: what is played.
            episodes: all its episodes.
            cluster: which episodes are one observation, as in tables.
            covers: whether an episode counts for what is to be known; the others are spread over all blocks.
        """
        units: dict[Hashable, _Unit] = {}
        order_keys: dict[Hashable, int] = {}
        names, covered = [], set[int]()
        for i, (condition, case, repeat) in enumerate(episodes):
            name, problem = episode_id(condition, case, repeat), problem_digest(condition.task, case)
            score = EpisodeScore(name, condition.id, labels(plan, condition, case), problem=problem)
            names.append(score.id)
            key: tuple[str, ...] = cluster_of(score, cluster)
            unit = units.setdefault(key, _Unit())
            unit.jobs.append(i)
            unit.conditions[condition.id] = None
            shared: tuple[object, ...] = (case.id, repeat) if "episode" in cluster else key if cluster else (case.id,)
            order_keys[key] = derive_seed(plan.seed, "order", *shared)
            if covers(score):
                covered.add(i)
        by_conditions: dict[Hashable, list[int]] = {}
        drawn = [units[key] for key in sorted(units, key=order_keys.__getitem__)]
        for k, unit in enumerate(drawn):
            by_conditions.setdefault(tuple(sorted(unit.conditions)), []).append(k)
        counts = [any(i in covered for i in unit.jobs) for unit in drawn]
        strata = sorted((own for own in by_conditions.values() if any(counts[k] for k in own)), key=len)
        rest = [own for own in by_conditions.values() if not any(counts[k] for k in own)]
        if cluster:
            count = len(strata[0]) if strata else 0
        else:
            sizes = Counter(name for unit in drawn for name in unit.conditions)
            count = min((sizes[episodes[i][0].id] for i in covered), default=0)
            while len(strata) > 1 and len(strata[0]) < count:  # too few units are in just these conditions
                strata = sorted([sorted(strata[0] + strata[1]), *strata[2:]], key=len)
        if cluster and "episode" not in cluster and count < 2 < len(units):
            # Clusters of so many kinds have no balance: any order of them is as good.
            strata, rest, count = [[*range(len(drawn))]], [], sum(counts)
        return cls(*_cut(episodes, names, [[drawn[k] for k in own] for own in strata + rest], count))


def _cut(
    episodes: Sequence[Job], names: Sequence[str], strata: Sequence[Sequence[_Unit]], count: int
) -> tuple[list[Job], list[list[str]], Weight]:
    """(order, ids, scale): each stratum cut into `count` parts, whose sizes differ by one at most."""
    blocks: list[list[int]] = [[] for _ in range(count)]
    scale: Weight = {}
    for own in strata:
        for b in range(count):
            part = own[b * len(own) // count : (b + 1) * len(own) // count]
            for i in (i for unit in part for i in unit.jobs):
                blocks[b].append(i)
                scale[names[i]] = len(own) / len(part)
    order = [episodes[i] for block in blocks for i in sorted(block)]
    return order, [[names[i] for i in sorted(block)] for block in blocks], scale
