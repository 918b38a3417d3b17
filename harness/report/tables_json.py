"""`tables.json`: a run's tables and headline as it wrote them, so that readers need not make them again.

It counts only for the `scores.jsonl` and `spec.yaml` beside it, whose digest it holds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from harness import storage
from harness.api.run_files import SCORES, SPEC, TABLES
from harness.tables import EpisodeScore, HeadlineSpec, Table, error_of

from .grid import cell_text, grid

SCHEMA: Final = 1
_OF: Final = (SCORES, SPEC)


def results(tables: Sequence[Table], headline: HeadlineSpec, scores: Sequence[EpisodeScore]) -> dict[str, Any]:
    """The run's `headline` and `tables` as JSON, each table with its texts as reports show them (`grid`), and of a heat
    map the numbers that are palest and strongest (`heat`)."""
    drawn = [
        {**table.to_json(), "grid": asdict(grid(table)), "heat": table.heat if table.figure == "heat" else None}
        for table in tables
    ]
    for table in drawn:
        table["grid"]["best"] = sorted(table["grid"]["best"])
    return {"tables": drawn, "headline": _headline(headline, scores)}


def _headline(headline: HeadlineSpec, scores: Sequence[EpisodeScore]) -> dict[str, Any] | None:
    """The number that represents the run, and as readers see it; None if there is none. `why`: why it is missing, if
    too few turns were read."""
    table, unread = headline.filled(scores), headline.unread(scores)
    if not table.rows or ((cell := table.rows[0].cells[0]).value is None and not unread):
        return None
    shown = cell_text(cell, error_of(table.error, headline.metric), table, headline.metric)
    numbers = {name: getattr(cell, name) for name in ("value", "low", "high", "n")}
    known = {"name": headline.title, "metric": headline.metric, "better": headline.better, "text": shown, **numbers}
    return {**known, "why": next(iter(unread.values()))} if unread else known


def write(folder: Path, document: Mapping[str, Any]) -> None:
    """Write `results` beside the scores and the spec that they are of."""
    whole = {"schema": SCHEMA, "of": digest(folder), **document}
    storage.write_atomically(folder / TABLES, json.dumps(whole, default=str) + "\n")


def digest(folder: Path) -> str:
    """What changes when a run's scores or its spec do."""
    whole = hashlib.sha256()
    for name in _OF:
        with (folder / name).open("rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()
