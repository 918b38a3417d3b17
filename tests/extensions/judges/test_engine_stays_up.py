"""One start of an engine serves all runs of a command: play, its judges, every run of `harness calibrate`."""

from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Completion, Engine, Facts, Request, StaysUp, plugin
from harness.api.errors import EngineFatalError
from harness.config.project import find
from harness.config.spec import load
from harness.extensions.panels.fit import fit
from harness.runtime.runner import RunStoppedError
from harness.runtime.session import current, session
from tests.extensions.judges.test_judged_runs import METRIC
from tests.extensions.judges.test_judged_runs import spec as judged_spec
from tests.helpers.toy import TOY

EVENTS: list[str] = []


@plugin
class Heavy(Engine, StaysUp):
    """Writes down when it starts and closes."""

    name: str = "heavy"
    text: str = "a"
    dies_at: int = 0

    def __post_init__(self) -> None:
        self.is_up, self.asked, self.loop = False, 0, None

    @property
    def model(self) -> str:
        return self.name

    async def start(self) -> None:
        EVENTS.append(f"{'goes on' if self.is_up else 'starts'}: {self.name}")
        self.is_up, self.asked = True, 0

    async def close(self) -> None:
        EVENTS.append(f"closes: {self.name}")
        self.is_up = False

    async def complete(self, request: Request) -> Completion:
        assert self.is_up
        self.asked += 1
        if self.asked == self.dies_at:
            raise EngineFatalError("gone")
        return Completion(self.text)

    def report(self) -> Facts:
        return {"requests": self.asked}


@pytest.fixture(autouse=True)
def fresh() -> None:
    EVENTS.clear()


def play(folder: Path, engine: Engine, **more: Any) -> harness.Run:
    return harness.evaluate("toy", engine, repeats=1, output_path=folder, project=TOY, **more)


def test_runs_of_one_session_share_a_start_and_count_for_themselves(tmp_path: Path) -> None:
    with session():
        for name in ("one", "two"):
            done = play(tmp_path / name, Heavy())
            assert done.meta["engines"]["model"]["requests"] == sum(
                len(episode.agents) * 3 for episode in done.transcripts()
            )
        assert EVENTS == ["starts: heavy", "goes on: heavy"]
    assert EVENTS == ["starts: heavy", "goes on: heavy", "closes: heavy"] and current() is None


def test_another_engine_comes_in_its_place(tmp_path: Path) -> None:
    with session():
        play(tmp_path / "one", Heavy())
        play(tmp_path / "two", Heavy(name="other"))
        play(tmp_path / "three", Heavy())
    assert [
        *("starts: heavy", "closes: heavy", "starts: other", "closes: other", "starts: heavy", "closes: heavy")
    ] == EVENTS


def test_runs_outside_a_session_have_engines_of_their_own(tmp_path: Path) -> None:
    play(tmp_path / "one", Heavy())
    play(tmp_path / "two", Heavy())
    assert EVENTS == ["starts: heavy", "closes: heavy"] * 2


def test_an_engine_that_died_is_closed_and_not_kept(tmp_path: Path) -> None:
    with session():
        with pytest.raises(RunStoppedError, match="gone"):
            play(tmp_path / "one", Heavy(dies_at=5))
        assert EVENTS == ["starts: heavy", "closes: heavy"]
        play(tmp_path / "two", Heavy())
    assert EVENTS == ["starts: heavy", "closes: heavy"] * 2


@pytest.mark.slow
def test_a_mistake_between_two_runs_closes_what_is_up(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), session():
        play(tmp_path / "one", Heavy())
        raise KeyboardInterrupt
    assert EVENTS == ["starts: heavy", "closes: heavy"]


@pytest.mark.slow
def test_in_a_notebook_too(tmp_path: Path) -> None:
    import asyncio

    async def cell() -> None:
        with session():
            play(tmp_path / "one", Heavy())
            play(tmp_path / "two", Heavy())

    asyncio.run(cell())
    assert EVENTS == ["starts: heavy", "goes on: heavy", "closes: heavy"]


def test_what_was_resumed_without_a_rest_starts_nothing(tmp_path: Path) -> None:
    play(tmp_path / "one", Heavy())
    EVENTS.clear()
    play(tmp_path / "one", Heavy())
    assert EVENTS == []


@pytest.mark.slow
def test_fit_starts_one_engine_for_all_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = find()
    monkeypatch.chdir(tmp_path)
    files = fit(load("darkforest_quick", project), project, lambda: Heavy(text="My answer: \\boxed{A}"), limit=1)
    assert len(files) > 1
    assert ["starts: heavy", *["goes on: heavy"] * (len(files) - 1), "closes: heavy"] == EVENTS


def test_play_and_judges_share_an_engine(tmp_path: Path) -> None:
    done = harness.evaluate(
        judged_spec(METRIC, {**METRIC, "name": "again", "prompt": "judges/correctness", "reference": True}),
        Heavy(text="Rating: 4"), judge=Heavy(text="Rating: 4"), output_path=tmp_path / "run",
    )  # fmt: skip
    assert len(done.meta["judges"]) == 2
    assert EVENTS == ["starts: heavy", "goes on: heavy", "goes on: heavy", "closes: heavy"]
