"""`harness eval --until`: runs that end once a number is known well enough, and that can be played on."""

import asyncio
import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.api import Completion, Request, derive_seed
from harness.config import resolve
from harness.config.plan import episode_id, survey
from harness.config.project import find
from harness.config.spec import parse
from harness.engines.mock import Mock
from harness.extensions.stopping.balanced_order import Blocks
from harness.extensions.stopping.until_options import Wanted
from harness.runtime.executors import Local
from harness.runtime.runner import Work
from tests.helpers.commands import invoke
from tests.helpers.journals import as_killed

SUMS: dict[str, Any] = {
    "name": "sums",
    "task": {"use": "arithmetic", "size": 120, "terms": 3},
    "protocol": {"use": "vote", "agents": 1},
    "prompts": "panels/standard",
    "baseline": {"use": "simulated", "accuracy": 0.9},
    "metrics": ["score", "calls"],
    "headline": {"metric": "score"},
    "tables": [{"title": "Solved", "rows": "model", "metrics": "score", "uncertainty": "interval"}],
}
PANELS: dict[str, Any] = {
    **SUMS,
    "task": {"use": "arithmetic", "size": 40, "terms": 3},
    "protocol": {"use": "vote", "agents": "${panel}"},
    "matrix": {"panel": [1, 3], "sure": [0.5, 0.9]},
    "baseline": {"use": "simulated", "accuracy": "${sure}"},
    "repeats": 2,
}
QUOTED = "'headline ±15%'"


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run.json").read_text("utf-8"))
    return found


def results(folder: Path) -> list[str]:
    return [(folder / name).read_text("utf-8") for name in ("scores.jsonl", "tables.md")]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> harness.Run:
    folder = tmp_path_factory.mktemp("runs") / "stopped"
    return harness.evaluate(SUMS, until="headline ±15%", output_path=folder)


def test_a_run_ends_once_its_headline_is_known_well_enough(stopped: harness.Run) -> None:
    meta = record(stopped.folder)
    assert meta["status"] == "stopped" and meta["planned"] == 120
    end = meta["stopped"]
    low, high = end["intervals"]["score"]
    assert high - low <= 0.3 and low < 0.9 < high
    assert (end["by"], end["at"], end["level"], end["method"]) == ("--until", "headline ±15%", 0.95, "betting")
    assert len(stopped.scores) == end["episodes"] == end["blocks"] < end["of"] == end["of_blocks"] == 120


def test_every_table_of_such_a_run_says_so(stopped: harness.Run, capsys: pytest.CaptureFixture[str]) -> None:
    said = f"ended the run after {len(stopped.scores)} of 120 episodes"
    folder = str(stopped.folder)
    forms = (("report", folder), ("report", folder, "--format", "json"))
    for command in (*forms, ("leaderboard", folder), ("compare", folder, folder)):
        code, out, _ = invoke(capsys, *command)
        assert code == 0 and said in " ".join(out.split()), command
    assert all(
        any(f"--until {QUOTED} {said}" in note for note in table.notes)
        for table in harness.load_run(stopped.folder).tables
    )


def test_scores_that_do_not_fit_the_record_are_an_error(stopped: harness.Run, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(stopped.folder, folder)
    lines = (folder / "scores.jsonl").read_text("utf-8").splitlines(keepends=True)
    (folder / "scores.jsonl").write_text("".join(lines[1:]), "utf-8")
    with pytest.raises(harness.UserError, match="its rule counted"):
        harness.load_run(folder)


def test_without_the_rule_it_plays_on_and_is_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    harness.evaluate(SUMS, until="headline ±15%", output_path=tmp_path / "a")
    again = harness.evaluate(SUMS, until="headline ±15%", output_path=tmp_path / "a")
    assert "stopped" in again.meta
    closer = harness.evaluate(SUMS, until="headline ±12%", output_path=tmp_path / "a")
    assert len(again.scores) < len(closer.scores) < 120
    whole = harness.evaluate(SUMS, output_path=tmp_path / "a")
    never = harness.evaluate(SUMS, output_path=tmp_path / "b")
    assert results(whole.folder) == results(never.folder)
    assert whole.meta["status"] == "finished" and "stopped" not in whole.meta
    assert harness.evaluate(SUMS, until="headline ±15%", output_path=tmp_path / "a").scores == never.scores


def test_a_budget_in_between_changes_nothing(tmp_path: Path) -> None:
    model = Mock(function=answer)
    with pytest.raises(harness.BudgetReachedError):
        harness.evaluate(SUMS, model, until="headline ±15%", max_calls=11, output_path=tmp_path / "a")
    assert not (tmp_path / "a" / "scores.jsonl").exists()
    resumed = harness.evaluate(SUMS, model, until="headline ±15%", output_path=tmp_path / "a")
    at_once = harness.evaluate(SUMS, model, until="headline ±15%", output_path=tmp_path / "b")
    assert resumed.scores == at_once.scores


async def answer(request: Request) -> Completion:
    """Mostly the right answer, after others that were asked later."""
    luck = derive_seed(request.id)
    for _ in range(luck % 29):
        await asyncio.sleep(0)
    found = re.search(r"What is ([-+*() 0-9]+)\?", str(request.thread.messages[-1]["content"]))
    assert found is not None
    right = eval(found[1])  # digits and signs
    return Completion(f"The answer is {right if luck % 7 else right + 1}", finish_reason="stop")


@pytest.mark.parametrize("width", [1, 7, 100])
def test_how_many_episodes_are_open_at_once_changes_nothing(width: int, tmp_path: Path) -> None:
    run = harness.evaluate(
        SUMS, Mock(function=answer), until="score ±0.1", max_concurrency=width, output_path=tmp_path / "r"
    )
    assert (len(run.scores), run.meta["stopped"]["blocks"]) == (77, 77)
    ended = [line for line in (tmp_path / "r" / "journal.jsonl").read_text("utf-8").splitlines() if '"k":"end"' in line]
    assert len(ended) == 77 + len(run.meta["stopped"]["not_counted"]) < 120
    assert harness.load_run(run.folder).scores == run.scores


def test_workers_that_are_ahead_of_the_rule_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a cluster whose workers have played all before the rule hears of it."""
    at_once, play = harness.evaluate(SUMS, until="headline ±12%", output_path=tmp_path / "a"), Local.play

    async def ahead(self: Local, work: Work) -> None:
        rule, work.rule = work.rule, None
        await play(self, work)
        work.rule = rule
        assert rule is not None and not work.remaining
        for score in work.done.values():
            rule.add(score)

    monkeypatch.setattr(Local, "play", ahead)
    late = harness.evaluate(SUMS, until="headline ±12%", output_path=tmp_path / "b")
    assert late.scores == at_once.scores and harness.load_run(late.folder).scores == late.scores
    assert len(late.scores) + len(late.meta["stopped"]["not_counted"]) == 120
    again = harness.evaluate(SUMS, until="headline ±12%", output_path=tmp_path / "b")
    assert (again.scores, again.meta["stopped"]) == (late.scores, late.meta["stopped"])
    whole = harness.evaluate(SUMS, output_path=tmp_path / "b")
    assert len(whole.scores) == 120 and "stopped" not in whole.meta


def test_a_kill_after_the_last_episode_has_ended_changes_nothing(tmp_path: Path) -> None:
    at_once = harness.evaluate(SUMS, until="headline ±15%", output_path=tmp_path / "a")
    killed = harness.evaluate(SUMS, output_path=tmp_path / "b").folder
    as_killed(killed)
    for name in ("scores.jsonl", "results.json", "tables.md", "tables.json"):
        (killed / name).unlink()
    assert harness.evaluate(SUMS, until="headline ±15%", output_path=killed).scores == at_once.scores


def test_grading_again_keeps_to_the_episodes_that_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = harness.evaluate(SUMS, Mock(function=answer), until="score ±0.1", output_path=tmp_path / "r")
    assert run.meta["stopped"]["not_counted"]
    before = results(run.folder)
    assert invoke(capsys, "score", str(run.folder))[0] == 0
    assert results(run.folder) == before and record(run.folder)["status"] == "stopped"


def test_conditions_stay_balanced(tmp_path: Path) -> None:
    run = harness.evaluate(PANELS, until="headline ±15%", output_path=tmp_path / "r")
    counts = Counter(score.condition for score in run.scores)
    assert len(counts) == 4 and len({*counts.values()}) == 1 and 0 < len(run.scores) < 320
    cases = {name: {score.case for score in run.scores if score.condition == name} for name in counts}
    assert len({frozenset(own) for own in cases.values()}) == 1  # the same cases in all


def test_each_condition_can_be_what_is_known(tmp_path: Path) -> None:
    run = harness.evaluate(PANELS, until="headline ±25% per condition", output_path=tmp_path / "r")
    found = run.meta["stopped"]["intervals"]
    assert len(found) == 4 and all(high - low <= 0.5 for low, high in found.values())
    assert "Of 4 conditions the least certain: score of panel=" in run.meta["stopped"]["enough"]


def test_what_is_not_reached_is_said_with_what_it_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "sums.yaml"
    spec.write_text(json.dumps(SUMS), "utf-8")
    command = ("eval", "--spec", str(spec), "--limit", "20", "--quiet", "--output_path")
    code, out, err = invoke(capsys, *command, str(tmp_path / "r"), "--until", "headline ±0.05")
    assert code == 0 and "ended the run" not in out and "not reached: it takes about " in err
    assert record(tmp_path / "r")["status"] == "finished"
    _, _, err = invoke(capsys, *command, str(tmp_path / "s"), "--until", "calls ±2%", "--limit", "60")
    assert "vary too little, or are too few" in err
    code, _, err = invoke(capsys, *command, str(tmp_path / "t"), "--until", "headline +-40%")
    assert code == 0 and "enough: headline ±40% is reached after " in err


WRONG = {
    "score": "without ±",
    "±2%": "no metric before ±",
    "headline ±": "'' is no width",
    "headline ±two": "'two' is no width",
    "headline ±2% per case": "is no width",
    "headline ±0": "within 0",
    "scor ±2%": "Did you mean score?",
    "headline ±50%": "known within ±0.5 already",
    "score ±0.7": "known within ±0.7 already",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_no_rule_can_be_is_refused_before_anything_is_played(text: str, tmp_path: Path) -> None:
    with pytest.raises(harness.UserError) as caught:
        harness.evaluate(SUMS, until=text, output_path=tmp_path / "r")
    assert WRONG[text] in str(caught.value) and not (tmp_path / "r").exists()


UNFIT: dict[str, tuple[dict[str, Any], str]] = {
    "a total": ({"metrics": ["score", {"use": "calls", "over": "run"}]}, "is not the mean"),
    "one case": ({"limit": 1}, "one independent case"),
    "one cluster": ({"cluster": "model"}, "one independent case"),
}


@pytest.mark.parametrize("what", UNFIT)
def test_what_has_no_mean_of_independent_cases_is_refused(what: str, tmp_path: Path) -> None:
    more, why = UNFIT[what]
    name = "calls" if "metrics" in more else "headline"
    with pytest.raises(harness.UserError, match=why):
        harness.evaluate({**SUMS, **more}, until=f"{name} ±20%", output_path=tmp_path / "r")


def test_tournaments_and_judged_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(harness.UserError, match="tournament chooses"):
        harness.evaluate("tournament", until="headline ±2%", output_path=tmp_path / "t")
    with pytest.raises(harness.UserError, match="others rate"):
        harness.evaluate("judged", Mock(text="x"), judge="mock", until="headline ±2%", output_path=tmp_path / "j")


# ------------------------------------------------------------------------------------- the order


@given(
    st.integers(1, 3),
    st.sampled_from([(), ("case",), ("episode",), ("panel",)]),
    st.integers(0, 5),
    st.sampled_from([None, 1, 3]),
)
def test_blocks_have_every_episode_once_and_are_alike(
    repeats: int, cluster: tuple[str, ...], seed: int, panel: int | None
) -> None:
    spec = {**PANELS, "task": {"use": "arithmetic", "size": 5, "terms": 3}, "repeats": repeats, "seed": seed}
    plan = resolve.plan(parse(spec, find()), find())
    episodes = survey(plan).episodes
    blocks = Blocks.of(plan, episodes, cluster, lambda score: panel is None or score.labels["panel"] == panel)
    names = [episode_id(*job) for job in blocks.order]
    assert sorted(names) == sorted(episode_id(*job) for job in episodes)
    assert names == [name for ids in blocks.ids for name in ids]
    makeup = [Counter(name.rpartition("/")[0].rpartition("/")[0] for name in ids) for ids in blocks.ids]
    if cluster != ("panel",):
        assert all(one == makeup[0] for one in makeup)
        whole = sum(blocks.scale[name] for name in names) / len(blocks.ids)
        assert whole == pytest.approx(len(episodes))  # a block stands for all
    again = Blocks.of(plan, episodes[::-1], cluster, lambda score: True)
    assert {*map(frozenset, again.ids)} == {*map(frozenset, blocks.ids)}


@pytest.mark.parametrize(("sizes", "count"), [([6, 12], 6), ([6, 8], 6), ([8, 6, 7], 6)])
def test_a_case_of_several_conditions_is_in_one_block(sizes: list[int], count: int) -> None:
    spec = {**SUMS, "task": {"use": "arithmetic", "size": "${size}", "terms": 3}, "matrix": {"size": sizes}}
    blocks = Blocks.of(plan := resolve.plan(parse(spec, find()), find()), survey(plan).episodes, (), lambda score: True)
    cases = [{name.split("/")[1] for name in ids} for ids in blocks.ids]
    assert len(cases) == count and sum(map(len, cases)) == len(set().union(*cases)) == max(sizes)


@given(
    st.sampled_from(["headline", "score", "games/results"]),
    st.sampled_from(["±", "+-", "+/-", " ± "]),
    st.decimals("0.000000000001", "999999999999", places=12) | st.decimals("0.001", "99", places=3),
    st.booleans(),
    st.booleans(),
)
def test_what_is_wanted_reads_its_own_words(name: str, sign: str, width: Any, percent: bool, each: bool) -> None:
    text = f"{name}{sign}{width:f}" + "%" * percent + " per condition" * each
    wanted = Wanted.parse(text)
    assert (wanted.name, wanted.percent, wanted.per_condition) == (name, percent, each)
    assert wanted.width == pytest.approx(float(width) / (100 if percent else 1))
    assert Wanted.parse(str(wanted)) == wanted


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert Wanted.parse(text).width > 0
    except harness.UserError as error:
        assert error.place is not None and str(error.place) == "--until"


# ------------------------------------------------------------------------- what others make of it


def test_exports_and_submissions_know_of_it(
    stopped: harness.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(capsys, "submit", str(stopped.folder), "-o", str(tmp_path / "run.zip"))[0] == 0
    out = tmp_path / "rows"
    assert invoke(capsys, "export", str(stopped.folder), "--to", "jsonl", "-o", str(out))[0] == 0
    rows = [json.loads(line) for line in (out / "episodes.jsonl").read_text("utf-8").splitlines()]
    assert len(rows) == len(stopped.scores)


def test_a_model_that_is_not_read_is_not_known_early(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its score of 0 would be known soon, but no table shows it."""
    spec = tmp_path / "sums.yaml"
    spec.write_text(json.dumps(SUMS), "utf-8")
    command = ("eval", "--spec", str(spec), "--model", "mock", "--until", "score ±15%")
    code, _, err = invoke(capsys, *command, "--model_args", "text=well", "--output_path", str(tmp_path / "a"))
    assert code == 0 and len(harness.load_run(tmp_path / "a").scores) == 120
    assert "--until 'score ±15%' was not reached" in err and "of its 120 turns were parsed, fewer than 50 %" in err
    shown = ("--set", "headline.min_read=0", "--model_args", "text=well", "--output_path", str(tmp_path / "b"))
    assert invoke(capsys, *command, *shown)[0] == 0
    assert len(harness.load_run(tmp_path / "b").scores) < 120
