"""Metrics of panels, on episodes small enough to count by hand and on a real run."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Completion, Episode, Metric, Move, Outcome, Statistic
from harness.api.errors import PluginError
from harness.config import project
from harness.engines.mock import Mock
from harness.evaluation.evaluate import evaluate
from harness.extensions.panels.panels import Opinion, agreement

BUILTIN = project.builtin()


def load(name: str, **fields: Any) -> Metric:
    result: Metric = BUILTIN.load("metrics", f"panels/{name}")(**fields)
    return result


def episode(*peer_text: int | None, grade: dict[str, float | None] | None = None, **facts: Any) -> Episode:
    """One with a call for each of these counts of peer tokens, each in a turn of its own."""
    moves = [Move(f"Agent-{i}", "answer", calls=(Completion("x", peer_tokens=n),)) for i, n in enumerate(peer_text)]
    return Episode("c/1/0", "c", "1", 0, {}, {}, [moves], Outcome(facts=facts), grade or {})


FAILED = Episode("c/1/0", "c", "1", 0, {}, {}, [], None, {}, "boom")


# --------------------------------------------------------------------------------------- peer text


@pytest.mark.parametrize(
    ("counts", "peer_characters", "tokens"),
    [
        ([None, None], 0, 0.0),  # a vote: nobody hears anybody
        ([None, None, 31], 120, 31.0),  # three answers and a coordinator
        ([None, 12, 13], 90, 25.0),
        ([None, None], 90, None),  # no engine could count the tokens
        ([None, 0], 4, 0.0),
        ([], 0, 0.0),  # policies make no calls
        ([], 55, None),
    ],
)
def test_tokens_that_cross_are_summed_over_calls(
    counts: list[int | None], peer_characters: int, tokens: float | None
) -> None:
    assert load("peer_text").measure(episode(*counts, peer_characters=peer_characters)) == tokens
    assert load("peer_text", of="characters").measure(episode(*counts, peer_characters=peer_characters)) == float(
        peer_characters
    )


def test_peer_text_is_averaged_or_added_up_and_needs_the_panels_fact() -> None:
    assert load("peer_text").needs == ("peer_characters",)
    assert load("peer_text").aggregate([10.0, 30.0]) == Statistic(20.0, 10.0, 2)
    assert load("peer_text", over="run").aggregate([10.0, 30.0]) == Statistic(40.0, None, 2)
    assert load("peer_text", over="run").aggregate([]) == Statistic(None, None, 0)
    assert load("peer_text").measure(FAILED) is None and load("peer_text").measure(episode(5)) is None


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=20))
def test_no_call_counts_twice(counts: list[int]) -> None:
    assert load("peer_text").measure(episode(*counts, peer_characters=1)) == sum(counts)


# ------------------------------------------------------------------------------------------ overrides


@pytest.mark.parametrize(
    ("overridden", "score", "proposal", "numbers"),
    [
        (False, 1.0, 1.0, (0, 0, 0)),
        (False, 0.0, 0.0, (0, 0, 0)),  # a wrong answer of the coordinator's own is no override
        (True, 1.0, 0.0, (1, 0, 0)),
        (True, 1.0, None, (1, 0, 0)),
        (True, 0.0, 0.0, (1, 1, 0)),
        (True, 0.0, None, (1, 1, 0)),  # the coordinator could not be read: nothing right was lost
        (True, 0.0, 1.0, (1, 1, 1)),
    ],
)
def test_overrides(overridden: bool, score: float, proposal: float | None, numbers: tuple[int, int, int]) -> None:
    one = episode(grade={"score": score, "proposal": proposal}, overridden=overridden)
    items = tuple(load("override", which=which).measure(one) for which in ("all", "wrong", "harmful"))
    assert items == numbers
    assert items[0] >= items[1] >= items[2]


@pytest.mark.parametrize("which", ["all", "wrong", "harmful"])
def test_without_a_guardrail_there_is_no_rate_of_overrides(which: str) -> None:
    metric = load("override", which=which)
    assert metric.needs == {"all": (), "wrong": ("score",), "harmful": ("score", "proposal")}[which]
    assert load("override", which=which, of="success").needs == tuple(
        "success" if need == "score" else need for need in metric.needs
    )
    assert metric.measure(episode(grade={"score": 0.0, "proposal": 1.0})) is None
    assert metric.measure(FAILED) is None
    assert metric.aggregate([1.0, 0.0, 0.0, 1.0]).value == 0.5


# -------------------------------------------------------------------------------------- exits, unanimity


@pytest.mark.parametrize(("found", "named", "other"), [("vote", 1, 0), ("tie", 1, 0), ("no candidate", 0, 1)])
def test_exits_are_counted_by_name_or_by_not_being_named(found: str, named: float, other: float) -> None:
    one = episode(exit=found)
    assert load("exit", ways=["vote", "tie"]).measure(one) == named
    assert load("exit", ways=["vote", "tie"], other=True).measure(one) == other


def test_an_episode_without_exit_is_in_no_share() -> None:
    for other in (False, True):
        metric = load("exit", ways=["vote"], other=other)
        assert metric.needs == ("exit",)
        assert metric.measure(FAILED) is None and metric.measure(episode()) is None


def test_ways_must_be_named() -> None:
    with pytest.raises(PluginError, match="ways is empty"):
        load("exit", ways=[])


@pytest.mark.parametrize(
    ("at", "first", "ever", "number"), [(0, 1, 1, 0), (1, 0, 1, 1), (4, 0, 1, 4), (None, 0, 0, None)]
)
def test_unanimity(at: int | None, first: float, ever: float, number: float | None) -> None:
    one = episode(unanimous_at=at)
    assert [load("unanimity", of=of).measure(one) for of in ("first", "ever", "round")] == [first, ever, number]


@pytest.mark.parametrize("of", ["first", "ever", "round"])
def test_unanimity_is_unknown_where_there_is_no_panel(of: str) -> None:
    assert load("unanimity", of=of).needs == ("unanimous_at",)
    assert (load("unanimity", of=of).bounds == (0, 1)) == (of != "round")
    assert load("unanimity", of=of).measure(episode()) is None
    assert load("unanimity", of=of).measure(FAILED) is None


@pytest.mark.parametrize("of", ["first", "ever", "round"])
def test_one_agent_alone_is_not_unanimous(of: str) -> None:
    alone, two = [["a"], ["b"]], [["a", "a"]]
    assert load("unanimity", of=of).measure(episode(unanimous_at=0, history=alone)) is None
    assert load("unanimity", of=of).measure(episode(unanimous_at=0, history=two)) == (0 if of == "round" else 1)


def test_self_refinement_has_no_share_of_agreement(tmp_path: Any) -> None:
    metrics = [{"use": "panels/unanimity", "of": "first", "name": "agreed"}]
    body = {"name": "x", "task": {"use": "arithmetic", "size": 2}, "prompts": "panels/standard", "metrics": metrics}
    for protocol, agreed in ({"use": "self_refine"}, None), ({"use": "vote", "agents": 2}, 1.0):
        run = evaluate(
            {**body, "protocol": protocol}, Mock(text="The answer is 1."), output_path=tmp_path / protocol["use"]
        )
        assert [score.numbers["agreed"] for score in run.scores] == [agreed] * 2


# ------------------------------------------------------------------------ agreement, changes, personas


@given(st.lists(st.sampled_from(["a", "b", None]), max_size=6))
def test_agreement_is_the_share_of_pairs_with_equal_answers(answers: list[str | None]) -> None:
    pairs = list(itertools.combinations(answers, 2))
    share = agreement([Opinion(f"Agent-{i}", answer, answer) for i, answer in enumerate(answers)])
    assert share == (pytest.approx(sum(a == b is not None for a, b in pairs) / len(pairs), abs=1e-6) if pairs else None)


@pytest.mark.parametrize(
    ("rounds", "numbers"),
    [
        ([0.3, 0.1, 1.0], [0.3, 1.0, 0.7]),
        ([0.5], [0.5, 0.5, 0.0]),
        ([None, None], [None, None, None]),
        ([], [None, None, None]),
    ],
)
def test_agreement_over_rounds(rounds: list[float | None], numbers: list[float | None]) -> None:
    one = episode(agreement=rounds)
    for of, number in zip(("first", "last", "gain"), numbers, strict=True):
        assert load("agreement", of=of).measure(one) == (number if number is None else pytest.approx(number))
    assert load("agreement").measure(episode()) is None and load("agreement").measure(FAILED) is None


def test_who_changed_whose_mind() -> None:
    changes = [
        {"heard": ["Agent-1"], "joins": True},
        {"heard": ["Agent-1"], "joins": False},
        {"heard": [], "joins": False},
    ]
    one, none = episode(changes=changes), episode(changes=[])
    assert [load("changes").measure(x) for x in (one, none, episode(), FAILED)] == [3, 0, None, None]
    heard, majority = load("changes_towards"), load("changes_towards", towards="majority")
    assert (heard.measure(one), majority.measure(one)) == ((2, 3), (1, 3))
    assert [heard.measure(x) for x in (none, episode(), FAILED)] == [None] * 3
    assert majority.aggregate([(1, 3), (1, 1)]).value == 0.5, "of all changes, not of episodes"


@pytest.mark.parametrize(
    ("texts", "diversity"),
    [
        (["You know law.", "You know law!"], 0.0),
        (["You know law.", "They bake bread"], 1.0),
        (["you know law", "You know physics"], 0.5),
        (["a", "a", "b"], 2 / 3),
        (["alone"], None),
        (["?", "!"], None),
        ([], None),
    ],
)
def test_diversity_of_personas(texts: list[str], diversity: float | None) -> None:
    personas = {f"Agent-{i}": {"name": "x", "text": text} for i, text in enumerate(texts)}
    measured = load("persona_diversity").measure(episode(personas=personas))
    assert measured == (diversity if diversity is None else pytest.approx(diversity))
    assert load("persona_diversity").measure(FAILED) is None


def test_a_discussion_has_all_of_them(tmp_path: Any) -> None:
    body: dict[str, Any] = {
        "name": "x",
        "task": {"use": "arithmetic", "size": 40, "terms": 4},
        "prompts": "panels/standard",
    }
    body["protocol"] = {"use": "discussion", "agents": 5, "personas": "traits", "topology": "ring"}
    body["baseline"] = {"use": "simulated", "accuracy": 0.5, "conformity": 0.6}
    body["metrics"] = [
        "score", "panels/changes", "panels/changes_towards", "panels/persona_diversity",
        *({"use": "panels/agreement", "of": of, "name": of} for of in ("first", "last", "gain")),
        *({"use": "grade", "of": name, "name": name} for name in ("to_right", "to_wrong", "drift", "lost")),
    ]  # fmt: skip
    run = evaluate(body, output_path=tmp_path)
    mean = {row["metric"]: row["value"] for row in run.rows}
    assert mean["last"] == pytest.approx(mean["first"] + mean["gain"]) and mean["gain"] > 0.1
    assert mean["panels/changes_towards"] == 1, "they change only to what they hear"
    assert mean["to_right"] > 0 and mean["to_wrong"] > 0 and 0 < mean["drift"] < 1 - mean["score"]
    assert 0 < mean["panels/persona_diversity"] < 1
    for score in run.scores:
        turned = score.number("to_right") + score.number("to_wrong")
        assert turned <= score.number("panels/changes")
