"""Means corrected for a judge's known errors: prediction-powered inference from the episodes that people labelled."""

from __future__ import annotations

import math
import statistics
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from harness.tables import Cell, Column, EpisodeScore, NumberForm, Row, Table, stats
from harness.tables.scores import cluster_of

MIN_LABELLED: Final = 5
"""Labelled observations below which nothing is corrected."""
ENOUGH: Final = 50
"""Labelled episodes from which intervals of numbers without bounds cover what they promise, even where the judge rarely
errs."""
_IMAGINED: Final = 0.5
"""How many further labelled observations are imagined, on which the judge errs by the whole range: the few errors of a
good judge are often not among few labels, and its interval would be too narrow."""
FEW: Final = (
    f"Fewer than {ENOUGH} labelled episodes: where the judge rarely errs, the corrected mean is less sure than its "
    "interval says."
)
_COLUMNS: Final[dict[str, tuple[str, NumberForm]]] = {
    "labelled": ("Labelled", "count"),
    "episodes": ("Episodes", "count"),
    "judge": ("Judge's mean", "quantity"),
    "people": ("People's mean", "quantity"),
    "corrected": ("Corrected mean", "quantity"),
    "weight": ("Weight of the judge", "plain"),
}


@dataclass(frozen=True, slots=True)
class Corrected:
    """A corrected mean.

    Attributes:
        mean: what people would give on average over all episodes.
        interval: 95 %.
        weight: λ, how much the judge counts: 0 where its ratings say nothing of people's.
    """

    mean: float
    interval: stats.Interval
    weight: float


def corrected(
    rated: Mapping[str, float],
    labels: Mapping[str, float],
    clusters: Mapping[str, Hashable],
    within: tuple[float, float] = (-math.inf, math.inf),
) -> Corrected | None:
    """The mean of people's labels over all episodes, by a judge that rated all and people that labelled some.

    Of n labelled episodes with labels Y and ratings f, and N others with ratings f, it is mean(Y) + λ (mean of f over
    the N − mean of f over the n), with the λ that makes its variance least (Angelopoulos et al., 2023,
    "Prediction-powered inference", and "PPI++"). It is right however wrong the judge is, if the labelled episodes are a
    random sample. Standard errors are clustered; the quantile is that of Student's t with the labelled clusters. Within
    bounds half an observation is added on which the judge errs as far as it can (`_IMAGINED`).
    `benchmarks/sample_sizes.py` measures coverage.

    Args:
        rated: episode → the judge's number.
        labels: episode → people's number.
        clusters: episode → what is one observation.
        within: the bounds of a single label, beyond which no mean is.

    Returns:
        None with fewer than five labelled observations, or none that is not labelled.
    """
    both = [episode for episode in labels if episode in rated]
    others = [episode for episode in rated if episode not in labels]
    count = len({clusters[episode] for episode in both})
    if count < MIN_LABELLED or not others:
        return None
    people = [labels[episode] for episode in both]
    seen, unseen = [rated[episode] for episode in both], [rated[episode] for episode in others]
    own, center, rest = statistics.fmean(people), statistics.fmean(seen), statistics.fmean(unseen)
    parts = {key: [0.0, 0.0] for key in dict.fromkeys(clusters[episode] for episode in (*both, *others))}
    for episode, label in zip(
        both, people, strict=True
    ):  # what each cluster adds to mean(Y), and to the difference of f
        parts[clusters[episode]][0] += (label - own) / len(both)
        parts[clusters[episode]][1] -= (rated[episode] - center) / len(both)
    for episode in others:
        parts[clusters[episode]][1] += (rated[episode] - rest) / len(others)
    squares = math.fsum(judge * judge for _, judge in parts.values())
    together = math.fsum(label * judge for label, judge in parts.values())
    weight = min(1.0, max(0.0, -together / squares)) if squares > 1e-30 else 0.0
    mean = own + weight * (rest - center)
    low, high = within
    error = count / (count - 1) * math.fsum((label + weight * judge) ** 2 for label, judge in parts.values())
    if math.isfinite(high - low):
        error += _IMAGINED * weight * ((high - low) / (count + 2)) ** 2
    error = math.sqrt(error)
    mean = min(high, max(low, mean))
    found = error > 1e-15 and stats.interval_around(mean, error, max(1, count - 1), within)
    return Corrected(mean, found[0], weight) if found else None


def corrected_table(
    metric: str,
    scores: Sequence[EpisodeScore],
    labels: Mapping[str, Mapping[str, float]],
    cluster: Sequence[str],
    within: tuple[float, float],
) -> Table | None:
    """A row for each model: the judge's mean, people's, and the corrected one; None where nothing can be corrected.

    Of several people that labelled an episode the mean counts.
    """
    people: dict[str, list[float]] = {}
    for by_episode in labels.values():
        for episode, label in by_episode.items():
            people.setdefault(episode, []).append(label)
    means = {episode: statistics.fmean(own) for episode, own in people.items()}
    low, high = within
    if not all(low <= label <= high for label in means.values()):
        low, high = within = (-math.inf, math.inf)
    rows = []
    for model in dict.fromkeys(score.model for score in scores):
        own = {s.id: s for s in scores if s.model == model and s.number(metric) is not None}
        rated = {episode: number for episode, s in own.items() if (number := s.number(metric)) is not None}
        mine = {episode: label for episode, label in means.items() if episode in rated}
        clusters = {episode: cluster_of(score, cluster) for episode, score in own.items()}
        found = corrected(rated, mine, clusters, within)
        if found is None:
            continue
        judge, person = (
            stats.interval([[(clusters[episode], x) for episode, x in numbers.items()]], within) or (None, None)
            for numbers in (rated, mine)
        )
        cells = (
            Cell(len(mine), n=len(mine)),
            Cell(len(rated), n=len(rated)),
            Cell(statistics.fmean(rated.values()), n=len(rated), low=judge[0], high=judge[1]),
            Cell(statistics.fmean(mine.values()), n=len(mine), low=person[0], high=person[1]),
            Cell(found.mean, n=len(rated), low=found.interval[0], high=found.interval[1]),
            Cell(found.weight, n=len(mine)),
        )
        rows.append(Row({"model": model}, (model,), cells))
    if not rows:
        return None
    return Table(
        title=f"Means of {metric}, corrected by people's labels",
        row_labels=("model",),
        column_labels=("statistic",),
        columns=tuple(Column({"statistic": name}, (title,), form=form) for name, (title, form) in _COLUMNS.items()),
        rows=tuple(rows),
        row_names=("Model",),
        error="interval",
        notes=(
            "Corrected: what people would give on average over all episodes, by prediction-powered inference (PPI++; "
            "Angelopoulos et al., 2023). It holds however wrong the judge is, if the labelled episodes are a random "
            "sample of all. In brackets: 95 % intervals. Weight: how much the judge's ratings say of people's, from 0 "
            "to 1.",
            *([FEW] if math.isinf(high - low) and any((row.cells[0].value or 0) < ENOUGH for row in rows) else []),
        ),
    )
