"""What a score says of an episode beside its numbers: who was asked, who answered, and whether a limit ended it."""

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy
import pytest

from harness.api import Episode, Metric
from harness.engine_api import Request
from harness.engines.mock import Mock
from harness.errors import ContextLengthError
from harness.runtime.scoring import measure
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
