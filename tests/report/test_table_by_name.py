"""`harness report RUN --table …`: one table by its title or its number in the paper."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import main
from harness.evaluation import evaluate

QUICK = ["matrix.condition=[seq3c]"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return evaluate("dpbench", overrides=QUICK, repeats=1, output_path=tmp_path_factory.mktemp("runs") / "r").folder


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("DPBench 4", "Extended results"),
        ("Table 2", "Performance across the conditions"),
        ("dpbench/table5", "What the models cost"),  # has no number here, and is printed all the same
        ("dpbench figure 2", "Deadlock rate by condition"),  # figure data without --figures
        ("extended RESULTS", "Extended results"),
        ("models comp", "Models compared"),
    ],
)
@pytest.mark.parametrize("command", ["report", "leaderboard"])
def test_a_table_by_any_of_its_names(
    run: Path, name: str, title: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(run), "--table", name]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(title + "\n") and printed.count("\n\n\n") == 0


def test_what_there_is_where_there_is_no_such_table(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("AgentsNet 4", "DPBench 9", "Extendet results", " ", "!", "con"):
        assert main(["report", str(run), "--table", name]) != 0
        err = capsys.readouterr().err
        assert "  Extended results (dpbench/table4)\n" in err and "DPBench Figure 2" in err, name
        assert ("Did you mean 'Extended results'?" in err) == (name == "Extendet results")
    assert "several tables have 'con' in their title" in err
