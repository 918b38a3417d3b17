"""DarkForest's belief: Section 3.4's formulas by hand, and what must hold for any opinions and parameters."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.benchmarks.darkforest.darkforest_kit import A, B, C, belief, opinion, opinions, rules

Theta, believe = belief.Theta, belief.believe
AGENTS = [f"Agent-{i}" for i in range(6)]
D = AGENTS[3]

shares = st.floats(0.01, 1)
panels = st.lists(
    st.tuples(st.sampled_from([None, "x", "y", "z"]), st.none() | st.floats(0, 1), st.booleans()), max_size=6
).map(lambda drawn: [opinion(AGENTS[i], *one) for i, one in enumerate(drawn)])
patterns = st.dictionaries(
    st.lists(st.sampled_from(AGENTS), min_size=1, max_size=3, unique=True).map(lambda s: tuple(sorted(s))), shares
)
pairs = st.dictionaries(
    st.tuples(st.sampled_from(AGENTS), st.sampled_from(AGENTS)).filter(lambda p: p[0] != p[1]), shares, max_size=4
).map(lambda found: {key: value for (a, b), value in found.items() for key in ((a, b), (b, a))})
thetas = st.builds(
    Theta,
    alpha=st.fixed_dictionaries({}, optional=dict.fromkeys(AGENTS, shares)),
    patterns=patterns,
    fallback=shares,
    confidence=st.booleans(),
    c_miss=shares,
    lambda_mal=shares,
    gamma=pairs,
)


def posterior(found: Any) -> dict[str, float]:
    return {cluster.candidate: cluster.posterior for cluster in found.clusters}


# ----------------------------------------------------------------------------------------- by hand


def test_the_score_by_hand() -> None:
    """s(x) = 0.7 (0.8 · 1.4 + 0.5 · 0.5 · 0.9) = 0.9415; s(y) = 1 · 0.6 · 0.7 = 0.42."""
    theta = Theta({A: 0.8, B: 0.6, C: 0.5}, {(A, C): 0.7}, 1.0, True, 0.4, 0.5)
    result = believe([opinion(A, "x", 0.9), opinion(B, "y", 0.2), opinion(C, "x", None, malformed=True)], theta)
    x, y = result.clusters
    assert (x.candidate, x.agents, x.calibrated, x.reliability) == ("x", (A, C), True, 0.7)
    assert (x.score, y.score) == (pytest.approx(0.9415), pytest.approx(0.42))
    assert result.posterior == pytest.approx(0.9415 / 1.3615) and result.margin == pytest.approx(0.5215 / 1.3615)
    assert (y.calibrated, y.reliability) == (False, 1.0)


def test_confidence_counts_between_a_half_and_one_and_a_half() -> None:
    for sure, factor in ((0.0, 0.5), (0.5, 1.0), (1.0, 1.5), (7.0, 1.5), (-1.0, 0.5), (None, 0.8)):
        [cluster] = believe([opinion(A, "x", sure)], Theta(c_miss=0.3)).clusters
        assert cluster.score == pytest.approx(factor)


def test_a_correlated_pair_discounts_its_second_supporter() -> None:
    theta = Theta({A: 0.8, B: 0.6}, confidence=False, gamma={(A, B): 0.5, (B, A): 0.5})
    together = believe([opinion(A, "x"), opinion(B, "x")], theta).clusters[0]
    apart = believe([opinion(A, "x"), opinion(B, "y")], theta)
    assert together.score == pytest.approx(0.8 + 0.6 * 0.5)
    assert [cluster.score for cluster in apart.clusters] == [0.8, 0.6]


def test_several_pairs_multiply() -> None:
    """With (A, C) and (B, C) correlated C counts γ γ, with A absent only γ; the first of each pair stays whole."""
    gamma = {(A, C): 0.5, (C, A): 0.5, (B, C): 0.4, (C, B): 0.4}
    theta = Theta(confidence=False, gamma=gamma)
    assert believe(opinions("x", "x", "x"), theta).clusters[0].score == pytest.approx(1 + 1 + 0.5 * 0.4)
    assert believe(opinions("y", "x", "x"), theta).clusters[0].score == pytest.approx(1 + 0.4)


def test_uniform_is_a_vote_and_agent_a_weighted_one() -> None:
    theta = Theta({A: 0.9, B: 0.4, C: 0.4}, {(B, C): 0.1}, 0.5, True, 0.2, 0.1, {(B, C): 0.3, (C, B): 0.3})
    texts = [opinion(A, "x", 0.1), opinion(B, "y", 1.0, malformed=True), opinion(C, "y", 1.0)]
    for terms, shares in (("uniform", (1, 2)), ("agent", (0.9, 0.8))):
        result = posterior(believe(texts, theta.only(rules.TERMS[terms])))
        assert result == {"x": pytest.approx(shares[0] / sum(shares)), "y": pytest.approx(shares[1] / sum(shares))}
    assert theta.only(rules.TERMS["full"]) == theta


def test_no_agent_is_believed_where_no_agent_can_be_read() -> None:
    result = believe(opinions(None, None), Theta())
    assert (result.top, result.posterior, result.margin, result.clusters) == (None, 0, 0, ())
    assert result.uncertain(0.6, 0.15) and not result.strong(0.0, 0.0)


def test_one_candidate_has_all_the_belief() -> None:
    result = believe(opinions("x", None), Theta())
    assert (result.posterior, result.margin) == (1, 1)


def test_worthless_scores_leave_candidates_equally_likely() -> None:
    texts = [opinion(A, "x", malformed=True), opinion(B, "y", malformed=True), opinion(C, "y", malformed=True)]
    assert posterior(believe(texts, Theta(lambda_mal=0.0))) == {"y": 0.5, "x": 0.5}


# -------------------------------------------------------------------------------------------- ties


def leader(said: list[Any], theta: Any, *ties: str, rank: dict[str, int] | None = None) -> str:
    candidate: str = believe(said, theta, *([ties] if ties else []), rank=rank).top.candidate
    return candidate


def test_ties_go_to_more_supporters_then_reliability_then_order() -> None:
    halves = Theta({A: 0.6, B: 0.3, C: 0.3}, confidence=False)
    assert leader(opinions("x", "y", "y"), halves) == "y", "0.6 against 0.3 + 0.3"
    same = Theta({A: 0.4, B: 0.8}, {(A,): 0.8, (B,): 0.4}, confidence=False)
    assert leader(opinions("x", "y"), same) == "y", "0.8 · 0.4 each; y has the more reliable supporter"
    assert leader(opinions("y", "x", None), Theta()) == "y", "the first of the panel"


def test_ties_as_they_are_declared() -> None:
    text = opinions("y", "x", "x")
    theta = Theta({A: 2.0}, confidence=False)  # equal: 2 against 1 + 1
    assert leader(text, theta, "support") == "x"
    assert leader(text, theta, "alpha") == "y", "their sums are equal too: the order decides in the end"
    assert leader(text, theta, "order") == "y"
    assert leader(text, theta, "order", rank={B: 0, A: 1}) == "x"
    assert leader(text, theta, "candidate") == "x"


def test_the_order_of_adding_up_does_not_decide() -> None:
    """0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in the last digit."""
    alpha = dict(zip(AGENTS, (0.1, 0.2, 0.3, 0.3, 0.2, 0.1), strict=True))
    theta = Theta(alpha, confidence=False)
    assert leader(opinions("x", "x", "x", "y", "y", "y"), theta) == "x"
    assert leader(opinions("y", "y", "y", "x", "x", "x"), theta) == "y"


# ---------------------------------------------------------------------------------- for all panels


@given(panels, thetas)
def test_a_posterior_is_a_distribution_in_order(said: list[Any], theta: Any) -> None:
    result = believe(said, theta)
    shares = [cluster.posterior for cluster in result.clusters]
    assert all(0 <= share <= 1 for share in shares)
    assert not shares or sum(shares) == pytest.approx(1)
    assert all(one >= two - 1e-9 for one, two in pairwise(shares))
    assert -1e-9 <= result.margin <= result.posterior
    assert sorted(agent for c in result.clusters for agent in c.agents) == [
        o.agent for o in said if o.answer is not None
    ]


@given(panels, thetas)
def test_names_of_candidates_do_not_matter(said: list[Any], theta: Any) -> None:
    new = {"x": "q", "y": "a", "z": "m", None: None}
    renamed = [replace(o, answer=new[o.answer], candidate=new[o.candidate]) for o in said]
    before, after = believe(said, theta), believe(renamed, theta)
    assert [(new[c.candidate], c.posterior) for c in before.clusters] == [
        (c.candidate, c.posterior) for c in after.clusters
    ]


@given(panels, thetas, st.integers(0, 6))
def test_members_without_an_answer_do_not_matter(said: list[Any], theta: Any, place: int) -> None:
    more = [*said[:place], opinion("Agent-9", None), *said[place:]]
    assert believe(more, theta) == believe(said, theta)


@given(panels, thetas)
def test_a_further_supporter_does_no_harm_where_agreement_is_not_weighed(said: list[Any], theta: Any) -> None:
    """(A pattern's R can be smaller than that of a part of it: then agreement is evidence against.)"""
    theta = replace(theta, patterns={})
    for candidate in ("x", "y"):
        before = posterior(believe(said, theta)).get(candidate, 0.0)
        after = posterior(believe([*said, opinion("Agent-9", candidate)], theta))[candidate]
        assert after >= before - 1e-12


@given(panels, thetas, shares, shares)
def test_more_reliability_or_confidence_of_a_supporter_does_no_harm(
    said: list[Any], theta: Any, one: float, two: float
) -> None:
    low, high = sorted((one, two))
    for place, each in enumerate(said):
        if each.answer is None:
            continue
        alphas = [posterior(believe(said, replace(theta, alpha={**theta.alpha, each.agent: x}))) for x in (low, high)]
        sure = [
            posterior(believe([*said[:place], replace(each, confidence=x), *said[place + 1 :]], theta))
            for x in (low, high)
        ]
        for weaker, stronger in (alphas, sure):
            assert stronger[each.answer] >= weaker[each.answer] - 1e-9


@given(panels, thetas, shares, shares)
def test_thresholds(said: list[Any], theta: Any, one: float, two: float) -> None:
    result = believe(said, theta)
    assert result.uncertain(one, two) == (result.posterior < one - 1e-12 or result.margin < two - 1e-12)
    if result.strong(one, two):
        assert result.posterior >= one - 1e-12 and result.margin >= two - 1e-12


def test_a_threshold_that_is_just_reached_is_reached() -> None:
    """0.65 + 0.10 against 0.25: the margin is 0.5 but for the last digit."""
    result = believe(opinions("x", "x", "y"), Theta({A: 0.65, B: 0.1, C: 0.25}, confidence=False))
    assert result.strong(0.75, 0.5) and not result.uncertain(0.75, 0.5)
    assert not result.strong(0.7500001, 0.5) and result.uncertain(0.6, 0.5000001)
