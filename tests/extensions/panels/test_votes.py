"""`single` and `vote`: who is asked what, how answers are counted, and pass@k."""

from itertools import product
from math import comb
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Case, Episode, Turn
from harness.api.errors import PluginError
from harness.extensions.panels.panels import candidate, majority
from harness.replies.parse_guard import read
from harness.runtime.steps import drive
from tests.extensions.datasets.documents_kit import BUILTIN, cases, task_of


def question() -> tuple[Any, Case]:
    task = task_of("arithmetic", size=1, terms=2)
    return task, cases(task)[0]


def play(name: str, answers: dict[str, list[Any]], **parameters: Any) -> Any:
    task, case = question()
    given = {agent: iter(listed) for agent, listed in answers.items()}
    protocol = BUILTIN.load("protocols", name)(**parameters)
    return drive(protocol, task, case, lambda turn: next(given[turn.agent]))


def vote(*answers: Any, **parameters: Any) -> Any:
    listed = {f"Agent-{i}": [answer] for i, answer in enumerate(answers)}
    return play("vote", listed, agents=len(answers), **parameters).outcome


def test_every_agent_is_asked_once_at_the_same_time_and_sees_no_other() -> None:
    played = play("vote", {f"Agent-{i}": [1] for i in range(3)}, agents=3)
    [batch] = played.batches
    turns: list[Turn] = [turn for turn, _ in batch]
    assert [turn.agent for turn in turns] == ["Agent-0", "Agent-1", "Agent-2"]
    assert all(turn.observation == {} and turn.name == "answer" for turn in turns)


def test_the_answer_with_most_votes_wins() -> None:
    assert vote(1, 2, 2).group == 2
    assert vote(1, 2, 2).facts == {
        "votes": {"1": 1, "2": 2}, "tied": False, "unanimous": False,
        "history": [[1, 2, 2]], "agreement": [0.333333], "unanimous_at": None, "exit": "vote", "proposal": None,
        "peer_characters": 0, "sent": {},
    }  # fmt: skip
    assert vote(3, 3, 3).facts["unanimous"] and not vote(3, 3, None).facts["unanimous"]


@pytest.mark.parametrize(("ties", "winner"), [("first", 5), ("none", None)])
def test_ties(ties: str, winner: Any) -> None:
    result = vote(5, 7, 9, ties=ties)
    assert (result.group, result.facts["tied"]) == (winner, True)


def test_ties_by_lot_are_fair_and_the_same_for_a_seed() -> None:
    import random

    task, case = question()
    protocol = BUILTIN.load("protocols", "vote")(ties="random", agents=2)
    drawn = [
        drive(protocol, task, case, lambda turn: int(turn.agent[-1]), seed=seed).outcome.group for seed in range(200)
    ]
    assert 60 < drawn.count(0) < 140
    assert drawn[0] == drive(protocol, task, case, lambda turn: int(turn.agent[-1]), seed=0).outcome.group
    del random


def test_invalid_answers_are_no_votes_unless_they_are_to_be() -> None:
    assert vote(None, None, 4).group == 4
    assert vote(None, None, 4, invalid="vote").group is None
    assert vote(None, 4, 4, invalid="vote").group == 4
    assert vote(None, None, None).group is None and vote(None, None).facts["votes"] == {}


def test_weights_that_add_up_to_the_same_are_a_tie() -> None:
    weights = {"Agent-0": 0.1, "Agent-1": 0.2, "Agent-2": 0.3}
    assert vote(1, 1, 2, weights=weights, ties="none").facts["tied"]


def test_weights() -> None:
    assert vote(1, 2, 2, weights={"Agent-0": 3}).group == 1
    assert vote(1, 2, 2, weights={"Agent-1": 0, "Agent-2": 0}).group == 1
    assert vote(1, 2, weights={"Agent-0": 0, "Agent-1": 0}).group is None, "nobody has a vote"
    with pytest.raises(PluginError, match="the weight of Agent-0 is -1"):
        vote(1, 2, weights={"Agent-0": -1})
    with pytest.raises(PluginError, match=r"'Agent-9', which is not an agent of this case\n  The agents are: Agent-0,"):
        vote(1, 2, weights={"Agent-9": 1})


@given(st.lists(st.sampled_from([None, 1, 2, 3]), min_size=1, max_size=7))
def test_the_winner_has_most_votes_and_order_matters_in_ties_only(answers: list[Any]) -> None:
    result = vote(*answers)
    counts = {x: answers.count(x) for x in answers if x is not None}
    if counts:
        assert counts[result.group] == max(counts.values())
        if not result.facts["tied"]:
            assert vote(*reversed(answers)).group == result.group
    else:
        assert result.group is None


def test_single_asks_again_each_time() -> None:
    played = play("single", {"Agent-0": [1, 2, 2]}, repeats=3)
    turns = [turn for batch in played.batches for turn, _ in batch]
    assert [turn.fresh for turn in turns] == [False, True, True]
    assert played.outcome.facts == {"samples": [1, 2, 2]} and played.outcome.group is None
    assert play("single", {"Agent-0": [1, 2, 2]}, repeats=3, reduce="majority").outcome.group == 2


def numbers(samples: int, correct: int, k: int) -> Any:
    metric = BUILTIN.load("metrics", "pass_at_k")(k=k)
    return metric.measure(Episode("e", "c", "x", 0, {}, {}, [], None, {"samples": samples, "correct": correct}))


@pytest.mark.parametrize(("n", "k"), [(1, 1), (4, 1), (4, 2), (5, 5), (6, 3)])
def test_pass_at_k_is_the_share_of_choices_with_a_right_one(n: int, k: int) -> None:
    for c in range(n + 1):
        right = [i < c for i in range(n)]
        chosen = [pick for pick in product(range(n), repeat=k) if list(pick) == sorted(set(pick))]
        assert len(chosen) == comb(n, k)
        expected = sum(any(right[i] for i in pick) for pick in chosen) / len(chosen)
        assert numbers(n, c, k) == pytest.approx(expected)
    assert numbers(k - 1, 0, k) is None


@pytest.mark.parametrize(
    ("form", "empty", "answer"),
    [
        ("boxed", r"The answer is $\boxed{}$.", "2"),
        ("boxed", r"\boxed{\,}", "2"),
        ("boxed", r"\boxed{{}}", "2"),
        ("boxed", r"Answer: \boxed{\text{}}", "2"),
        ("boxed", "\\boxed{\u2060}", "2"),
        ("boxed", "\\boxed{?}", "2"),
        ("text", "...", "2"),
        ("text", "\u200b\ufeff", "2"),
        ("text", "\u3164", "2"),
    ],
)
@pytest.mark.parametrize("protocol", ["single", "vote", "debate", "reconcile", "darkforest"])
def test_an_empty_reply_is_no_answer(protocol: str, form: str, empty: str, answer: str) -> None:
    """Two empty boxes outvoted an answer, and were a cluster of their own in DarkForest."""
    metric = {"metric": "exact_match", "ignore_punctuation": True} if form == "text" else "math_strict"
    task = task_of(
        data_files="none.jsonl", doc_to_text="q", doc_to_target="2", answer={"form": form}, metric_list=[metric]
    )
    case = Case("q", ("Agent-0",), {"question": "?", "choices": None}, target={"answers": ["2"]})
    given: dict[str, dict[str, Any]] = {
        "single": {"repeats": 3, "reduce": "majority"},
        "vote": {"agents": 3},
        "debate": {"agents": 3, "rounds": 1},
        "reconcile": {"agents": 3, "rounds": 1},
        "darkforest": {"agents": 3, "confidence": "none", "coordinate": "never"},
    }
    replies = iter([empty, empty, rf"\boxed{{{answer}}}" if form == "boxed" else answer])
    errors = []

    def reply(turn: Turn) -> Any:
        parsed = read(turn.reply, next(replies, answer))
        errors.append(parsed.error)
        return parsed.action

    outcome = drive(BUILTIN.load("protocols", protocol)(**given[protocol]), task, case, reply).outcome
    assert None not in errors[:2] and errors[2] is None
    assert list(outcome.facts.get("samples") or outcome.facts["history"][0]) == [None, None, answer]
    assert outcome.group == answer


def test_an_empty_answer_of_a_policy_is_none_either() -> None:
    assert vote(2, "", " ", 2.5, 2.5).facts["votes"] == {"2": 1, "2.5": 2}
    assert play("single", {"Agent-0": ["", "", 2]}, repeats=3, reduce="majority").outcome.group == 2


def test_quotes_around_an_answer_split_no_vote() -> None:
    """What is graded is the answer as most of them wrote it."""
    task = task_of(data_files="none.jsonl", doc_to_text="q", doc_to_target="8", answer={"form": "text"})
    case = Case("q", ("Agent-0",), {"question": "?", "choices": None}, target={"answers": ["8"]})
    count = majority(task, case, ['"8"', "9", "8", "8", "9"])
    assert (count.answer, count.weights) == ("8", {"8": 3, "9": 2})
    assert majority(task, case, ["'a' or 'b'", "a' or 'b"]).tied, "these quotes are part of the answer"
    for form in ("boxed", "text", "pattern"):
        more = {"pattern": ".*"} if form == "pattern" else {}
        of_form = task_of(data_files="none.jsonl", doc_to_text="q", doc_to_target="8", answer={"form": form, **more})
        quoted = ['"8"', "“8”", "'8'", "«8»", " 8 "]
        assert {candidate(of_form, case, text) for text in quoted} == {"8"}
