"""Runs that a rule ended: they are complete, so they can be submitted, and the rule is applied again to check them."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Completion, Request, derive_seed
from harness.api.errors import DataError
from harness.config.project import find
from harness.engines.mock import Mock
from harness.extensions.submissions.check import CLAIMED, CONSISTENT, verify
from tests.helpers.commands import invoke

SUMS: dict[str, Any] = {
    "name": "sums",
    "task": {"use": "arithmetic", "size": 40, "terms": "${size}"},
    "protocol": {"use": "vote", "agents": 1},
    "prompts": "panels/standard",
    "matrix": {"size": [2, 5, 9]},
    "metrics": ["score"],
    "headline": {"metric": "score"},
    "tables": [
        {"title": "Solved", "rows": "model", "metrics": "score", "uncertainty": "interval"},
        {"title": "Half", "ability": {"over": "size", "within": 3}, "metrics": "score"},
    ],
}
RULES: dict[str, dict[str, Any]] = {"until": {"until": "headline ±15%"}, "adaptive": {"adaptive": True}}


def answer(request: Request) -> Completion:
    luck = derive_seed(request.id)
    found = re.search(r"What is ([-+*() 0-9]+)\?", str(request.thread.messages[-1]["content"]))
    assert found is not None
    sizes = re.findall(r"size=(\d+)", request.id)
    size = 2 * int(sizes[0])
    right = eval(found[1])  # digits and signs
    return Completion(f"The answer is {right if luck % 20 > size else right + 1}", output_tokens=9, input_tokens=99)


@pytest.fixture(scope="module", params=RULES)
def ended(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> harness.Run:
    folder = tmp_path_factory.mktemp("runs") / "run"
    model = Mock(model="m", function=answer)
    run = harness.evaluate(SUMS, model, **RULES[request.param], output_path=folder, max_concurrency=30)
    assert len(run.scores) < 120
    return run


def test_it_is_submitted_verified_and_shown_with_its_end(
    ended: harness.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, kept = tmp_path / "run.zip", tmp_path / "kept"
    end = ended.meta["stopped"]
    code, out, _ = invoke(capsys, "submit", str(ended.folder), "-o", str(file))
    assert code == 0 and end["enough"] in out
    code, out, _ = invoke(capsys, "verify", str(file), "--output", str(kept))
    assert code == 0 and f"{file}: {CONSISTENT}" in out
    assert f"applied again, ends the run after the same {len(ended.scores)} episodes" in out
    assert f"note: {end['enough']}" in out
    code, out, _ = invoke(capsys, "leaderboard", str(kept))
    assert code == 0 and " ".join(end["enough"].split()[:6]) in " ".join(out.split())


def change(folder: Path, by: Callable[[dict[str, Any]], object]) -> None:
    meta = json.loads((folder / "run.json").read_text("utf-8"))
    by(meta["stopped"])
    (folder / "run.json").write_text(json.dumps(meta), "utf-8")


def leave_out(folder: Path) -> None:
    """The last episode is not counted, as if the run had ended before it."""
    lines = (folder / "scores.jsonl").read_text("utf-8").splitlines(keepends=True)
    (folder / "scores.jsonl").write_text("".join(lines[:-1]), "utf-8")
    last = json.loads(lines[-1])["id"]
    change(folder, lambda end: end.update(episodes=end["episodes"] - 1, not_counted=[*end["not_counted"], last]))


FORGED: dict[str, Callable[[Path], object]] = {
    "an episode left out": leave_out,
    "another sentence": lambda folder: change(folder, lambda end: end.update(enough="All is known.")),
    "another width": lambda folder: change(folder, lambda end: end.update(arguments={"until": "headline ±14%"})),
    "a rule that is never content": lambda folder: change(
        folder, lambda end: end.update(arguments={"until": "score ±0.1%"})
    ),
    "no width": lambda folder: change(folder, lambda end: end.update(arguments={"until": "x"}, at={"a": 1})),
    "no rule": lambda folder: change(folder, lambda end: end.update(arguments=[])),
    "no names": lambda folder: change(folder, lambda end: end.update(not_counted=7, episodes=None, by=[1])),
}


@pytest.mark.parametrize("name", FORGED)
def test_another_end_is_found(name: str, ended: harness.Run, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(ended.folder, tmp_path / "run"))
    FORGED[name](folder)
    try:
        verdict = verify(folder, find())
    except DataError as error:
        assert "rule" in error.message or "ended the run" in error.message
        return
    assert verdict.level == CLAIMED and verdict.differences
    assert all(len(line) < 600 for line in verdict.differences)


def test_a_side_of_a_comparison_does_not_decide_where_it_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "sums.yaml"
    own = {
        **SUMS,
        "matrix": {"size": [2, 5]},
        "tables": SUMS["tables"][:1],
        "baseline": {"use": "simulated", "accuracy": 0.5},
    }
    spec.write_text(json.dumps(own), "utf-8")
    sides = ("--set_b", "baseline.accuracy=1.0", "--output_path", str(tmp_path / "both"))
    assert invoke(capsys, "compare", "--until", "decided", "--spec", str(spec), *sides)[0] == 0
    code, _, err = invoke(capsys, "submit", str(tmp_path / "both" / "a"), "-o", str(tmp_path / "a.zip"))
    assert code == 2 and "which its own episodes do not decide" in err and not (tmp_path / "a.zip").exists()
