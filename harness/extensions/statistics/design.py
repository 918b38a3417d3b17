"""From scored episodes to variance components: what is a unit, which means are fixed, which effects are random."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from harness.tables.scores import EpisodeScore, cluster_of, numbers
from harness.tables.table import text

from .components import Components, components

CASE: Final = "case"
CONDITION: Final = "condition"
OF_CONDITION: Final = f"{CASE} × {CONDITION}"
REST: Final = "repeat"
"""What one repeat of a case differs in from the next: sampling, and what else is drawn anew."""


@dataclass(frozen=True, slots=True)
class Design:
    """The components of a metric, and how many units and repeats are behind them.

    Attributes:
        found: the estimates; None where there are too few numbers.
        units: how many units (cases, clusters) there are.
        repeats: how many numbers a unit has in one fixed condition, on average.
        models: how many models there are.
        averaged: component, or "condition" → how many of its levels are in the mean of a model's unit, on average.
    """

    found: Components | None
    units: int
    repeats: float
    models: int
    averaged: Mapping[str, float]

    @property
    def unit(self) -> float | None:
        """Variance of units that all models have in common; None if it cannot be told from that of repeats."""
        return None if self.found is None or CASE in self.found.alike else self.found.variance(CASE)

    @property
    def of_unit(self) -> float:
        """Variance of the mean of a model's unit over all that it is played in, without that of repeats."""
        return self._mean([CASE, *self._parts()])

    @property
    def own(self) -> float:
        """What of `of_unit` another model does not have in common with this one."""
        return self._mean([name for name in self._parts() if name != OF_CONDITION])

    def _parts(self) -> list[str]:
        return [name for name in self.averaged if name.startswith(f"{CASE} × ")]

    def _mean(self, names: Sequence[str]) -> float:
        return math.fsum(self.found.variance(name) / self.averaged[name] for name in names) if self.found else 0.0

    @property
    def rest(self) -> float:
        """Variance of repeats; with that of units, where these cannot be told apart."""
        return max(0.0, self.found.rest.variance) if self.found else 0.0


def design(
    scores: Iterable[EpisodeScore],
    metric: str,
    cluster: Sequence[str] = (),
    factors: Sequence[str] = (),
    *,
    intervals: bool = True,
) -> Design:
    """The components of the episodes' numbers.

    Fixed is the mean of each model in each condition, apart from the labels that are factors. A unit is what tables
    count as one observation (`cluster`). Units that several models have in common also have an effect of the model
    for each, and those of several conditions one of the condition.

    Args:
        scores: the episodes; those without a number are left out.
        metric: its name. Numbers of a ratio are the linear ones of each condition.
        cluster: which episodes are one observation, as in tables.
        factors: further labels whose values are random effects.
        intervals: whether to compute them.
    """
    used = [score for score in scores if score.number(metric) is not None]
    swept = _swept(used)
    fixed = [label for label in swept if label not in factors and label != "model"]
    cells: dict[tuple[str, Hashable], list[EpisodeScore]] = {}
    for score in used:
        cells.setdefault(_cell(score, fixed, swept), []).append(score)
    values, keys, kept = list[float](), list[tuple[str, Hashable]](), list[EpisodeScore]()
    for key, group in cells.items():
        values += numbers(group, metric)
        keys += [key] * len(group)
        kept += group
    units = [_unit(score, cluster, fixed, swept) for score in kept]
    levels: dict[str, Sequence[Hashable]] = {CASE: units}
    for name, of in (("model", [s.model for s in kept]), (CONDITION, [key[1] for key in keys])):
        pairs = list(zip(units, of, strict=True))
        if len({*of}) > 1 and len({*pairs}) > len({*units}):
            levels[f"{CASE} × {name}"] = pairs
    for factor in factors:
        levels[factor] = [text(score.labels.get(factor)) for score in kept]
    if factors and len(together := [*zip(keys, units, *(levels[factor] for factor in factors), strict=True)]) > len(
        {*together}
    ):
        levels[" × ".join((CASE, *factors))] = together
    found = components(values, keys, levels, units, intervals=intervals) if kept else None
    blocks = len({*zip(keys, units, *(levels[factor] for factor in factors), strict=True)})
    models = len({score.model for score in kept})
    each = [*zip(units, (score.model for score in kept), strict=True)]
    of_each = {**levels, CONDITION: [key[1] for key in keys], REST: range(len(kept))}
    averaged = {name: len({*zip(each, of, strict=True)}) / max(1, len({*each})) for name, of in of_each.items()}
    return Design(found, len({*units}), len(kept) / max(1, blocks), models, averaged)


def _swept(scores: Sequence[EpisodeScore]) -> list[str]:
    """The labels that have one value in each condition, and several in all; "condition" where these do not say all."""
    first: dict[str, EpisodeScore] = {}
    vary: dict[str, set[str]] = {}
    within: set[str] = set()
    for score in scores:
        one = first.setdefault(score.condition, score)
        for label, value in score.labels.items():
            vary.setdefault(label, set()).add(text(value))
            if text(one.labels.get(label)) != text(value):
                within.add(label)
    return [label for label, values in vary.items() if label not in within and len(values) > 1]


def _cell(score: EpisodeScore, fixed: Sequence[str], swept: Sequence[str]) -> tuple[str, Hashable]:
    """(model, its condition without the labels that are factors)."""
    if set(swept) - {"model"} == set(fixed):
        return score.model, score.condition
    return score.model, tuple(text(score.labels.get(label)) for label in fixed)


def _unit(score: EpisodeScore, cluster: Sequence[str], fixed: Sequence[str], swept: Sequence[str]) -> Hashable:
    """What tables count as one observation; a case played with several values of a factor is one case."""
    return cluster_of(score, cluster) if cluster or score.problem else (_cell(score, fixed, swept)[1], score.case)
