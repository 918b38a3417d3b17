"""Printed tables fit the screen, and nothing of them is lost."""

import functools
import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.api import CorpusMetric, Metric, RatioMetric
from harness.config import project, resolve, spec
from harness.engines.mock import Mock
from harness.extensions.games.tournaments.results import ResultsMetric
from harness.report import render
from harness.report.grid import grid
from harness.report.layout import Grid, laid_out, measure, wrapped
from harness.report.narrow import WORD, fewest_decimals, fitted
from harness.tables import Cell, Column, CorpusRecord, EpisodeScore, Number, Row, Table, TableSpec, build
from tests.helpers import shipped
from tests.helpers.commands import invoke

WIDTHS = (64, 100)
USUAL = 80
"""From this width on no short word is broken."""
MODELS = ("gpt-x", "a-very/long-name-of-a-model.of_some-size-and-with-instruct-v0.3", "模型一二三四五")
BUILTIN = project.builtin()


def texts_of(shown: Grid) -> list[str]:
    return [text for cells in (*shown.header, *shown.body) for text in cells]


def check_fits(table: Table, width: int) -> None:
    text = render(table, width=width)
    assert all(measure(line) <= width for line in text.splitlines()), text
    if render(table) == text:
        return
    kept = (texts_of(grid(one)) for one in (table, fewest_decimals(table)))
    assert any(not lost(one, text, width) for one in kept), text


def lost(texts: list[str], printed: str, width: int) -> Counter[str]:
    """The characters, and on a usual screen the short words, that are not printed as often as the texts have them."""
    characters = Counter("".join("".join(text.split()) for text in texts)) - Counter(printed)
    short = Counter(word for text in texts for word in text.split() if measure(word) <= WORD)
    return characters + (short - Counter(printed.split()) if width >= USUAL else Counter())


@functools.cache
def tables_of(name: str) -> list[Table]:
    """Every table of a spec, of made-up numbers of three models."""
    plan = resolve.plan(spec.load(name, BUILTIN), BUILTIN, Mock())
    chance = random.Random(0)
    scores = []
    conditions = plan.conditions[:: -(-len(plan.conditions) // 12)]
    for condition in conditions:
        labels = {**condition.task.example().labels, **condition.labels}
        for i, model in enumerate(MODELS):
            for case in range(2):
                numbers = {name: made_up(metric, chance) for name, metric in plan.metrics.items()}
                where = {**labels, "model": model}
                scores.append(EpisodeScore(f"{condition.id}/{case}/{i}", condition.id, where, numbers))
    return [build(TableSpec.parse(table), scores, plan.metrics) for table in plan.spec.tables]


def made_up(metric: Metric, chance: random.Random) -> Number:
    low, high = metric.bounds
    number = chance.uniform(max(low, -1e4), min(high, 1e5))
    if isinstance(metric, ResultsMetric):
        return CorpusRecord([[name, chance.random()] for name in chance.sample(MODELS, 2)])
    if isinstance(metric, CorpusMetric):
        return None
    return (number, 1.0) if isinstance(metric, RatioMetric) else number


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", shipped.two_of_each_family())
def test_every_table_of_a_spec_fits(name: str) -> None:
    for table in tables_of(name):
        for width in WIDTHS:
            check_fits(table, width)


TEXTS = st.text(st.sampled_from("abcdefghij 模…/_-0.9"), max_size=30)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    names, levels = draw(st.integers(0, 3)), draw(st.integers(1, 2))
    metrics = ["one", "two"]
    columns = tuple(
        Column({}, tuple(draw(TEXTS) for _ in range(levels)), draw(st.sampled_from(metrics)))
        for _ in range(draw(st.integers(0, 12)))
    )
    numbers = st.none() | st.floats(-1e6, 1e6).map(lambda x: round(x, 3))
    cell = st.builds(Cell, numbers, numbers.map(lambda x: None if x is None else abs(x)), st.just(3))
    rows = tuple(
        Row({}, tuple(draw(TEXTS) for _ in range(names)), tuple(draw(cell) for _ in columns))
        for _ in range(draw(st.integers(0, 5)))
    )
    grouped: bool = draw(st.booleans())
    if rows and grouped:
        rows = (*rows[:-1], replace(rows[-1], group="equal"))
    return Table(
        draw(TEXTS), tuple("abc"[:names]), tuple("xy"[:levels]), columns, rows, tuple("ABC"[:names]),
        error=draw(st.sampled_from([None, "sem", {"one": "sem"}])), digits={"one": 3, "two": 1},
        notes=tuple(draw(st.lists(TEXTS, max_size=2))),
    )  # fmt: skip


@given(tables(), st.integers(24, 140))
def test_any_table_fits(table: Table, width: int) -> None:
    check_fits(table, width)


@given(TEXTS, st.integers(2, 40))
def test_wrapping_keeps_every_character(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert all(measure(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def table_of(columns: int, rows: int = 1, decimals: int = 2) -> Table:
    heads = [f"number of thing {i}" for i in range(columns)]
    cells = [Cell(1000.126 * (i + 1), 12.34, 3) for i in range(columns)]
    return Table(
        "A title", ("model",), ("metric",), tuple(Column({}, (head,), f"m{i}") for i, head in enumerate(heads)),
        tuple(Row({}, (f"model {i}",), tuple(cells)) for i in range(rows)), ("Model",), error="sem", digits=decimals,
    )  # fmt: skip


@pytest.mark.parametrize("width", range(5))
def test_a_screen_narrower_than_any_table_has_all_of_it(width: int) -> None:
    rows = (Row({"agent": "S0"}, ("S0 模型",), (Cell(0.5, n=1), Cell(12345.5, n=1))),)
    columns = (Column({"metric": "x"}, ("Mean of x",)), Column({"metric": "y"}, ("y",)))
    table = Table("A title", ("agent",), ("metric",), columns, rows, row_names=("Agent",), notes=("A note.",))
    assert not lost(texts_of(grid(table)), render(table, width=width), width)


def block(table: Table, width: int | None) -> list[str]:
    return laid_out(grid(table), width) or fitted(table, width or 0)


def test_a_table_that_fits_stays_as_it_is() -> None:
    table = table_of(3)
    assert block(table, 100) == block(table, None)


def test_headers_are_wrapped_first() -> None:
    table = table_of(4)
    lines = block(table, 80)
    assert len(lines) == 2 + 1 + 1
    assert lines[0].split() == ["number", "of", "thing"] * 4 and "1,000.13 (12.34)" in lines[-1]


def test_then_numbers_lose_the_decimals_below_their_error() -> None:
    [*_, last] = block(table_of(6), 90)
    assert "1,000 (12)" in last


def test_then_rows_and_columns_are_swapped() -> None:
    lines = block(table_of(12), 60)
    assert lines[0].split() == ["Model", "→", "model", "0"], "the arrow: models are above the other columns"
    assert lines[2].split() == ["number", "of", "thing", "0", "1,000.13", "(12.34)"]
    assert len(lines) == 2 + 12


def test_then_the_columns_stand_in_parts_below_each_other() -> None:
    lines = block(table_of(12, rows=14), 80)
    heads = [i for i, line in enumerate(lines) if re.fullmatch(r"-+( +-+)*", line)]
    assert len(heads) == 3
    assert all(lines[at + 1].startswith("model 0") for at in heads)


def test_rows_of_groups_stay_apart() -> None:
    table = table_of(12, rows=3)
    rows = (*table.rows[:-1], replace(table.rows[-1], group="equal"))
    lines = block(replace(table, rows=rows), 80)
    assert len([line for line in lines if line.startswith("---")]) == 2 * 3


def test_an_error_keeps_two_digits_and_whole_numbers_no_zeros() -> None:
    def digits(value: float, error: float | None, kind: str | None = "sem") -> int:
        cells = (Cell(value, error, 3),)
        columns = (Column({}, ("x",), "m"),)
        one = Table("t", (), (), columns, (Row({}, (), cells),), error=kind, digits=4)  # type: ignore[arg-type]
        return fewest_decimals(one).decimals("m")

    assert digits(123.4567, 12.3) == 0
    assert digits(0.4567, 0.123) == 2
    assert digits(3.0, 0.0) == 0
    assert digits(3.25, None) == 2
    assert digits(3.25, 50.0, None) == 2  # an error that is not shown says nothing


@pytest.mark.slow
def test_commands_print_to_the_width_of_the_terminal_and_files_keep_the_whole(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.chdir(tmp_path)
    assert (
        invoke(capsys, "eval", "--spec", "agentsnet_quick", "--limit", "1", "--output_path", "run", "--quiet")[0] == 0
    )
    printed = {"": invoke(capsys, "report", "run")[1]}
    for width in ("70", "300"):
        monkeypatch.setenv("COLUMNS", width)
        printed[width] = invoke(capsys, "report", "run")[1]
    widest = {width: max(map(len, text.splitlines())) for width, text in printed.items()}
    assert widest[""] <= 100 < widest["300"] and widest["70"] <= 70
    assert invoke(capsys, "report", "run", "-o", "report.txt")[0] == 0
    assert Path("report.txt").read_text() == printed["300"]
    monkeypatch.setenv("COLUMNS", "40")
    for form in ("markdown", "csv", "latex", "json"):
        one = invoke(capsys, "report", "run", "--format", form)[1]
        monkeypatch.setenv("COLUMNS", "400")
        assert one == invoke(capsys, "report", "run", "--format", form)[1]


NAMES = st.text(st.sampled_from("abc/-_. 模"), min_size=1, max_size=60)


@example("m", "meta-llama/Meta-Llama-3.1-70B-Instruct", 6, 1, False, 80)
@example("m", "meta-llama/Meta-Llama-3.1-70B-Instruct", 6, 2, True, 80)
@given(NAMES, NAMES, st.integers(1, 12), st.integers(1, 6), st.booleans(), st.integers(40, 120))
def test_names_do_not_decide_which_way_a_table_lies(
    one: str, other: str, columns: int, rows: int, as_columns: bool, width: int
) -> None:
    def swapped(name: str) -> bool:
        table = table_of(columns, rows)
        if as_columns:
            named = tuple(Column({}, (f"{name} {i}",), "m0") for i in range(columns))
            table = replace(table, columns=named, column_labels=("model",))
        else:
            table = replace(table, rows=tuple(replace(row, names=(f"{name} {i}",)) for i, row in enumerate(table.rows)))
        return "→" in render(table, width=width)

    assert swapped(one) == swapped(other)
