"""`Run.episode`: one episode from Python, its turns, and the same with one thing changed."""

from pathlib import Path

import pytest

from harness import Run
from harness.api.errors import DataError
from harness.extensions.blame import blamed
from harness.extensions.replay import replayed
from tests.helpers.toy import run

EPISODE = "agents=2/c0/0"


@pytest.fixture(scope="module")
def coins(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(tmp_path_factory.mktemp("coins") / "run", overrides=("baseline.bias=0.5", "agents=null"))


def test_a_turn_is_read_and_changed(coins: Run) -> None:
    episode = coins.episode(EPISODE)
    first = episode.turns[0]
    assert (episode.id, first.number, first.agent, len(episode.turns)) == (EPISODE, 0, "S0", 6)
    other = "b" if first.move.action == "a" else "a"
    done = replayed(coins, EPISODE, change={0: other})
    assert [score.id for score in done.scores] == [EPISODE]
    after = done.episode(EPISODE).turns
    assert after[0].move.action == other and after[1].move == episode.turns[1].move


def test_it_is_the_one_among_all_transcripts(coins: Run) -> None:
    assert len(coins.scores) > 1
    for transcript in coins.transcripts():
        assert coins.episode(transcript.id).conversation("S0") == transcript.conversation("S0")


def test_an_episode_is_blamed_by_its_id(coins: Run) -> None:
    lost = next(score.id for score in coins.scores if score.number("agreed") == 0)
    [verdict] = blamed(coins, {"use": "coin", "bias": 1.0}, episodes=[lost]).verdicts
    assert verdict.episode == lost and verdict.finding == "blamed"


def test_an_episode_that_there_is_not_has_near_ones(coins: Run) -> None:
    with pytest.raises(DataError, match=r"(?s)no finished episode 'agents=2/c0/1'.*Did you mean agents=2/c0/0"):
        coins.episode("agents=2/c0/1")


def test_a_run_of_which_all_models_are_in_the_spec_is_played_again(tmp_path: Path) -> None:
    models = ("models={theirs: {use: dice, name: theirs}}", "agents={default: {model: theirs}}")
    played = run(tmp_path / "run", overrides=models)
    episode = played.episode(EPISODE)
    last = episode.turns[-1]
    other = "b" if last.move.action == "a" else "a"
    done = replayed(played, EPISODE, change={last.number: other})
    assert [turn.move.action for turn in done.episode(EPISODE).turns][-1] == other
    first = replayed(played, EPISODE, change={0: "b" if episode.turns[0].move.action == "a" else "a"})
    assert first.meta["engines"]["theirs"]["replies_asked"] > 0
