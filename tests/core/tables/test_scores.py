"""An episode's numbers as tables read them: parts of ratios, records, and what is none of these."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.api import CorpusMetric, Episode, RatioMetric, Statistic
from harness.api.errors import DataError, Place, PluginError, SpecError
from harness.plugins.approvals import NotApprovedError
from harness.tables import CorpusRecord, EpisodeScore
from harness.tables.result_rows import rows
from harness.tables.scores import aggregate, all_parts, cluster_of, load_scores, numbers, observations, records


class Ratio(RatioMetric):
    def parts(self, episode: Episode) -> tuple[float, float] | None:
        return None


class Corpus(CorpusMetric):
    """Adds up records, or does what it is given."""

    def __init__(self, result: Any = None) -> None:
        self.result = result

    def measure(self, episode: Episode) -> Any:
        return None

    def aggregate(self, numbers: Sequence[Any]) -> Any:
        if isinstance(self.result, Exception):
            raise self.result
        return Statistic(sum(numbers), None, len(numbers)) if self.result is None else self.result


def score(value: Any, case: str = "1", error: str | None = None, **more: Any) -> EpisodeScore:
    return EpisodeScore(f"c/{case}/0", "c", {"model": "m"}, {"x": value}, error, **more)


@pytest.mark.parametrize(
    ("value", "parts", "number"),
    [
        ((3, 4), (3, 4), 0.75),
        ((0, 4), (0, 4), 0),
        ((0.25, 0.5), (0.25, 0.5), 0.5),
        ((3, 0), None, None),
        ((3, -4), None, None),
        ((math.inf, 4), None, None),
        ((3, math.inf), None, None),
        ((math.nan, 4), None, None),
        (0.5, None, 0.5),
        (math.nan, None, None),
        (CorpusRecord(0.5), None, None),
        (None, None, None),
    ],
)
def test_a_ratio_has_parts_and_all_else_has_none(value: Any, parts: Any, number: float | None) -> None:
    assert (score(value).parts("x"), score(value).number("x")) == (parts, number)
    assert (score(value).parts("y"), score(value).number("y")) == (None, None)
    assert (score(value, error="broken").parts("x"), score(value, error="broken").number("x")) == (None, None)


def test_a_record_is_one_of_an_episode_that_did_not_fail() -> None:
    assert score(CorpusRecord([1])).record("x") == CorpusRecord([1])
    assert [one.record("x") for one in (score(CorpusRecord([1]), error="broken"), score(1.0), score((1, 2)))] == [
        None
    ] * 3
    assert records([score(CorpusRecord([1])), score(2.0), score(CorpusRecord([3]))], "x") == [[1], [3]]


def test_a_ratio_of_several_episodes_is_that_of_their_sums() -> None:
    scores = [score((1, 2), "1"), score(None, "2"), score((5, 6), "3"), score((1, 0), "4")]
    assert all_parts(scores, "x") == [(1, 2), (5, 6)]
    assert math.fsum(numbers(scores, "x")) / 2 == pytest.approx(6 / 8)
    found = aggregate(Ratio(), scores, "x")
    assert (found.value, found.n) == (pytest.approx(6 / 8), 2)
    assert [key for key, _ in observations(scores, "x", ())] == [("m", "c", "1"), ("m", "c", "3")]
    with pytest.raises(DataError, match="x of c/5/0 is a share without the counts behind it"):
        aggregate(Ratio(), [*scores, score(0.5, "5")], "x")


@pytest.mark.parametrize(
    ("error", "words", "place"),
    [
        (
            SpecError("no such file", place=Place("spec.yaml", 3, 1)),
            "Corpus.aggregate fails: no such file",
            "spec.yaml",
        ),
        (SpecError("no such file"), "Corpus.aggregate fails: no such file", None),
        (ZeroDivisionError("by 0"), r"Corpus.aggregate fails: ZeroDivisionError: by 0 \(test_scores.py:\d+\)", None),
    ],
)
def test_a_metric_that_fails_says_where(error: Exception, words: str, place: str | None) -> None:
    with pytest.raises(PluginError, match=words) as caught:
        aggregate(Corpus(error), [score(CorpusRecord(1))], "x")
    assert (caught.value.place and caught.value.place.file) == place
    assert aggregate(Corpus(error), [score(1.0)], "x") == Statistic(None, None, 0), "it is not asked about nothing"
    refused = aggregate(Corpus(NotApprovedError([])), [score(CorpusRecord(1))], "x")
    assert refused == Statistic(None, None, 0)


def test_what_is_no_statistic_is_refused() -> None:
    with pytest.raises(PluginError, match=r"Corpus\.aggregate gives 3, not a Statistic"):
        aggregate(Corpus(3), [score(CorpusRecord(1))], "x")


@pytest.mark.parametrize("value", [1, 0.5, [1, 2], {"record": None}, {"record": {"a": 1}}, None])
def test_a_line_comes_back(value: Any, tmp_path: Path) -> None:
    line = {"id": "c/1/0", "condition": "c", "labels": {"model": "m"}, "numbers": {"x": value}, "error": None}
    (tmp_path / "scores.jsonl").write_text(json.dumps(line) + "\n")
    [read] = load_scores(tmp_path / "scores.jsonl")
    assert read.to_json() == line


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"numbers": {"x": {"record": 1, "y": 2}}}, "x is {'record': 1, 'y': 2}, not a number"),
        ({"numbers": {"x": {}}}, "x is {}, not a number"),
        ({"numbers": {"x": True}}, "x is True, not a number"),
        ({"numbers": {"x": [1, 0]}}, r"x is \[1, 0\], not a number"),
        ({"numbers": {"x": [1, 2, 3]}}, r"x is \[1, 2, 3\], not a number"),
        ({"numbers": {"x": [1, True]}}, r"x is \[1, True\], not a number"),
        ({"numbers": []}, r"numbers of a score is an object, found \[\]"),
        ({"turns": {"m": {"asked": 1.5}}}, "turns of m is {'asked': 1.5}, not counts"),
        ({"turns": {"m": 3}}, "turns of m is 3, not counts"),
        ({"dropped_fields": {"reason": True}}, "dropped_fields is {'reason': True}, not counts"),
        ({"error": 3}, "error of a score is a text or null, found 3"),
        ({"id": None}, "id of a score is a text, found None"),
    ],
)
def test_a_line_that_is_no_score_is_named(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    line = {"id": "c/1/0", "condition": "c", "labels": {}, "numbers": {}, "error": None}
    (tmp_path / "scores.jsonl").write_text(json.dumps(line) + "\n" + json.dumps({**line, **change}) + "\n")
    with pytest.raises(DataError, match=words) as caught:
        load_scores(tmp_path / "scores.jsonl")
    assert str(caught.value.place) == f"{tmp_path / 'scores.jsonl'}:2:1"


def test_a_file_that_is_no_scores_is_named(tmp_path: Path) -> None:
    file = tmp_path / "scores.jsonl"
    for content, words, place in (
        (b"{", "not JSON: ", f"{file}:1:1"),
        (b"\xff", "cannot read the scores: ", str(file)),
    ):
        file.write_bytes(content)
        with pytest.raises(DataError, match=words) as caught:
            load_scores(file)
        assert (caught.value.message[: len(words)], str(caught.value.place)) == (words, place)


def test_rows_say_what_all_episodes_of_a_condition_share() -> None:
    first = EpisodeScore("c/1/0", "c", {"model": "m", "size": 4, "seed": 1}, {"x": (1, 2)}, limited=True)
    second = EpisodeScore("c/2/0", "c", {"model": "m", "size": 4, "seed": 2}, {"x": (2, 2)}, uses_ground_truth=True)
    broken = EpisodeScore("c/3/0", "c", {"model": "m", "size": 4, "seed": 3}, {"x": None}, "broken", limited=True)
    other = EpisodeScore("d/1/0", "d", {"model": "m", "size": 8}, {"x": None})
    one, two = rows([first, other, second, broken], {"x": Ratio()}, "run")
    assert (one["condition"], one["labels"], one["value"], one["n"], one["failed"]) == ("c", {"size": 4}, 0.75, 2, 1)
    assert (one["uses_ground_truth"], one["limited"]) == (True, 2)
    assert (two["condition"], two["value"], two["n"], two["failed"]) == ("d", None, 0, 0)
    assert not {"uses_ground_truth", "limited"} & two.keys()
    assert first.case == "1" and score(1.0, "a/b").case == "a/b"


@pytest.mark.parametrize(
    ("cluster", "key"),
    [
        ((), ("c", "1")),
        (("case",), ("1",)),
        (("size", "case"), ("4", "1")),
        (("seed",), ("–",)),
        (("episode",), ("c/1/0",)),
        (("size", "episode"), ("c/1/0",)),
    ],
)
def test_what_makes_episodes_one_observation(cluster: tuple[str, ...], key: tuple[str, ...]) -> None:
    one = EpisodeScore("c/1/0", "c", {"model": "m", "size": 4, "case": "label"}, {"x": 0.5})
    assert cluster_of(one, cluster) == key
    assert observations([one], "x", cluster) == [(("m", *key), 0.5)]


def test_who_answered_and_who_did_not() -> None:
    turns = {"m": {"asked": 3, "answered": 2}, "n": {"asked": 4}}
    assert score(1.0, turns=turns).answered == {"m": 2} and score(1.0, turns=turns).unanswered == 0
    assert score(1.0, turns={"n": {"asked": 4}, "o": {"asked": 1}, "p": {}}).unanswered == 5
