"""The simulated panel is what it declares: rates, correlations, confidence, conformity, and what votes make of them."""

import math
import random
from collections.abc import Sequence
from typing import Any

import pytest
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness.api import Case, Turn
from harness.api.errors import PluginError
from harness.extensions.datasets.boxed import Boxed
from harness.extensions.datasets.label import Label
from harness.extensions.datasets.letter import Letter
from harness.extensions.datasets.number import Number
from harness.extensions.datasets.pattern import Pattern
from harness.extensions.panels.answer_with_confidence import AnswerWithConfidence
from harness.extensions.sandbox.code import Code
from harness.replies import Choice, FreeText
from harness.runtime.steps import drive
from tests.extensions.datasets.documents_kit import BUILTIN
from tests.extensions.panels import condorcet
from tests.helpers.samples import examples

SIMULATED = BUILTIN.load("policies", "simulated")
AGENTS = ("Agent-0", "Agent-1", "Agent-2")
TURN = Turn("Agent-0", "answer", {}, AnswerWithConfidence(Number(), "line"))
DRAWS = 2500


def asked(agent: str, number: int, *turns: Turn, target: Any = None, **declared: Any) -> list[Any]:
    """What an agent answers in these turns of the case of this number; its right answer is the number."""
    player = SIMULATED(**declared)
    player.inform(agent, Case(str(number), ("Agent-0",), target=target or {"answers": [str(number)]}), number)
    return [player.choose(turn, random.Random(0)) for turn in turns or (TURN,)]


def drawn(agent: str, count: int = DRAWS, **declared: Any) -> list[Any]:
    """The first answers of an agent in so many cases."""
    return [asked(agent, number, **declared)[0] for number in range(count)]


def likely(happened: int, of: int, probability: float) -> bool:
    """Whether a count is not beyond what happens once in a million times; seeds are fixed, so it never flickers."""
    return bool(scipy.stats.binomtest(happened, of, probability).pvalue > 1e-6)


def right(actions: Sequence[Any]) -> list[bool]:
    return [action is not None and action["answer"] == number for number, action in enumerate(actions)]


# ------------------------------------------------------------------------------------------- rates


def test_rates_are_as_declared() -> None:
    declared: dict[str, Any] = {
        "accuracy": 0.7,
        "malformed": 0.2,
        "malformed_accuracy": 0.4,
        "unstated": 0.1,
        "unreadable": 0.05,
    }
    actions = drawn("Agent-0", **declared)
    read = [(number, action) for number, action in enumerate(actions) if action is not None]
    assert likely(DRAWS - len(read), DRAWS, 0.05)
    correct = [action["answer"] == number for number, action in read]
    assert likely(sum(correct), len(read), 0.7)
    malformed = [ok for ok, (_, action) in zip(correct, read, strict=True) if action["malformed"]]
    assert likely(len(malformed), len(read), 0.2)
    assert likely(sum(malformed), len(malformed), 0.4)
    formed = [ok for ok, (_, action) in zip(correct, read, strict=True) if not action["malformed"]]
    assert likely(sum(formed), len(formed), (0.7 - 0.2 * 0.4) / 0.8)
    assert likely(sum(action["confidence"] is None for _, action in read), len(read), 0.1)


@pytest.mark.slow
def test_confidence_is_uniform_around_its_mean() -> None:
    actions = drawn("Agent-0", accuracy=0.5, confidence_right=0.7, confidence_wrong=0.4, spread=0.2)
    for item, mean in ((True, 0.7), (False, 0.4)):
        stated = [action["confidence"] for action, ok in zip(actions, right(actions), strict=True) if ok is item]
        assert (min(stated), max(stated)) == (pytest.approx(mean - 0.2), pytest.approx(mean + 0.2))
        off = 0.2 / math.sqrt(3 * len(stated))  # of the mean of as many uniform numbers
        assert abs(sum(stated) / len(stated) - mean) < 5 * off
        assert likely(sum(x < mean for x in stated), len(stated), 0.4875), "hundredths: the mean itself is one of 40"


def test_no_confidence_where_none_is_asked_for_and_the_answer_is_the_same() -> None:
    plain = Turn("Agent-0", "answer", {}, AnswerWithConfidence(Number(), "none"))
    for number in range(200):
        bare, [stated] = asked("Agent-0", number, plain)[0], asked("Agent-0", number)
        assert bare == {**stated, "confidence": None}


@pytest.mark.slow
def test_wrong_answers_are_all_as_likely_unless_one_tempts() -> None:
    wrong = [action["answer"] - number for number, action in enumerate(drawn("Agent-0", accuracy=0.1, wrong=3))]
    counts = [sum(off == i * (number + 1) for number, off in enumerate(wrong)) for i in (1, 2, 3)]
    assert sum(counts) + sum(off == 0 for off in wrong) == DRAWS
    assert all(likely(count, sum(counts), 1 / 3) for count in counts)
    one, two = (drawn(agent, 1500, accuracy=0, wrong=3, trap=0.5) for agent in AGENTS[:2])
    same = sum(a["answer"] == b["answer"] for a, b in zip(one, two, strict=True))
    tempting = 0.5 + 0.5 / 3  # of each; they meet there, or at one of the other two
    assert likely(same, 1500, tempting**2 + 2 * (0.5 / 3) ** 2)


# ------------------------------------------------------------------------------------ correlations


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b", "rho"), [(0.6, 0.6, 0.8), (0.8, 0.5, 0.4), (0.3, 0.5, 0.6), (0.7, 0.7, 1.0)])
def test_pairs_are_as_alike_as_declared(a: float, b: float, rho: float) -> None:
    declared: dict[str, Any] = {
        "agents": {"Agent-1": {"accuracy": a}, "Agent-2": {"accuracy": b}},
        "correlated": [{"agents": ["Agent-1", "Agent-2"], "correlation": rho}],
    }
    one, two = (right(drawn(agent, **declared)) for agent in AGENTS[1:])
    assert likely(sum(one), DRAWS, a) and likely(sum(two), DRAWS, b)
    both = a * b + rho * math.sqrt(a * (1 - a) * b * (1 - b))
    assert likely(sum(x and y for x, y in zip(one, two, strict=True)), DRAWS, both)
    assert one == right(drawn("Agent-1", accuracy=a)), "whom others copy does not change"


@pytest.mark.slow
def test_a_chain_of_copies_keeps_every_declared_number() -> None:
    pairs = [{"agents": list(pair), "correlation": rho} for pair, rho in ((AGENTS[:2], 0.5), (AGENTS[1:], 0.7))]
    results = [right(drawn(agent, accuracy=0.6, correlated=pairs)) for agent in AGENTS]
    for first, second, rho in ((0, 1, 0.5), (1, 2, 0.7), (0, 2, 0.35)):
        both = sum(x and y for x, y in zip(results[first], results[second], strict=True))
        assert likely(both, DRAWS, 0.36 + rho * 0.24), "of equal members the correlations of a chain multiply"


shares = st.floats(0.02, 0.98)


@given(shares, shares, st.floats(0, 1))
def test_any_correlation_that_two_answers_can_have_is_made_and_no_other(a: float, b: float, rho: float) -> None:
    bound = math.sqrt(min(b * (1 - a) / (a * (1 - b)), a * (1 - b) / (b * (1 - a))))
    assume(abs(rho - bound) > 1e-6)
    agents = {"Agent-0": {"accuracy": a}, "Agent-1": {"accuracy": b}}
    pairs = [{"agents": ["Agent-0", "Agent-1"], "correlation": rho}]
    if rho > bound:
        with pytest.raises(PluginError, match="correlation at most"):
            SIMULATED(agents=agents, correlated=pairs)
    else:
        SIMULATED(agents=agents, correlated=pairs)
        given_ = condorcet.outcomes([a, b], 3, {1: (0, rho)})
        assert math.isclose(condorcet.correlation(given_, 0, 1), rho, abs_tol=1e-9)
        assert math.isclose(sum(p for answers, p in given_.items() if answers[1] == 0), b, abs_tol=1e-9)
        assert min(given_.values()) > -1e-12


# ------------------------------------------------------------------------------------ who hears whom


def test_an_agent_answers_the_same_whatever_the_method_beside_any_others() -> None:
    for number in range(50):
        [alone] = asked("Agent-1", number)
        again = asked("Agent-1", number, TURN, TURN)
        assert again[0] == alone
        player = SIMULATED(agents={"Agent-0": {"accuracy": 0.1}})
        player.inform("Agent-1", Case("other", AGENTS, target={"answers": [str(number)]}), number)
        assert player.choose(TURN, random.Random(99)) == alone, "the turn's own chance is not used"


@pytest.mark.slow
@pytest.mark.parametrize("steady", [0.0, 0.6, 1.0])
def test_who_is_asked_again_is_as_steady_as_declared(steady: float) -> None:
    rounds = [asked("Agent-0", n, TURN, TURN, TURN, accuracy=0.6, steady=steady) for n in range(1500)]
    first, second, third = ([a[i]["answer"] == n for n, a in enumerate(rounds)] for i in range(3))
    assert all(likely(sum(marks), 1500, 0.6) for marks in (first, second, third))
    for one, two, rho in ((first, second, steady), (first, third, steady), (second, third, steady**2)):
        assert likely(sum(x and y for x, y in zip(one, two, strict=True)), 1500, 0.36 + rho * 0.24)


@pytest.mark.slow
@pytest.mark.parametrize("conformity", [0, 0.3, 1])
def test_who_is_shown_a_leading_answer_adopts_it_as_often_as_declared(conformity: float) -> None:
    adopted = 0
    for number in range(1500):
        first, second = asked(
            "Agent-0", number, TURN, Turn("Agent-0", "debate", {"leading": -7}, TURN.reply), conformity=conformity
        )
        assert second["answer"] in (-7, first["answer"])
        adopted += second["answer"] == -7
    assert likely(adopted, 1500, conformity) if 0 < conformity < 1 else adopted == 1500 * conformity


def test_who_is_shown_nothing_keeps_its_answer_and_who_has_none_makes_one() -> None:
    turn = Turn("Coordinator", "coordinate", {"leading": None}, TURN.reply)
    for number in range(100):
        first, second = asked("Agent-0", number, TURN, turn, accuracy=0.5, conformity=1)
        assert first["answer"] == second["answer"]
    own = [asked("Coordinator", n, turn, agents={"Coordinator": {"accuracy": 0.9}})[0] for n in range(DRAWS // 4)]
    assert likely(sum(right(own)), DRAWS // 4, 0.9)


def test_what_cannot_be_read_was_thought_all_the_same() -> None:
    player = {"accuracy": 0.5, "agents": {"Agent-0": {"unreadable": 0.5, "conformity": 0}}}
    later = Turn("Agent-0", "debate", {"leading": -7}, TURN.reply)
    lost = [item for n in range(300) if (item := asked("Agent-0", n, TURN, later, **player))[0] is None]
    assert 100 < len(lost) < 200 and any(item[1] is not None and item[1]["answer"] != -7 for item in lost)


# ------------------------------------------------------------------------------------------- votes


@pytest.mark.parametrize(("p", "wrong"), condorcet.grid([0.0, 0.3, 0.5, 0.8, 1.0], [1, 2, 5]))
def test_the_closed_forms_are_what_counting_all_outcomes_gives(p: float, wrong: int) -> None:
    independent = condorcet.outcomes([p] * 3, wrong)
    assert math.isclose(sum(independent.values()), 1)
    assert math.isclose(condorcet.plurality(independent), condorcet.three_equals(p, wrong))
    if 0 < p < 1:
        for expert, rho in condorcet.grid([0.4, 0.9], [0, 0.5, 1]):
            pair = condorcet.outcomes([expert, p, p], wrong, {2: (1, rho)})
            assert math.isclose(condorcet.plurality(pair), condorcet.expert_and_pair(expert, p, rho, wrong))


def voted(cases: int, weights: dict[str, float] | None = None, **declared: Any) -> int:
    """In how many cases a vote of three is right."""
    protocol = BUILTIN.load("protocols", "vote")(agents=3, weights=weights)
    task = BUILTIN.load("tasks", "arithmetic")(size=cases)
    return sum(_right(protocol, task, case, number, declared) for number, case in enumerate(task.cases(None, 0)))


def _right(protocol: Any, task: Any, case: Case, seed: int, declared: dict[str, Any]) -> bool:
    players = {agent: SIMULATED(**declared) for agent in protocol.possible_agents(case)}
    for agent, player in players.items():
        player.inform(agent, case, seed)
    played = drive(protocol, task, case, lambda turn: players[turn.agent].choose(turn, random.Random(0)))
    return task.grade(case, played.outcome)["score"] == 1


@pytest.mark.slow
@pytest.mark.parametrize(("p", "wrong"), [(0.4, 3), (0.6, 1), (0.7, 3)])
def test_three_equals_vote_as_condorcet_says(p: float, wrong: int) -> None:
    assert likely(voted(1500, accuracy=p, wrong=wrong), 1500, condorcet.three_equals(p, wrong))


@pytest.mark.slow
def test_an_expert_is_outvoted_by_a_correlated_pair_unless_weights_know_better() -> None:
    declared: dict[str, Any] = {
        "accuracy": 0.5,
        "agents": {"Agent-0": {"accuracy": 0.9}},
        "correlated": [{"agents": ["Agent-1", "Agent-2"], "correlation": 0.8}],
    }
    assert likely(voted(1500, **declared), 1500, condorcet.expert_and_pair(0.9, 0.5, 0.8, 3))
    pair = condorcet.outcomes([0.9, 0.5, 0.5], 3, {2: (1, 0.8)})
    weights = [3.0, 1.0, 1.0]
    exact = condorcet.plurality(pair, weights)
    assert math.isclose(exact, 0.9)
    assert likely(voted(1500, dict(zip(AGENTS, weights, strict=True)), **declared), 1500, exact)


# -------------------------------------------------------------------------------- forms of answers


@pytest.mark.parametrize(
    ("inner", "answer"),
    [(Number(), "0.5"), (Number(), "-3"), (Letter(4), "C"), (Label(("Yes", "No")), "No"), (Boxed(), "\\frac12"),
     (FreeText(), "Paris"), (FreeText(marker="Answer:"), "Paris"), (Pattern("#### (.*)"), "42"), (Code(), "x = 1")],
)  # fmt: skip
@pytest.mark.parametrize("style", ["none", "line", "json"])
def test_answers_are_legal_and_right_or_wrong_in_every_form(inner: Any, answer: str, style: Any) -> None:
    reply = AnswerWithConfidence(inner, style)
    turn, target = Turn("Agent-0", "answer", {}, reply), {"answers": [answer]}
    results = [
        asked("Agent-0", n, turn, target=target, accuracy=0.5, unstated=0.5, malformed=0.5)[0] for n in range(60)
    ]
    assert all(reply.allows(action) for action in results)
    assert {type(action["answer"]) for action in results} <= {int, float, str}
    report = inner.parse(answer).action if inner.parse(answer).error is None else answer
    share = sum(action["answer"] == report for action in results)
    assert 10 < share < 50


def test_several_right_answers_are_none_of_the_wrong_ones() -> None:
    target = {"answers": ["1", "3", "5"]}
    results = {asked("Agent-0", n, target=target, accuracy=0.5, wrong=2)[0]["answer"] for n in range(99)}
    assert results == {1, 7, 9}


@pytest.mark.parametrize("target", [None, "B", {"answers": []}, {"answers": ["no number"]}, {"value": 3}, ["x"]])
def test_a_case_that_does_not_say_what_is_right_is_met_with_idleness(target: Any) -> None:
    player = SIMULATED()
    player.inform("Agent-0", Case("c", AGENTS, target=target), 1)
    reply = AnswerWithConfidence(Letter(3), "none")
    assert player.choose(Turn("Agent-0", "answer", {}, reply), random.Random(0)) == reply.noop


def test_other_turns_and_uninformed_players_are_idle() -> None:
    choice = Choice(("a", "b"))
    assert asked("Agent-0", 1, Turn("Agent-0", "feedback", {}, choice)) == [choice.noop]
    assert SIMULATED().choose(TURN, random.Random(0)) is TURN.reply.noop
    only = Turn("Agent-0", "answer", {}, AnswerWithConfidence(Letter(1), "none"))
    assert asked("Agent-0", 1, only, target={"answers": ["A"]}) == [None], "there is no wrong answer"


# --------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"agents": {"Agent-0": {"acuracy": 0.5}}}, r"Agent-0: unknown key 'acuracy'\n  Did you mean accuracy\?"),
        ({"agents": {"Agent-0": {"accuracy": 1.5}}}, "Agent-0: accuracy must be between 0 and 1, found 1.5"),
        ({"agents": {"Agent-0": {"accuracy": None}}}, "Agent-0: accuracy must be between 0 and 1, found None"),
        ({"agents": {"Agent-0": {"spread": 0.6}}}, "Agent-0: spread must be between 0 and 0.5"),
        ({"confidence_right": 0.95}, r"confidence_right 0.95 and spread 0.2 reach beyond 0 to 1\n  .* at most 0.05"),
        ({"agents": {"A": {"confidence_wrong": 0.0}}}, "A: confidence_wrong 0.0 and spread"),
        ({"accuracy": 0.2, "malformed": 0.5, "malformed_accuracy": 0.9}, "0.45 of all answers malformed and right"),
        ({"accuracy": 0.9, "malformed": 0.5, "malformed_accuracy": 0.0}, "0.5 of all answers malformed and wrong"),
        ({"correlated": [{"agents": ["A"], "correlation": 0.5}]}, r"agents must be two names, found \['A'\]"),
        ({"correlated": [{"agents": ["A", "A"], "correlation": 0.5}]}, "agents must be two names"),
        ({"correlated": [{"agents": ["A", "B"]}]}, "correlation must be a number from 0 to 1, found None"),
        ({"correlated": [{"agents": ["A", "B"], "correlation": -0.5}]}, "never less"),
        ({"correlated": [{"agents": ["A", "B"], "corelation": 0.5}]}, r"unknown key 'corelation'\n  Did you mean corr"),
        ({"accuracy": 1.0, "correlated": [{"agents": ["A", "B"], "correlation": 0.5}]}, "A has accuracy 1: a constant"),
        (
            {"agents": {"A": {"accuracy": 0.9}, "B": {"accuracy": 0.3}}, "correlated": [
                {"agents": ["A", "B"], "correlation": 0.5}]},
            "A is right with 0.9, B with 0.3: correlation at most 0.218, not 0.5",
        ),
        (
            {"correlated": [{"agents": ["A", "C"], "correlation": 0.5}, {"agents": ["B", "C"], "correlation": 0.5}]},
            "C is to copy A and B; an agent copies one",
        ),
        (
            {"correlated": [{"agents": [a, b], "correlation": 0.5} for a, b in (("A", "B"), ("B", "C"), ("C", "A"))]},
            "B copies A copies C copies B: one of them must answer without copying",
        ),
    ],
)  # fmt: skip
def test_what_no_panel_can_be_is_refused_in_words(declared: dict[str, Any], message: str) -> None:
    with pytest.raises(PluginError, match=message):
        SIMULATED(**declared)


@settings(max_examples=examples(60))
@given(shares, st.floats(0, 1), st.floats(0, 1))
def test_malformed_answers_fit_the_accuracy_or_are_refused(a: float, m: float, b: float) -> None:
    fits = m * b <= a and m * (1 - b) <= 1 - a
    assume(abs(m * b - a) > 1e-6 and abs(m * (1 - b) - (1 - a)) > 1e-6)
    if not fits:
        with pytest.raises(PluginError, match="malformed_accuracy make"):
            SIMULATED(accuracy=a, malformed=m, malformed_accuracy=b)
        return
    skill = SIMULATED(accuracy=a, malformed=m, malformed_accuracy=b)._default
    with_right, with_wrong = skill.malformed_if(True), skill.malformed_if(False)
    assert 0 <= with_right <= 1 and 0 <= with_wrong <= 1
    assert math.isclose(a * with_right + (1 - a) * with_wrong, m, abs_tol=1e-9), "P(malformed)"
    assert math.isclose(a * with_right, m * b, abs_tol=1e-9), "P(malformed and right)"
