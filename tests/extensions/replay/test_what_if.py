"""What the viewer asks the extension for: what may take the place of a reply, and the episode with it."""

import json
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api.errors import DataError
from harness.config.project import find
from harness.engines.mock import Mock
from harness.evaluation.load_run import load_run
from harness.evaluation.run import Run
from harness.extensions.replay.what_if import STAND_IN, form, play
from harness.runtime.runner import RunStoppedError
from tests.helpers.strangers import trust
from tests.helpers.toy import TOY, run

Dice = TOY.load("engines", "dice")
EPISODE = "agents=2/c0/0"


@pytest.fixture(scope="module")
def coins(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(tmp_path_factory.mktemp("coins") / "run", overrides=("agents=null",))


@pytest.fixture(scope="module")
def dice(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(tmp_path_factory.mktemp("dice") / "run", Dice(), overrides=("agents=null",))


def again(done: Run, turn: int, text: str | None, player: str | None = None, **more: Any) -> Run:
    made = play(TOY, done.folder, EPISODE, turn, text, player, **{"model": None, "max_calls": None, **more})
    return load_run(made["folder"], TOY)


def moves(done: Run) -> list[tuple[str, Any]]:
    [episode] = [one for one in done.transcripts() if one.id == EPISODE]
    return [(turn.agent, turn.move.action) for turn in episode.turns if turn.move]


def test_a_policy_s_turn_has_its_action_and_all_legal_ones(coins: Run) -> None:
    found = form(TOY, coins.folder, EPISODE, 0)
    assert found["text"] == moves(coins)[0][1] and set(found["legal"]) == {"a", "b"}
    assert (found["left"], found["tools"], found["sends"], found["asks"]) == (0, [], False, False)


def test_a_model_s_turn_has_its_reply_and_replies_as_it_would_write_them(dice: Run) -> None:
    found = form(TOY, dice.folder, EPISODE, 1)
    [episode] = [one for one in dice.transcripts() if one.id == EPISODE]
    assert found["text"] == episode.turns[1].move.text and found["asks"] and len(found["legal"]) == 2


def test_what_the_form_does_not_allow_is_said_with_what_it_does(coins: Run) -> None:
    with pytest.raises(DataError, match=r"(?s)^turn 0 .*cannot be 'c'.*Legal are such as"):
        again(coins, 0, "c")
    with pytest.raises(DataError, match="turns 0 to 5, found 99"):
        form(TOY, coins.folder, EPISODE, 99)
    with pytest.raises(DataError, match="sends no message"):
        again(coins, 0, None)


def test_the_episode_goes_on_from_there_as_a_run_that_names_its_parent(coins: Run) -> None:
    before = moves(coins)
    other = "b" if before[0][1] == "a" else "a"
    done = again(coins, 0, other)
    assert moves(done) == [("S0", other), *before[1:]] and done.folder.parent == coins.folder.parent
    assert done.spec.data["replay"]["run"] == f"../{coins.folder.name}" and len(done.scores) == 1
    assert again(coins, 0, other).folder == done.folder, "the same change is the same run"


@pytest.mark.slow
def test_prompts_that_differ_need_somebody_who_answers(dice: Run) -> None:
    text = "b" if moves(dice)[0][1] == "a" else "a"
    with pytest.raises(RunStoppedError, match="no model is there"):
        again(dice, 0, text)
    done = again(dice, 0, text, STAND_IN)
    assert moves(done)[0] == ("S0", text) and {action for _, action in moves(done)} <= {"a", "b"}
    with pytest.raises(DataError, match="no model is configured"):
        again(dice, 0, text, "model")
    asked = again(dice, 0, text, "model", model={"use": "dice"})
    assert asked.folder != done.folder and moves(asked)[0] == ("S0", text)


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A model that says a, every time; its later prompts show what all said."""
    return run(tmp_path_factory.mktemp("letters") / "run", Mock(text="a"), overrides=("agents=null",))


@pytest.mark.slow
def test_a_policy_plays_on_for_models_from_the_first_prompt_that_differs(letters: Run) -> None:
    found = form(TOY, letters.folder, EPISODE, 0)
    assert found["policies"] == ["coin"], "illegal fails in the first turn"
    assert {action for _, action in moves(letters)} == {"a"}
    done = again(letters, 2, "b", "coin")
    assert moves(done)[:4] == [("S0", "a"), ("S1", "a"), ("S0", "b"), ("S1", "a")]
    assert not any(turn.move.calls for one in done.transcripts() for turn in one.turns[4:] if turn.move)
    assert again(letters, 2, "b", "coin").folder == done.folder, "the same change is the same run"
    same = again(letters, 2, "a", "coin")
    assert moves(same) == moves(letters), "no prompt differs: nobody is replaced"


def test_who_cannot_play_on_is_refused(letters: Run) -> None:
    for name, said in (("illegal", "cannot play on here"), ("con", r"Did you mean coin"), ("", "cannot play on")):
        with pytest.raises(DataError, match=said):
            again(letters, 2, "b", name)


def test_a_policy_cannot_repeat_what_failed_before_it_takes_over(tmp_path: Path) -> None:
    unreadable = Mock(function=lambda request: "?" if "/S1/0/" in request.id else "a")
    done = run(tmp_path / "run", unreadable, overrides=("agents=null", "matrix.agents=[2]"), limit=1)
    with pytest.raises(DataError, match=r"(?s)turn 1 of S1 failed, .* cannot repeat.*the stand-in"):
        again(done, 2, "b", "coin")


def test_a_policy_that_fails_later_is_said_and_leaves_no_run(tmp_path: Path) -> None:
    (tmp_path / "harness.yaml").write_text(f"name: late\nparents: [{TOY.root}]\n")
    (tmp_path / "registry" / "policies").mkdir(parents=True)
    (tmp_path / "registry" / "policies" / "late.py").write_text(
        "from harness.api import Policy, plugin\n\n\n@plugin\nclass Late(Policy):\n"
        '    """Fails in the last round."""\n\n'
        "    def choose(self, turn, rng):\n"
        '        return "z" if turn.observation["round"] == 2 else "a"\n'
    )
    project = find(tmp_path)
    only = ("agents=null", "matrix.agents=[2]")
    done = harness.evaluate(
        "toy", Mock(text="a"), overrides=only, output_path=tmp_path / "run", limit=1, project=project
    )
    assert form(project, done.folder, EPISODE, 0)["policies"] == ["late", "coin"]
    with pytest.raises(DataError, match=r"(?s)cannot be played on with this policy: .*Late chose 'z'.*Choose another"):
        play(project, done.folder, EPISODE, 2, "b", "late", None, None)
    assert [one.name for one in tmp_path.glob("run*")] == ["run"]


def test_an_empty_reply_is_a_reply(coins: Run, letters: Run) -> None:
    for done in (coins, letters):
        with pytest.raises(DataError, match="cannot be ''"):
            again(done, 0, "")


@pytest.mark.slow
def test_models_of_the_spec_are_not_asked_where_a_reader_chose_another(tmp_path: Path) -> None:
    log = tmp_path / "asked"
    models = f"models={{theirs: {{use: dice, name: theirs, log: {log}}}}}"
    agents = "agents={default: {model: theirs}}"
    done = run(tmp_path / "run", overrides=(models, agents))
    assert trust(str(done.folder)) == 0  # a file beside a run is read by its models where a reader agrees
    before = log.read_text()
    text = "b" if moves(done)[0][1] == "a" else "a"
    with pytest.raises(RunStoppedError, match="no model is there"):
        again(done, 0, text)
    assert moves(again(done, 0, text, STAND_IN))[0] == ("S0", text)
    assert before and log.read_text() == before


@pytest.mark.slow
@pytest.mark.parametrize("form_", ["text", "tools"])
def test_what_is_offered_is_what_was_done_also_for_calls(form_: str, tmp_path: Path) -> None:
    only = ("matrix.agents=[2]", "repeats=1", "baseline=silo/oracle", f"matrix.form=[{form_}]")
    done = harness.evaluate("silo_calls", overrides=only, limit=1, output_path=tmp_path / "run")
    name = done.scores[0].id
    sending = []
    for number in range(4):
        found = form(find(), done.folder, name, number)
        sending += [number] if found["sends"] else []
        assert ("send_message" in found["tools"]) == (form_ == "tools")
        assert [one["name"] for one in json.loads(found["call"] or "[]")] == found["tools"][:1]
        same = play(find(), done.folder, name, number, found["text"], None, None, None)
        assert same["turns"] == "policies made 5 moves, 0 of them other ones than before"
    silent = play(find(), done.folder, name, sending[0], None, None, None, None)
    assert "0 of them" not in silent["turns"], "nobody hears what was not sent"
