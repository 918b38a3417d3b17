"""Rendering: what readers see, and that hostile names stay data in every format."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api.errors import UserError
from harness.extensions.charts.page_html import page
from harness.report import FORMATS, render
from harness.tables import Cell, Column, Row, Table

CELLS = (Cell(2 / 3, 1 / 6, 9, low=0.35, high=0.88, std=0.47), Cell(None, None, 0), Cell(1.0, None, 1))
COLUMNS = (
    Column({"size": 4, "kind": "a"}, ("4 nodes", "a"), "solved"),
    Column({"size": 4, "kind": "b"}, ("4 nodes", "b"), "solved"),
    Column({}, ("Overall", ""), "solved", overall=True),
)


def table(name: str = "m", **more: Any) -> Table:
    fields: dict[str, Any] = {
        "title": "Title",
        "row_labels": ("model",),
        "row_names": ("Model",),
        "column_labels": ("size", "kind"),
        "columns": COLUMNS,
        "rows": (Row({"model": name}, (name,), CELLS), Row({"model": "p"}, ("p",), CELLS, published="Paper")),
        "notes": ("A note.",),
        "error": "sem",
    }
    return Table(**{**fields, **more})


def test_text_has_a_line_for_each_header_level_and_marks_published_rows() -> None:
    assert render(table()).splitlines() == [
        "Title",
        "",
        "             4 nodes    4 nodes    Overall",
        "Model              a          b",
        "-------  -----------  ---------  ---------",
        "m        0.67 (0.17)          –   1.00 (–)",
        "p †      0.67 (0.17)          –   1.00 (–)",
        "",
        "A note.",
    ]


def test_markdown_has_one_header_line() -> None:
    assert render(table(), "markdown").splitlines() == [
        "### Title",
        "",
        "| Model   |   4 nodes / a |   4 nodes / b |   Overall |",
        "|:--------|--------------:|--------------:|----------:|",
        "| m       |   0.67 (0.17) |             – |  1.00 (–) |",
        "| p †     |   0.67 (0.17) |             – |  1.00 (–) |",
        "",
        "A note.",
    ]


def test_csv_and_json_keep_numbers_whole() -> None:
    rows = list(csv.DictReader(io.StringIO(render(table(), "csv"))))
    assert len(rows) == 6
    expected = {"model": "m", "size": "4", "kind": "a", "metric": "solved", "value": repr(2 / 3), "n": "9"}
    assert expected.items() <= rows[0].items()
    assert (rows[2]["overall"], rows[2]["size"], rows[2]["stderr"], rows[3]["published"]) == ("True", "", "", "Paper")
    data = json.loads(render(table(), "json"))
    assert (data["schema"], data["rows"][0]["cells"][0]["value"]) == (1, 2 / 3)
    assert data == json.loads(json.dumps(table().to_json()))


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"error": None}, "0.67"),
        ({"error_style": "plus_minus"}, "0.67 ± 0.17"),
        ({"error": "interval"}, "0.67 [0.35, 0.88]"),
        ({"error": "std"}, "0.67 (0.47)"),
        ({"error": "std", "error_style": "plus_minus"}, "0.67 ± 0.47"),
        ({"error": {"solved": "std"}}, "0.67 (0.47)"),
        ({"error": {"solved": "interval", "score": "std"}}, "0.67 [0.35, 0.88]"),
        ({"error": {"score": "std"}}, "0.67"),
        ({"unit": "percent", "digits": 1}, "66.7% (16.7%)"),
        ({"digits": 0}, "1 (0)"),
    ],
)
def test_a_number_is_shown_as_the_entry_says(fields: dict[str, Any], shown: str) -> None:
    assert re.split(r" {2,}", render(table(**fields)).splitlines()[5])[1] == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (35149.0, "35.1K"),
        (1029000.0, "1,029.0K"),
        (-0.4, "0.0K"),
        (float("nan"), "–"),
        (float("inf"), "–"),
        (None, "–"),
    ],
)
def test_thousands_and_what_cannot_be_shown(value: float | None, shown: str) -> None:
    rows = (Row({"model": "m"}, ("m",), (Cell(value),) * 3),)
    assert render(table(rows=rows, error=None, unit="thousands", digits=1)).splitlines()[5].split() == [
        "m",
        *[shown] * 3,
    ]


def test_a_figure_is_shown_as_tidy_rows() -> None:
    rows = (Row({"size": 4, "model": "m"}, ("4 nodes", "m"), CELLS),)
    figure = table(rows=rows, row_labels=("size", "model"), row_names=("Size", "Model"), figure="bar", columns=COLUMNS)
    lines = render(figure).splitlines()
    assert re.split("  +", lines[2]) == ["Size", "Model", "size / kind", "solved", "standard error", "n", "failed"]
    assert lines[4].split("  ")[0] == "4 nodes"
    assert lines[4].split()[-4:] == ["0.67", "0.17", "9", "0"]
    flat = render(table(figure="line"))
    assert re.split("  +", flat.splitlines()[2])[:2] == ["Model", "size / kind"]
    assert "p †" in flat


@pytest.mark.parametrize(
    ("error", "more"),
    [
        (None, {}),
        ("interval", {"95 % from": "0.35", "to": "0.88"}),
        ("std", {"standard deviation": "0.47"}),
        ({"solved": "interval", "x": "std"}, {"95 % from": "0.35", "to": "0.88", "standard deviation": "0.47"}),
    ],
)
def test_a_figures_tidy_rows_have_the_errors_it_asks_for(error: Any, more: dict[str, str]) -> None:
    lines = render(table(figure="bar", error=error, names={"solved": "Solved"})).splitlines()
    assert re.split("  +", lines[2])[2:] == ["Solved", "standard error", *more, "n", "failed"]
    assert lines[4].split()[-4 - len(more) :] == ["0.67", "0.17", *more.values(), "9", "0"]


@pytest.mark.parametrize("form", FORMATS)
def test_an_empty_table_still_renders(form: str) -> None:
    assert render(table(rows=(), columns=(), notes=()), form).endswith("\n")
    assert render(table(rows=(), figure="bar"), form).endswith("\n")


def test_another_format_is_refused_with_the_choices() -> None:
    with pytest.raises(UserError, match=r"unknown table format 'latx'\n.*Did you mean latex"):
        render(table(), "latx")


# --------------------------------------------------------------------------------- hostile names

anything = st.text(st.characters(), min_size=1, max_size=12)
HOSTILE = "a|b\x1b[31m\n</td><script>alert(1)</script>\u202e${7*7}\ud800`_x_`=SUM(1)"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", FORMATS)
@given(name=anything)
def test_no_name_breaks_a_format_or_reaches_the_terminal_raw(form: str, name: str) -> None:
    text = render(table(name, title=name, notes=(name,)), form)
    text.encode("utf-8")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


@given(name=anything)
def test_a_markdown_row_has_its_columns_whatever_the_name(name: str) -> None:
    row = render(table(name), "markdown").splitlines()[4]
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 5


@given(name=anything)
def test_a_name_comes_back_from_csv_and_is_no_formula(name: str) -> None:
    row = next(csv.DictReader(io.StringIO(render(table(name), "csv"), newline="")))
    if name.isprintable():
        assert row["model"].removeprefix("'") == name.removeprefix("'")
    assert row["model"][0] not in "=+-@\t\r"


@given(name=anything)
def test_a_name_comes_back_from_json_exactly(name: str) -> None:
    assert json.loads(render(table(name), "json"))["rows"][0]["key"] == {"model": name}


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.data: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.data.append(data)


def read(document: str) -> Reader:
    reader = Reader()
    reader.feed(document)
    reader.close()
    return reader


@given(name=anything | st.just(HOSTILE))
def test_html_has_only_our_tags_whatever_the_name(name: str) -> None:
    plain = read(page("t", [table()])).tags
    document = page(name, [table(name, title=name, notes=(name,))])
    document.encode("utf-8")
    assert read(document).tags == plain


def test_an_html_page_shows_tables_without_any_other_file() -> None:
    document = page("Run 1", [table(), table(figure="bar")])
    data = read(document).data
    assert {"Run 1", "0.67 (0.17)", "p †", "A note.", "Overall"} <= set(data)
    assert '<th colspan="2">4 nodes</th>' in document
    assert document.count('<tr class="published">') == 1
    assert not re.search(r"<script|src=|href=|url\(", document)
