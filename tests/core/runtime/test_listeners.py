"""`RunListener`: what it hears of a run, and that it changes nothing."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from harness import storage
from harness.api import Facts, Move
from harness.api.errors import EngineFatalError, RequestError, SetupError
from harness.config import building, resolve
from harness.config.plan import Plan
from harness.config.spec import load
from harness.engines.mock import Mock
from harness.evaluation.run import Run
from harness.evaluation.stages import execute
from harness.runtime.listeners import HeardEpisode, RunListener
from harness.runtime.options import Options
from harness.runtime.players import ModelPlayer
from harness.runtime.runner import RunStoppedError
from harness.tables import EpisodeScore
from tests.helpers.toy import TOY, results


class Diary(RunListener):
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    def run_began(self, plan: Plan, folder: Path, meta: Facts) -> None:
        self.heard.append(("run", plan.spec.name, folder.name, meta["status"]))

    def episode_began(self, episode: HeardEpisode) -> None:
        assert episode.id == f"{episode.condition.id}/{episode.case}/{episode.repeat}"
        assert episode.seats.keys() == episode.players.keys()
        self.heard.append(("began", episode.id, len(episode.recorded)))

    def move(self, episode: HeardEpisode, round_number: int, index: int, move: Move) -> None:
        player = episode.players[move.agent]
        assert not isinstance(player, ModelPlayer) or player.thread.messages[-1]["role"] == "assistant"
        self.heard.append(("move", episode.id, round_number, move.agent, index, move.error_kind, len(move.calls)))

    def episode_ended(self, episode: HeardEpisode, score: EpisodeScore) -> None:
        assert score.id == episode.id
        self.heard.append(("ended", episode.id))

    def run_ended(self, finished: bool) -> Iterable[str]:
        self.heard.append(("over", finished))
        return [f"{len(self.moves)} moves"]

    @property
    def moves(self) -> list[tuple[Any, ...]]:
        return [one for one in self.heard if one[0] == "move"]


class Deaf(RunListener):
    """Hears nothing for long."""

    def move(self, episode: HeardEpisode, round_number: int, index: int, move: Move) -> None:
        raise ValueError("what?")


def played(folder: Path, model: Any, *listeners: RunListener, **options: Any) -> Run:
    plan = resolve.plan(load("toy", TOY, ()), TOY, model)
    asked = {f"listener{i}": one for i, one in enumerate(listeners)}
    return execute(plan, Options(output_path=folder, **options), asked_for=asked)


def dice(**more: Any) -> Any:
    return building.engine({"use": "dice", **more}, TOY)


def journaled(folder: Path) -> list[tuple[Any, ...]]:
    """The moves of a journal as the diary has them."""
    return [
        ("move", line["e"], line["b"], line["s"], line["i"], line.get("error_kind"), len(line.get("calls", ())))
        for _, line in storage.lines(folder / "journal.jsonl")
        if line["k"] == "move"
    ]


def test_it_hears_every_episode_and_every_move_in_the_order_of_the_journal(tmp_path: Path) -> None:
    diary = Diary()
    played(tmp_path / "r", dice(), diary)
    assert diary.heard[0] == ("run", "toy", "r", "running") and diary.heard[-1] == ("over", True)
    assert diary.moves == journaled(tmp_path / "r")
    ids = [one[1] for one in diary.heard if one[0] == "began"]
    assert len(ids) == 8 and sorted(ids) == sorted(one[1] for one in diary.heard if one[0] == "ended")


def test_it_changes_no_result_and_may_fail(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    diary = Diary()
    played(tmp_path / "heard" / "r", dice(), Deaf(), diary)
    played(tmp_path / "alone" / "r", dice())
    assert results(tmp_path / "heard" / "r") == results(tmp_path / "alone" / "r")
    assert caplog.text.count("--listener0 listens no more: ValueError: what?") == 1, "a warning, once"
    assert f"{len(diary.moves)} moves" in caplog.text and len(diary.moves) > 8, "others go on listening"


def test_a_run_that_is_resumed_tells_no_move_twice(tmp_path: Path) -> None:
    first, second, third = Diary(), Diary(), Diary()
    with pytest.raises(RunStoppedError):
        played(tmp_path / "r", dice(fatal_after=30), first, max_concurrency=1)
    played(tmp_path / "r", dice(), second, max_concurrency=1)
    assert first.heard[-1] == ("over", False) and second.heard[-1] == ("over", True)
    assert first.moves and second.moves and first.moves + second.moves == journaled(tmp_path / "r")
    assert any(one[0] == "began" and one[2] for one in second.heard), "an episode goes on"
    played(tmp_path / "r", dice(), third)
    assert [one[0] for one in third.heard] == ["run", "over"], "nothing is left"


def test_a_failure_of_an_outage_is_not_heard(tmp_path: Path) -> None:
    """It counts once its engine has answered again; here it never does."""
    count = 0

    def answers(request: Any) -> str:
        nonlocal count
        count += 1
        if count > 20:
            raise RequestError("gone")
        return "a"

    diary = Diary()
    with pytest.raises((RunStoppedError, EngineFatalError)):
        played(tmp_path / "r", Mock(function=answers), diary, max_concurrency=1)
    assert diary.moves and not [one for one in diary.moves if one[5] is not None]
    assert [one for one in journaled(tmp_path / "r") if one[5] is not None]


def test_an_executor_that_is_not_heard_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="--listener0: what the workers of this executor play") as caught:
        played(tmp_path / "r", dice(), Diary(), executor={"use": "ray", "workers": 2})
    assert "this process can play too" in caught.value.hint and not (tmp_path / "r").exists()
