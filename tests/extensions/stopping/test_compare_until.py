"""`harness compare --until decided`: two sides play in turns until it is known which is better."""

import json
from pathlib import Path
from typing import Any

import pytest

import harness
from tests.extensions.stopping.test_until import SUMS, record
from tests.helpers.commands import invoke


@pytest.fixture
def spec(tmp_path: Path) -> str:
    file = tmp_path / "sums.yaml"
    file.write_text(json.dumps(SUMS), "utf-8")
    return str(file)


def compare(
    capsys: pytest.CaptureFixture[str], spec: str, folder: Path, *more: str, until: str = "decided"
) -> tuple[int, str, str]:
    command = ("compare", "--until", until, "--spec", spec, "--output_path", str(folder), "--quiet", *more)
    return invoke(capsys, *command)


def test_it_says_which_side_is_better_and_both_can_be_played_on(
    spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = compare(capsys, spec, tmp_path / "c", "--set_b", "baseline.accuracy=0.3")
    said = " ".join(out.split())
    assert code == 0 and said.startswith("A (simulated) is better: score of B − A is in [-") and "of 120 blocks" in said
    ends = [record(tmp_path / "c" / side)["stopped"] for side in "ab"]
    assert ends[0]["episodes"] == ends[1]["episodes"] < 120 and ends[0]["by"] == "compare --until"
    a, b = (harness.load_run(tmp_path / "c" / side) for side in "ab")
    assert [score.id for score in a.scores] == [score.id for score in b.scores]
    assert "harness compare --until decided ended the run" in a.tables[0].notes[-1]
    _, out, _ = invoke(capsys, "compare", str(a.folder), str(b.folder))
    assert "A: simulated: harness compare --until decided ended the run." in " ".join(out.split())
    board = " ".join(invoke(capsys, "leaderboard", str(a.folder), str(b.folder))[1].split())
    assert all(f"simulated ({side}): harness compare --until decided ended the run." in board for side in "ab")
    again = compare(capsys, spec, tmp_path / "c", "--set_b", "baseline.accuracy=0.3")
    assert " ".join(again[1].split()) == said
    whole = harness.evaluate(SUMS, output_path=tmp_path / "c" / "a")
    assert whole.scores == harness.evaluate(SUMS, output_path=tmp_path / "whole").scores


def test_of_a_metric_whose_direction_no_spec_says_it_calls_no_side_better(
    spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ("--set", "headline.metric=calls", "--metrics", "score", "--set_b", "baseline.accuracy=0.3")
    code, out, err = compare(capsys, spec, tmp_path / "c", *more)
    assert code == 0, err
    assert " ".join(out.split()).startswith("A (simulated) has the higher score: score of B − A is in [-")


def test_a_margin_makes_small_differences_none(spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = compare(capsys, spec, tmp_path / "c", "--set_b", "baseline.label=other", "--margin", "0.3")
    said = " ".join(out.split())
    assert code == 0 and said.startswith(
        "Simulated and simulated (other) are equivalent: the difference lies within ±0.3"
    )


def test_what_is_not_decided_is_said(spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = compare(capsys, spec, tmp_path / "c", "--set_b", "baseline.accuracy=0.88", "--limit", "12")
    said = " ".join(out.split())
    assert (
        code == 0
        and said.startswith("Not decided between simulated and simulated with baseline.accuracy=0.88")
        and "all 12 episodes are played" in said
    )
    assert record(tmp_path / "c" / "b")["status"] == "finished"


WRONG: dict[str, tuple[tuple[str, ...], dict[str, Any], str]] = {
    "another word": (("--set_b", "baseline.accuracy=0.3"), {"until": "sure"}, "It takes one word: decided"),
    "the same": ((), {}, "Say what B is: --model_b"),
    "equal": (("--set_b", "baseline.accuracy=0.9"), {}, "both sides are the same"),
    "other cases": (("--set_b", "task.terms=4"), {}, "the sides are asked other questions"),
    "margin": (("--set_b", "baseline.accuracy=0.3", "--margin", "0"), {}, "is no amount"),
    "metric": (("--set_b", "baseline.accuracy=0.3", "--metrics", "scor"), {}, "Did you mean score?"),
    "parts": (
        ("--set_b", "baseline.accuracy=0.3", "--where", "terms=2"),
        {},
        "--where belongs to a comparison of runs",
    ),
    "runs": (("somewhere", "--set_b", "baseline.accuracy=0.3"), {}, "which were played before"),
}


@pytest.mark.parametrize("what", WRONG)
def test_mistakes_are_named_before_anything_is_played(
    what: str, spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more, options, said = WRONG[what]
    code, _, err = compare(capsys, spec, tmp_path / "c", *more, **options)
    assert code == 2 and said in err and not (tmp_path / "c").exists()


def test_a_spec_without_the_rule_and_the_rule_without_a_spec(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = invoke(capsys, "compare", "--spec", spec)
    assert code == 2 and "--until decided, which plays both sides" in err
    code, _, err = invoke(capsys, "compare", "a", "b", "--set_b", "baseline.accuracy=0.3")
    assert code == 2 and "a side B is described that nothing plays" in err
    code, _, err = invoke(capsys, "compare", "--until", "decided")
    assert code == 2 and "no spec is given" in err
