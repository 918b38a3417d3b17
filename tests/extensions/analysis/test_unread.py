"""A model whose turns are not parsed has no headline, anywhere; players that play nothing win nothing."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Request
from harness.engines.mock import Mock
from harness.extensions.exports.hub import model_index
from harness.tables import UNREAD, Table
from tests.helpers.commands import invoke

WORDS = "turns were parsed, fewer than"


def played(folder: Path, model: Any, overrides: tuple[str, ...] = ()) -> harness.Run:
    return harness.evaluate("dpbench_quick", model, overrides=[*overrides], output_path=folder)


def reasons(tables: Sequence[Table]) -> list[int]:
    """How often the notes of each table say why a model has no headline."""
    return [sum(WORDS in note for note in table.notes) for table in tables]


def right_at_times(request: Request) -> str:
    return "ACTION: GRAB_LEFT" if request.seed % 10 < 3 else "?"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, harness.Run]:
    folder = tmp_path_factory.mktemp("unread")
    mute = played(folder / "mute", Mock(model="mute", text=""), ("repeats=2", "protocol.parse_retries=0"))
    some = played(
        folder / "some", Mock(model="some", function=right_at_times), ("repeats=2", "protocol.parse_retries=0")
    )
    plain = harness.evaluate(
        "dpbench_quick", overrides=["repeats=2", "protocol.parse_retries=0"], output_path=folder / "random"
    )
    return {"mute": mute, "some": some, "random": plain}


def test_a_board_ranks_no_unread_model_and_says_why(
    runs: dict[str, harness.Run], capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [str(run.folder) for run in runs.values()]
    code, out, _ = invoke(capsys, "leaderboard", *folders, "--format", "json")
    assert code == 0
    board = json.loads(out)[0]
    metrics = [column["key"]["metric"] for column in board["columns"]]
    cells = {row["key"]["model"]: dict(zip(metrics, row["cells"], strict=True)) for row in board["rows"]}
    ranks = {row["key"]["model"]: row["key"]["rank"] for row in board["rows"]}
    assert ranks == {"random": "1", "some": "–", "mute": "–"}
    assert cells["mute"]["dpbench/success"]["value"] is None and cells["mute"]["read"]["value"] == 0
    assert 0 < cells["some"]["read"]["value"] < 0.5 and cells["some"]["dpbench/success"]["value"] is None
    assert cells["random"]["read"]["value"] is None, "no model was asked"
    assert sum(WORDS in note for note in board["notes"]) == 2


def test_the_page_over_all_benchmarks_gives_the_same_reason(
    runs: dict[str, harness.Run], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = harness.evaluate("arithmetic", overrides=["baseline=calculator"], limit=2, output_path=tmp_path / "other")
    folders = [str(runs["mute"].folder), str(runs["random"].folder), str(other.folder)]
    code, out, _ = invoke(capsys, "leaderboard", *folders, "--format", "json")
    notes = json.loads(out)[0]["notes"]
    assert code == 0 and any("mute in dpbench_quick: too few turns were parsed" in note for note in notes)
    assert not any("all episodes failed" in note for note in notes)


def test_reports_comparisons_and_exports_say_it_too(
    runs: dict[str, harness.Run], capsys: pytest.CaptureFixture[str]
) -> None:
    mute = runs["mute"]
    assert reasons(mute.tables) == [1, *[0] * (len(mute.tables) - 1)]
    written = json.loads((mute.folder / "tables.json").read_text())["headline"]
    assert written["value"] is None and WORDS in written["why"] and written["text"] == "–"
    assert {row["read"] for row in mute.rows} == {0}
    assert not any(r["metrics"][0]["name"] == "dpbench/success" for r in model_index(mute)[0]["results"])
    code, out, _ = invoke(capsys, "compare", str(runs["random"].folder), str(mute.folder), "--format", "json")
    assert code == 0
    tables = json.loads(out)
    headline = next(row for row in tables[1]["rows"] if row["key"]["metric"] == "dpbench/success")
    assert all(cell["value"] is None for cell in headline["cells"][:5])
    assert any(WORDS in note for note in tables[1]["notes"])


def test_a_report_says_it_once(runs: dict[str, harness.Run], capsys: pytest.CaptureFixture[str]) -> None:
    mute, some = str(runs["mute"].folder), str(runs["some"].folder)
    for words, times in ((["report", mute], 1), (["report", mute, some], 2)):
        code, out, _ = invoke(capsys, *words)
        assert code == 0 and out.count(WORDS) == times, words


@pytest.mark.parametrize("shown", ["dpbench/success", "timesteps"])
def test_the_reason_stands_where_the_headline_would(
    tmp_path: Path, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = [{"title": text, "rows": "model", "metrics": cell} for text, cell in (("A", "calls"), ("B", shown))]
    changes = ("repeats=2", "protocol.parse_retries=0", f"tables={json.dumps(tables)}")
    run = played(tmp_path / "run", Mock(text=""), changes)
    assert reasons(run.tables) == ([0, 1] if shown == "dpbench/success" else [1, 0])
    for name in "AB":
        code, out, _ = invoke(capsys, "report", str(run.folder), "--table", name)
        assert code == 0 and out.count(WORDS) == 1


@pytest.mark.parametrize(("least", "has_number"), [(0, True), (0.2, True), (0.9, False)])
def test_the_share_is_declared(tmp_path: Path, least: float, has_number: bool) -> None:
    changes = ("repeats=2", "protocol.parse_retries=0", f"headline.min_read={least}")
    run = played(tmp_path / "run", Mock(function=right_at_times), changes)
    assert (run.headline.cell(run.scores).value is not None) == has_number
    assert (run.headline_missing is None) == has_number


def test_every_table_marks_what_was_not_read(runs: dict[str, harness.Run], capsys: pytest.CaptureFixture[str]) -> None:
    mute, plain = runs["mute"], runs["random"]
    for table in mute.tables:
        cells = [cell for row in table.rows for cell in row.cells]
        assert table.unread and all(cell.unread for cell in cells) and sum(UNREAD in note for note in table.notes) == 1
        assert not any(note.startswith("dpbench/success: not reported") for note in table.notes)
    assert not any(table.unread for table in plain.tables)
    texts = [
        invoke(capsys, "report", str(run.folder), "--format", form)[1]
        for run in (mute, plain)
        for form in ("text", "markdown", "latex", "csv", "json", "html")
    ]
    assert [UNREAD in text or '"unread"' in text or ",unread," in text for text in texts] == [True] * 6 + [False] * 6
    written = json.loads((mute.folder / "tables.json").read_text())["tables"]
    assert all(row[0].endswith(UNREAD) for table in written for row in table["grid"]["body"])


def test_rows_of_read_models_are_not_marked(runs: dict[str, harness.Run], capsys: pytest.CaptureFixture[str]) -> None:
    folders = [str(runs[name].folder) for name in ("mute", "random")]
    code, out, _ = invoke(capsys, "leaderboard", *folders, "--format", "json")
    tables = [table for table in json.loads(out)[1:] if any("cells" in row and row["cells"] for row in table["rows"])]
    assert code == 0 and tables
    for table in tables:
        marked = {row["key"]["model"]: {cell["unread"] for cell in row["cells"]} for row in table["rows"]}
        assert marked == {"mute": {True}, "random": {False}}


def test_no_missing_number_is_the_best(runs: dict[str, harness.Run], capsys: pytest.CaptureFixture[str]) -> None:
    for names in (["mute"], ["mute", "some"], ["mute", "random"]):
        folders = [str(runs[name].folder) for name in names]
        for form in ("markdown", "json"):
            code, out, _ = invoke(capsys, "leaderboard", *folders, "--format", form)
            assert code == 0 and "**" not in out and '"best": true' not in out


def test_a_card_of_the_hub_has_nothing_to_rank_by(runs: dict[str, harness.Run]) -> None:
    assert model_index(runs["mute"])[0]["results"] == [] != model_index(runs["random"])[0]["results"]
