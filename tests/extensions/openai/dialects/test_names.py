"""Who answered: what the server states is in run.json, and under every table where it is not what was asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import harness
from harness.extensions.analysis.leaderboard import RunScores, leaderboard
from harness.runtime.runner import BudgetReachedError
from tests.extensions.openai.dialects.play import by_seed, play, report
from tests.helpers.fake_openai import Body, FakeOpenAI, chat
from tests.helpers.toy import TOY


def named(*names: str, mark: str | None = None) -> Any:
    """A server behind which these models answer, by the seed."""

    def answer(body: Body) -> Body:
        said = chat(by_seed(body)) | {"model": names[body["seed"] % len(names)]}
        return said | ({"system_fingerprint": mark} if mark else {})

    return answer


def notes(run: harness.Run) -> list[str]:
    return [note for note in run.tables[0].notes if "who answered" in note]


def test_the_name_that_was_asked_for_is_counted_and_not_said(tmp_path: Path) -> None:
    with FakeOpenAI(named("fake", mark="fp_1")) as server:
        done = play(tmp_path / "run", server)
        assert report(done)["answered_as"] == {"fake (fp_1)": len(server.bodies)}
    assert notes(done) == []


def test_another_name_is_said_under_every_table(tmp_path: Path) -> None:
    with FakeOpenAI(named("fake-2026-11-01")) as server:
        done = play(tmp_path / "run", server)
        line = f"Asked for fake, the server says who answered: fake-2026-11-01 in {len(server.bodies)} replies."
    assert notes(done) == [line] == notes(harness.load_run(tmp_path / "run", TOY))
    assert line in (tmp_path / "run" / "tables.md").read_text()


def test_two_models_behind_one_name_are_said_also_if_one_was_there_before_a_resume(tmp_path: Path) -> None:
    with FakeOpenAI(named("fake", mark="fp_1")) as server:
        try:
            play(tmp_path / "run", server, max_calls=9)
        except BudgetReachedError:
            server.answer = named("fake", mark="fp_2")
        done = play(tmp_path / "run", server)
    assert notes(done)[0].endswith("fake (fp_1) in 9 replies.") and "fake (fp_2) in" in notes(done)[0]
    assert json.loads((tmp_path / "run" / "run.json").read_text())["earlier"]


def test_a_board_says_it(tmp_path: Path) -> None:
    with FakeOpenAI(named("fake", "faux")) as server:
        done = play(tmp_path / "a", server)
    (table,) = leaderboard([RunScores.of(done)])
    assert any(note.startswith("Asked for fake, the server says who answered: fa") for note in table.notes)
