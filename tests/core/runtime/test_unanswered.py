"""Calls that no model answered make no number: whole runs, from the first request to the first screen."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness import storage
from harness.api import Request
from harness.api.errors import ContextLengthError, EngineError, RefusedError
from harness.cli.output import turns_in_words
from harness.engines.mock import Mock
from harness.evaluation.rescore import rescored
from harness.runtime.runner import RunStoppedError
from harness.tables import EpisodeScore
from tests.helpers.commands import TOY as TOY_FOLDER
from tests.helpers.commands import eval_toy, invoke
from tests.helpers.fake_openai import FakeOpenAI, status
from tests.helpers.journals import as_killed
from tests.helpers.toy import TOY, results

TOO_LONG = "This model's maximum context length is 256 tokens. However, your prompt has 1486 tokens."


def play(folder: Path, answer: Any, repeats: int = 1, **more: Any) -> harness.Run:
    return harness.evaluate("toy", Mock(function=answer), repeats=repeats, output_path=folder, project=TOY, **more)


def calm(request: Request) -> str:
    return "?" if request.seed % 5 == 0 else "ab"[request.seed % 2]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", [RefusedError, ContextLengthError])
def test_a_run_whose_every_request_is_refused_stops(tmp_path: Path, kind: type[EngineError]) -> None:
    requests: list[str] = []
    window = 256

    def answer(request: Request) -> str:
        requests.append(request.id)
        if window == 256:
            raise kind(TOO_LONG)
        return calm(request)

    with pytest.raises(RunStoppedError, match=r"the first 10 requests to mock all failed, .*context length is 256"):
        play(tmp_path / "wild" / "r", answer, 10, max_concurrency=4)
    assert 10 <= len(requests) <= 14
    window = 4096
    play(tmp_path / "wild" / "r", answer, 10)
    play(tmp_path / "calm" / "r", answer, 10)
    assert results(tmp_path / "wild" / "r") == results(tmp_path / "calm" / "r"), (
        "refusals of a wrong set-up leave nothing"
    )


@pytest.mark.parametrize("kind", [RefusedError, ContextLengthError])
def test_a_run_too_short_to_be_stopped_has_no_number_either(tmp_path: Path, kind: type[EngineError]) -> None:
    def refuse(request: Request) -> str:
        raise kind(TOO_LONG)

    done = play(tmp_path / "r", refuse, limit=1, overrides=["protocol.rounds=1", "matrix.agents=[2]"])
    assert 0 < len(done.scores) == len(done.failed)
    assert all(row["value"] is None and row["n"] == 0 and row["failed"] for row in done.rows)
    assert TOO_LONG in str(done.failed[0].error)
    again = rescored(tmp_path / "r", TOY)
    assert [score.to_json() for score in again.scores] == [score.to_json() for score in done.scores]


def test_what_a_model_is_never_asked_and_what_it_cannot_say_are_results(tmp_path: Path) -> None:
    """Policies alone, and a model that answers with what nobody can read, have numbers."""
    assert not harness.evaluate("toy", repeats=1, output_path=tmp_path / "policies", project=TOY).failed
    done = play(tmp_path / "r", lambda request: "…")
    assert not done.failed and all(row["value"] is not None for row in done.rows)


def test_a_note_counts_turns_of_failed_episodes_that_no_column_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else "Engine errors 0.00" stood above episodes that failed since their only request was refused."""

    def refuse(request: Request) -> str:
        if request.seed % 3 == 0:
            raise RefusedError("not these words")
        return "The answer is 7"

    run = harness.evaluate(
        "arithmetic", Mock(model="m", function=refuse), limit=20, max_error_rate=1.0, output_path=tmp_path / "r",
        overrides=["protocol.parse_retries=0"],
    )  # fmt: skip
    assert 0 < len(run.failed) < 60
    said = f"In these, {len(run.failed)} turns got no answer, which no column counts."
    assert all(said in table.notes for table in run.tables if "engine_errors" in str(table.columns))
    code, _, err = invoke(capsys, "score", str(run.folder))
    assert code == 0 and "m: 60 turns, " in err, "the model by its name in tables"


def test_an_episode_with_one_answer_is_a_result(tmp_path: Path) -> None:
    def answer(request: Request) -> str:
        if request.id.endswith("/0/0"):
            return calm(request)
        raise ContextLengthError(TOO_LONG)

    assert not play(tmp_path / "r", answer).failed


def test_refusals_that_come_first_are_results_once_another_request_was_answered(tmp_path: Path) -> None:
    def answer(request: Request) -> str:
        if request.seed % 3 == 0:
            raise RefusedError("not these words")
        return calm(request)

    play(tmp_path / "calm" / "r", answer, 6, max_error_rate=0.99)
    folder = tmp_path / "wild" / "r"
    play(folder, answer, 6, max_error_rate=0.99)
    journal = folder / storage.JOURNAL
    for part in (0.1, 0.5, 0.9, 0.99):  # the last leave nothing but a few refusals, maybe
        journal.write_bytes(journal.read_bytes()[: int(journal.stat().st_size * part)])
        as_killed(folder)
        play(folder, answer, 6, max_error_rate=0.99)
        assert results(folder) == results(tmp_path / "calm" / "r")


def test_a_resumed_run_of_which_only_refusals_are_left_comes_to_its_end(tmp_path: Path) -> None:
    calls = 0

    def answer(request: Request) -> str:
        nonlocal calls
        if (calls := calls + 1) > 60:
            raise ContextLengthError(TOO_LONG)
        return calm(request)

    folder = tmp_path / "r"
    with pytest.raises(RunStoppedError, match="max_calls"):
        play(folder, answer, 10, max_calls=60)
    assert len(play(folder, answer, 10, max_error_rate=0.99).scores) == 80


def test_answers_from_a_cache_show_that_the_engine_is_set_up(tmp_path: Path) -> None:
    def answer(request: Request) -> str:
        if request.seed % 3 == 0:
            raise ContextLengthError(TOO_LONG)
        return calm(request)

    cache = {"use_cache": tmp_path / "answers.sqlite", "max_error_rate": 0.99}
    play(tmp_path / "one" / "r", answer, 6, **cache)
    play(tmp_path / "two" / "r", answer, 6, **cache)
    assert results(tmp_path / "one" / "r") == results(tmp_path / "two" / "r")


@pytest.fixture
def in_toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TOY_FOLDER)
    monkeypatch.setenv("OPENAI_API_KEY", "x")


@pytest.mark.usefixtures("in_toy")
def test_the_first_screen_says_what_share_was_parsed_and_why_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also of what an earlier process asked."""
    long = status(400, TOO_LONG)
    with FakeOpenAI(
        lambda body: "?" if body["seed"] % 4 == 1 else "a", faults=lambda body: long if body["seed"] % 4 == 2 else None
    ) as server:
        engine = "--model", "openai", "--model_args", f"model=fake,base_url={server.url},backoff=0"
        rate = "--max_error_rate", "0.99"
        eval_toy(capsys, tmp_path / "r", *engine, *rate, "--max_calls", "20")
        code, _, text = eval_toy(capsys, tmp_path / "r", *engine, *rate)
    moves = [line for _, line in storage.lines(tmp_path / "r" / storage.JOURNAL) if line["k"] == "move"]
    longer, unread = (sum(move.get("error_kind") == kind for move in moves) for kind in ("context_length", "parse"))
    read = sum("a" in move for move in moves)
    assert code == 0 and 0 < read < len(moves) - longer < len(moves)
    assert f"fake: {len(moves)} turns, {100 * read / len(moves):.1f} % parsed" in text
    failures = "parse failure" if unread == 1 else "parse failures"
    assert f"{longer} longer than the context window" in text and f"{unread} {failures}" in text
    scores = [json.loads(line) for line in (tmp_path / "r" / "scores.jsonl").read_text().splitlines()]
    assert sum(score["turns"]["model"]["asked"] for score in scores) == len(moves)


@pytest.mark.usefixtures("in_toy")
def test_no_board_ranks_a_run_without_an_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(request: Request) -> str:
        raise RefusedError("no such parameter")

    play(tmp_path / "good", calm)
    harness.evaluate(
        "toy",
        Mock(model="refuses", function=refuse),
        output_path=tmp_path / "none",
        project=TOY,
        repeats=1,
        max_error_rate=1,
    )
    code, text, _ = invoke(capsys, "leaderboard", str(tmp_path / "good"), str(tmp_path / "none"), "--format", "csv")
    print(text)
    assert code == 0 and "0.00" not in next(line for line in text.splitlines() if "refuses" in line)


@given(st.integers(0, 60), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_a_turn_whose_last_request_failed_is_not_answered(fine: int, unread: int, failed: int, late: int) -> None:
    """`late`: turns whose first reply was unreadable, and the request for another one did not fit."""
    asked = fine + unread + failed + late
    kinds = {"parse": unread, "context_length": failed + late}
    turns = {"asked": asked, "answered": asked - failed, **{kind: count for kind, count in kinds.items() if count}}
    line = turns_in_words([EpisodeScore("c/a/0", "c", turns={"model": turns})], Path("r"))[0]
    assert ("longer than the context window" in line) is (failed + late > 0)
    assert ("100 % parsed" in line) is (0 < asked == fine)
