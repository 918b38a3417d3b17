"""Solved and score against brute force on every small network, and total on whatever comes as an answer."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.api import Case
from tests.benchmarks.agentsnet.agentsnet_kit import PROBLEMS, case_of, grade, network, networks, task
from tests.helpers.samples import examples

Topology = Mapping[str, tuple[str, ...]]
PATH = network({(0, 1), (1, 2)}, 3)  # Emma - Alan - Bob
TRIANGLE = network({(0, 1), (1, 2), (0, 2)}, 3)
EDGELESS = network(set(), 2)

JUNK_TEXTS = (None, "", "group 1", "Group 0", "Group 99", "yes", "2", "Emma", "Nobody")
JUNK_VALUES: tuple[Any, ...] = (1, 0, 1.5, True, [], ["Yes"], {}, {"a": 1})
junk = st.sampled_from(JUNK_TEXTS + JUNK_VALUES)


def edges(topology: Topology) -> list[tuple[str, str]]:
    return [(u, v) for u, v in combinations(topology, 2) if v in topology[u]]


def options(problem: str, case: Case, agent: str) -> tuple[str, ...]:
    result: tuple[str, ...] = task(problem).reply(case, agent).options
    return result


@st.composite
def played(draw: st.DrawFn, problem: str, junk_too: bool = False) -> tuple[Case, dict[str, Any]]:
    """A small network and an answer for every agent."""
    case = case_of(draw(networks(high=5)))
    kinds = {agent: st.sampled_from(options(problem, case, agent)) for agent in case.agents}
    answers = {agent: draw(kind | junk if junk_too else kind) for agent, kind in kinds.items()}
    return case, answers


# -------------------------------------------------------------------- what solved means, by brute force


def is_coloring(topology: Topology, answers: Mapping[str, str]) -> bool:
    return all(answers[u] != answers[v] for u, v in edges(topology))


def is_cover(topology: Topology, cover: frozenset[str]) -> bool:
    return all(cover & {u, v} for u, v in edges(topology))


def is_minimal_cover(topology: Topology, answers: Mapping[str, str]) -> bool:
    cover = frozenset(agent for agent in topology if answers[agent] == "Yes")
    return is_cover(topology, cover) and not any(is_cover(topology, cover - {agent}) for agent in cover)


def is_maximal_matching(topology: Topology, answers: Mapping[str, str]) -> bool:
    """Some set of disjoint edges that no edge can join gives exactly these answers."""
    every = edges(topology)
    for size in range(len(every) + 1):
        for pairs in combinations(every, size):
            agents = [agent for pair in pairs for agent in pair]
            if len(set(agents)) == len(agents) and all(set(edge) & set(agents) for edge in every):
                report = dict.fromkeys(topology, "None") | dict(pairs) | {v: u for u, v in pairs}
                if report == answers:
                    return True
    return False


SOLVED = {
    "coloring": is_coloring,
    "consensus": lambda topology, answers: len(set(answers.values())) == 1,
    "leader_election": lambda topology, answers: sorted(answers.values()).count("Yes") == 1,
    "matching": is_maximal_matching,
    "vertex_cover": is_minimal_cover,
}


@pytest.mark.parametrize("problem", PROBLEMS)
@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_solved_is_what_the_definition_says(problem: str, data: st.DataObject) -> None:
    case, answers = data.draw(played(problem))
    grades = grade(task(problem), case, answers)
    assert grades["solved"] == SOLVED[problem](case.topology or {}, answers)
    assert (grades["score"] == 1) == (grades["solved"] == 1)


def paper_score(problem: str, topology: Topology, answers: Mapping[str, str]) -> float:
    """Appendix B's formulas, letter by letter, for valid answers and where they are defined."""
    every, n = edges(topology), len(topology)
    yes = [agent for agent in topology if answers[agent] == "Yes"]
    if problem == "coloring":
        return sum(answers[u] != answers[v] for u, v in every) / len(every)
    if problem == "vertex_cover":
        coverage = sum(answers[u] == "Yes" or answers[v] == "Yes" for u, v in every) / len(every)
        return coverage * (1 - sum(all(answers[v] == "Yes" for v in topology[u]) for u in yes) / len(yes))
    if problem == "matching":
        a = sum(answers[u] in topology[u] and answers[answers[u]] != u for u in topology)
        b = sum(answers[u] != "None" and answers[u] not in topology[u] for u in topology)
        c = sum(answers[u] == "None" and any(answers[v] == "None" for v in topology[u]) for u in topology)
        return 1 - (a + b + c) / n
    if problem == "leader_election":
        return float(len(yes) == 1)
    return float(sum(map(int, answers.values())) in (0, n))


@pytest.mark.parametrize("problem", PROBLEMS)
@settings(max_examples=examples(80), deadline=None)
@given(data=st.data())
def test_score_is_the_papers_formula(problem: str, data: st.DataObject) -> None:
    case, answers = data.draw(played(problem))
    topology = case.topology or {}
    if edges(topology) and ("Yes" in answers.values() or problem != "vertex_cover"):
        assert grade(task(problem), case, answers)["score"] == pytest.approx(paper_score(problem, topology, answers))


@pytest.mark.parametrize("problem", PROBLEMS)
@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_grading_is_total_and_unparsed_is_never_solved(problem: str, data: st.DataObject) -> None:
    case, answers = data.draw(played(problem, junk_too=True))
    for item in data.draw(st.sets(st.sampled_from(case.agents))):
        del answers[item]
    grades = grade(task(problem), case, answers)
    assert set(grades) == set(task(problem).grades)
    assert all(0 <= value <= 1 for value in grades.values())
    valid = [isinstance(answers.get(s), str) and answers[s] in options(problem, case, s) for s in case.agents]
    if not all(valid):
        assert grades["solved"] == 0


# ------------------------------------------------------------------------------------ corner by corner


@pytest.mark.parametrize(
    ("problem", "topology", "answers", "solved", "score"),
    [
        ("coloring", PATH, ["Group 1", "Group 2", "Group 1"], 1, 1),
        ("coloring", PATH, ["Group 1", "Group 1", "Group 2"], 0, 0.5),
        ("coloring", PATH, ["Group 1", None, "Group 1"], 0, 0),
        ("coloring", PATH, ["Group 9", "Group 1", "Group 2"], 0, 0.5),
        ("coloring", EDGELESS, ["Group 1", "Group 1"], 1, 1),
        ("coloring", EDGELESS, ["Group 1", None], 0, 0),
        ("vertex_cover", PATH, ["No", "Yes", "No"], 1, 1),
        ("vertex_cover", PATH, ["Yes", "No", "Yes"], 1, 1),
        ("vertex_cover", PATH, ["Yes", "Yes", "No"], 0, 0.5),  # Emma's neighbor is a coordinator, too
        ("vertex_cover", PATH, ["No", "No", "No"], 0, 0),  # the published code divides by zero here
        ("vertex_cover", PATH, ["No", "Yes", None], 0, 1),
        ("vertex_cover", PATH, ["Yes", "No", "No"], 0, 0.5),
        ("vertex_cover", TRIANGLE, ["Yes", "Yes", "Yes"], 0, 0),
        ("vertex_cover", EDGELESS, ["No", "No"], 1, 1),
        ("vertex_cover", EDGELESS, ["Yes", "No"], 0, 0),
        ("matching", PATH, ["Alan", "Emma", "None"], 1, 1),
        ("matching", PATH, ["None", "None", "None"], 0, 0),
        ("matching", PATH, ["Emma", "Alan", "None"], 0, 1 / 3),  # two name themselves
        ("matching", PATH, ["Alan", "Bob", "Alan"], 0, 2 / 3),
        ("matching", PATH, ["Alan", "Emma", None], 0, 2 / 3),
        ("matching", PATH, ["Bob", "None", "Emma"], 0, 1 / 3),  # no neighbors of each other
        ("leader_election", PATH, ["No", "Yes", "No"], 1, 1),
        ("leader_election", PATH, ["No", "Yes", None], 0, 0),
        ("leader_election", PATH, ["No", "No", "No"], 0, 0),
        ("consensus", PATH, ["1", "1", "1"], 1, 1),
        ("consensus", PATH, ["1", "1", 1], 0, 0),
        ("consensus", PATH, [None, None, None], 0, 0),
    ],
)
def test_corners(problem: str, topology: Topology, answers: list[Any], solved: int, score: float) -> None:
    grades = grade(task(problem), case_of(topology), dict(zip(topology, answers, strict=True)))
    assert grades["solved"] == solved
    assert grades["score"] == pytest.approx(score)


# ----------------------------------------------------------------------------------- byzantine agents


@pytest.mark.parametrize("problem", PROBLEMS)
@settings(max_examples=examples(80), deadline=None)
@given(data=st.data())
def test_only_the_network_of_honest_agents_counts(problem: str, data: st.DataObject) -> None:
    """Whatever byzantine agents answer, the grades are those of the network without them."""
    case, answers = data.draw(played(problem, junk_too=True))
    byzantine = frozenset(data.draw(st.sets(st.sampled_from(case.agents))))
    topology = case.topology or {}
    rest = {u: tuple(v for v in topology[u] if v not in byzantine) for u in topology if u not in byzantine}
    grades = grade(task(problem), case_of(topology, byzantine), answers)
    if not rest:
        assert set(grades.values()) == {None}
        return
    without = Case("rest", tuple(rest), public=case.public, topology=rest)  # as many groups as before
    suffix = "_honest" if problem == "matching" else ""
    mapping = {agent: answers[agent] for agent in rest}
    expected = grade(task(problem), without, mapping)
    assert grades[f"solved{suffix}"] == expected["solved"]
    assert grades[f"score{suffix}"] == expected["score"]


def test_naming_a_byzantine_partner_is_graded_both_ways() -> None:
    case = case_of(PATH, frozenset({"Alan"}))
    named_back = grade(task("matching"), case, {"Emma": "Alan", "Alan": "Emma", "Bob": "None"})
    assert named_back == {"solved": 1, "score": 1, "solved_honest": 0, "score_honest": 0.5}
    ignored = grade(task("matching"), case, {"Emma": "Alan", "Alan": "Bob", "Bob": "None"})
    assert ignored == {"solved": 0, "score": 0.5, "solved_honest": 0, "score_honest": 0.5}
    alone = grade(task("matching"), case, {"Emma": "None", "Alan": "None", "Bob": "None"})
    assert alone == {"solved": 1, "score": 1, "solved_honest": 1, "score_honest": 1}  # no honest neighbors


def test_contexts_hold_what_an_agent_may_know_and_nothing_else() -> None:
    case = task("coloring").example()
    assert task("coloring").context(case, "Bob") == {
        "problem": "coloring", "n": 4, "name": "Bob", "neighbors": ["Emma"], "groups": 4,
    }  # fmt: skip
    assert task("matching").reply(case, "Emma").options == ("Alan", "Bob", "Evelyn", "None")
    assert task("coloring").reply(case, "Bob").options == ("Group 1", "Group 2", "Group 3", "Group 4")
    assert {task(problem).context(case, "Emma")["problem"] for problem in PROBLEMS} == set(PROBLEMS)
