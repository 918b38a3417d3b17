"""`harness score RUN --readers all`: one run's replies by three rules."""

import json
from pathlib import Path

import pytest

import harness
from harness.api import Parsed
from harness.cli import main
from harness.engines.mock import Mock
from harness.errors import SpecError
from harness.extensions.stress.readers import READERS, dropped, read_by
from tests.core.replies.every_form import FORMS

BOLD = "**MESSAGE**: I wait for you.\n**ACTION**: WAIT"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "bold"
    harness.evaluate("dpbench_quick", Mock(text=BOLD), limit=1, output_path=folder)
    return folder


def test_the_same_replies_by_three_rules(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", str(run), "--readers", "all"]) == 0
    title, *lines, spread, _ = capsys.readouterr().err.splitlines()
    assert title.startswith("Deadlock rate") and [line.split()[0] for line in lines] == list(READERS)
    tolerant, reference, strict = lines
    assert spread.startswith("spread: 0.0000")
    kept = json.loads((run / "run.json").read_text())["readers"]
    assert [*kept] == [*READERS] and kept["reference"]["dropped_fields"]["message"] == kept["reference"]["asked"] // 2
    assert "dropped fields: none" in tolerant and " 0 of " in strict
    assert "message" in reference.partition("dropped fields:")[2], "published code does not see the message"


def test_some_readers_can_be_named_and_scoring_again_leaves_them_out(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", str(run), "--readers", "strict"]) == 0
    printed = capsys.readouterr().err
    assert "strict" in printed and "tolerant" not in printed and "spread" not in printed
    assert main(["score", str(run)]) == 0
    assert "strict" not in capsys.readouterr().err and "readers" not in json.loads((run / "run.json").read_text())
    assert main(["score", str(run), "--readers", "strit"]) == 2
    assert "Did you mean strict?" in capsys.readouterr().err
    with pytest.raises(SpecError, match="finished runs"):
        harness.evaluate("dpbench_quick", Mock(), limit=1, output_path=run.parent / "other", readers="all")


def test_a_field_that_stands_there_and_is_not_read_is_counted() -> None:
    form = FORMS["spoken"][0]
    assert [*dropped(form, BOLD, form.parse(BOLD))] == []
    published = read_by(form, "reference")
    assert [*dropped(published, BOLD, published.parse(BOLD))] == ["message"]
    assert [*dropped(form, BOLD, Parsed(error="no action"))] == ["message"], "the action's error says why"
    assert read_by(published, "tolerant") == form
