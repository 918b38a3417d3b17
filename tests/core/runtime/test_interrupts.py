"""The first Ctrl-C waits for requests in flight, and keeps their replies; the second does not."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import pytest

import harness
from harness.api import Completion, Request
from harness.engines.mock import Mock
from tests.helpers.toy import TOY

WIDTH = 5


def run(folder: Path, engine: Mock) -> harness.Run:
    return harness.evaluate("toy", engine, repeats=3, output_path=folder, project=TOY, max_concurrency=WIDTH)


class Interrupted(Mock):
    """Sends Ctrl-C, or what does the same, when so many requests are in flight; `forever` answers none of these."""

    def __init__(self, times: int = 1, forever: bool = False, at: int = 20) -> None:
        super().__init__(text="a")
        self.times, self.forever, self.at, self.ids = times, forever, at, list[str]()
        self.in_flight: set[str] = set()
        self.late = self.in_flight

    async def complete(self, request: Request) -> Completion:
        self.ids.append(request.id)
        self.in_flight.add(request.id)
        await asyncio.sleep(0)
        if len(self.ids) == self.at:
            self.late = {*self.in_flight}
            for _ in range(self.times):
                signal.raise_signal(signal.SIGINT)
        for _ in range(3):
            await asyncio.sleep(0)
        if self.forever and len(self.ids) >= self.at:
            await asyncio.Event().wait()
        self.in_flight.discard(request.id)
        return Completion("a")


def answered(folder: Path) -> list[str]:
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    return [line["e"] for line in lines if line["k"] == "move" and line["calls"]]


def test_what_is_in_flight_is_answered_and_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "r", engine)
    assert len(engine.late) > 1 and not engine.in_flight
    assert len(answered(tmp_path / "r")) == len(engine.ids), "each reply is in the journal"
    assert any(
        "requests, whose replies are kept; nothing new is asked. Ctrl-C again" in text for text in caplog.messages
    )
    assert json.loads((tmp_path / "r" / "run.json").read_text())["status"] == "stopped"
    again = Interrupted(times=0)
    done = run(tmp_path / "r", again)
    assert not {*again.ids} & {*engine.ids}, "nothing is asked twice"
    whole = run(tmp_path / "whole", Interrupted(times=0))
    assert [score.numbers for score in done.scores] == [score.numbers for score in whole.scores]


def test_nothing_new_is_asked(tmp_path: Path) -> None:
    engine = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "r", engine)
    assert len(engine.ids) <= engine.at + WIDTH


def test_the_second_does_not_wait(tmp_path: Path) -> None:
    engine = Interrupted(times=2, forever=True)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "r", engine)
    assert engine.in_flight
    done = run(tmp_path / "r", Interrupted(times=0))
    assert len(done.scores) == done.meta["planned"]


def test_where_nothing_is_in_flight_the_first_stops_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def interrupt(score: object, total: int) -> None:
        if score is not None:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        harness.evaluate("toy", output_path=tmp_path / "r", project=TOY, on_score=interrupt)
    assert not any("waiting for" in text for text in caplog.messages)


def test_handlers_of_signals_are_as_before(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    run(tmp_path / "r", Interrupted(times=0))
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "s", Interrupted())
    assert signal.getsignal(signal.SIGINT) is before
