"""What a reader must know beside a table's numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from .scores import NOT_RUN, EpisodeScore, by_condition, numbers
from .spec import TableSpec
from .table import Published, text


def notes(
    table: TableSpec, scores: Sequence[EpisodeScore], references: Sequence[Published], unplaced: int
) -> tuple[str, ...]:
    """The entry's own note, what is not in the numbers and why, and where published figures come from."""
    found = [table.note] if table.note else []
    if table.figure == "stacked":
        found.append("Values are shares of a stack: each series contributes its mean divided by the number of series.")
    if not scores:
        found.append("There are no episodes to show.")
    found += _spreads(table)
    found += _left_out(scores)
    for metric in table.cells:
        found += _without_number(table, scores, metric)
    for reference in references:
        found.append(f"† published: {reference.source}; not run here.")
        found += [f"† {warning}" for warning in reference.warnings]
        found += _coverage(table, reference, scores)
    if unplaced:
        found.append(f"† {unplaced} published figures have no place in this table's rows and columns.")
    return tuple(dict.fromkeys(found))  # two published tables may come with the same warning


def _spreads(table: TableSpec) -> Iterable[str]:
    """What stands beside the values, where it is not the same standard error or Wilson interval everywhere."""
    kinds = {kind: [metric for metric in table.cells if table.error.get(metric) == kind] for kind in _MEANINGS}
    named = {kind: metrics for kind, metrics in kinds.items() if metrics}
    everywhere = len(named) == 1 and list(named.values()) == [list(table.cells)]
    if everywhere and named.keys() <= {"sem", "wilson"}:
        return
    for kind, metrics in named.items():
        shown = ", ".join(table.labels.get(metric, metric) for metric in metrics)
        yield f"{_MEANINGS[kind]}{'' if everywhere else f': {shown}'}."


_MEANINGS: Final = {
    "sem": "Beside the value its standard error",
    "std": "Beside the value the standard deviation of its episodes (population)",
    "t": "In brackets the 95 % t interval of the mean",
    "wilson": "In brackets the 95 % Wilson interval",
}


def _left_out(scores: Sequence[EpisodeScore]) -> Iterable[str]:
    absent = [score for score in scores if score.error == NOT_RUN]
    failed = [score for score in scores if score.failed]
    if failed:
        yield f"{len(failed)} of {len(scores)} episodes failed and count in no number: {_where(failed)}."
    if absent:
        yield f"{len(absent)} of {len(scores)} episodes were not run: {_where(absent)}."


def _without_number(table: TableSpec, scores: Sequence[EpisodeScore], metric: str) -> Iterable[str]:
    played = [score for score in scores if score.error is None]
    known = len(numbers(played, metric))
    if known < len(played):
        share = f"{len(played) - known} of {len(played)}" if known else f"any of the {len(played)}"
        yield f"{metric} has no number in {share} episodes."
    if known and "mean_of_conditions" in (table.aggregate, table.overall):
        groups = by_condition(scores).values()
        if empty := sum(not numbers(group, metric) for group in groups):
            yield f"{empty} of {len(groups)} conditions have no number for {metric} and are left out of its means."
        single = sum(len(numbers(group, metric)) == 1 for group in groups)
        if table.error.get(metric) == "sem" and single:
            share = f"{single} of {len(groups)} conditions"
            yield f"{share} have a single number for {metric}: no standard error with them."
    if table.error.get(metric) == "wilson" and any(x not in (0, 1) for x in numbers(played, metric)):
        yield f"{metric} is not 0 or 1 in every episode: it has no Wilson interval."


def _coverage(table: TableSpec, reference: Published, scores: Sequence[EpisodeScore]) -> Iterable[str]:
    """Means over other values are other means: say where the run's differ from the publication's."""
    for label, values in reference.covers.items():
        if label in (*table.rows, *table.columns) and not table.overall:
            continue  # nothing is averaged over it
        theirs = list(map(text, values))
        ours = list(dict.fromkeys(text(score.labels[label]) for score in scores if label in score.labels))
        if ours and set(ours) != set(theirs):
            listed = f"{label} {', '.join(theirs)}; this run {label} {', '.join(ours)}"
            yield f"† {reference.source} covers {listed}: not comparable as a whole."


def _where(scores: Iterable[EpisodeScore]) -> str:
    counts = Counter(score.condition for score in scores)
    listed = [f"{condition} ({count})" for condition, count in list(counts.items())[:3]]
    return ", ".join(listed) + (f", and in {len(counts) - 3} more" if len(counts) > 3 else "")
