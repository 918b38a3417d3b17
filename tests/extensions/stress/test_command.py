"""`harness stress`: the table, the headline, the exit code."""

import pytest

from harness.cli import main
from harness.config import resolve
from harness.config.project import builtin
from harness.config.spec import load
from harness.extensions.stress.parse_verdicts import counts, is_exact, trials
from harness.extensions.stress.stand_in import PLAIN, StandIn
from harness.extensions.stress.stress_command import forms_of
from tests.helpers import shipped

CUT = ("--repeats", "1", "--set", "matrix.condition=[sim3c, seq3c]")


def test_the_command_prints_a_table_and_how_far_the_headline_moves(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stress", "--spec", "dpbench_quick", "--limit", "1", *CUT]) == 0
    printed = capsys.readouterr().out
    assert "ActionWithMessage(Labelled)" in printed and "100.0 % read" in printed and "shift: +0.0000" in printed


def test_published_parsing_is_shown_and_does_not_fail_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stress", "--spec", "dpbench_release01", "--parse_only"]) == 0
    printed = capsys.readouterr().out
    assert "dropped: ActionWithMessage(Labelled, reference)" in printed


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", shipped.specs())
def test_no_reply_of_a_shipped_spec_is_misread_or_dropped(name: str) -> None:
    plan = resolve.plan(load(name, builtin()), builtin(), StandIn(PLAIN).engine("stand-in"))
    for form in forms_of(plan):
        for kind, row in counts(trials(form)).items() if not is_exact(form) else ():
            assert (row["misread"], row["dropped"]) == (0, 0), kind
            assert row["plain read"] >= 0.97 * row["plain"], kind
