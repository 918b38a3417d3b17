"""`harness blame --labels`: opinions beside what experiments say."""

import json
from pathlib import Path

import pytest

from harness.api.errors import DataError
from harness.evaluation.run import Run
from harness.extensions.blame.blame import blamed
from harness.extensions.blame.blame_label import BlameLabel
from harness.extensions.blame.blame_tables import Blame
from harness.extensions.blame.opinions import opinion_table, read_opinions
from tests.helpers.commands import invoke
from tests.helpers.toy import TOY, run

RIGHT = {"use": "coin", "bias": 1.0}


@pytest.fixture(scope="module")
def coins(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(tmp_path_factory.mktemp("coins") / "run", overrides=("baseline.bias=0.5", "agents=null"))


@pytest.fixture(scope="module")
def found(coins: Run) -> Blame:
    return blamed(coins, RIGHT, episodes=[score.id for score in coins.scores], project=TOY)


def stand_in(found: Blame) -> list[BlameLabel]:
    """Two judges: one knows what the experiment found, the other always blames the first agent's first turn."""
    truth = [
        BlameLabel("knows", one.episode, one.agents[0], one.named[0].number) for one in found.verdicts if one.named
    ]
    return [*truth, *(BlameLabel("first", one.episode, "S0", 0) for one in found.verdicts)]


def test_a_judge_that_knows_agrees_and_one_that_guesses_does_not(found: Blame) -> None:
    table = opinion_table(found, stand_in(found))
    knows, first = ([cell.value for cell in row.cells] for row in table.rows)
    decided = sum(one.finding == "blamed" for one in found.verdicts)
    assert knows == [decided, 1, 1, 0] and first[0] == decided and first[2] == 0
    assert first[3] == len(found.verdicts) - decided


def test_the_command_prints_the_table(
    coins: Run, found: Blame, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TOY.root)
    failed = next(one for one in found.verdicts if one.named)
    line = {
        "episode": failed.episode,
        "agent": failed.agents[0],
        "turn": failed.named[0].number,
        "rater": "judge\x1b[1m",
    }
    (tmp_path / "labels.jsonl").write_text(json.dumps(line) + "\n")
    by = ("blame", str(coins.folder), "--reference", "{use: coin, bias: 1.0}", "--quiet")
    code, out, err = invoke(capsys, *by, "--labels", str(tmp_path / "labels.jsonl"))
    assert (code, err) == (0, "") and out.lstrip().startswith("Opinions beside experiments") and "\x1b" not in out
    code, out, _ = invoke(capsys, *by, "--labels", str(tmp_path / "labels.jsonl"), "--format", "json")
    right = {"decided": 1, "agent_right": 1, "turn_right": 1, "blamed_though_none_is": 0}
    assert json.loads(out)["opinions"] == {"raters": [{"rater": "judge\\x1b[1m", **right}], "not_looked_at": 0}


def test_an_episode_that_is_left_over_or_did_not_fail_costs_no_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TOY.root)
    played = run(tmp_path / "run", overrides=("baseline.bias=0.5", "agents=null"))
    lines = "".join(f"{score.id},S0,0,judge\n" for score in played.scores)
    (tmp_path / "labels.CSV").write_text(f"episode,agent,turn,rater\n{lines}")
    by = ("blame", str(played.folder), "--reference", "{use: coin, bias: 1.0}", "--quiet", "--limit", "2")
    code, out, err = invoke(capsys, *by, "--labels", str(tmp_path / "labels.CSV"))
    assert (code, err) == (0, "") and f"not looked at: {len(played.scores) - 2}." in out


def test_labels_are_checked_before_anything_is_played(
    coins: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TOY.root)
    (tmp_path / "labels.csv").write_text("episode,agent\nagents=2/c9/0,S0\n")
    monkeypatch.setattr("harness.extensions.blame.blame_command.blamed", pytest.fail)
    by = ("blame", str(coins.folder), "--reference", "{use: coin, bias: 1.0}", "--quiet")
    code, _, err = invoke(capsys, *by, "--labels", str(tmp_path / "labels.csv"))
    assert code == 2 and "labels.csv:2:1: the run has no episode 'agents=2/c9/0'" in err and "Did you mean" in err


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        pytest.param("a.csv", "episode,agent,turn\nx,S0,last\n", r":2:1: 'last' is no turn", id="turn"),
        pytest.param("a.csv", "episode,turn\nx,1\n", r":2:1: the line has no agent", id="agent"),
        pytest.param("a.jsonl", "[1]\n", r":1:1: the line is no object", id="object"),
        pytest.param("a.jsonl", '{"episode": "x", "agent": "S0"}\n\n{\n', r":3:1: the line is no JSON", id="json"),
        pytest.param("a.csv", "", r"(?s)a.csv: the file has no opinions.*columns episode and agent", id="empty"),
        pytest.param("a.csv", "episode,agent\n", "the file has no opinions", id="header"),
        pytest.param("a.jsonl", "\n", "the file has no opinions", id="blank"),
        pytest.param("b.csv", None, "cannot be read", id="file"),
    ],
)
def test_a_file_that_is_no_opinions_is_refused(tmp_path: Path, name: str, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message):
        read_opinions(tmp_path / name, ["x"])
