"""All pairs of models of a benchmark: which differ significantly, and what that says of their ranks."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.extensions.analysis import paired
from harness.tables import EpisodeScore, HeadlineSpec, stats

Episodes = Mapping[str, EpisodeScore]
"""Id → episode."""


@dataclass(frozen=True, slots=True)
class ModelPair:
    """Two models in one benchmark.

    Attributes:
        models: their names.
        strata: what the second has more than the first, on their common episodes.
        pvalue: of the sign-flip test; None if there is none.
    """

    models: tuple[str, str]
    strata: Sequence[stats.Stratum]
    pvalue: float | None


@dataclass(frozen=True, slots=True)
class ModelPairs:
    """What the tests of all pairs of models came to.

    Attributes:
        worse: the pairs (worse, better) that differ significantly.
        tested: how many pairs have a test.
        clusters: for each pair how many clusters the two have in common.
        tests: of each pair.
    """

    worse: set[tuple[str, str]]
    tested: int
    clusters: Sequence[int]
    tests: Sequence[ModelPair] = ()


def significant(headline: HeadlineSpec, models: Mapping[str, Episodes]) -> ModelPairs:
    """Test every pair at 0.05, after Holm's correction.

    The episodes of a model are read once, not once a pair: 100 models are 4,950 pairs.
    """
    metric, cluster = headline.metric, headline.table.cluster
    conditions = headline.table.aggregate == "mean_of_conditions"
    sides: dict[str, dict[str, paired.CaseNumber]] = {}
    for model, episodes in models.items():
        seen = {
            name: paired.one_side((score,), metric, cluster, conditions=conditions) for name, score in episodes.items()
        }
        sides[model] = {name: side for name, side in seen.items() if side is not None}
    tested, clusters, every = list[tuple[tuple[str, str], float, float]](), list[int](), list[ModelPair]()
    for (a, first), (b, second) in itertools.combinations(sides.items(), 2):
        strata = paired.differences((side, second[name]) for name, side in first.items() if name in second)
        clusters.append(len({key for stratum in strata for key, _ in stratum}))
        every.append(ModelPair((a, b), strata, pvalue := paired.sign_flip(strata)))
        if pvalue is not None:
            mean = statistics.fmean(statistics.fmean(x for _, x in stratum) for stratum in strata)
            tested.append(((a, b), mean, pvalue))
    adjusted = stats.holm([pvalue for _, _, pvalue in tested])
    significant = [(names, mean) for (names, mean, _), p in zip(tested, adjusted, strict=True) if p < 0.05]
    worse = {(a, b) if (mean > 0) == (headline.better == "higher") else (b, a) for (a, b), mean in significant}
    return ModelPairs(worse, len(tested), clusters, every)


def rank_notes(pairs: ModelPairs, what: str) -> Iterable[str]:
    """How ranks come about, and where no difference could be significant: n clusters have no p below 2 / 2^n."""
    tests, every, most = pairs.tested, len(pairs.clusters), max(pairs.clusters, default=0)
    if not every:
        return
    if not tests:
        yield f"Rank: no two models can be tested: they differ in no episode, or have fewer than two {what} in common."
        return
    count = f"{tests} of {every} pairs" if tests < every else "one pair" if every == 1 else f"all {every} pairs"
    rest = "; the others cannot be tested" if tests < every else ""
    yield (
        "Rank: the ranks that a model may have, given which models differ significantly (exact sign-flip "
        f"test, paired by episode, p < 0.05 after Holm's correction for {count} of models{rest})."
    )
    if tests * 2.0 ** (1 - most) >= 0.05:
        needed = next(n for n in itertools.count(most + 1) if tests * 2.0 ** (1 - n) < 0.05)
        corrected = f" after the correction for {tests} pairs" if tests > 1 else ""
        yield (
            f"Too few {what} to separate any two models: they have at most {most} in common, and {needed} must differ "
            f"before p can be below 0.05{corrected}."
        )
    elif few := sum(0 < clusters < paired.MIN_PAIRS for clusters in pairs.clusters):
        yield (
            f"{few} of {every} pairs of models cannot be separated: they have fewer than {paired.MIN_PAIRS} {what} in "
            "common, so p cannot be below 0.05."
        )
