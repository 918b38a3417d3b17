"""What boards with one model a record take of a run: its headline, where one model played it alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from harness.api.errors import DataError
from harness.evaluation.run import Run
from harness.tables import Cell


def one_model(run: Run) -> str:
    """The name of the model that played the run. An engine that only answers the calls of its programs plays none.

    Raises:
        DataError: no model played, or several did: a board's record has room for one.
    """
    engines = seated_engines(run)
    if run.meta.get("policies_only") or not engines:
        raise DataError(f"{run.folder}: no model played, and boards list models", hint="Export a model's run.")
    if len(engines) > 1:
        names = ", ".join(map(str, engines))
        hint = "A board's record has one model. The forms hub, parquet and inspect hold groups of several."
        raise DataError(f"{run.folder}: {len(engines)} models played ({names:.200})", hint=hint)
    return str(run.meta["model"])


def seated_engines(run: Run) -> Mapping[str, Any]:
    """Name → fields of the engines that play a seat of the run."""
    engines: Mapping[str, Any] = run.meta.get("engine_args") or {}
    answering = {str(inner.get("engine")) for inner in (run.meta.get("inner") or {}).values()}
    played = {name for score in run.scores for name in score.turns}
    return {name: fields for name, fields in engines.items() if name not in answering or name in played}


def declared_headline(run: Run) -> Cell:
    """The run's headline, which says whether more is better.

    Raises:
        DataError: the spec names none, or the run has no number for it.
    """
    if not run.metrics or not run.headline.declared:
        hint = "Boards rank by one number: give the spec a `headline: {metric: …, better: higher}`."
        raise DataError(f"{run.spec.name} names no headline", hint=hint)
    cell = run.headline.cell(run.scores)
    if cell.value is None:
        why = run.headline_missing or f"no episode has a number for {run.headline.metric}"
        raise DataError(f"{run.folder} has no headline: {why}")
    return cell


def file_stem(name: str) -> str:
    """A name as that of a file: letters, digits, `-`, `_` and `.`, which does not begin with a dot."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name).lstrip(".") or "run"
