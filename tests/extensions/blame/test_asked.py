"""A judge is asked who made the episodes of a run fail, and its answers stand beside what the experiment found."""

import json
import re
from pathlib import Path

import pytest

import harness
from harness.api import Request
from harness.api.errors import DataError, PluginError
from harness.config.project import find
from harness.engines.mock import Mock
from harness.evaluation.run import Run
from harness.extensions.blame.blame import blamed
from harness.extensions.blame.blame_command import as_json
from harness.extensions.blame.findings import FILE, keep
from harness.extensions.blame.opinions import opinion_table, read_opinions
from harness.extensions.blame.who_broke_it.reader_opinions import asked_about, opinions_of_run
from harness.extensions.replay.base_run import BaseRun
from tests.helpers.commands import invoke
from tests.helpers.toy import TOY, run

TASK = find().load("tasks", "who_broke_it", None)  # type: ignore[arg-type]
LED = (
    "matrix.problem=[consensus]",
    "matrix.graphs=[small_world]",
    "agents={default: model, liar: {count: 1, policy: {use: faulty, of: agentsnet/classical, at: 3}}}",
)


@pytest.fixture(scope="module")
def led(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Four agents, one of whom answers 0 in the end; blame has looked at it."""
    done = harness.evaluate("agentsnet_quick", overrides=LED, output_path=tmp_path_factory.mktemp("led") / "run")
    keep(done.folder, as_json(blamed(done)))
    return done


def asked(led: Run, folder: Path, judge: Mock) -> Run:
    return harness.evaluate("studies/opinions", judge, overrides=(f"task.run={led.folder}",), output_path=folder)


def reads(request: Request) -> str:
    """A stand-in judge that blames whoever answers otherwise than most."""
    turns = request.thread.messages[-1]["content"].split("\nTurn ")[1:]
    last = next(turn for turn in turns if re.search(r"did: .*Answer ### 0$", turn, re.MULTILINE))
    [(turn, agent)] = re.findall(r"^(\d+) \(round 3\): (\w+)", last)
    return f"The others agree.\nAGENT: {agent}\nTURN: {turn}"


@pytest.mark.slow
def test_a_judge_that_reads_is_right_and_one_that_guesses_is_not(led: Run, tmp_path: Path) -> None:
    found = blamed(led)
    right = asked(led, tmp_path / "reads", Mock(model="reads", function=reads))
    wrong = asked(led, tmp_path / "guesses", Mock(model="guesses\x1b[1m", text="AGENT: Jeremy\nTURN: 0"))
    assert [one.scores[0].number("score") for one in (right, wrong)] == [1, 0]
    opinions = [one for done in (right, wrong) for one in read_opinions(done.folder, {led.scores[0].id})]
    table = opinion_table(found, opinions)
    assert [[cell.value for cell in row.cells] for row in table.rows] == [[1, 1, 1, 0], [1, 0, 0, 0]]
    assert [row.key["who"] for row in table.rows] == ["reads", opinions[1].rater] and "\x1b" not in opinions[1].rater


@pytest.mark.slow
def test_the_command_takes_the_run_of_the_judge(led: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked(led, tmp_path / "reads", Mock(model="reads", function=reads))
    code, out, _ = invoke(capsys, "blame", str(led.folder), "--labels", str(tmp_path / "reads"), "--quiet")
    assert code == 0 and re.search(r"reads +1 +1\.00 +1\.00 +0\n", out)


@pytest.mark.slow
def test_answers_that_name_nobody_and_runs_about_others_are_said(led: Run, tmp_path: Path) -> None:
    mute = asked(led, tmp_path / "mute", Mock(text="I do not know."))
    with pytest.raises(DataError, match="no answer that names an agent"):
        opinions_of_run(mute.folder, {led.scores[0].id})
    with pytest.raises(DataError, match="no episode of the run"):
        opinions_of_run(mute.folder, {"other"})


@pytest.mark.slow
def test_where_the_experiment_blames_nobody_there_is_no_right_answer(led: Run, tmp_path: Path) -> None:
    data = json.loads((led.folder / FILE).read_text())
    [entry] = data["found"].values()
    [one] = entry["episodes"].values()
    try:
        (led.folder / FILE).write_text(json.dumps(data).replace('"blamed"', '"no_better"'))
        assert [target for _, _, target in asked_about(led.folder)] == [[]]
        done = asked(led, tmp_path / "none", Mock(text="AGENT: Jeremy\nTURN: 0"))
        assert (done.scores[0].number("score"), done.scores[0].number("answered")) == (None, 1)
        one["decisive"][0]["turn"] = 10**6
        (led.folder / FILE).write_text(json.dumps(data))
        assert [target for _, _, target in asked_about(led.folder)] == [[]]
        (led.folder / FILE).unlink()
        with pytest.raises(PluginError, match="has no findings of who made its episodes fail"):
            asked(led, tmp_path / "early", Mock())
    finally:
        keep(led.folder, as_json(blamed(led)))


def test_the_journal_is_not_read_again_for_every_episode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TOY.root)
    played = run(tmp_path / "run", overrides=("baseline.bias=0.5", "agents=null"))
    found = blamed(played, {"use": "coin", "bias": 1.0}, project=TOY)
    keep(played.folder, as_json(found))
    read, reads_ = BaseRun.read, list[int]()
    monkeypatch.setattr(BaseRun, "read", lambda parent, names: (reads_.append(len(names)), read(parent, names))[1])
    asked_ = [(name, told.turns[0].number) for name, told, _ in asked_about(played.folder)]
    assert asked_ == [(one.episode, 0) for one in found.verdicts] and reads_ == [len(asked_)] and len(asked_) > 1


def test_each_move_that_alone_decides_is_right_and_moves_together_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TOY.root)
    played = run(tmp_path / "run", overrides=("baseline.bias=0.5", "agents=null"))
    found = blamed(played, {"use": "coin", "bias": 1.0}, project=TOY)
    keep(played.folder, as_json(found))
    alone = [[{"agent": d.place[0], "turn": d.number} for d in one.named if one.single] for one in found.verdicts]
    assert [moves for *_, moves in asked_about(played.folder)] == alone and [] in alone and any(alone)
    file = played.folder / FILE
    file.write_text(file.read_text().replace('"alone": false', '"alone": true'))
    several = [case for case in TASK(run=str(played.folder)).cases(None, 0) if isinstance(case.target, list)]
    named = [[{"agent": d.place[0], "turn": d.number} for d in one.named] for one in found.verdicts if not one.single]
    assert [case.target for case in several] == named
    assert "if there are several, of any one of them" in several[0].public["question"]
