"""A model whose replies were not read has no headline, and no table shows a number in its place."""

from pathlib import Path

import harness
from harness.engines.mock import Mock
from tests.helpers.toy import TOY


def test_tables_leave_the_headline_out_where_no_reply_was_read(tmp_path: Path) -> None:
    run = harness.evaluate("toy", Mock(text="no answer at all"), output_path=tmp_path / "run", project=TOY)
    shown = {
        column.metric or row.metric: cell.value
        for table in run.tables
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
    }
    assert run.headline.cell(run.scores).value is None
    assert run.headline.metric in shown
    assert shown[run.headline.metric] is None
    assert any(f"mock has no {run.headline.name}" in note for table in run.tables for note in table.notes)
    assert any(score.number(run.headline.metric) is not None for score in run.scores)  # the episodes keep theirs
