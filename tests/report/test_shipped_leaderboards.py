"""The leaderboards in results/leaderboards are what `python results/make.py` makes of the code."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from harness.config.project import find

ROOT = Path(__file__).parent.parent.parent
FAST = ("arithmetic", "dpbench_quick")
SLOWER = (
    *("agentsnet", "agentsnet_byzantine", "agentsnet_quick", "agentsnet_scale", "darkforest_quick", "dpbench"),
    *("dpbench_scale", "mas_bench", "mas_quick", "silo_bench", "silo_panel", "silo_quick"),
)
ELSEWHERE = {
    # of data or models that are not here
    *("darkforest", "darkforest_ablations", "darkforest_disclosure", "darkforest_panels", "finqa", "gpqa", "humaneval"),
    *("legalbench", "math", "mmlu_pro", "mmlu_pro_scored"),
    # of the same games in other words, or with other counts: policies play them as they play their base
    *("agentsnet_camoc", "agentsnet_prompts", "agentsnet_reference", "dpbench_ablations", "dpbench_paper"),
    *("dpbench_release01", "dpbench_release02", "mas_coupling", "silo_camoc", "silo_rcc", "silo_scaffolds"),
    *("mas_calls", "silo_calls", "silo_silence"),
    # about choices of a protocol: their tables of effects are the result
    *("discussion_quick", "discussion_space"),
    # of games that a package of its own has
    "social_deduction",
    # policies that meet each other: there is no model to rank
    "tournament",
    # games: how strong a player is depends on whom it meets, and tournaments say that
    *("game_suite", "hanabi", "negotiation", "repeated_dilemmas"),
    # judged by a script that is no judge
    "judged",
}


@pytest.fixture(scope="module")
def make() -> ModuleType:
    """results/make.py."""
    spec = importlib.util.spec_from_file_location("results_make", ROOT / "results" / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def unchanged(make: ModuleType, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = make.main(["--check", name])
    assert (code, capsys.readouterr().out) == (0, "")


@pytest.mark.parametrize("name", FAST)
def test_some_files_are_what_the_code_gives(make: ModuleType, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    unchanged(make, name, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOWER)
def test_all_files_are_what_the_code_gives(make: ModuleType, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    unchanged(make, name, capsys)


def test_a_file_that_was_changed_is_found(make: ModuleType, tmp_path: Path) -> None:
    for file in make.FOLDER.iterdir():
        text = file.read_text("utf-8")
        (tmp_path / file.name).write_text(text.replace("100.0%", "99.0%") if file.name == "arithmetic.md" else text)
    changed = make.differences(["arithmetic"], find(ROOT), tmp_path)
    assert any("99.0%" in line for line in changed)
    assert not any("dpbench" in line for line in changed)


def test_every_shipped_spec_has_a_leaderboard_or_a_reason_why_not(make: ModuleType) -> None:
    listed = (entry.name for entry in find(ROOT).listing("specs"))
    shipped = {name for name in listed if "/" not in name}  # folders hold tasks of our own, without published figures
    assert {*make.SPECS} | ELSEWHERE == shipped
    assert {*make.SPECS} == {*FAST, *SLOWER}, "a leaderboard that no test compares with the code"
    assert not {*make.SPECS} & ELSEWHERE
    names = {f"{name}.{suffix}" for name in make.SPECS for suffix in ("md", "json")} | {make.INDEX}
    assert {file.name for file in make.FOLDER.iterdir()} == names
