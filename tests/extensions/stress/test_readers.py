"""`harness readers`: one run's replies by three rules."""

from pathlib import Path

import pytest

import harness
from harness.api import Parsed
from harness.cli import main
from harness.engines.mock import Mock
from harness.extensions.stress.readers import READERS, dropped, read_by
from tests.core.replies.every_form import FORMS

BOLD = "**MESSAGE**: I wait for you.\n**ACTION**: WAIT"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "bold"
    harness.evaluate("dpbench_quick", Mock(text=BOLD), limit=1, output_path=folder)
    return folder


def test_the_same_replies_by_three_rules(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["readers", str(run)]) == 0
    title, *lines = capsys.readouterr().out.splitlines()
    assert title.startswith("Deadlock rate") and [line.split()[0] for line in lines] == list(READERS)
    tolerant, reference, strict = lines
    assert "dropped fields: none" in tolerant and " 0 of " in strict
    assert "message" in reference.partition("dropped fields:")[2], "published code does not see the message"


def test_a_field_that_stands_there_and_is_not_read_is_counted() -> None:
    form = FORMS["spoken"][0]
    assert [*dropped(form, BOLD, form.parse(BOLD))] == []
    published = read_by(form, "reference")
    assert [*dropped(published, BOLD, published.parse(BOLD))] == ["message"]
    assert [*dropped(form, BOLD, Parsed(error="no action"))] == ["message"], "the action's error says why"
    assert read_by(published, "tolerant") == form
