"""What tables are made from: scores as JSON lines, and table entries with their mistakes explained."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api.errors import DataError, SpecError
from harness.plugins.parameters import fields
from harness.tables import EpisodeScore, TableEntry, TableSpec, check, load_scores, text

METRICS = ("solved", "score")
SOLVED: dict[Any, Any] = {"title": "Solved", "rows": "model", "columns": "problem", "metrics": "solved"}
SCORES = [
    EpisodeScore("c/0/0", "c", {"model": "m", "size": 4}, {"solved": 1.0, "tokens": None}),
    EpisodeScore("c/1/0", "c", {"model": "m", "size": 4}, {}, "boom"),
]


# ------------------------------------------------------------------------------------------- scores

names = st.text(max_size=8)
values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | names


@given(
    st.builds(
        EpisodeScore,
        names,
        names,
        st.dictionaries(names, values, max_size=4),
        st.dictionaries(names, st.none() | st.floats(allow_nan=False, allow_infinity=False), max_size=4),
        st.none() | names,
    )
)
def test_scores_survive_json(score: EpisodeScore) -> None:
    assert EpisodeScore.from_json(json.loads(json.dumps(score.to_json()))) == score


def test_scores_are_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_text("".join(json.dumps(s.to_json()) + "\n" for s in SCORES), encoding="utf-8")
    assert load_scores(path) == SCORES


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "scores.jsonl:2:1: not JSON"),
        ("[" * 100_000, "scores.jsonl:2:1: not JSON"),
        ("[]", "a score is a JSON object, found list"),
        ('{"id": "a"}', "condition of a score is a text, found None"),
        ('{"id": 1, "condition": "c", "labels": {}, "numbers": {}}', "id of a score is a text, found 1"),
        ('{"id": "a", "condition": "c", "labels": [], "numbers": {}}', "labels of a score is an object, found []"),
        ('{"id": "a", "condition": "c", "labels": {}, "numbers": {"x": true}}', "x is True, not a number"),
        (
            '{"id": "a", "condition": "c", "labels": {}, "numbers": {}, "error": 1}',
            "error of a score is a text or null, found 1",
        ),
    ],
)
def test_unreadable_scores_say_where_and_why(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_text(json.dumps(SCORES[0].to_json()) + "\n" + line + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"scores\.jsonl:2:1") as caught:
        load_scores(path)
    assert message in str(caught.value)


def test_a_missing_scores_file_is_a_users_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read the scores"):
        load_scores(tmp_path / "none.jsonl")


def test_text_makes_equal_what_yaml_and_json_tell_apart() -> None:
    assert (text(4), text("4"), text(True), text(None), text(0.25), text(["a"])) == (
        *("4", "4", "true", "–", "0.25"),
        '["a"]',
    )


# ------------------------------------------------------------------------------------ table entries


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("solved", "a table must be a mapping with title, rows and metrics, found text 'solved'"),
        (3, "a table must be a mapping with title, rows and metrics, found the number 3"),
        ({"rows": "model", "metrics": "solved"}, "missing required key 'title'"),
        ({**SOLVED, "colums": "size"}, "unknown key 'colums'. Did you mean columns"),
        ({**SOLVED, 4: "x"}, "unknown key '4'. Available:"),
        ({**SOLVED, "rows": []}, "'rows' must not be empty"),
        ({**SOLVED, "rows": ["model", "model"]}, "'rows' has 'model' twice"),
        (
            {**SOLVED, "uncertainty": "sd"},
            "'uncertainty' must be sem or std or interval or wilson or t or a mapping or empty, found text 'sd'",
        ),
        ({**SOLVED, "uncertainty": {"solved": "sd"}}, "uncertainty: 'solved' is 'sd'. Did you mean std?"),
        (
            {**SOLVED, "uncertainty": ["sem"]},
            "'uncertainty' must be sem or std or interval or wilson or t or a mapping or empty, found a list",
        ),
        ({**SOLVED, "uncertainty": {4: "sem"}}, "uncertainty: metrics has no '4'. Available: solved."),
        ({**SOLVED, "uncertainty": {"sloved": "sem"}}, "uncertainty: metrics has no 'sloved'. Did you mean solved?"),
        ({**SOLVED, "uncertainty": {"score": "sem"}}, "uncertainty: metrics has no 'score'. Available: solved."),
        ({**SOLVED, "digits": True}, "'digits' must be an integer or a mapping, found the truth value True"),
        ({**SOLVED, "title": {1}}, "a table is plain data: Object of type set"),
        ({**SOLVED, "digits": 11}, "'digits' must be ≤ 10, found 11"),
        ({**SOLVED, "where": ["size"]}, "'where' must be a mapping, found a list"),
        ({**SOLVED, "where": {4: 1}}, "where: unknown label '4'."),
        ({**SOLVED, "where": {"metric": "solved"}}, "where: use metrics: to choose metrics"),
        ({**SOLVED, "columns": "model"}, "label 'model' is both in rows and in columns"),
        ({**SOLVED, "columns": "value"}, "a table cannot group by 'value'"),
        ({**SOLVED, "columns": "std"}, "a table cannot group by 'std'"),
        (
            {**SOLVED, "uncertainty": "std"},
            "a standard deviation describes pooled numbers: set aggregate (and overall) to",
        ),
        (
            {**SOLVED, "uncertainty": "std", "aggregate": "pooled", "overall": "mean_of_conditions"},
            "a standard deviation describes pooled numbers",
        ),
        ({"title": "t", "rows": "model", "metrics": "solved", "overall": "pooled"}, "overall needs a column label"),
        ({**SOLVED, "figure": "line", "overall": "pooled"}, "a figure has no overall column"),
        ({**SOLVED, "figure": "stacked", "metrics": ["solved", "score"]}, "a stacked figure needs one metric"),
        (
            {"title": "t", "rows": "model", "metrics": "solved", "figure": "stacked"},
            "and a column label to stack, or several",
        ),
        ({**SOLVED, "hide_empty": "yes"}, "'hide_empty' must be true or false, found text 'yes'"),
        ({**SOLVED, "rows": "modell"}, "rows: unknown label 'modell'. Did you mean model?"),
        ({**SOLVED, "columns": "problm"}, "columns: unknown label 'problm'. Did you mean problem?"),
        ({**SOLVED, "metrics": ["solved", "scor"]}, "metrics: unknown metric 'scor'. Did you mean score?"),
        ({**SOLVED, "where": {"size": [4, 5]}}, "where: size is never '5'. Available: 16, 4, 8."),
        ({**SOLVED, "order": {"size": [4, 32]}}, "order: size is never '32'."),
    ],
)
def test_a_wrong_entry_is_explained(entry: Any, problem: str) -> None:
    labels = {"problem": [], "size": [4, 8, 16]}
    problems = check(entry, labels, METRICS)
    assert len(problems) == 1
    assert problems[0].startswith(problem) or problem in problems[0]


def test_all_problems_are_reported_at_once_and_parsing_raises_them() -> None:
    wrong = {"rows": 3, "digits": "two", "colour": "red"}
    assert len(check(wrong, [], [])) == 5
    with pytest.raises(
        SpecError,
        match=r"'rows' must be.*'digits' must be.*missing required key 'title'.*colour.*required key 'metrics'",
    ):
        TableSpec.parse(wrong)


def test_a_right_entry_has_no_problems_whatever_is_known() -> None:
    entry = {
        **SOLVED,
        "where": {"size": 4},
        "order": {"size": [8]},
        "published": "x",
        "figure": False,
        "uncertainty": None,
    }
    assert check(entry, ["problem", "size"], METRICS) == []
    assert check(TableSpec.parse(entry), {"problem": ["a"], "size": [4, 8]}, METRICS) == []


@pytest.mark.parametrize("error", [None, {}, "sem", "interval", {"solved": "sem"}])
def test_standard_errors_and_intervals_need_no_pooling(error: Any) -> None:
    assert check({**SOLVED, "uncertainty": error}, ["problem"], METRICS) == []


@pytest.mark.parametrize("error", ["std", "interval", {"solved": "interval", "score": "std"}])
def test_every_other_error_is_right_for_pooled_numbers(error: Any) -> None:
    entry = {**SOLVED, "metrics": ["solved", "score"], "aggregate": "pooled", "overall": "pooled", "uncertainty": error}
    assert check(entry, ["problem"], METRICS) == []
    assert TableSpec.parse(entry).uncertainty == error


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(sorted(fields(TableEntry))), anything))
def test_no_entry_ever_breaks_the_check(entry: Mapping[str, Any]) -> None:
    problems = check({**SOLVED, **entry}, ["problem"], METRICS)
    assert all(isinstance(problem, str) and problem for problem in problems)
