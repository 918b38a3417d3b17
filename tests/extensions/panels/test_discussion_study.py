"""`discussion_quick`: the effects are those that the declared skills must have, and those that they cannot have."""

import math

import pytest

from harness.config import project, spec
from harness.evaluation.evaluate import evaluate
from harness.evaluation.run import Run
from harness.tables import Row, Table

BUILTIN = project.builtin()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A part of it."""
    small = spec.load("discussion_quick", BUILTIN, ["task.size=20", "matrix.decision=[majority,last_word]"])
    return evaluate(small, output_path=tmp_path_factory.mktemp("study") / "run", project=BUILTIN)


def row(table: Table, factor: str, level: object = None) -> Row:
    [found] = [row for row in table.rows if (row.key["factor"], row.key["level"]) == (factor, level)]
    return found


@pytest.mark.slow
def test_drafts_matter_and_the_control_does_not(run: Run) -> None:
    effects = run.tables[0]
    drafts, control = (row(effects, *key).cells[2] for key in (("drafts", "all"), ("seat", "third")))
    assert drafts.low > 0, "many drafts know more than one"
    assert control.low <= 0 <= control.high
    shares = {factor: row(effects, factor).cells[3].value for factor in ("drafts", "hears", "style", "seat")}
    assert max(shares, key=lambda factor: shares[factor]) == "drafts" and shares["seat"] < 0.005


@pytest.mark.slow
def test_who_hears_less_follows_what_it_hears(run: Run) -> None:
    minds = {row.key["hears"]: [cell.value for cell in row.cells] for row in run.tables[2].rows}
    assert minds["all"][3] > minds["star"][3], "towards the majority"
    assert all(0.5 < heard <= 1 for _, _, heard, _, _ in minds.values())


def test_the_space_has_every_choice() -> None:
    matrix = spec.load("discussion_space", BUILTIN).data["matrix"]
    assert math.prod(map(len, matrix.values())) == 5 * 4 * 4 * 10
