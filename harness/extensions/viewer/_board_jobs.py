"""What the pages over several runs show, as `harness leaderboard` and `harness compare` compute it: jobs of the process
that loads plugins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from harness.api import CorpusMetric
from harness.config.project import Project
from harness.evaluation.load_run import load_run
from harness.extensions.analysis.compared_runs import comparison_of
from harness.extensions.analysis.comparison import Differing, differing
from harness.extensions.analysis.leaderboard_command import leaderboard_of
from harness.extensions.analysis.overall import overall
from harness.extensions.analysis.run_pair import two_parts, two_runs
from harness.extensions.analysis.section import Section
from harness.report.grid import grid
from harness.tables import EpisodeScore, Table

from ._run_list import url_id

MAX_CASES: Final = 500
"""Cases of a metric that a comparison lists."""


def leaderboard(project: Project, root: Path) -> dict[str, Any]:
    """The leaderboard of a folder. Errors as in `leaderboard_of`."""
    made = leaderboard_of([root], project)
    boards = made.boards
    return {
        "overall": drawn(overall(boards)) if len(boards) > 1 else None,
        "sections": [_section(one, root) for one in made.sections],
        "origin": drawn(made.origin),
        "apart": [line.replace(f"{root}/", "") for line in made.apart],
        "doubts": list(made.doubts),
    }


def _section(section: Section, root: Path) -> dict[str, Any]:
    board = section.board
    return {
        "name": board.name,
        "spec": section.spec,
        "is_main": section.is_main,
        "headline": {"title": board.headline.title, "better": board.headline.better},
        "standings": drawn(board.table()),
        "tables": [drawn(table) for table in section.tables],
        "runs": {model: _id(run.folder, root) for model, (_, run) in section.run_of().items()},
    }


def _id(folder: Path, root: Path) -> str:
    """The id of a run in the list of runs."""
    name = folder.resolve().relative_to(root.resolve()).as_posix()
    return url_id(root.resolve().name if name == "." else name)


def comparison(project: Project, one: Path, other: Path, parts: tuple[str, str, str] | None = None) -> dict[str, Any]:
    """Two runs side by side: tables, and of each metric the cases in which they differ, at most `MAX_CASES`.

    `parts`: a label and two of its values, which are the sides; both are parts of `one`. Errors as in `comparison_of`.
    """
    if parts is None:
        a, b = two_runs(load_run(one, project), load_run(other, project))
    else:
        a, b = two_parts(load_run(one, project), *parts)
    made = comparison_of(a, b, project, chosen=parts[:1] if parts is not None else ())
    metrics = [made.headline.metric, *(name for name in a.run.metrics if name != made.headline.metric)]
    cases = {}
    for name in metrics:
        if name not in b.run.metrics or isinstance(a.run.metrics[name], CorpusMetric):
            continue
        found, count = differing(a, b, made.pairs, made.headline, name)
        if found or name == made.headline.metric:
            several = len({pair.a[0].condition for pair in found}) > 1
            listed = [_case(pair, several) for pair in found[:MAX_CASES]]
            cases[name] = {"differing": len(found), "pairs": count, "cases": listed}
    return {
        "names": [a.name, b.name],
        "headline": {"metric": made.headline.metric, "title": made.headline.title, "better": made.headline.better},
        "tables": [drawn(table) for table in made.tables[:2]],  # the third is the beginning of `cases`
        "unchecked": made.unchecked,
        "cases": cases,
    }


def _case(pair: Differing, several: bool) -> dict[str, Any]:
    first = pair.a[0]
    return {
        "case": first.case,
        "condition": first.condition if several else None,
        "repeat": _repeat(pair.a) if len(pair.a) == len(pair.b) == 1 else None,
        "a": [score.id for score in pair.a],
        "b": [score.id for score in pair.b],
        "first": pair.first,
        "second": pair.second,
        "difference": pair.difference,
    }


def _repeat(group: Sequence[EpisodeScore]) -> int | None:
    text = group[0].id.rpartition("/")[2]
    return int(text) if text.isdecimal() and len(text) < 16 else None


def drawn(table: Table) -> dict[str, Any]:
    """What a page draws of a table: its texts as reports show them, and the numbers by which its rows are sorted."""
    texts = asdict(grid(table))
    texts["best"] = sorted(texts["best"])
    return {
        "title": table.title,
        "figure": table.figure,
        "grid": texts,
        "heat": table.heat if table.figure == "heat" else None,
        "columns": [{"key": _plain(column.key), "form": column.form} for column in table.columns],
        "rows": [
            {
                "key": _plain(row.key),
                "published": row.published,
                "cells": [{"value": cell.value, "low": cell.low, "high": cell.high} for cell in row.cells],
            }
            for row in table.rows
        ],
        "notes": list(table.notes),
    }


def _plain(key: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in key.items()}
