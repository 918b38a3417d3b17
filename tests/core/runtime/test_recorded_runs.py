"""Runs that are there already: scored again, or replayed, without a model."""

from pathlib import Path

import pytest

from harness.api import Request
from harness.api.errors import DataError
from harness.engines.mock import Mock
from harness.evaluation.rescore import rescored
from tests.helpers.journals import as_killed
from tests.helpers.toy import TOY, results, run

ROOT = Path(__file__).parents[2]
Dice = TOY.load("engines", "dice")


def test_rescoring_needs_no_model_and_gives_the_same(tmp_path: Path) -> None:
    run(tmp_path / "r", Dice())
    expected = results(tmp_path / "r")
    (tmp_path / "r" / "scores.jsonl").write_text(expected["scores.jsonl"].decode().replace("1.0", "0.0"))
    again = rescored(tmp_path / "r", TOY)
    assert results(tmp_path / "r") == expected
    assert again.meta["model"] == "dice"


def test_a_run_in_which_episodes_failed_in_the_middle_of_a_batch_is_scored_again(tmp_path: Path) -> None:
    def answer(request: Request) -> str:
        if request.seed % 7 == 0:
            raise ValueError("a bug")
        return "a"

    done = run(tmp_path / "r", Mock(function=answer), repeats=5)
    assert 0 < len(done.failed) < len(done.scores)
    assert rescored(tmp_path / "r", TOY).scores == done.scores


def test_lines_that_are_gone_are_missed(tmp_path: Path) -> None:
    run(tmp_path / "r", Mock(text="a"))
    journal = tmp_path / "r" / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[1:]))
    as_killed(tmp_path / "r")
    with pytest.raises(DataError, match=r"\d+ of the \d+ moves of episode agents=2/c0/0: lines are gone"):
        rescored(tmp_path / "r", TOY)


def test_replaying_a_run_without_its_model_gives_the_same_scores(tmp_path: Path) -> None:
    run(tmp_path / "a" / "r", Dice())
    run(tmp_path / "b" / "r", "replay", model_args={"path": str(tmp_path / "a" / "r")})
    assert results(tmp_path / "a" / "r") == results(tmp_path / "b" / "r")


@pytest.mark.parametrize(
    ("overrides", "shown"),
    [
        (("seed=9",), "seed: 9"),
        (("prompts=toy/loud",), "toy/loud"),
        (("generation_kwargs={temperature: 0.5}",), "temperature"),
        (("protocol.rounds=1",), "rounds: 1"),
    ],
)
def test_a_replay_of_other_questions_is_refused(tmp_path: Path, overrides: tuple[str, ...], shown: str) -> None:
    run(tmp_path / "a", Dice())
    with pytest.raises(DataError, match="other questions") as caught:
        run(tmp_path / "b", "replay", overrides, model_args={"path": str(tmp_path / "a")})
    assert shown in str(caught.value)
    assert not (tmp_path / "b").exists()


def test_a_replay_may_measure_something_else_or_play_a_part(tmp_path: Path) -> None:
    run(tmp_path / "a", Dice())
    part = run(tmp_path / "b", "replay", ("metrics=[agreed]",), limit=1, model_args={"path": str(tmp_path / "a")})
    assert len(part.scores) == 2 and not part.failed
