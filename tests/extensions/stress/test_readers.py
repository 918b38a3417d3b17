"""`harness score RUN --parsers all`: one run's replies by three rules."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

import harness
from harness.api import Completion, Parsed, Reply
from harness.api.errors import SpecError
from harness.cli import main
from harness.config.project import builtin
from harness.config.spec import load
from harness.engines.mock import Mock
from harness.extensions.stress.readers import READERS, read_by
from harness.replies.dropped_fields import dropped_fields
from tests.core.replies.every_form import FORMS

BOLD = "**MESSAGE**: I wait for you.\n**ACTION**: WAIT"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "bold"
    harness.evaluate("dpbench_quick", Mock(text=BOLD), limit=1, output_path=folder)
    return folder


def test_the_same_replies_by_three_rules(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", str(run), "--parsers", "all"]) == 0
    title, *lines, spread, _ = capsys.readouterr().err.splitlines()
    assert title.startswith("Meals without deadlock ↑") and [line.split()[0] for line in lines] == list(READERS)
    tolerant, reference, strict = lines
    assert spread.startswith("spread: 0.0000, beside a 95 % interval from ")
    kept = json.loads((run / "run.json").read_text())["parsers"]
    assert [*kept] == [*READERS] and kept["reference"]["dropped_fields"]["message"] == kept["reference"]["asked"] // 2
    assert "dropped fields: none" in tolerant and " 0 of " in strict
    assert "message" in reference.partition("dropped fields:")[2], "published code does not see the message"


def test_some_readers_can_be_named_and_scoring_again_leaves_them_out(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", str(run), "--parsers", "strict"]) == 0
    printed = capsys.readouterr().err
    assert "strict" in printed and "tolerant" not in printed and "spread" not in printed
    assert main(["score", str(run)]) == 0
    assert "strict" not in capsys.readouterr().err and "parsers" not in json.loads((run / "run.json").read_text())
    assert main(["score", str(run), "--parsers", "strit"]) == 2
    assert "Did you mean strict?" in capsys.readouterr().err
    with pytest.raises(SpecError, match="finished runs"):
        harness.evaluate("dpbench_quick", Mock(), limit=1, output_path=run.parent / "other", parsers="all")  # type: ignore[call-arg]


def dropped(form: Reply, text: str, parsed: Parsed | None = None) -> tuple[str, ...]:
    return dropped_fields(form, Completion(text), parsed or form.parse(text))


def test_a_field_that_stands_there_and_is_not_read_is_counted() -> None:
    form = FORMS["spoken"][0]
    assert dropped(form, BOLD) == ()
    published = read_by(form, "reference")
    assert dropped(published, BOLD) == ("message",)
    assert dropped(form, BOLD, Parsed(error="no action")) == ("message",), "the action's error says why"
    assert read_by(published, "tolerant") == form


@pytest.mark.parametrize(
    ("name", "text", "fields"),
    [
        ("spoken", "MESSAGE: one\nMESSAGE: two\nACTION: WAIT", ("message",)),
        ("spoken", "MESSAGE: one\nMESSAGE: one\nACTION: WAIT", ()),
        ("spoken", "MESSAGE: one\nACTION: RELEASE\nACTION: WAIT", ("action",)),
        ("spoken", "I could say ACTION: something.\nMESSAGE: None\nACTION: WAIT", ()),
        ("contract", "REASON: so\nThe answer is (B).\nCONFIDENCE: very high", ("confidence",)),
        ("contract", "REASON: so\nThe answer is (B).\nCONFIDENCE: 0.5\nCONFIDENCE: 0.7", ("confidence",)),
        ("contract", "REASON: so\nThe answer is (B).\nCONFIDENCE: None", ()),
        ("free text", "Answer: a\nAnswer: b", ()),
        ("calls, or tools", "<wait/>", ()),
    ],
)
def test_which_fields_of_a_reply_are_dropped(name: str, text: str, fields: tuple[str, ...]) -> None:
    assert dropped(FORMS[name][0], text) == fields


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", FORMS)
def test_nothing_is_dropped_of_a_reply_as_asked(name: str) -> None:
    form = FORMS[name][0]
    for action in form.examples:
        assert dropped(form, form.written(action)) == (), form.written(action)


@pytest.mark.parametrize(("text", "is_dropped"), [(BOLD, True), ("MESSAGE: I wait.\nACTION: WAIT", False)])
def test_a_run_counts_dropped_fields_and_its_tables_say_so(tmp_path: Path, text: str, is_dropped: bool) -> None:
    """The label in bold is not one for published code."""
    changes = ["protocol.parsing=reference", "matrix.condition=[sim3c]"]
    spec = load("dpbench_quick", builtin(), changes, limit=1, repeats=1)
    run = harness.evaluate(spec, Mock(text=text), output_path=tmp_path / "run")
    lost = sum((Counter(score.dropped_fields) for score in run.scores), Counter[str]())
    assert (lost["message"] > 0) == is_dropped and set(lost) <= {"message"}
    for name in ("journal.jsonl", "scores.jsonl"):
        assert ("dropped_fields" in (run.folder / name).read_text()) == is_dropped
    kept = harness.load_run(run.folder).scores
    assert [dict(one.dropped_fields) for one in kept] == [dict(one.dropped_fields) for one in run.scores]
    assert any("were not read of them" in note for table in run.tables for note in table.notes) == is_dropped


@pytest.fixture(scope="module")
def spread(run: Path) -> Path:
    """The run, whose headline three readers take for 0.25 to 0.5."""
    folder = run.parent / "spread"
    shutil.copytree(run, folder)
    meta = json.loads((folder / "run.json").read_text())
    of_one = {"read": 330, "asked": 330, "dropped_fields": {}, "other_course": 0}
    readers = {name: {"value": value, **of_one} for name, value in zip(READERS, (0.25, 0.5, 0.375), strict=True)}
    (folder / "run.json").write_text(json.dumps({**meta, "parsers": readers}))
    return folder


def test_reports_show_the_spread_over_readers_beside_the_error(
    spread: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Below the tables of one run, and in the notes of several."""
    assert main(["report", str(spread)]) == 0
    assert "spread: 0.2500, beside a 95 % interval" in capsys.readouterr().err
    assert main(["leaderboard", str(spread)]) == 0
    assert "by other rules, which errors leave out: mock from 0.25 to 0.5" in capsys.readouterr().out


@pytest.mark.parametrize("readers", ["x", [1], {"tolerant": 3}, {"tolerant": {"value": "\x1b[1m"}}, {"other": {}}])
def test_what_no_reader_has_written_is_said_and_shown_to_no_one(
    readers: object, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    meta = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**meta, "parsers": readers}))
    assert main(["report", str(folder)]) == 0
    err = capsys.readouterr().err
    assert "run.json says under 'parsers' what no reader has written" in err and "\x1b" not in err


@pytest.mark.slow
def test_the_card_of_a_page_has_the_spread_too(spread: Path) -> None:
    page = spread.parent / "page.html"
    assert main(["report", str(spread), "--format", "html", "--output", str(page)]) == 0
    assert "from 25.0% to 50.0% if replies are read by other rules" in page.read_text()
