"""`ability:` and `harness eval --adaptive`: tables, boards, charts, and runs that play few episodes."""

import contextlib
import copy
import hashlib
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api.errors import SetupError, SpecError
from harness.config import resolve
from harness.config.plan import episode_id, survey
from harness.config.project import find
from harness.config.spec import parse
from harness.evaluation.stages import OpenRun, check
from harness.extensions.ability.adaptive_rule import Adaptive
from harness.report import render
from harness.runtime.executors import Executor, Local
from harness.runtime.options import Options
from harness.runtime.runner import Work
from harness.tables import EpisodeScore, TableSpec
from harness.tables import check as check_table
from tests.helpers.commands import invoke

SURE = {4: 0.98, 8: 0.96, 16: 0.9, 32: 0.5, 64: 0.08, 128: 0.02, 256: 0.01}
LADDER: dict[str, Any] = {
    "name": "ladder",
    "task": {"use": "arithmetic", "size": 25, "terms": 3},
    "protocol": {"use": "vote", "agents": 1},
    "prompts": "panels/standard",
    "matrix": {"size": [{"name": size, "accuracy": accuracy} for size, accuracy in SURE.items()]},
    "baseline": {"use": "simulated", "accuracy": "${size.accuracy}"},
    "metrics": ["score"],
    "headline": {"metric": "score", "title": "Solved"},
    "tables": [
        {"title": "Half", "ability": {"over": "size", "within": 2}, "metrics": "score"},
        {"title": "Solved", "rows": "size", "metrics": "score"},
    ],
}


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run.json").read_text("utf-8"))
    return found


def results(folder: Path) -> list[str]:
    return [(folder / name).read_text("utf-8") for name in ("scores.jsonl", "tables.md")]


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> harness.Run:
    return harness.evaluate(LADDER, adaptive=True, output_path=tmp_path_factory.mktemp("runs") / "chosen")


def test_few_episodes_say_where_half_is_solved(chosen: harness.Run) -> None:
    cell = chosen.tables[0].rows[0].cells[0]
    assert cell.low is not None and cell.high is not None
    assert cell.low < 32 < cell.high <= 2 * cell.low
    assert len(chosen.scores) < 0.5 * 25 * len(SURE)
    end = record(chosen.folder)["stopped"]
    assert end["by"] == "adaptive" and end["uneven"] and end["episodes"] == len(chosen.scores) and end["of"] == 175
    assert f"--adaptive chose {len(chosen.scores)} of 175 episodes" in chosen.tables[1].notes[-1]
    assert harness.load_run(chosen.folder).scores == chosen.scores


def test_a_killed_run_goes_on_as_it_would_have_gone(chosen: harness.Run, tmp_path: Path) -> None:
    """The journal of every prefix leads to the same episodes."""
    lines = (chosen.folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    for part in (len(lines) // 3, len(lines) - 2):
        folder = tmp_path / str(part)
        shutil.copytree(chosen.folder, folder)
        meta = record(folder)
        meta = {**meta, "status": "running", "run": folder.name, "journals": {}} | {"stopped": {}}
        (folder / "run.json").write_text(json.dumps(meta), "utf-8")
        for name in ("scores.jsonl", "tables.md", "tables.json", "results.json"):
            (folder / name).unlink()
        (folder / "journal.jsonl").write_bytes(b"".join(lines[:part]))
        again = harness.evaluate(LADDER, adaptive=True, output_path=folder)
        assert results(again.folder) == results(chosen.folder)


def test_the_same_command_without_it_plays_the_whole_grid(chosen: harness.Run, tmp_path: Path) -> None:
    folder = tmp_path / "chosen"
    shutil.copytree(chosen.folder, folder)
    whole = harness.evaluate(LADDER, output_path=folder)
    assert whole.scores == harness.evaluate(LADDER, output_path=tmp_path / "whole").scores
    assert record(folder)["status"] == "finished" and len(whole.scores) == 175


def test_the_order_in_which_episodes_end_changes_nothing() -> None:
    plan = resolve.plan(parse(LADDER, find()), find())
    episodes = survey(plan).episodes

    def played(backwards: bool) -> list[str]:
        rule = Adaptive()
        rule.begin(plan, episodes)
        done = 0
        while rule.reached is None:
            round_ = list(rule.order)[done:]
            done += len(round_)
            for condition, case, repeat in reversed(round_) if backwards else round_:
                name = episode_id(condition, case, repeat)
                labels = {**condition.labels, "model": "m"}
                solved = float(hash_of(name) < SURE[int(condition.labels["size"])])
                rule.add(EpisodeScore(name, condition.id, labels, {"score": solved}))
        return [episode_id(*job) for job in rule.order]

    assert played(False) == played(True)


def hash_of(name: str) -> float:
    return int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) / 2**32


def test_cases_come_before_repeats_and_other_labels_have_curves_of_their_own() -> None:
    spec = copy.deepcopy(LADDER) | {"repeats": 3}
    spec["matrix"]["terms"], spec["task"]["terms"] = [2, 3], "${terms}"
    spec["tables"][0]["rows"] = "terms"
    plan = resolve.plan(parse(spec, find()), find())
    rule = Adaptive()
    rule.begin(plan, survey(plan).episodes)
    assert {job[2] for job in rule.order} == {0}
    assert [job[0].labels["terms"] for job in rule.order] == [2, 2, 3, 3]


def test_boards_rank_no_mean_of_chosen_episodes(
    chosen: harness.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    harness.evaluate(LADDER, limit=5, output_path=tmp_path / "whole")
    shutil.copytree(chosen.folder, tmp_path / "chosen")
    code, out, _ = invoke(capsys, "leaderboard", str(tmp_path), "--format", "json")
    board = next(table for table in json.loads(out) if table["title"].endswith("standings"))
    assert code == 0
    named = {row["names"][1]: row["cells"] for row in board["rows"]}
    at = next(i for i, column in enumerate(board["columns"]) if column["names"] == ["size solved by half"])
    values = {name: (cells[0]["value"], cells[at]["value"]) for name, cells in named.items()}
    assert sum(value is None for value, _ in values.values()) == 1
    assert all(half is not None for _, half in values.values())
    assert any(note.startswith("No Solved for ") for note in board["notes"])
    missing = next(i for i, column in enumerate(board["columns"]) if column["names"] == ["missing"])
    assert {row["cells"][missing]["value"] for row in board["rows"]} == {0}  # what is withheld is not missing
    assert not any("not reported" in note for note in board["notes"])


def test_a_chart_shows_the_curve(chosen: harness.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "curve.svg"
    code, out, _ = invoke(capsys, "plot", str(chosen.folder), "--kind", "ability", "-o", str(file))
    assert code == 0 and out.startswith("size solved by half.") and file.read_text("utf-8").startswith("<?xml")


def test_beyond_the_sizes_no_number_is_extrapolated() -> None:
    labels = [{"model": "m", "size": size} for size in (4, 8, 16, 32, 64) for _ in range(10)]
    scores = [EpisodeScore(f"c/{i}/0", "c", each, {"score": 1.0}) for i, each in enumerate(labels)]
    metrics = {"score": resolve.metrics(parse(LADDER, find()), find())["score"]}
    table = harness.tables.build(TableSpec.parse(LADDER["tables"][0]), scores, metrics)
    assert "> 64 " in render(table) and "no number is extrapolated" in render(table)
    assert json.loads(render(table, "json"))["rows"][0]["cells"][0]["beyond"] == "above"


def test_a_plan_says_how_many_episodes_it_is_likely_to_take(
    chosen: harness.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ladder.yaml"
    file.write_text(json.dumps(LADDER), "utf-8")

    def likely(*factor: str) -> list[int]:
        code, out, _ = invoke(capsys, "plan", "--spec", str(file), "--adaptive", *factor)
        found = re.search(r"about (\d+) of 175 episodes .*\n +\((\d+) to (\d+) for 8 of 10", out)
        assert code == 0 and found is not None, out
        return [int(x) for x in found.groups()]

    middle, few, many = likely()
    assert 12 <= few <= middle <= many and few <= len(chosen.scores) <= many
    assert likely("8")[0] < middle < likely("1.3")[0]
    code, _, err = invoke(capsys, "plan", "--spec", str(file), "--adaptive", "0.5")
    assert code == 2 and "Give a number above 1" in err


def test_above_chance_half_is_half_of_the_rest() -> None:
    labels = [{"model": "m", "size": size} for size in (4, 8, 16, 32, 64) for _ in range(10)]
    scores = [EpisodeScore(f"c/{i}/0", "c", each, {"score": 0.625}) for i, each in enumerate(labels)]
    metrics = {"score": resolve.metrics(parse(LADDER, find()), find())["score"]}
    entry = {**LADDER["tables"][0], "ability": {"over": "size", "floor": 0.25}}
    text = " ".join(render(harness.tables.build(TableSpec.parse(entry), scores, metrics)).split())
    assert "the size at which score is 62.5 %, half of what is above chance (25 %), by a logistic" in text


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "label": ({"ability": {"over": "sise"}}, "unknown label 'sise'. Did you mean size?"),
    "in rows": ({"rows": "size"}, "rows must not have 'size'"),
    "two metrics": ({"metrics": ["score", "calls"]}, "a table is about one metric"),
    "floor": ({"ability": {"over": "size", "floor": 1}}, "floor"),
    "no number": ({"ability": {"over": "kind"}}, "kind is to be a number above 0, found 'a'"),
    "one value": ({"where": {"size": 4}}, "size has one value, 4"),
    "no share": ({"metrics": "calls"}, "`solved_from` says from which number"),
}


@pytest.mark.parametrize("what", WRONG)
def test_mistakes_in_an_entry_are_named(what: str) -> None:
    entry, message = WRONG[what]
    metrics = resolve.metrics(parse({**LADDER, "metrics": ["score", "calls"]}, find()), find())
    found = check_table({**LADDER["tables"][0], **entry}, {"size": [4, 8], "kind": ["a", "b"]}, metrics)
    assert any(message in problem for problem in found), found


class Elsewhere(Executor):
    """Plays nothing."""

    async def play(self, work: Work) -> None:
        raise AssertionError("nothing is to be played")


def test_rounds_are_for_executors_that_take_them(tmp_path: Path) -> None:
    plan = resolve.plan(parse(LADDER, find()), find())
    rule = Adaptive()
    run = OpenRun(plan=plan, options=Options(), folder=tmp_path / "a", rule=rule, survey=survey(plan))
    with contextlib.ExitStack() as held:
        check(replace(run, executor=Local()), held)
        with pytest.raises(SetupError, match="each round of the rule would start the executor's workers anew"):
            check(replace(run, executor=Elsewhere()), held)


def test_what_cannot_be_adaptive_is_refused_with_advice(tmp_path: Path) -> None:
    plain = {**LADDER, "tables": LADDER["tables"][1:]}
    with pytest.raises(SpecError, match="does not say by which number its tasks grow") as error:
        harness.evaluate(plain, adaptive=True, output_path=tmp_path / "a")
    assert "ability: {over: size}" in (error.value.hint or "") and not (tmp_path / "a").exists()
    wrong: list[Any] = [0, 0.5, "x", "nan", 10**400]
    for factor in wrong:
        with pytest.raises(SpecError, match="Give a number above 1"):
            harness.evaluate(LADDER, adaptive=factor, output_path=tmp_path / "a")
