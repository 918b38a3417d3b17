"""What a score says of an episode beside its numbers: who was asked, who answered, and whether a limit ended it."""

import json
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from harness.api import Completion, CorpusMetric, Episode, Metric, Move, Outcome, RatioMetric, Request, Statistic
from harness.api.errors import ContextLengthError, SetupError
from harness.engines.mock import Mock
from harness.runtime import scoring
from harness.runtime.scoring import measure
from harness.tables import CorpusRecord
from tests.helpers.toy import run


def scores(folder: Path, model: Any, *overrides: str) -> list[dict[str, Any]]:
    """The scores of two toy episodes: two and three agents name a letter in three rounds."""
    run(folder, model, overrides, limit=1, repeats=1)
    return [json.loads(line) for line in (folder / "scores.jsonl").read_text().splitlines()]


def test_turns_count_who_was_asked_who_answered_and_what_failed(tmp_path: Path) -> None:
    def answer(request: Request) -> str:
        turn = int(request.id.split("/")[-2])
        if turn == 1:
            raise ContextLengthError("too long")
        return "a" if turn == 0 else "no letter at all"

    for score, agents in zip(scores(tmp_path / "r", Mock(function=answer)), (2, 3), strict=True):
        counts = {"asked": 3 * agents, "answered": 2 * agents, "context_length": agents, "parse": agents}
        assert score["turns"] == {"model": counts} and score["error"] is None


def test_an_episode_whose_every_request_failed_has_no_number(tmp_path: Path) -> None:
    def answer(request: Request) -> str:
        if request.id.startswith("agents=2"):
            raise ContextLengthError("too long")
        return "a"

    two, three = scores(tmp_path / "r", Mock(function=answer))
    assert two["error"].startswith("no model answered: all 6 requests failed, the first with: too long")
    assert two["numbers"]["agreed"] is None and three["numbers"]["agreed"] == 1


def test_a_limit_that_was_reached_is_marked(tmp_path: Path) -> None:
    def answer(request: Request) -> str:
        return "a"

    free = scores(tmp_path / "free", Mock(function=answer))
    bound = scores(tmp_path / "bound", Mock(function=answer), 'limits={"calls_per_episode": 6}')
    assert [score.get("limited", False) for score in free] == [False, False]
    assert [score.get("limited", False) for score in bound] == [False, True]  # two agents need six calls, three nine


@dataclass(frozen=True)
class Gives(Metric):
    """A metric that gives what it has."""

    value: Any

    def measure(self, episode: Episode) -> Any:
        return self.value


@pytest.mark.parametrize("value", [0.5, Fraction(1, 2), numpy.float32(0.5)])
def test_a_number_of_any_kind_is_kept_as_json_has_it(value: object) -> None:
    numbers, error = measure(Episode("c/1/0", "c", "1", 0, {}, {}, ()), {"m": Gives(value)})
    assert (json.dumps(numbers), error) == ('{"m": 0.5}', None)


@pytest.mark.parametrize("value", ["0.5", [0.5], object()])
def test_what_is_no_number_fails_the_episode_by_the_metrics_name(value: object) -> None:
    numbers, error = measure(Episode("c/1/0", "c", "1", 0, {}, {}, ()), {"m": Gives(value)})
    assert numbers == {"m": None} and error is not None and error.startswith("metric m: ")


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_is_no_number(value: object) -> None:
    assert measure(Episode("c/1/0", "c", "1", 0, {}, {}, ()), {"m": Gives(value)}) == ({"m": None}, None)


@dataclass(frozen=True)
class Parts(RatioMetric):
    """A metric that gives the two parts of a ratio."""

    value: Any

    def parts(self, episode: Episode) -> Any:
        return self.value


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ((1, 2), (1, 2)),
        ((0, 2), (0, 2)),
        ((1, 0), None),
        ((None, 2), None),
        ((1, float("nan")), None),
        ((float("nan"), 1), None),
        (None, None),
    ],
)
def test_a_ratio_needs_both_parts_and_a_bottom_that_is_not_0(value: Any, kept: Any) -> None:
    assert measure(Episode("c/1/0", "c", "1", 0, {}, {}, ()), {"m": Parts(value)}) == ({"m": kept}, None)


@dataclass(frozen=True)
class Notes(CorpusMetric):
    """A metric that takes a record of each episode."""

    value: Any

    def measure(self, episode: Episode) -> Any:
        return self.value

    def aggregate(self, numbers: Any) -> Statistic:
        return Statistic(None, None, len(numbers))


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ((1, "a"), CorpusRecord([1, "a"])),
        (numpy.array([1, 2]), CorpusRecord([1, 2])),
        ({"x": Fraction(1, 2)}, CorpusRecord({"x": 0.5})),
        (None, None),
    ],
)
def test_a_record_is_kept_as_json_has_it(value: Any, kept: Any) -> None:
    assert measure(Episode("c/1/0", "c", "1", 0, {}, {}, ()), {"m": Notes(value)}) == ({"m": kept}, None)


def test_a_record_that_json_does_not_keep_fails_the_episode() -> None:
    numbers, error = measure(Episode("c/1/0", "c", "1", 0, {}, {}, ()), {"m": Notes({"x": object()})})
    assert numbers == {"m": None} and error is not None and "which JSON does not keep" in error


def test_a_failed_episode_has_no_numbers_and_keeps_its_error() -> None:
    failed = Episode("c/1/0", "c", "1", 0, {}, {}, (), error="a bug")
    assert measure(failed, {"m": Gives(1), "n": Gives(2)}) == ({"m": None, "n": None}, "a bug")


CALL = Completion("x")


@pytest.mark.parametrize(
    ("moves", "error"),
    [
        ([Move("A", "t", "a", None, None, (CALL,)), Move("B", "t", None, "down", "request")], None),
        ([Move("A", "t", "a"), Move("B", "t", None, "down", "request")], "all 1 requests failed, the first with: down"),
        ([Move("A", "t", None, "one", "request"), Move("B", "t", None, "two", "request")], "all 2 .* first with: one"),
        ([Move("A", "t", "a"), Move("B", "t", "b")], None),
    ],
)
def test_what_no_model_answered_has_no_number(moves: list[Move], error: str | None) -> None:
    one = scoring.score(
        Episode("c/1/0", "c", "1", 0, {}, {}, [moves], Outcome({})), {"m": Gives(1)}, uses_ground_truth=True
    )
    assert one.numbers == {"m": None if error else 1} and one.uses_ground_truth
    assert one.error is None if error is None else re.search(f"no model answered: {error}", one.error or "")


def test_fields_that_a_reply_dropped_are_counted() -> None:
    batches = [[Move("A", "t", "a", dropped_fields=("x", "y"))], [Move("A", "t", "a", dropped_fields=("x",))]]
    one = scoring.score(Episode("c/1/0", "c", "1", 0, {}, {}, batches, Outcome({})), {})
    assert one.dropped_fields == {"x": 2, "y": 1} and not one.limited and not one.uses_ground_truth


PLAYED = Episode("c/1/0", "c", "1", 0, {}, {}, (), Outcome({}))


def condition(grade: dict[str, Any], grading: str = "compares") -> Any:
    """A condition whose task grades so, and promises a grade `x`."""
    task = SimpleNamespace(grades=("x",), grading=grading, grade=lambda case, outcome: grade)
    return SimpleNamespace(task=task, group_of=lambda case, agent: SimpleNamespace(model={"A": "big"}.get(agent)))


CASE: Any = None


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ((1, "a"), [1, "a"]),
        ("text", "text"),
        ({"y": (1,)}, {"y": [1]}),
        (True, 1.0),
        (float("inf"), None),
        (None, None),
    ],
)
def test_a_grade_is_kept_as_json_has_it(value: Any, kept: Any) -> None:
    graded = scoring.grade(PLAYED, condition({"x": value}), CASE)
    assert (json.dumps(graded.grade), graded.error) == (json.dumps({"x": kept}), None)


@pytest.mark.parametrize("grade", [{}, {"y": 1}, {"x": object()}, {"x": [object()]}])
def test_a_grade_that_cannot_be_fails_the_episode(grade: dict[str, Any]) -> None:
    graded = scoring.grade(PLAYED, condition(grade), CASE)
    assert graded.error is not None and graded.error.startswith("grade: ") and not graded.grade


def test_only_grading_that_runs_programs_needs_what_confines_them() -> None:
    with pytest.raises(SetupError):
        scoring.grade(PLAYED, condition({"x": 1}, "executes"), CASE, provider="nowhere")
    assert scoring.grade(PLAYED, condition({"x": 1}), CASE, provider="nowhere").grade == {"x": 1}
    for ungraded in (replace(PLAYED, error="a bug"), replace(PLAYED, outcome=None)):
        assert scoring.grade(ungraded, condition({"x": 1}, "executes"), CASE, provider="nowhere") is ungraded


def test_turns_are_counted_for_each_model_by_its_name() -> None:
    moves = [Move("A", "t", "a", None, None, (CALL,)), Move("B", "t", None, "?", "parse", (CALL, CALL)), Move("C", "t")]
    turns = scoring.turns_of(replace(PLAYED, batches=[moves]), condition({}), CASE)
    assert turns == {"big": {"asked": 1, "answered": 1}, "model": {"asked": 1, "answered": 1, "parse": 1}}
    assert scoring.turns_of(replace(PLAYED, batches=[moves], outcome=None), condition({}), CASE) == {}
