"""What `harness compare` and the viewer show of two runs, or of two parts of one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from harness.api.errors import DataError, UserError, near
from harness.config import resolve
from harness.config.plan import QUESTIONS
from harness.config.project import Project
from harness.evaluation.run import Run
from harness.tables import HeadlineSpec, Table

from . import comparison
from .amount import Amount
from .run_pair import RunPart


@dataclass(frozen=True)
class Comparison:
    """What `harness compare` shows.

    Attributes:
        pairs: the episodes of the same case on both sides.
        headline: the number that represents the runs.
        tables: what differs, the tests, the cases that differ most.
        unchecked: why it is not known whether cases of one id ask the same; None: it is.
    """

    pairs: comparison.Pairs
    headline: HeadlineSpec
    tables: Sequence[Table]
    unchecked: str | None


def comparison_of(
    a: RunPart,
    b: RunPart,
    project: Project,
    metrics: Sequence[str] | None = None,
    chosen: Collection[str] = (),
    margin: Amount | None = None,
) -> Comparison:
    """Compare two sides case by case.

    Args:
        a, b: the sides.
        project: where the plugins of their cases are.
        metrics: which; by default the headline, the metrics beside it, and those of the first table.
        chosen: labels by whose values episodes were chosen.
        margin: below it a difference counts as none.

    Raises:
        DataError: no case is common, or there is no such metric on both sides.
    """
    first, second = a.run, b.run
    questions, unchecked = _questions(a, b, project)
    pairs = comparison.pair(a, b, questions)
    headline, note = _headline(first, chosen)
    names = metrics or _usual(first, headline)
    for name in names:
        if name not in first.metrics or name not in second.metrics:
            both = [name for name in first.metrics if name in second.metrics]
            raise DataError(f"there is no metric {name!r} on both sides", hint=near(name, both))
    titles = {key: value for table in reversed(first.table_specs) for key, value in table.labels.items()}
    tested = comparison.compared(a, b, pairs, headline, names, titles, margin)
    if note:
        tested = replace(tested, notes=(*tested.notes, note))
    tables = comparison.differences(a, b, pairs), tested, comparison.most_different(a, b, pairs, headline)
    return Comparison(pairs, headline, tables, unchecked)


def _headline(run: Run, chosen: Collection[str]) -> tuple[HeadlineSpec, str | None]:
    """The headline; without its `where:`, and with a note, where episodes were chosen by one of its labels."""
    headline = run.headline
    if headline.table.where.keys().isdisjoint(chosen):
        return headline, None
    plain = replace(headline.table, where={}, title=headline.metric)
    note = f"{headline.metric} is not {headline.name}, which is about {headline.where} only."
    return replace(headline, table=plain), note


def _usual(run: Run, headline: HeadlineSpec) -> list[str]:
    """The headline, what is beside it, and the metrics of the spec's first table."""
    first = next((table.cells for table in run.table_specs), ())
    return [name for name in dict.fromkeys([headline.metric, *first, *headline.also_show]) if name in run.metrics]


def _questions(
    a: RunPart, b: RunPart, project: Project
) -> tuple[tuple[comparison.Digest, comparison.Digest] | None, str | None]:
    """(what the cases of both ask, or None if run.json of two runs says that all are the same; why that is not
    known)."""
    asked = [(side.run.meta.get("cases") or {}).get(QUESTIONS) for side in (a, b)]
    if a.run is not b.run and asked[0] is not None and asked[0] == asked[1]:
        return None, None
    try:
        return (_digests(a, project), _digests(b, project)), None
    except UserError as error:
        return None, f"not checked whether cases of one id ask the same: {' '.join(error.message.split())}"


def _digests(side: RunPart, project: Project) -> comparison.Digest:
    from harness.engines.mock import Mock

    wanted = {(score.condition, score.case) for score in side.scores}
    return {
        (condition.id, case.id): comparison.case_digest((case.public, case.private, case.topology))
        for condition, case, repeat in resolve.plan(side.run.spec, project, Mock()).episodes()
        if repeat == 0 and (condition.id, case.id) in wanted
    }
