"""Every published figure of every spec's tables: shown with the digits that are printed, or counted with the reason."""

from __future__ import annotations

import functools
import re
from collections import Counter
from pathlib import Path

import pytest

from harness.api.errors import SpecError
from harness.config import resolve, spec
from harness.config.project import builtin
from harness.extensions.analysis.published_beside import cited
from harness.report.grid import grid
from harness.tables import Cell, Table, TableSpec, build
from harness.tables.published_figures import PublishedFigure, PublishedTable
from tests.helpers import shipped

PROJECT = builtin()
PUBLISHED = shipped.published()
SPECS = sorted(file.stem for file in (Path(__file__).parents[2] / "specs").glob("*.yaml"))
NUMBER = re.compile(r"(-?[\d,]+(?:\.\d+)?)(K|%)?")
NOT_PLACED = re.compile(r"† (\d+) of (\d+) published figures are not placed in this table: (.+)\.")


def read(shown: str) -> list[float]:
    """The numbers of a cell as a reader takes them: 104,373,000 · 35.1K · 4.3%."""
    scale = {"K": 1000, "%": 0.01, "": 1}
    return [float(digits.replace(",", "")) * scale[unit] for digits, unit in NUMBER.findall(shown)]


def shown_figures(table: Table) -> list[tuple[Cell, list[float]]]:
    """Every published cell with a value, and the numbers that stand there."""
    result, body = [], grid(table).body
    if table.figure:  # tidy rows: names, then value and stderr
        tidy = zip(table.long(), body, strict=True)
        names = grid(table).names
        return [(Cell(row["value"]), read(texts[names])) for row, texts in tidy if row["published"] and row["value"]]
    for row, texts in zip(table.rows, body, strict=True):
        if row.published is not None:
            cells = zip(row.cells, texts[len(table.row_names) :], strict=True)
            result += [(cell, read(text)) for cell, text in cells if cell.value is not None]
    return result


@functools.cache
def tables(name: str) -> list[tuple[TableSpec, Table]]:
    """The tables of a spec that name published ones, with nothing but their figures."""
    loaded = spec.load(name, PROJECT)
    metrics = resolve.metrics(loaded, PROJECT)
    entries = map(TableSpec.parse, loaded.get("tables", []))
    return [(entry, build(cited(entry, PUBLISHED), [], metrics)) for entry in entries if entry.published]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", SPECS)
def test_every_figure_is_shown_as_printed_or_counted(name: str) -> None:
    for entry, table in tables(name):
        records = [r for source in PUBLISHED if source.id in entry.published for r in source.records]
        output = shown_figures(table)
        counted = [match for note in table.notes if (match := NOT_PLACED.fullmatch(note))]
        missing = int(counted[0][1]) if counted else 0
        assert len(output) + missing == len(records), (name, entry.title)
        if counted:
            reasons = re.findall(r"(?:^|, )(\d+) \w", counted[0][3])
            assert (int(counted[0][2]), sum(map(int, reasons))) == (len(records), missing)
        values = Counter(record.value for record in records)
        for cell, numbers in output:
            assert cell.value is not None
            values[cell.value] -= 1
            error = cell.std if cell.std is not None else cell.stderr
            printed = [cell.value, *([error] if len(numbers) > 1 and error is not None else [])]
            assert numbers == pytest.approx(printed, rel=1e-9, abs=1e-12), (name, entry.title, printed, numbers)
        assert min(values.values()) >= 0


@pytest.mark.slow
def test_every_figure_that_is_kept_is_shown_by_some_spec() -> None:
    shown: dict[str, Counter[float]] = {}
    for entry, table in (item for name in SPECS for item in tables(name)):
        for source in (source for source in PUBLISHED if source.id in entry.published):
            cells = [cell for row in table.rows if row.published == source.source for cell in row.cells]
            here = Counter(cell.value for cell in cells if cell.value is not None)
            shown[source.id] = shown.get(source.id, Counter()) | here
    for source in PUBLISHED:
        assert not Counter(record.value for record in source.records) - shown[source.id], source.id


def test_every_published_table_is_named_by_some_spec() -> None:
    named = {
        name
        for stem in SPECS
        for entry in map(TableSpec.parse, spec.load(stem, PROJECT).get("tables", []))
        for name in entry.published
    }
    assert named == {table.id for table in PUBLISHED}


def made(records: list[PublishedFigure], **entry: object) -> Table:
    source = PublishedTable("p/t", "P, Table 1", "T", tuple(records))
    parsed = TableSpec.parse({"title": "T", "rows": "model", "metrics": "x", "published": "p/t", **entry})
    with_metric = {"x": resolve.metrics(spec.load("agentsnet", PROJECT), PROJECT)["solved"]}
    return build(cited(parsed, [source]), [], with_metric)


def test_each_reason_is_reported_with_its_count() -> None:
    records = [
        PublishedFigure({"model": "m", "size": 4}, "x", 0.5),
        PublishedFigure({"model": "m", "size": 4, "side": "left"}, "x", 0.6),
        PublishedFigure({"model": "m", "size": 4, "side": "right"}, "x", 0.7),
        PublishedFigure({"model": "m", "size": 8}, "x", 0.1),
        PublishedFigure({"model": "m", "size": 4}, "y", 0.2),
        PublishedFigure({"model": "m", "size": 4, "task": "t"}, "x", 0.3),
        PublishedFigure({"model": "m"}, "x", 0.4, overall=True),
        PublishedFigure({"size": 4}, "x", 0.8),
        PublishedFigure({"model": "n"}, "x", 0.9),  # what `where` fixes need not be said
    ]
    table = made(records, where={"size": 4, "side": ["left", "right"]})
    assert [(row.key["model"], row.cells[0].value) for row in table.rows] == [("m", 0.5), ("n", 0.9)]
    assert table.notes[-1] == (
        "† 7 of 9 published figures are not placed in this table: 2 where another one stands, 1 of another size than "
        "the table's, 1 of metrics for which it has no column, 1 by task, which it does not distinguish, "
        "1 that are averages, for which it has no column, 1 without model."
    )


def test_a_unit_and_digits_for_each_metric() -> None:
    records = [PublishedFigure({"model": "m"}, "x", 0.043), PublishedFigure({"model": "m"}, "y", 104373000)]
    source = PublishedTable("p/t", "P, Table 1", "T", tuple(records))
    solved = resolve.metrics(spec.load("agentsnet", PROJECT), PROJECT)["solved"]
    entry = {"title": "T", "rows": "model", "metrics": ["x", "y"], "published": "p/t"}
    parsed = TableSpec.parse({**entry, "digits": {"x": 1, "y": 0}, "unit": {"x": "percent"}})
    assert grid(build(cited(parsed, [source]), [], {"x": solved, "y": solved})).body == [["m †", "4.3%", "104,373,000"]]
    with pytest.raises(SpecError, match="digits: metrics has no 'z'"):
        TableSpec.parse({**entry, "digits": {"z": 1}})
    with pytest.raises(SpecError, match=r"unit: 'x' is 'miles'\. Available: percent, thousands"):
        TableSpec.parse({**entry, "unit": {"x": "miles"}})
