"""The leaderboards in results/leaderboards are what `python results/make.py` makes of the code."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from harness.config.project import find
from harness.config.spec import load
from tests.helpers import shipped

ROOT = Path(__file__).parents[2]
FAST = ("dpbench_quick", "arithmetic", "networks/coloring", "sharded/auction")
ELSEWHERE = {
    # of data or models that are not here
    *("darkforest", "darkforest_ablations", "darkforest_disclosure", "darkforest_panels", "finqa", "gpqa", "humaneval"),
    *("legalbench", "math", "mmlu_pro", "mmlu_pro_scored"),
    # of the same games in other words, or with other counts: policies play them as they play their base
    *("agentsnet_camoc", "agentsnet_prompts", "agentsnet_reference", "dpbench_ablations", "dpbench_paper"),
    *("dpbench_release01", "dpbench_release02", "mas_coupling", "silo_camoc", "silo_rcc", "silo_scaffolds"),
    *("mas_calls", "silo_calls", "silo_silence"),
    # 16,000 episodes, of which discussion_quick has a part; one of programs, another of two models
    *("discussion_space", "teams/software", "teams/two_agents"),
    # judged by a script that is no judge
    "judged",
    # for a small model: docs/how-to/tiny.md has its floor, its ceiling and what one reaches
    "tiny",
    # adaptive, by sizes: docs/how-to/ability.md
    "networks/coloring_ladder",
    # of planted faults: what is compared is not players
    *(
        "studies/coordinator",
        "studies/first_or_last_lie",
        "studies/last_round",
        "studies/opinions",
        "studies/who_changes_minds",
    ),
}


def loaded() -> ModuleType:
    """results/make.py."""
    spec = importlib.util.spec_from_file_location("results_make", ROOT / "results" / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKE = loaded()
SLOWER = [name for name in MAKE.SPECS if name not in FAST]


@pytest.fixture
def make() -> ModuleType:
    return MAKE


def unchanged(make: ModuleType, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = make.main(["--check", name])
    assert (code, capsys.readouterr().out) == (0, "")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", FAST)
def test_some_files_are_what_the_code_gives(make: ModuleType, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    unchanged(make, name, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOWER)
def test_all_files_are_what_the_code_gives(make: ModuleType, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    unchanged(make, name, capsys)


def test_every_group_is_on_the_page_over_all(make: ModuleType) -> None:
    page = (make.FOLDER / make.INDEX).read_text("utf-8")
    for title, group in make.GROUPS.items():
        assert f"### {title}" in page
        assert all(f"[{name}]({make.stem(name)}.md)" in page for name in group)
    limited = (make.FOLDER / "tournament.md").read_text("utf-8")
    assert "At most 4 cases of each condition." in limited and "always defect" in limited


@pytest.mark.slow
def test_a_file_that_was_changed_is_found(make: ModuleType, tmp_path: Path) -> None:
    for file in make.FOLDER.iterdir():
        text = file.read_text("utf-8")
        (tmp_path / file.name).write_text(text.replace("100.0%", "99.0%") if file.name == "arithmetic.md" else text)
    changed = make.differences(["arithmetic"], find(ROOT), tmp_path)
    assert any("99.0%" in line for line in changed)
    assert not any("dpbench" in line for line in changed)


def test_every_shipped_spec_has_a_leaderboard_or_a_reason_why_not(make: ModuleType) -> None:
    assert {*make.SPECS} | ELSEWHERE == set(shipped.specs())
    assert {*make.SPECS} == {*FAST, *SLOWER}, "a leaderboard that no test compares with the code"
    assert len({make.stem(name) for name in make.SPECS}) == len(make.SPECS)
    assert not {*make.SPECS} & ELSEWHERE
    names = {f"{make.stem(name)}.{suffix}" for name in make.SPECS for suffix in ("md", "json")} | {make.INDEX}
    assert {file.name for file in make.FOLDER.iterdir()} == names


def test_a_grade_says_between_which_numbers_it_lies() -> None:
    """Without its bounds an interval of a share may leave [0, 1]."""
    project = find()
    metrics = {name: load(name, project).data["metrics"] for name in shipped.specs()}
    grades = [(name, entry) for name, own in metrics.items() for entry in own if isinstance(entry, dict)]
    assert not [name for name, entry in grades if entry["use"] == "grade" and "bounds" not in entry]
