"""Several runs of one spec side by side: one row a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.api import Metric
from harness.errors import DataError
from harness.tables import EpisodeScore, Published, Table, TableSpec, build, text


@dataclass(frozen=True, slots=True)
class RunScores:
    """A finished run: its `run.json`, its `scores.jsonl`, and what its spec shows of them."""

    run: Mapping[str, Any]
    scores: Sequence[EpisodeScore]
    tables: Sequence[TableSpec]
    metrics: Mapping[str, Metric]


def leaderboard(runs: Sequence[RunScores], published: Iterable[Published] = ()) -> list[Table]:
    """The tables of the runs' common spec over all their episodes.

    Tables that do not group by model are split by it. A model that was run more than once appears once for each
    run, as `<model> (<run id>)`. Where the runs' `generation_kwargs` differ, every table says how.

    Raises:
        DataError: without runs, if a run is given twice, or if runs come from different specs.
    """
    if not runs:
        raise DataError("a leaderboard needs at least one run", hint="Give the folders of finished runs.")
    _refuse_incomparable(runs)
    published = list(published)
    scores = _merged(runs)
    note = _differences(runs)
    tables = [build(table, scores, runs[0].metrics, published) for table in runs[0].tables]
    return [replace(table, notes=(*table.notes, note)) if note else table for table in tables]


def _id(run: RunScores) -> str:
    return text(run.run.get("run"))


def _refuse_incomparable(runs: Sequence[RunScores]) -> None:
    first = runs[0]
    for run in runs:
        if not run.run.get("spec_digest"):
            raise DataError(f"run {_id(run)} does not say which spec it ran: no spec_digest in its run.json")
        if run.run["spec_digest"] != first.run["spec_digest"]:
            raise DataError(
                f"run {_id(run)} cannot be compared with {_id(first)}: they ran different specs "
                f"({text(run.run.get('spec'))}, digest {text(run.run['spec_digest'])[:12]}; "
                f"{text(first.run.get('spec'))}, digest {text(first.run['spec_digest'])[:12]})",
                hint="Compare the spec.yaml in the two run folders, or make a leaderboard for each spec.",
            )
    for name, count in Counter(map(_id, runs)).items():
        if count > 1:
            raise DataError(f"run {name} is given {count} times")


def _merged(runs: Sequence[RunScores]) -> list[EpisodeScore]:
    """All scores; models of the same name in different runs are told apart by the run's id."""
    owners = Counter(model for run in runs for model in {score.model for score in run.scores})
    found = []
    for run in runs:
        for score in run.scores:
            name = f"{score.model} ({_id(run)})" if owners[score.model] > 1 else score.labels.get("model")
            found.append(replace(score, labels={**score.labels, "model": name}))
    return found


def _differences(runs: Sequence[RunScores]) -> str | None:
    """The generation settings that are not the same in all runs, run by run."""
    settings = [dict(run.run.get("generation_kwargs") or {}) for run in runs]
    names = sorted(set().union(*settings))
    differing = [name for name in names if len({text(s[name]) if name in s else None for s in settings}) > 1]
    if not differing:
        return None
    listed = (
        f"{_id(run)}: " + ", ".join(f"{n}={text(s[n]) if n in s else 'unset'}" for n in differing)
        for run, s in zip(runs, settings, strict=True)
    )
    return f"The runs differ in generation_kwargs. {'; '.join(listed)}."
