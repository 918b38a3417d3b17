"""`harness blame`: planted faults are found, and no agent is blamed where no agent stands out."""

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import pytest

import harness
from harness.api.errors import DataError, SpecError, UserError
from harness.config import building
from harness.config.project import find
from harness.config.spec import load
from harness.engines.mock import Mock
from harness.evaluation.load_run import load_run
from harness.evaluation.run import Run
from harness.extensions.blame.blame import blamed, planned
from harness.extensions.blame.blame_command import as_json
from harness.extensions.blame.blame_tables import Blame
from harness.extensions.blame.blame_verdict import WORDS
from harness.extensions.blame.findings import FILE, keep
from harness.extensions.charts import ChartOptions, chart
from harness.extensions.charts.plot_command import material
from tests.helpers.commands import invoke
from tests.helpers.toy import TOY, run


def plant(folder: Path, spec: str, faults: dict[str, dict[str, Any]], *overrides: str, **more: Any) -> Run:
    """A run of a spec's ceiling, in which one agent of each group errs."""
    ceiling = load(spec, find()).data["headline"]["ceiling"]
    groups = {name: {"count": 1, "policy": {"use": "faulty", "of": ceiling, **fault}} for name, fault in faults.items()}
    agents = json.dumps({"default": "model", **groups})
    given = (f"agents={agents}", f"baseline={json.dumps(ceiling)}", *overrides)
    return harness.evaluate(spec, overrides=given, output_path=folder, **more)


def truth(found: Blame, episode: str, faults: dict[str, dict[str, Any]]) -> set[tuple[str, int]]:
    """The planted faults of an episode: (agent, its turn)."""
    roles = found.roles[episode]
    return {(agent, faults[role]["at"]) for agent, role in roles.items() if role in faults}


def check(found: Blame, faults: dict[str, dict[str, Any]]) -> None:
    assert {one.finding for one in found.verdicts} <= {"blamed", "no_better"} and found.verdicts
    for one in found.verdicts:
        if one.finding != "blamed":
            continue
        assert {move.place for move in one.named} == truth(found, one.episode, faults)
        assert one.reference is not None and one.value is not None
        assert sum((share.value for share in one.shares.values()), Fraction(0)) == one.reference - one.value
        assert {agent for agent, share in one.shares.items() if share.value} == set(one.agents)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "at", "overrides"),
    [
        pytest.param("agentsnet_quick", 1, ("matrix.size=[4]",), id="agentsnet"),
        pytest.param("silo_quick", 1, ("matrix.agents=[5]",), id="silo"),
        pytest.param("mas_quick", 0, ("matrix.agents=[3]",), id="mas"),
        pytest.param("worlds/four_way_stop", 1, ("task.instances=3",), id="world"),
    ],
)
def test_a_planted_fault_is_found_with_its_turn(spec: str, at: int, overrides: tuple[str, ...], tmp_path: Path) -> None:
    faults = {"faulty": {"at": at}}
    check(blamed(plant(tmp_path / "run", spec, faults, *overrides)), faults)


def four_way(folder: Path, faults: dict[str, dict[str, Any]]) -> Run:
    return plant(folder, "worlds/four_way_stop", faults, "matrix.talk=[0]", "repeats=1", "task.instances=6")


@pytest.mark.slow
def test_a_car_that_goes_too_early_is_named_with_its_turn(tmp_path: Path) -> None:
    faults = {"faulty": {"at": 2}}
    found = blamed(four_way(tmp_path / "run", faults))
    check(found, faults)
    assert all(one.single and len(one.named) == 1 for one in found.verdicts)
    assert all(one.last_chance == one.named[0].number for one in found.verdicts)


@pytest.mark.slow
def test_two_faults_that_both_matter_are_both_named(tmp_path: Path) -> None:
    faults = {"first": {"at": 1}, "second": {"at": 2}}
    runs = [
        four_way(
            tmp_path / str(i),
            {name: {**fault, "fault": kind} for (name, fault), kind in zip(faults.items(), kinds, strict=True)},
        )
        for i, kinds in enumerate([("wrong", "wrong"), ("wrong", "none"), ("none", "wrong")])
    ]
    both, one, other = ({score.id: score.number("solved") for score in played.scores} for played in runs)
    matter = {name for name, value in both.items() if value == one[name] == other[name] == 0}
    found = blamed(runs[0], episodes=sorted(matter))
    assert matter and len(found.verdicts) == len(matter)
    for verdict in found.verdicts:
        assert {move.place for move in verdict.named} == truth(found, verdict.episode, faults)


@pytest.mark.slow
def test_where_all_erred_alike_nobody_is_blamed(tmp_path: Path) -> None:
    riders = {"use": "expression", "label": "free riders", "act": "{'action': 'KEEP'}"}
    only = (f"baseline={json.dumps(riders)}", "repeats=1")
    short = ("protocol.max_timesteps=5", "matrix.order=[simultaneous]", "matrix.talk=[0]")
    played = harness.evaluate("worlds/public_goods", overrides=(*only, *short), limit=1, output_path=tmp_path / "run")
    found = blamed(played, limit=1)
    assert [(one.finding, one.named) for one in found.verdicts] == [("alike", ())]
    assert len({share.value for share in found.verdicts[0].shares.values()}) == 1


@pytest.fixture(scope="module")
def coins(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(tmp_path_factory.mktemp("coins") / "run", overrides=("baseline.bias=0.5", "agents=null"))


def test_the_last_word_is_to_blame_where_only_it_counts(coins: Run) -> None:
    found = blamed(coins, {"use": "coin", "bias": 1.0}, project=TOY)
    lost = [one for one in found.verdicts if one.value == 0]
    assert lost and all(one.finding == "blamed" for one in lost)
    for one in lost:
        assert {move.place[1] for move in one.named} == {2}, "only the last of three rounds counts"
        assert one.last_chance is not None and one.last_chance >= len(found.roles[one.episode]) * 2


def test_moves_that_are_too_few_to_save_an_episode_are_no_question_to_a_model(tmp_path: Path) -> None:
    two = {"default": "model", "two": {"agents": ["S0", "S1"], "policy": {"use": "coin", "bias": 0.0}}}
    how = ("matrix.agents=[3]", "baseline.bias=1.0", f"agents={json.dumps(two)}")
    played = run(tmp_path / "run", overrides=how, limit=1)
    [few], [enough] = (
        blamed(played, {"use": "coin", "bias": 1.0}, moves=moves, project=TOY).verdicts for moves in (1, 200)
    )
    assert (few.finding, few.named) == ("too_many", ())
    assert enough.finding == "blamed" and {move.place for move in enough.named} == {("S0", 2), ("S1", 2)}


def kept(found: Blame) -> None:
    """As `harness blame` keeps it beside the run."""
    keep(found.run.folder, as_json(found))


def test_charts_and_reports_show_what_was_found_and_play_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TOY.root)
    headline = {"metric": "agreed", "ceiling": {"use": "coin", "bias": 1.0}}
    run(tmp_path / "run", overrides=("baseline.bias=0.5", "agents=null", f"headline={json.dumps(headline)}"))
    page, plot = ("report", "--format", "html", "-o"), ("plot", "--kind", "blame", "-o")

    def drawn(command: tuple[str, ...], name: str) -> tuple[int, str]:
        code, _, err = invoke(capsys, command[0], str(tmp_path / "run"), *command[1:], str(tmp_path / name))
        return code, err

    assert drawn(page, "before.html") == (0, f"wrote: {tmp_path / 'before.html'}\n")
    assert "Who made episodes fail" not in (tmp_path / "before.html").read_text()
    code, err = drawn(plot, "before.svg")
    assert code == 2 and f"First: `harness blame {tmp_path / 'run'}`" in err
    code, _, err = invoke(capsys, "blame", str(tmp_path / "run"))
    assert code == 0 and "blame: 0/" in err, "long work says how far it is"
    assert drawn(page, "after.html") == (0, f"wrote: {tmp_path / 'after.html'}\n")
    assert "Who made episodes fail" in (tmp_path / "after.html").read_text()
    assert drawn(plot, "after.svg")[0] == 0
    journal = tmp_path / "run" / "blame.json"
    whole = json.loads(journal.read_text())
    for one in whole["found"].values():
        for verdict in one["episodes"].values():
            verdict["moves"] = "0" * 16
    journal.write_text(json.dumps(whole))
    assert drawn(plot, "stale.svg")[0] == 2, "findings about moves that have changed since are left out"


def test_a_chart_is_about_the_condition_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TOY.root)
    headline = {"metric": "agreed", "ceiling": {"use": "coin", "bias": 1.0}}
    how = ("baseline.bias=0.5", "agents=null", f"headline={json.dumps(headline)}")
    played = run(tmp_path / "run", overrides=how)
    kept(blamed(played, project=TOY))
    read = material([load_run(tmp_path / "run")])
    every, *each = (chart("blame", read, ChartOptions(condition=one)) for one in (None, "agents=2", "agents=3"))
    lost = Counter(score.condition for score in played.scores if score.number("agreed") == 0)
    assert every.rows == (("2", lost.total()),) and all(lost.values())
    assert [one.rows for one in each] == [(("2", lost[name]),) for name in ("agents=2", "agents=3")]


def test_a_chart_is_about_the_episode_asked_for_and_has_no_axis_to_choose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TOY.root)
    headline = {"metric": "agreed", "ceiling": {"use": "coin", "bias": 1.0}}
    played = run(tmp_path / "run", overrides=("baseline.bias=0.5", "agents=null", f"headline={json.dumps(headline)}"))
    kept(blamed(played, project=TOY))
    read = material([load_run(tmp_path / "run")])
    lost = next(score.id for score in played.scores if score.number("agreed") == 0)
    assert chart("blame", read, ChartOptions(episode=lost)).rows == (("2", 1),)
    with pytest.raises(DataError, match="has no episode 'nope'"):
        chart("blame", read, ChartOptions(episode="nope"))
    with pytest.raises(DataError, match=r"(?s)--x: a plot of blame has no axis to choose"):
        chart("blame", read, ChartOptions(x="agents"))


def test_the_share_of_a_group_is_that_of_its_agents_and_no_other_sum_is_shown(tmp_path: Path) -> None:
    two = {"default": "model", "two": {"agents": ["S0", "S1"], "policy": {"use": "coin", "bias": 0.0}}}
    how = ("matrix.agents=[3]", "baseline.bias=1.0", f"agents={json.dumps(two)}")
    found = blamed(run(tmp_path / "run", overrides=how, limit=1), {"use": "coin", "bias": 1.0}, project=TOY)
    agents, groups, _ = found.tables
    assert [column.names for column in groups.columns] == [("Decisive",), ("Share",)]
    assert {row.key["group"]: [cell.value for cell in row.cells] for row in groups.rows} == {"two": [1, 1]}
    assert [len(row.cells) for row in agents.rows] == [4, 4]


def test_a_reference_that_does_no_better_blames_nobody(coins: Run) -> None:
    by, names = {"use": "coin", "bias": 0.5}, [score.id for score in coins.scores if score.number("agreed") == 0]
    found = blamed(coins, by, episodes=names, project=TOY)
    assert [one.finding for one in found.verdicts] == ["no_better"] * len(names) and names


def test_without_a_best_number_episodes_failed_that_are_worse_than_the_reference(coins: Run) -> None:
    """`agreed` of the toy project says of no number that it is the best."""
    same = blamed(coins, {"use": "coin", "bias": 0.5}, project=TOY)
    assert (same.verdicts, same.passed, same.remaining) == ((), len(coins.scores), 0)
    lost = [score.id for score in coins.scores if score.number("agreed") == 0]
    found = blamed(coins, {"use": "coin", "bias": 1.0}, project=TOY)
    assert [one.episode for one in found.verdicts] == lost and found.passed == len(coins.scores) - len(lost)
    assert f"Besides, {found.passed} episode{'s' * (found.passed != 1)} did not fail" in " ".join(found.tables[0].notes)
    some = blamed(coins, {"use": "coin", "bias": 1.0}, limit=2, project=TOY)
    assert [one for one in found.verdicts if one in some.verdicts] == [*some.verdicts] and len(some.verdicts) == 2
    assert some.remaining == 0
    plan = planned(coins, {"use": "coin", "bias": 1.0}, limit=2, project=TOY)
    assert plan.episodes == 2


def test_episodes_fail_below_a_threshold(coins: Run) -> None:
    by = {"use": "coin", "bias": 0.5}
    every, none = (blamed(coins, by, threshold=number, project=TOY) for number in (2.0, 0.0))
    assert [one.finding for one in every.verdicts] == ["no_better"] * len(coins.scores) and none.verdicts == ()


def test_a_number_of_which_less_is_better_is_explained_that_way(coins: Run) -> None:
    by = {"use": "coin", "bias": 1.0}
    with pytest.raises(SpecError, match=r"(?s)nothing says which way parse_retries is better.*--better lower"):
        blamed(coins, by, metric="parse_retries", project=TOY)
    agreed = blamed(coins, by, better="lower", project=TOY)  # to agree is a failure then
    assert agreed.verdicts == () and agreed.passed == len(coins.scores)
    apart = blamed(coins, {"use": "coin", "bias": 0.0}, better="lower", threshold=0.5, project=TOY)
    assert {one.value for one in apart.verdicts} == {1}


def test_a_number_that_the_reference_does_not_have_blames_nobody(tmp_path: Path) -> None:
    (tmp_path / "harness.yaml").write_text(f"name: apart\nparents: [{TOY.root}]\n")
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "apart.py").write_text(
        "from harness.api import Episode, Metric, plugin\n\n\n@plugin\nclass Apart(Metric):\n"
        '    """0.5 if they did not agree."""\n\n    bounds = (0, 1)\n\n'
        "    def measure(self, episode: Episode) -> float | None:\n"
        '        return None if episode.grade["agreed"] else 0.5\n'
    )
    how = ("metrics=[apart]", "baseline.bias=0.5", "agents=null", "tables=[]")
    played = harness.evaluate("toy", overrides=how, output_path=tmp_path / "run", project=find(tmp_path))
    found = blamed(played, {"use": "coin", "bias": 1.0}, project=find(tmp_path), better="higher")
    assert {(one.finding, one.value) for one in found.verdicts} == {("no_number", Fraction(1, 2))}
    none = next(score.id for score in played.scores if score.number("apart") is None)
    with pytest.raises(DataError, match=f"apart has no number in episode '{none}'"):
        blamed(played, {"use": "coin", "bias": 1.0}, project=find(tmp_path), better="higher", episodes=[none])


def test_without_a_model_it_says_what_cannot_be_answered(tmp_path: Path) -> None:
    dice = building.engine({"use": "dice"}, TOY)
    played = run(tmp_path / "run", dice)
    early = blamed(played, {"use": "coin", "bias": 1.0}, project=TOY)
    effects = {effect.deviation.place[1]: effect.value for one in early.verdicts for effect in one.effects}
    assert effects[0] is None and effects[2] is not None, "nobody hears the last round, so nobody is asked again"
    assert early.asked == 0
    model = building.engine({"use": "dice"}, TOY)
    asked = blamed(played, {"use": "coin", "bias": 1.0}, model=model, project=TOY)
    assert asked.asked == len(model.asked) > 0  # type: ignore[attr-defined]
    assert all(one.shares for one in asked.verdicts if one.finding == "blamed")
    some = blamed(
        played, {"use": "coin", "bias": 1.0}, model=building.engine({"use": "dice"}, TOY), max_calls=3, project=TOY
    )
    looked = len(some.verdicts) + some.passed
    none = blamed(
        played,
        {"use": "coin", "bias": 1.0},
        model=building.engine({"use": "dice"}, TOY),
        max_calls=0,
        limit=2,
        project=TOY,
    )
    assert (none.verdicts, none.remaining) == ((), 2), "no more are looked at than until two have failed"
    assert (some.asked, some.remaining) == (3, len(asked.verdicts) + asked.passed - looked) and some.remaining


def test_tables_without_rows_are_left_out_and_their_notes_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TOY.root)
    run(tmp_path / "run", building.engine({"use": "dice"}, TOY))
    command = ("blame", str(tmp_path / "run"), "--reference", "{use: coin, bias: 1.0}", "--quiet")
    code, out, _ = invoke(capsys, *command)
    assert code == 0 and out.startswith("By round of the first decisive move") and "By agent" not in out
    assert "of 7 episodes: a model would have to be asked" in out and "Shapley" not in out
    found = blamed(tmp_path / "run", {"use": "coin", "bias": 1.0}, project=TOY)
    unanswered = tuple(one for one in found.verdicts if one.finding == "unanswered")
    [table] = replace(found, verdicts=unanswered).tables
    assert [(row.names, row.cells[0].value) for row in table.rows] == [((WORDS["unanswered"],), len(unanswered))]
    code, out, _ = invoke(capsys, *command, "--model", "dice", "--max_calls", "1")
    assert (code, out) == (0, "No verdict was reached.\n")


def test_the_command_prints_tables_or_all_it_knows(
    coins: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TOY.root)
    by = ("blame", str(coins.folder), "--reference", "{use: coin, bias: 1.0}", "--quiet")
    code, out, err = invoke(capsys, *by)
    assert (code, err) == (0, "") and out.startswith("By agent: what agreed lost, and coin would have kept")
    code, out, _ = invoke(capsys, *by, "--format", "json")
    assert code == 0 and json.loads(out) == json.loads(
        json.dumps(as_json(blamed(coins, {"use": "coin", "bias": 1.0}, project=TOY)))
    )
    assert invoke(capsys, *by, "--limit", "1", "--format", "json")[0] == 0


@pytest.mark.slow
def test_a_table_has_the_messages_without_which_the_number_is_another_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    only = ("matrix.agents=[3]", "matrix.problem=[global_maximum, prefix_sum]", "matrix.protocol=[P2P]")
    plant(tmp_path / "run", "silo_quick", {"faulty": {"at": 2}}, *only)
    command = ("blame", str(tmp_path / "run"), "--messages", "--quiet")
    code, out, _ = invoke(capsys, *command, "--format", "json")
    effects = [value for one in json.loads(out)["episodes"] for value in one["messages"].values()]
    assert code == 0 and any(effects)
    code, out, _ = invoke(capsys, *command)
    assert code == 0 and f"Of {len(effects)} messages, {effects.count(0)} change nothing" in " ".join(out.split())


def test_what_would_be_ignored_is_refused_and_no_failure_is_json_too(
    coins: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TOY.root)
    command = ("blame", str(coins.folder), "--reference", "{use: coin, bias: 1.0}", "--quiet")
    for more, place in ((("--episode", "x", "--limit", "1"), "--episode"), (("--sample", "3"), "--reference")):
        code, _, err = invoke(capsys, *command, *more)
        assert code == 2 and err.startswith(f"error: {place}: ")
    code, out, _ = invoke(capsys, *command, "--threshold", "-1", "--format", "json")
    assert code == 0 and json.loads(out)["episodes"] == []
    code, out, _ = invoke(capsys, "blame", str(coins.folder), "--reference", "{use: coin, bias: 0.5}", "--quiet")
    assert code == 0 and f"with coin in all seats none of {len(coins.scores)} has a better agreed" in out


def test_mistakes_say_what_to_do(coins: Run) -> None:
    with pytest.raises(SpecError, match="names no ceiling"):
        blamed(coins, project=TOY)
    with pytest.raises(UserError, match="there is no policy 'coyn'"):
        blamed(coins, "coyn", project=TOY)
    with pytest.raises(SpecError, match="no number 'agree' of an episode"):
        blamed(coins, "coin", metric="agree", project=TOY)
    with pytest.raises(DataError, match="has no episode"):
        blamed(coins, "coin", episodes=["agents=2/c9/0"], project=TOY)
    with pytest.raises(SpecError, match="no agent uses it"):
        blamed(coins, "coin", model=Mock(), project=TOY)


def test_a_plan_says_how_much_there_is_to_play(coins: Run) -> None:
    by = {"use": "coin", "bias": 1.0}
    plan = planned(coins, by, project=TOY)
    found = blamed(coins, by, project=TOY)
    assert plan.episodes == len(found.verdicts) and plan.calls == plan.most_calls == 0
    assert plan.replays <= plan.most_replays and sum(one.courses for one in found.verdicts) <= plan.most_replays
    assert plan.deviations >= sum(len(one.effects) for one in found.verdicts)


def test_a_plan_bounds_the_calls_of_a_model_and_makes_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TOY.root)
    played = run(tmp_path / "run", building.engine({"use": "dice"}, TOY))
    by = ("blame", str(tmp_path / "run"), "--reference", "{use: coin, bias: 1.0}", "--quiet", "--plan")
    code, out, err = invoke(capsys, *by, "--format", "json")
    plan = json.loads(out)
    assert (code, err) == (0, "")
    model = building.engine({"use": "dice"}, TOY)
    asked = blamed(played, {"use": "coin", "bias": 1.0}, model=model, project=TOY)
    assert asked.asked <= plan["most_calls"] and plan["calls"] <= plan["most_calls"]
    code, out, _ = invoke(capsys, *by)
    assert (
        code == 0 and f"at most {plan['most_calls']:,} if episodes do not become longer" in out and "--max_calls" in out
    )


def test_options_are_refused_where_they_change_nothing(
    coins: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TOY.root)
    by = ("blame", str(coins.folder), "--reference", "{use: coin, bias: 1.0}", "--quiet", "--plan")
    for option, value in (("--labels", str(tmp_path / "none.csv")), ("--max_calls", "3"), ("--model", "dice")):
        code, out, err = invoke(capsys, *by, option, value)
        assert (code, out) == (2, "") and f"{option}: is of no use with --plan" in err and "Leave one" in err


def test_one_episode_is_no_plural(
    coins: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TOY.root)
    by = ("blame", str(coins.folder), "--reference", "{use: coin, bias: 1.0}", "--quiet", "--plan")
    assert invoke(capsys, *by, "--limit", "1")[1].startswith("1 episode, ")
    assert invoke(capsys, *by, "--limit", "2")[1].startswith("2 episodes, ")


@pytest.mark.parametrize("form", ["text", "markdown", "csv", "html", "latex", "json"])
def test_where_no_episode_failed_the_file_is_written_too(
    form: str, coins: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TOY.root)
    by = ("blame", str(coins.folder), "--reference", "{use: coin, bias: 0.5}", "--quiet", "--format", form)
    code, out, err = invoke(capsys, *by, "-o", str(tmp_path / "out"))
    assert (code, out, err) == (0, "", f"wrote: {tmp_path / 'out'}\n") and (tmp_path / "out").is_file()
    if form in ("text", "markdown"):
        assert "No episode failed" in (tmp_path / "out").read_text()


def test_another_sample_of_the_same_model_takes_the_place_of_moves(tmp_path: Path) -> None:
    played = run(tmp_path / "run", building.engine({"use": "dice"}, TOY))
    with pytest.raises(SpecError, match="no model is there"):
        blamed(played, "model", project=TOY)
    models = [building.engine({"use": "dice"}, TOY) for _ in range(3)]
    first, again, other = (
        blamed(played, "model", sample=sample, model=model, project=TOY)
        for sample, model in zip((0, 0, 1), models, strict=True)
    )
    assert first.by == "another sample" and first.verdicts == again.verdicts != other.verdicts
    assert {one.finding for one in first.verdicts + other.verdicts} <= {"blamed", "no_better", "alike"}
    for one in first.verdicts + other.verdicts:
        if one.shares:
            assert one.reference is not None and one.value is not None
            assert sum((share.value for share in one.shares.values()), Fraction(0)) == one.reference - one.value
    plan = planned(played, "model", project=TOY)
    three = planned(played, "model", samples=3, project=TOY)
    assert (three.most_calls, three.most_replays) == (3 * plan.most_calls, 3 * plan.most_replays)
    assert 0 < first.asked <= plan.most_calls and len(models[0].asked) == first.asked  # type: ignore[attr-defined]


def test_of_several_samples_the_means_and_their_spread_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TOY.root)
    how = ("matrix.agents=[2]", "agents=null")
    played = run(tmp_path / "run", building.engine({"use": "dice"}, TOY), overrides=how, limit=2)
    each = [
        blamed(played, "model", sample=n, model=building.engine({"use": "dice"}, TOY), project=TOY) for n in (3, 4, 5)
    ]
    model = building.engine({"use": "dice"}, TOY)
    found = blamed(played, "model", sample=3, samples=3, model=model, project=TOY)
    assert [one.verdicts for one in found.samples] == [one.verdicts for one in each]
    assert found.asked == len(model.asked) <= sum(one.asked for one in each)  # type: ignore[attr-defined]
    numbers = [
        {row.key["agent"]: row.cells[0].value or 0.0 for row in one.tables[0].rows}
        for one in each
        if one.tables[0].rows
    ]
    assert len(numbers) > 1
    for row in found.tables[0].rows:
        own = [one.get(row.key["agent"], 0.0) for one in numbers]
        assert (row.cells[0].value, row.cells[0].std) == (pytest.approx(fmean(own)), pytest.approx(pstdev(own)))
    with pytest.raises(SpecError, match="differs from sample to sample"):
        blamed(played, {"use": "coin", "bias": 1.0}, samples=2, project=TOY)
    with pytest.raises(SpecError, match="differs from sample to sample"):
        planned(played, {"use": "coin", "bias": 1.0}, samples=2, project=TOY)
    few = blamed(played, "model", samples=50, model=building.engine({"use": "dice"}, TOY), max_calls=40, project=TOY)
    assert 1 <= len(few.samples) < 50
    command = ("blame", str(tmp_path / "run"), "--reference", "model", "--model", "dice", "--samples", "3", "--quiet")
    code, out, _ = invoke(capsys, *command)
    assert code == 0 and "Means over 3 samples; ±" in out and "of 3 samples" in out
    code, out, _ = invoke(capsys, *command, "--format", "json")
    first: dict[str, Any] = json.loads(out)
    others = first["further_samples"]
    assert code == 0 and len(others) == 2
    kept = json.loads((tmp_path / "run" / FILE).read_text())["found"]
    assert [one["policy"].get("sample", 0) for one in kept.values()] == [2, 1, 0], "the first one is what counts"
    for one, sample in zip(kept.values(), [*reversed(others), first], strict=True):
        assert [{**own, "moves": 0} for own in one["episodes"].values()] == [
            {**own, "moves": 0} for own in sample["episodes"]
        ]


@pytest.mark.slow
def test_a_chart_counts_decisive_moves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept(blamed(four_way(tmp_path / "run", {"faulty": {"at": 2}})))
    plot = ("plot", str(tmp_path / "run"), "--kind", "blame", "-o", str(tmp_path / "blame.svg"))
    for by in ("round", "agent", "group", "turn"):
        code, out, _ = invoke(capsys, *plot, "--by", by)
        assert code == 0 and f"Who made episodes fail, by {by}." in out
    assert "Episodes that a move decides" in (tmp_path / "blame.svg").read_text()
    code, _, err = invoke(capsys, *plot, "--by", "size")
    assert code == 2 and "moves are counted by round, agent, group, turn" in err


def test_a_run_whose_episodes_raised_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "harness.yaml").write_text(f"name: raising\nparents: [{TOY.root}, harness_builtin]\n")
    (tmp_path / "registry" / "policies").mkdir(parents=True)
    (tmp_path / "registry" / "policies" / "raises.py").write_text(
        '"""Raises."""\nfrom harness.api import Policy, plugin\n\n\n@plugin\n'
        'class Raises(Policy):\n    """Raises."""\n\n'
        '    def choose(self, turn, rng):\n        """Raise."""\n        raise RuntimeError("I cannot")\n'
    )
    how = ("--set", "baseline=raises", "--set", "agents=null", "--output_path", "run", "--quiet")
    invoke(capsys, "eval", "--spec", "toy", *how)
    code, out, _ = invoke(capsys, "blame", "run", "--reference", "{use: coin, bias: 1.0}", "--quiet")
    assert code == 0 and "8 of 8 episodes raised and have no outcome" in out and "I cannot" in out
    assert "No episode failed" not in out and "errors.jsonl" in out
