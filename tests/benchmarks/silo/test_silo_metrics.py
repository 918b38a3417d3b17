"""SILO-Bench's metrics on episodes made by hand: every formula, every parameter, and nothing where there is nothing."""

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Completion, Episode, Move, Outcome
from harness.api.errors import PluginError
from harness.config import project
from harness.extensions.yaml_tasks.conformance import check_metric

BUILTIN = project.builtin()
P2P = {
    "rounds": 4, "max_rounds": 100, "messages": 5, "characters": 60, "refused": 3, "reads": None,
    "sent": {"A": {"B": [2, 20], "C": [1, 10]}, "B": {"A": [2, 30]}},
    "received": {"A": [2, 30], "B": [2, 20], "C": [1, 10]},
}  # fmt: skip
BP = {**P2P, "sent": {"A": {"*": [2, 20]}, "B": {"*": [1, 9]}}, "messages": 3}
SFS = {**P2P, "sent": {"A": {"*": [3, 20]}}, "reads": {"A": {"B": 2, "C": 1}, "B": {"C": 1}}, "messages": 3}
GRADE = {
    "success": 2 / 3, "partial": 0.8, "premature": 1.0, "consensus": 1.0, "computation": 0.0, "timeout": 0.0,
    "data_characters": {"A": 60, "B": 20, "C": 40},
}  # fmt: skip


def episode(
    facts: dict[str, Any] | None = None, moves: list[Move] | None = None, later: list[Move] | None = None,
    **grade: Any,
) -> Episode:  # fmt: skip
    outcome = Outcome(facts=P2P if facts is None else facts)
    return Episode("e", "c", "x", 0, {}, {}, [moves or [], later or []], outcome, {**GRADE, **grade})


def value(name: str, played: Episode, /, **parameters: Any) -> float | None:
    result: float | None = BUILTIN.load("metrics", name)(**parameters).measure(played)
    return result


def said(agent: str, *texts: str) -> Move:
    return Move(agent, "round", [{"call": "send_message", "target_id": "1", "content": text} for text in texts])


def asked(agent: str, *calls: Completion) -> Move:
    return Move(agent, "round", [{"call": "wait"}], calls=calls)


# ------------------------------------------------------------------------------------ S, P and their kin


def test_success_partial_and_gap() -> None:
    assert value("silo/success", episode()) == 2 / 3
    assert value("silo/success", episode(), of="run") == 0
    assert value("silo/success", episode(success=1.0), of="run") == 1
    assert value("silo/partial", episode()) == 0.8
    assert value("silo/gap", episode()) == pytest.approx(0.8 - 2 / 3)
    assert value("silo/gap", episode(partial=None)) is None


def test_among_leaves_other_episodes_out() -> None:
    led = {**P2P, "received": {"A": [4, 0], "B": [1, 0], "C": [1, 0]}}
    for among, of, belongs in [
        ("solved", episode(success=1.0), True), ("solved", episode(), False),
        ("failed", episode(success=1.0), False), ("failed", episode(), True),
        ("led", episode(led), True), ("led", episode(), False),
        ("unled", episode(led), False), ("unled", episode(), True),
        ("teams", episode(), True), ("alone", episode(), False), ("all", episode(), True),
    ]:  # fmt: skip
        assert (value("silo/success", of, among=among) is not None) == belongs, among
    alone = Episode("e", "c", "x", 0, {"alone": True}, {}, [], Outcome(facts=P2P), GRADE)
    assert value("silo/success", alone, among="alone") == 2 / 3 and value("silo/success", alone, among="teams") is None


# ------------------------------------------------------------------------------------------- density


@pytest.mark.parametrize(
    ("facts", "peers", "sends"),
    [(P2P, 5 / 6, 5 / 6), (BP, 6 / 6, 3 / 6), (SFS, 4 / 6, 3 / 6)],
    ids=["P2P", "BP", "SFS"],
)
def test_density(facts: dict[str, Any], peers: float, sends: float) -> None:
    assert value("silo/density", episode(facts)) == pytest.approx(peers)
    assert value("silo/density", episode(facts), count="sends") == pytest.approx(sends)


def test_alone_the_density_is_0_and_elsewhere_there_is_none() -> None:
    assert value("silo/density", episode({**P2P, "sent": {}, "received": {"A": [0, 0]}})) == 0
    assert value("silo/density", episode({"rounds": 3})) is None


# -------------------------------------------------------------------------------------------- tokens


def test_token_consumption_by_the_limit_and_by_rounds_played() -> None:
    calls = [asked("A", Completion("abc", output_tokens=30, input_tokens=70), Completion("d", output_tokens=10))]
    of = episode(moves=calls)
    assert value("silo/token_consumption", of) == 0.4
    assert value("silo/token_consumption", of, over="played") == 10
    assert value("silo/token_consumption", of, over="played", inputs=True) == 27.5
    first = [asked("A", Completion("abc", output_tokens=500, input_tokens=1))]
    of = episode({**P2P, "first": {"answers": {}, "facts": P2P}, "final_from": 1}, moves=first, later=calls)
    assert value("silo/token_consumption", of, over="played") == 10, "of two runs the last one"
    assert value("silo/token_consumption", episode()) is None, "a policy has no tokens"


def test_context_converts_characters_by_the_replies_own_tokens() -> None:
    """40 characters of replies in 10 tokens: 4 characters a token; shards of 60 and 20 are 15 and 5 tokens."""
    first = Completion("x" * 20, input_tokens=100, output_tokens=5)
    later = Completion("x" * 20, input_tokens=300, output_tokens=5)
    of = episode(moves=[asked("A", first, later), asked("B", Completion("", input_tokens=60, output_tokens=0))])
    # A sent 30 and received 30 characters, B sent 30 and received 20
    each = {"data": (15, 5), "base": (100 - 15, 60 - 5), "communication": (60 / 4, 50 / 4)}
    for part, (a, b) in each.items():
        assert value("silo/context", of, part=part) == (a + b) / 2
        assert (value("silo/context", of, part=part, of="min"), value("silo/context", of, part=part, of="max")) == (
            b,
            a,
        )
    assert value("silo/context", of, part="utilization", window=1000) == pytest.approx((115 + 72.5) / 2 / 1000)
    assert value("silo/context", of, part="peak", of="max", window=1000) == 0.305
    assert value("silo/context", episode(), part="data") is None


# ------------------------------------------------------------------------------------------ failures


def test_failure_modes_alone_and_together() -> None:
    assert value("silo/failure", episode(), modes=["premature"]) == 1
    assert value("silo/failure", episode(), modes=["premature", "consensus"]) == 1
    assert value("silo/failure", episode(), modes=["premature", "computation"]) == 0
    assert value("silo/failure", episode(consensus=None), modes=["premature", "consensus"]) == 0
    assert value("silo/failure", episode(premature=None), modes=["timeout"]) is None, "a protocol that keeps no account"


def test_no_failure_mode_at_all_is_refused() -> None:
    with pytest.raises(PluginError, match="modes is empty"):
        BUILTIN.load("metrics", "silo/failure")(modes=[])


def test_failure_modes_are_counted_or_averaged() -> None:
    load = BUILTIN.load("metrics", "silo/failure")
    counted, shared = load(modes=["premature"], count=True), load(modes=["premature"])
    assert counted.aggregate([1.0, 0.0, 1.0]).value == 2 and counted.aggregate([1.0, 0.0, 1.0]).stderr is None
    assert shared.aggregate([1.0, 0.0, 1.0]).value == pytest.approx(2 / 3)


# ----------------------------------------------------------------------------------------- behavior


def test_a_leader_has_strictly_more_than_one_and_a_half_times_the_mean() -> None:
    def received(*counts: int) -> Episode:
        return episode({**P2P, "received": {str(i): [count, 0] for i, count in enumerate(counts)}})

    assert value("silo/leader", received(3, 2, 1)) == 0, "exactly 1.5"
    assert value("silo/leader", received(4, 2, 1)) == 1
    assert value("silo/leader", received(0, 0, 0)) == 0
    assert value("silo/leader", received(1)) is None


@pytest.mark.parametrize(
    ("kind", "text", "shown"),
    [
        ("verification", "please confirm", True), ("verification", "I double-check this", True),
        ("verification", "Is that correct?", True), ("verification", "it matches", True),
        ("verification", "my maximum is 12", False), ("verification", "a mismatch", False),
        ("strategy", "Let's use a ring", True), ("strategy", "Each agent should send its part", True),
        ("strategy", "in round 2 I answer", True), ("strategy", "I am the coordinator", True),
        ("strategy", "my maximum is 12", False), ("strategy", "the string has a planet", False),
        ("strategy", "street", False),
    ],
)  # fmt: skip
def test_words_of_a_behavior(kind: str, text: str, shown: bool) -> None:
    assert value("silo/behavior", episode(moves=[said("A", text)]), kind=kind) == float(shown)


def test_sending_a_value_that_another_has_sent_verifies_it() -> None:
    both: dict[str, Any] = {"moves": [said("A", "[1, 2]")], "later": [said("B", "12", "(1,2)")]}
    assert value("silo/behavior", episode(**both), kind="verification") == 1
    assert value("silo/behavior", episode(**both), kind="strategy") == 0
    at_once = [said("A", "7"), said("B", "7")]
    assert value("silo/behavior", episode(moves=at_once), kind="verification") == 0, "neither had seen the other's"
    assert value("silo/behavior", episode(moves=[said("A", "12", "12"), said("B", "13")]), kind="verification") == 0
    assert value("silo/behavior", episode(moves=[said("A", "hello"), said("B", "hello")]), kind="verification") == 0


def test_what_stands_behind_the_end_of_a_round_is_not_sent() -> None:
    late = Move("A", "round", [{"call": "wait"}, {"call": "broadcast_message", "content": "let's verify the plan"}])
    for kind in ("verification", "strategy"):
        assert value("silo/behavior", episode(moves=[late]), kind=kind) == 0


def test_thoughts_count_for_the_characters_a_token_has() -> None:
    """100 characters in 25 tokens, of which 20 are reasoning: still 4 characters a token."""
    thinking = Completion("x" * 20, reasoning="y" * 80, input_tokens=100, output_tokens=25)
    assert value("silo/context", episode(moves=[asked("A", thinking)]), part="data") == 15


@pytest.mark.slow
def test_behavior_of_what_is_no_message() -> None:
    odd = [Move("A", "round", None), Move("A", "round", [{"call": "send_message", "error": "…", "content": "confirm"}])]
    assert value("silo/behavior", episode(moves=odd), kind="verification") == 0
    for piece in ("a", "is this ", "each agent ", "step ", "[", "1,", "double"):
        assert value("silo/behavior", episode(moves=[said("A", piece * 100_000)]), kind="strategy") in (0, 1)


def test_messages_and_rounds() -> None:
    assert value("silo/messages_per_agent", episode()) == pytest.approx(5 / 3)
    assert value("silo/messages_per_agent", episode(), among="solved") is None
    assert value("silo/rounds_to_completion", episode()) == 4
    assert value("silo/rounds_to_completion", episode(), among="solved") is None
    assert value("refused_calls", episode()) == 3


@given(st.lists(st.floats(0, 1), min_size=1), st.floats(0, 1))
def test_a_quantile_of_runs_is_numpys(numbers: list[float], quantile: float) -> None:
    statistic = BUILTIN.load("metrics", "silo/context")(quantile=quantile).aggregate(numbers)
    assert statistic.value == pytest.approx(float(numpy.quantile(numbers, quantile)), abs=1e-9)
    assert (statistic.stderr, statistic.n) == (None, len(numbers))


def test_a_quantile_of_no_runs_has_no_value() -> None:
    assert check_metric(BUILTIN.load("metrics", "silo/context")(quantile=0.5)) == []
