"""`reconcile`: calls, the text that is discussed, how confidences weigh, and what is told of all that."""

import itertools
import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api.errors import ContextLengthError, PluginError
from harness.runtime.steps import drive
from tests.extensions.panels.exchange_kit import BUILTIN, Episode, played, question, right, says, scripted

SPLIT = {"Agent_0": [1] * 9, "Agent_1": [1] * 9, "Agent_2": [2] * 9}
ANSWERS = st.sampled_from([None, 1, 2, 3])


def sure(answer: Any, confidence: Any) -> str:
    return f"The answer is {answer}.\nConfidence: {confidence}"


def stated(*opinions: tuple[Any, Any], **parameters: Any) -> Any:
    """The outcome of one round of (answer, confidence)."""
    row = [{"answer": answer, "confidence": confidence, "malformed": False} for answer, confidence in opinions]
    return played("reconcile", [row], agents=len(row), rounds=0, **parameters).outcome


@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
def test_calls(rounds: int) -> None:
    always = says(**SPLIT)
    result = scripted("reconcile", always, rounds=rounds)
    assert len(result.asked) == 3 * (1 + rounds)
    agreed = scripted("reconcile", says(Agent_0=[1], Agent_1=[1], Agent_2=[1]), rounds=rounds)
    assert len(agreed.asked) == 3 and agreed.outcome.facts["exit"] == "unanimous"


def test_the_default_is_three_calls_if_all_agree_and_nine_if_they_never_do() -> None:
    assert len(scripted("reconcile", says(**SPLIT)).asked) == 9


def test_agreement_ends_the_discussion() -> None:
    result = scripted("reconcile", says(Agent_0=[1, 2], Agent_1=[2, 2], Agent_2=[2, 2]), rounds=5)
    assert len(result.asked) == 6 and result.outcome.facts["unanimous_at"] == 1 and result.outcome.group == 2


def test_all_read_all_of_the_round_before_in_a_new_conversation() -> None:
    result = scripted("reconcile", says(**SPLIT))
    mapping = {n: [f"Agent-{i}.{n}" for i in range(3)] for n in (0, 1)}
    assert result.saw() == {
        **{f"Agent-{i}.0": [] for i in range(3)},
        **{f"Agent-{i}.1": mapping[0] for i in range(3)},
        **{f"Agent-{i}.2": mapping[1] for i in range(3)},
    }
    assert all(request.roles == ["user"] for request in result.asked)
    assert len({request.prompt for request in result.asked[3:6]}) == 1, "one text for all, the reader's own unmarked"


def test_the_text_has_groups_with_head_counts_and_raw_confidences_and_no_names() -> None:
    result = scripted(
        "reconcile", says(Agent_0=[sure(5, 0.7)] * 9, Agent_1=[sure(9, 1.0)] * 9, Agent_2=[sure(9, "nan")] * 9)
    )
    prompt = result.prompt("Agent-0", 1)
    nine, five = prompt.index("=== Answer: 9 ===\nGiven by 2"), prompt.index("=== Answer: 5 ===\nGiven by 1")
    assert nine < prompt.index("--- Confidence stated: 1.0 ---") < prompt.index("Confidence stated: none") < five
    assert five < prompt.index("--- Confidence stated: 0.7 ---"), "raw, not what the vote makes of it"
    assert "Agent-0" not in prompt and question()[1].public["question"] in prompt


def test_of_three_answers_the_last_is_dropped_and_that_is_reported() -> None:
    three = says(Agent_0=[1] * 9, Agent_1=[2] * 9, Agent_2=[3] * 9)
    result = scripted("reconcile", three, rounds=1)
    assert result.saw()["Agent-2.1"] == ["Agent-0.0", "Agent-1.0"], "even to the one whose it is"
    assert result.outcome.facts["dropped"] == [[3]]
    whole = scripted("reconcile", three, rounds=1, groups=None)
    assert len(whole.saw()["Agent-2.1"]) == 3 and whole.outcome.facts["dropped"] == [[]]
    larger = scripted("reconcile", says(Agent_0=[1] * 9, Agent_1=[2] * 9, Agent_2=[2] * 9), rounds=1, groups=1)
    assert larger.outcome.facts["dropped"] == [[1]], "the smaller one, not the later one"


def test_what_cannot_be_read_is_neither_shown_nor_counted() -> None:
    result = scripted("reconcile", says(Agent_0=["?", "?"], Agent_1=[ContextLengthError("full"), 4], Agent_2=[5, "?"]),
                    rounds=1)  # fmt: skip
    assert result.saw()["Agent-0.1"] == ["Agent-2.0"]
    assert (result.outcome.group, result.outcome.facts["votes"]) == (4, {"4": 1})
    none = scripted("reconcile", lambda agent, number: "?", rounds=1)
    assert "none that could be read" in none.prompt("Agent-0", 1)
    assert (none.outcome.group, none.outcome.facts["exit"]) == (None, "no candidate")


def test_the_vote_maps_confidences_to_tenths() -> None:
    confidences = [1, 0.999, 0.9, 0.899, 0.8, 0.799, 0.61, 0.6, 0, None]
    facts = stated(*enumerate(confidences)).facts
    assert [*facts["votes"].values()] == [10, 8, 8, 5, 5, 3, 3, 1, 1, 1] and facts["imputed"] == 1


def test_five_and_three_tenths_are_eight_whatever_the_order() -> None:
    """0.5 + 0.3 and 0.8 differ in the last bit; the vote must not."""
    sides = [(1, 0.95), (2, 0.85), (2, 0.7)]
    for order in itertools.permutations(sides):
        result = stated(*order, ties="none")
        assert result.facts["tied"] and result.group is None and {*result.facts["votes"].values()} == {8}


def test_fewer_who_are_sure_overrule_more_who_are_not() -> None:
    result = stated((1, 0.5), (1, 0.5), (2, 1.0))
    assert (result.group, result.facts["overruled"]) == (2, 1)
    assert stated((1, 0.5), (1, 0.5), (2, 1.0), weights="equal").group == 1
    assert stated((1, 0.85), (1, 0.7), (2, 0.85)).facts["overruled"] == 0


def test_weights_can_be_what_was_stated() -> None:
    assert stated((1, 0.85), (2, 0.89)).facts["tied"]
    assert stated((1, 0.85), (2, 0.89), weights="stated").group == 2


def test_who_agree_have_an_answer_however_unsure_they_are() -> None:
    result = stated((7, 0.0), (7, 0.0), (7, 0.0), weights="stated")
    assert result.group == 7 and result.facts["exit"] == "unanimous"
    nobody = stated((7, 0.0), (8, 0.0), weights="stated")
    assert nobody.group is None and nobody.facts["exit"] == "no weight"


def test_what_an_unstated_confidence_weighs_is_a_parameter() -> None:
    assert stated((1, None), (2, 0.7)).group == 2
    assert stated((1, None), (2, 0.7), default_confidence=5).group == 1
    assert stated((1, None), (2, None), default_confidence=0).group is None


@pytest.mark.parametrize(("written", "weight"), [("90", 8), ("1.2", 1), ("nan", 1), ("85%", 5), ("high", 1)])
def test_confidences_that_are_none(written: str, weight: int) -> None:
    result = scripted("reconcile", lambda agent, number: sure(4, written), rounds=0)
    assert result.outcome.facts["votes"] == {"4": 3 * weight} and result.outcome.group == 4


def test_json_replies() -> None:
    text = '{"reasoning": "two and two", "answer": "4", "confidence": 0.93}'
    result = scripted("reconcile", lambda agent, number: text, confidence="json")
    assert result.outcome.facts["votes"] == {"4": 24} and '"confidence": a number' in result.prompt("Agent-0", 0)


SHOWN = [
    {"question": "What is 2 + 2?", "rationale": "Twice two.", "answer": 4, "agent": "Agent-0"},
    {"question": "What is 3 + 3?", "rationale": "Twice three.", "answer": 6, "agent": "Agent-1"},
    {"question": "What is 4 + 4?", "rationale": "Twice four.", "answer": 8},
]


def test_examples_are_shown_to_the_others_in_the_first_round_and_in_the_discussion() -> None:
    result = scripted("reconcile", says(**SPLIT), demonstrations=SHOWN, rounds=1)

    def rationales(agent: str, number: int) -> list[str]:
        return [word for word in ("two", "three", "four") if f"Twice {word}." in result.prompt(agent, number)]

    for number in (0, 1):
        assert rationales("Agent-0", number) == ["three", "four"]
        assert rationales("Agent-1", number) == ["two", "four"]
        assert rationales("Agent-2", number) == ["two", "three", "four"]
        assert result.prompt("Agent-2", number).index("Twice four.") < result.prompt("Agent-2", number).index(
            question()[1].public["question"]
        )


def test_without_examples_the_first_turn_is_that_of_every_panel() -> None:
    plain = scripted("vote", says(**SPLIT), agents=3, confidence="line")
    assert [a.prompt for a in plain.asked] == [a.prompt for a in scripted("reconcile", says(**SPLIT)).asked[:3]]


@pytest.mark.parametrize(
    ("given", "message"),
    [({"question": "q", "rationale": "r"}, "is missing its answer"),
     ({"question": "q", "rational": "r", "answer": "a"}, "no 'rational'.*\n.*Did you mean rationale")],
)  # fmt: skip
def test_examples_that_are_none(given: Any, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        BUILTIN.load("protocols", "reconcile")(demonstrations=[given])


def test_flips_and_peer_text() -> None:
    good = right(question()[1])
    result: Episode = scripted("reconcile", says(Agent_0=[good, 7], Agent_1=[7, 7], Agent_2=[7, 7]))
    assert len(result.asked) == 6
    mapping = {"available": 1, "lost": 1, "to_wrong": 1, "to_right": 0, "score": 0}
    assert {name: result.grade[name] for name in mapping} == mapping
    texts = [len(move.text or "") for move in result.moves[:3]]
    assert result.outcome.facts["peer_characters"] == 2 * sum(texts), "each reply is shown to two others"


@given(st.lists(st.tuples(ANSWERS, st.none() | st.floats(0, 1)), min_size=1, max_size=6), st.randoms())
def test_the_winner_has_the_largest_sum_and_order_matters_in_ties_only(
    opinions: list[tuple[Any, Any]], rng: random.Random
) -> None:
    steps = [(Fraction(9, 10), 8), (Fraction(8, 10), 5)]
    sums: dict[int, int] = {}
    for answer, p in opinions:
        weight = 1 if p is None or p <= 0.6 else 10 if p == 1 else next((w for at, w in steps if p >= float(at)), 3)
        if answer is not None:
            sums[answer] = sums.get(answer, 0) + weight
    result = stated(*opinions)
    assert {int(key): weight for key, weight in result.facts["votes"].items()} == sums
    if not sums:
        assert result.group is None
        return
    assert sums[result.group] == max(sums.values())
    assert result.facts["tied"] == ([*sums.values()].count(max(sums.values())) > 1)
    if not result.facts["tied"]:
        assert stated(*rng.sample(opinions, len(opinions))).group == result.group


@given(st.lists(st.tuples(ANSWERS, ANSWERS, ANSWERS), min_size=3, max_size=3), st.integers(0, 2), ANSWERS)
def test_what_is_said_in_a_round_changes_nothing_in_it(table: list[tuple[Any, ...]], agent: int, other: Any) -> None:
    task, case = question()
    protocol = BUILTIN.load("protocols", "reconcile")()

    def turns(rows: list[tuple[Any, ...]], number: int) -> Any:
        count: dict[str, int] = {}

        def answer(turn: Any) -> Any:
            count[turn.agent] = count.get(turn.agent, -1) + 1
            return rows[count[turn.agent]][int(turn.agent[-1])]

        batches = drive(protocol, task, case, answer).batches
        return [turn for turn, _ in batches[number]] if number < len(batches) else None

    for number in range(3):
        changed = [
            tuple(other if (i, row) == (agent, number) else given for i, given in enumerate(given_row))
            for row, given_row in enumerate(table)
        ]
        assert turns(table, number) == turns(changed, number)
