"""DarkForest's calibration: counting, Section 3.4's estimates by hand, and files that cannot be."""

import json
import math
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api.errors import PluginError
from harness.config import spec
from harness.evaluation.evaluate import evaluate
from harness.extensions.panels.calibrated_protocol import CalibrationEpisode
from harness.extensions.panels.fit import fit
from harness.runtime.options import Options
from tests.benchmarks.darkforest.darkforest_kit import (
    BUILTIN,
    A,
    B,
    C,
    DarkForest,
    calibration,
    counts,
    moved,
    opinion,
    question,
    rules,
    tally,
)

Counts, Tally, counts_of = calibration.Counts, calibration.Tally, calibration.counts_of
Rules = rules.Rules


def counted(*rows: list[Any], right: str = "x", labels: dict[str, str] | None = None) -> Any:
    instance = Counts((A, B, C))
    for text in rows:
        instance.add(text, [o.answer == right for o in text], labels or {})
    return instance


ROWS = [
    [opinion(A, "x", 0.9), opinion(B, "x"), opinion(C, "y", malformed=True)],
    [opinion(A, "x"), opinion(B, "y"), opinion(C, None)],
    [opinion(A, "y", 0.8), opinion(B, "x"), opinion(C, "x", malformed=True)],
]


def test_what_is_counted() -> None:
    result = counted(*ROWS, labels={"subject": "law", "level": 3})  # type: ignore[dict-item]
    assert result.tallies == {A: Tally(2, 3, 3), B: Tally(2, 3, 3), C: Tally(1, 2, 3)}
    assert result.patterns == {
        (A, B): Tally(1, 1, 1),
        (B, C): Tally(1, 1, 1),
        (A,): Tally(1, 2, 2),
        (B,): Tally(0, 1, 1),
        (C,): Tally(0, 1, 1),
    }
    assert result.unstated == Tally(4, 6, 7), "all but A's first and last"
    assert result.malformed == Tally(1, 2, 3) and result.formed == Tally(4, 6, 6), "what cannot be read has no form"
    assert result.labels == {"subject": {"law": result.tallies}, "level": {"3": result.tallies}}


def test_agent_reliability_by_hand() -> None:
    """α = (right + 1) / (valid + 2); over all outputs in the artifact; 1/2 of nothing."""
    result = counted(*ROWS)
    assert result.theta(Rules()).alpha == {A: 3 / 5, B: 3 / 5, C: 2 / 4}
    assert result.theta(Rules(alpha_over="all")).alpha == {A: 3 / 5, B: 3 / 5, C: 2 / 5}
    assert Tally().smoothed("valid") == 0.5


def test_pattern_reliability_by_hand() -> None:
    """R = (right + 1) / (n + 2), if seen often enough; else the fallback, which is 1."""
    result = counted(*ROWS * 2)
    assert result.theta(Rules(min_count=3)).patterns == {(A,): 3 / 6}
    assert set(result.theta(Rules(min_count=2)).patterns) == set(result.patterns)
    assert result.theta(Rules(min_count=0)).patterns[(A, B)] == 3 / 4
    assert result.theta(Rules(min_count=3, fallback=0.7)).fallback == 0.7


@pytest.mark.parametrize(
    ("unstated", "over", "expected"),
    [
        (Tally(4, 8, 10), "valid", 0.5),
        (Tally(4, 8, 10), "all", 0.4),
        (Tally(0, 8, 8), "valid", 0.1),
        (Tally(8, 8, 8), "valid", 0.9),
        (Tally(0, 0, 3), "valid", 0.5),
        (Tally(0, 0, 3), "all", 0.1),
    ],
)
def test_missing_confidence_by_hand(unstated: Any, over: str, expected: float) -> None:
    assert calibration.missing(unstated, Rules(quality_over=over)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("malformed", "formed", "over", "expected"),
    [
        (Tally(2, 8, 10), Tally(5, 10, 10), "valid", 0.5),
        (Tally(2, 8, 10), Tally(5, 10, 10), "all", 0.4),
        (Tally(0, 8, 8), Tally(5, 10, 10), "valid", 0.1),
        (Tally(8, 8, 8), Tally(5, 10, 10), "valid", 1.0),
        (Tally(), Tally(5, 10, 10), "valid", 0.5),
        (Tally(2, 8, 8), Tally(), "valid", 0.5),
        (Tally(2, 8, 8), Tally(0, 10, 10), "valid", 0.5),
    ],
)
def test_the_malformed_penalty_by_hand(malformed: Any, formed: Any, over: str, expected: float) -> None:
    assert calibration.penalty(malformed, formed, Rules(quality_over=over)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [(0.8, 0.5), (0.95, 0.875), (1.0, 1.0), (0.6, 0.2), (0.3, 0.2), (None, 0.5)],
)
def test_the_independence_discount_by_hand(pattern: float | None, expected: float) -> None:
    """γ = clip((R_ij - 0.6) / (1 - 0.6), 0.2, 1)."""
    result = calibration.independence(pattern, {A: 0.6, B: 0.5}, (A, B), Rules())
    assert result == pytest.approx(expected)


def test_pairs_are_measured_by_the_pattern_of_exactly_the_two() -> None:
    agents = {A: tally(5, 8), B: tally(2, 8), C: tally(5, 8)}
    given = counts(agents, [((A, B), 8, 8), ((A, B, C), 0, 9), ((B, C), 3, 4)])
    theta = counts_of(given).theta(Rules(correlated=((B, A), (B, C))))
    assert theta.gamma[A, B] == theta.gamma[B, A] == pytest.approx((0.9 - 0.6) / 0.4)
    assert theta.gamma[B, C] == 0.5, "seen four times only"


# ------------------------------------------------------------------------------------------- files


@given(st.lists(st.lists(st.sampled_from([None, "x", "y"]), min_size=3, max_size=3), max_size=8))
def test_counts_survive_the_file(drawn: list[list[str | None]]) -> None:
    result = counted(*([opinion(f"Agent-{i}", x) for i, x in enumerate(row)] for row in drawn), labels={"l": "v"})
    for agent in result.agents:
        result.tallies.setdefault(agent, Tally())
    facts = json.loads(json.dumps(result.facts(Rules())))
    assert counts_of(facts) == result
    assert facts["derived"]["alpha"] == result.theta(Rules()).alpha


GOOD = counts({A: tally(3, 5, 6), B: tally(2, 4)}, [((A, B), 2, 3)], labels={"l": {"v": {A: tally(1, 1)}}})

BAD: list[tuple[tuple[Any, ...], Any, str]] = [
    ((), [], "the calibration must be a mapping"),
    (("agents",), None, "agents must be a list"),
    (("agents",), [], "agents must be a list"),
    (("agents",), [A, A], "different agents"),
    (("agents",), [A, 3], "agents must be a list"),
    (("agents",), [A, B, C], "counts nothing of Agent-2"),
    (("agents",), [A], "tallies must be one of Agent-0"),
    (("episodes",), -1, "episodes must be a whole number"),
    (("tallies", A, "correct"), -1, "tallies.Agent-0.correct must be a whole number"),
    (("tallies", A, "correct"), math.nan, "found nan"),
    (("tallies", A, "correct"), math.inf, "found inf"),
    (("tallies", A, "correct"), 2.0, "found 2.0"),
    (("tallies", A, "correct"), True, "found True"),
    (("tallies", A, "correct"), "3", "found '3'"),
    (("tallies", A, "correct"), 6, "correct ≤ valid ≤ all"),
    (("tallies", A, "valid"), 7, "correct ≤ valid ≤ all"),
    (("tallies", A, "all"), 10**400, "0 to 1,000,000,000, found 1000"),
    (("tallies", A), {}, "tallies.Agent-0.correct must be"),
    (("tallies",), 3, "tallies must be a mapping"),
    (("patterns",), {}, "patterns must be a list"),
    (("patterns", 0), 3, r"patterns\[0\] must be a mapping"),
    (("patterns", 0, "agents"), [B, A], "in this order"),
    (("patterns", 0, "agents"), [A, A], "in this order"),
    (("patterns", 0, "agents"), [A, C], "some of Agent-0, Agent-1"),
    (("patterns", 0, "agents"), [[]], "some of"),
    (("patterns", 0, "agents"), [], "some of"),
    (("patterns", 0, "correct"), 4, "at most the count, 3"),
    (("patterns", 0, "count"), -3, "whole number"),
    (("unstated",), None, "unstated must be a mapping"),
    (("malformed", "valid"), None, "malformed.valid must be"),
    (("labels",), [], "labels must be a mapping"),
    (("labels", "l"), [], "labels.l must be a mapping"),
    (("labels", "l", "v", "Z"), tally(0, 0), "labels.l.v must be one of Agent-0, Agent-1, found 'Z'"),
]


@pytest.mark.parametrize(("path", "value", "message"), BAD)
def test_files_that_cannot_be_are_refused(path: tuple[Any, ...], value: Any, message: str) -> None:
    broken: Any = deepcopy(GOOD)
    if not path:
        broken = value
    else:
        inner = broken
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = value
    with pytest.raises(PluginError, match=message) as error:
        DarkForest().load_parameters(broken)
    assert error.value.hint and error.value.at == ("calibration",)


def test_a_pattern_twice_is_refused() -> None:
    with pytest.raises(PluginError, match="not there already"):
        counts_of({**GOOD, "patterns": GOOD["patterns"] * 2})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from([*GOOD]), json_values)
def test_any_json_is_taken_or_refused_in_words(name: str, value: Any) -> None:
    given = {**GOOD, name: value}
    try:
        DarkForest(min_count=0, correlated=[[A, B]]).load_parameters(given)
    except PluginError as error:
        assert "calibration" in error.message


def test_another_panel_is_refused() -> None:
    with pytest.raises(PluginError, match="the panel is Agent-0, Agent-1, Agent-2; the calibration is of Agent-0"):
        DarkForest(agents=3).load_parameters(GOOD)
    with pytest.raises(PluginError, match="correlated names 'Agent-2', which is not on the panel"):
        DarkForest(correlated=[[A, C]]).load_parameters(GOOD)


# -------------------------------------------------------------------------------------- the fitting


def played(*rows: list[Any]) -> list[Any]:
    """Calibration questions, answered by vote's turns; right is B."""
    task, case = question()
    vote = DarkForest(agents=3, confidence="line")
    results = []
    for reply in rows:
        turns = [vote.ask(task, case, agent) for agent in vote.members(case)]
        moves = [moved(turn, text) for turn, text in zip(turns, reply, strict=True)]
        results.append(CalibrationEpisode(task, case, [moves], lambda answer: bool(answer == "B")))
    return results


def test_fit_counts_what_the_panel_said() -> None:
    protocol = DarkForest(agents=3, confidence="line", min_count=1)
    facts = protocol.fit(
        played(
            ["The answer is (B)\nConfidence: 0.9", "It is (B)", "no idea"],
            ["The answer is (B)", "The answer is (A)\nConfidence: 90", RuntimeError("timeout")],
        )
    )
    assert facts["agents"] == [A, B, C] and facts["episodes"] == 2
    assert facts["tallies"] == {A: tally(2, 2), B: tally(1, 2), C: tally(0, 0, 2)}
    assert facts["patterns"] == [
        {"agents": [A, B], "correct": 1, "count": 1},
        {"agents": [A], "correct": 1, "count": 1},
        {"agents": [B], "correct": 0, "count": 1},
    ]
    assert facts["unstated"] == tally(2, 2, 4)
    assert facts["labels"] == {"subject": {"bees": facts["tallies"]}}
    assert facts["derived"]["alpha"] == {A: 3 / 4, B: 2 / 4, C: 1 / 2}
    protocol.load_parameters(json.loads(json.dumps(facts)))


def test_right_is_asked_once_for_every_different_answer() -> None:
    requests: list[Any] = []
    [one] = played(["The answer is (B)", "The answer is (B)", "The answer is (C)"])
    DarkForest(agents=3).fit([CalibrationEpisode(one.task, one.case, one.batches, lambda x: not requests.append(x))])
    assert requests == ["B", "C"]


def test_nothing_to_fit_on_and_different_panels_are_refused() -> None:
    with pytest.raises(PluginError, match="nothing to calibrate on"):
        DarkForest(agents=3).fit([])
    one, two = played(["The answer is (B)"] * 3, ["The answer is (B)"] * 3)
    fewer = CalibrationEpisode(two.task, two.case, [two.batches[0][:2]], two.right)
    with pytest.raises(PluginError, match="'q' was answered by Agent-0, Agent-1, others by"):
        DarkForest(agents=3).fit([one, fewer])


def test_the_questioning_is_a_vote_of_the_same_panel() -> None:
    result = DarkForest(agents=5, confidence="json", parse_retries=1).calibration_protocol()
    assert result == {"use": "vote", "agents": 5, "confidence": "json", "parse_retries": 1}


@pytest.mark.slow
def test_what_was_fitted_helps_where_two_of_three_are_wrong_together(tmp_path: Path) -> None:
    """B and C copy each other and are right half of the time; A is nearly always right, and outvoted."""
    panel = {"use": "simulated", "accuracy": 0.5, "trap": 1.0, "agents": {A: {"accuracy": 0.95}},
             "correlated": [{"agents": [B, C], "correlation": 0.9}]}  # fmt: skip
    alone = {"use": "darkforest", "agents": 3, "coordinate": "never"}
    given = {
        "name": "x",
        "task": {"use": "arithmetic", "size": 200, "terms": 2},
        "calibrate": {"task": {"terms": 3}},
        "protocol": "${how.protocol}",
        "matrix": {
            "how": [
                {"name": "uniform", "protocol": alone},
                {"name": "full", "protocol": {**alone, "calibration": str(tmp_path / "p.json")}},
            ]
        },
        "prompts": "panels/standard",
        "baseline": panel,
        "metrics": ["score"],
    }
    fit(spec.parse(given, BUILTIN), BUILTIN, lambda: None, options=Options(output_path=tmp_path / "fit"))
    run = evaluate(given, None, output_path=tmp_path / "run")
    right: dict[str, list[Any]] = {
        how: [s.numbers["score"] for s in run.scores if s.condition == f"how={how}"] for how in ("uniform", "full")
    }
    assert len(right["full"]) == len(right["uniform"]) == 200
    assert sum(right["full"]) >= sum(right["uniform"]) + 50
