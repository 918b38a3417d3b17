"""Replays that no model was there for, and the tokens of replies that were changed."""

from pathlib import Path

import pytest

from harness.api import Completion, Engine, Request
from harness.api.errors import DataError
from harness.config import building
from harness.engines.mock import Mock
from harness.evaluation.run import Run
from harness.extensions.replay import replayed
from harness.runtime.options import Options
from harness.runtime.runner import RunStoppedError
from tests.helpers.toy import TOY, run

EPISODE = "agents=2/c0/0"


def speaks(request: Request) -> Completion:
    """A reply whose length has as many tokens as letters, where the model counts them."""
    return Completion("a" if request.seed % 2 else "b", input_tokens=40, output_tokens=1)


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(tmp_path_factory.mktemp("spoken") / "run", Mock(function=speaks), overrides=("agents=null",))


def other(done: Run) -> str:
    first = next(turn for turn in done.turns() if turn["episode"] == EPISODE)
    return "b" if first["action"] == "a" else "a"


def test_a_replay_that_lacked_a_model_goes_on_once_there_is_one(spoken: Run, tmp_path: Path) -> None:
    def again(folder: Path, model: Engine | None) -> Run:
        options = Options(output_path=folder)
        return replayed(spoken, EPISODE, change={0: other(spoken)}, model=model, options=options, project=TOY)

    with pytest.raises(RunStoppedError, match="give --model"):
        again(tmp_path / "own", None)
    with pytest.raises(RunStoppedError, match="give --model"):
        again(tmp_path / "own", None)
    done, fresh = again(tmp_path / "own", Mock(function=speaks)), again(tmp_path / "fresh", Mock(function=speaks))
    assert [one.numbers for one in done.scores] == [one.numbers for one in fresh.scores]
    assert done.meta["identity"] == fresh.meta["identity"] and done.meta["status"] == "finished"
    with pytest.raises(DataError, match="a run with a different configuration"):
        again(tmp_path / "own", building.engine({"use": "dice"}, TOY))
    with pytest.raises(DataError, match="a run with a different configuration"):
        again(tmp_path / "own", None)


@pytest.mark.parametrize("counts", [True, False])
def test_a_changed_reply_counts_its_tokens(tmp_path: Path, counts: bool) -> None:
    def reply(request: Request) -> Completion:
        return speaks(request) if counts else Completion("a")

    played = run(tmp_path / "run", Mock(function=reply), overrides=("agents=null",))
    model, options = Mock(function=reply), Options(output_path=tmp_path / "again")
    done = replayed(played, EPISODE, change={0: other(played)}, model=model, options=options, project=TOY)
    [first, *_] = [turn for turn in done.turns() if turn["episode"] == EPISODE]
    assert first["action"] == other(played)
    assert (first["input_tokens"], first["output_tokens"]) == ((40, 1) if counts else (None, None))
