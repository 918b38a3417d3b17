"""`harness report RUN --table …`: one table by its title or its number in the paper."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import main
from harness.config import spec
from harness.config.project import builtin
from harness.evaluation.evaluate import evaluate
from harness.extensions.analysis.table_names import called
from harness.tables import TableSpec

QUICK = ["matrix.condition=[seq3c]"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return evaluate("dpbench", overrides=QUICK, repeats=1, output_path=tmp_path_factory.mktemp("runs") / "r").folder


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("DPBench 4", "Extended results"),
        ("Table 2", "Performance across the conditions"),
        ("dpbench/table5", "What the models cost"),  # has no number here, and is printed all the same
        ("dpbench figure 2", "Deadlock rate by condition"),  # figure data without --figures
        ("DPBench, Figure 3", "Deadlock rate by condition"),
        ("Figure 4", "Deadlock rate without talk and with it"),
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
    first, *more = printed.split("\n\n\n")
    assert first.startswith(title + "\n")
    assert [one.splitlines()[0] for one in more] == ["Where these numbers come from"] * (command == "leaderboard")


@pytest.mark.slow
def test_what_there_is_where_there_is_no_such_table(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("AgentsNet 4", "DPBench 9", "Extendet results", " ", "!", "con"):
        assert main(["report", str(run), "--table", name]) != 0
        err = capsys.readouterr().err
        assert "  Extended results (dpbench/table4)\n" in err and "DPBench Figure 2" in err, name
        assert ("Did you mean 'Extended results'?" in err) == (name == "Extendet results")
    assert "several tables have 'con' in their title" in err


def test_a_table_of_another_spec_is_named_with_it(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, where in (
        ("SILO-Bench 2", "silo_rcc has it (Relative coordination cost by level and agents)"),
        ("Mas-Bench, Figure 2", "mas_bench has it"),
        ("AgentsNet 4", "agentsnet has it"),
    ):
        assert main(["report", str(run), "--table", name]) != 0
        err = capsys.readouterr().err
        assert where in err and "`harness eval --spec` plays one" in err, err


FIGURES = {
    "AgentsNet": ["4", "5"],
    "DPBench": ["2", "3", "4"],
    "SILO-Bench": ["4", "4a", "4b", "4c", "5", "6"],
    "MAS-Bench": ["2", "2a", "2b", "2c", "2d"],
    "DarkForest": ["1", "3", "4", "5", "6", "7", "8", "9"],
}
"""The figures of the papers that show results of runs (AgentsNet's Figure 1 is a chart of prices)."""


def test_every_figure_of_results_has_a_table_and_every_drawing_of_a_benchmark_a_name() -> None:
    project = builtin()
    entries = {
        name: [TableSpec.parse(entry) for entry in spec.load(name, project).tables]
        for name in ("agentsnet", "agentsnet_scale", "dpbench", "silo_bench", "mas_bench", "darkforest",
                     "darkforest_ablations", "darkforest_panels")
    }  # fmt: skip
    tables = [table for listed in entries.values() for table in listed]
    for paper, numbers in FIGURES.items():
        for number in numbers:
            named = f"{paper} Figure {number}"
            assert any(called(table, named) for table in tables), named
    for table in tables:
        assert not table.figure or table.paper or table.published, table.title
    panels = [table.title for table in entries["mas_bench"] if called(table, "MAS-Bench Figure 2")]
    assert len(panels) == 4 and all("by number of agents" in title for title in panels)
