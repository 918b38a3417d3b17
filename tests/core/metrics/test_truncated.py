"""Replies that were cut off at their token limit are seen: in the numbers, and in every suite's tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.api import Completion, Engine, Request, derive_seed
from harness.config import project, spec
from harness.evaluation.evaluate import evaluate

BUILTIN = project.builtin()
SPECS = sorted(file.stem for file in (Path(__file__).parents[3] / "specs").glob("*.yaml"))


class Terse(Engine):
    """Every third call, by its seed, is cut off; every fifth comes without a reason."""

    asked: list[str | None]

    def __init__(self) -> None:
        self.asked = []

    @property
    def model(self) -> str:
        return "terse"

    async def complete(self, request: Request) -> Completion:
        draw = derive_seed("terse", request.id) % 15
        reason = None if draw % 5 == 0 else "length" if draw % 3 == 0 else "stop"
        self.asked.append(reason)
        return Completion("ACTION: WAIT", finish_reason=reason)


def test_truncated_is_the_share_of_all_calls_whose_end_is_known(tmp_path: Path) -> None:
    engine = Terse()
    run = evaluate("dpbench_quick", engine, output_path=tmp_path / "run", project=BUILTIN)
    rows = [row for row in run.rows if row["metric"] == "truncated"]
    assert len(rows) == 4
    pairs = [score.parts("truncated") or (0, 0) for score in run.scores]
    results = [reason for reason in engine.asked if reason is not None]
    assert (sum(a for a, _ in pairs), sum(b for _, b in pairs)) == (results.count("length"), len(results))
    table = next(table for table in run.tables if any(column.metric == "truncated" for column in table.columns))
    place = [column.metric for column in table.columns].index("truncated")
    assert all(0 < (row.cells[place].value or 0) < 1 for row in table.rows)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", SPECS)
def test_where_parse_failures_are_shown_truncated_replies_are_too(name: str) -> None:
    for table in spec.load(name, BUILTIN).get("tables", []):
        if "parse_failures" in table.get("metrics", ()):
            assert "truncated" in table["metrics"], table["title"]
