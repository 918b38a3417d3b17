"""Network tasks declared in YAML: what they draw, what agents learn, how answers are graded, what mistakes say."""

import json
import pickle
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.api import Case, Outcome
from harness.api.errors import DataError, UserError
from harness.cli import main
from harness.extensions.networks import parts
from harness.extensions.yaml_tasks.conformance import check_reply
from harness.extensions.yaml_tasks.expressions import ExpressionError
from tests.extensions.networks.network_kit import file, grade, one_case, task

PATH = [["Ann", "Bo"], ["Bo", "Cy"], ["Cy", "Di"]]


def on_path(**changes: Any) -> tuple[Any, Case]:
    """A task on Ann - Bo - Cy - Di, and its case."""
    problem = task(graphs=PATH, **changes)
    return problem, one_case(problem)


def graded(answers: str, **changes: Any) -> dict[str, float | None]:
    """The grades of the path's agents' answers, r or b or - for none."""
    problem, case = on_path(**changes)
    words = {"r": "red", "b": "blue"}
    return grade(problem, case, {a: words[c] for a, c in zip(case.agents, answers, strict=True) if c in words})


# ---------------------------------------------------------------------------------------- grades


def test_constraints_are_shares() -> None:
    assert graded("rbrb") == {"solved": 1, "score": 1, "answered": 1, "separate": 1}
    assert graded("rrbr") == {
        "solved": 0,
        "score": pytest.approx(2 / 3),
        "answered": 1,
        "separate": pytest.approx(2 / 3),
    }


def test_missing_answers_fail_what_needs_them() -> None:
    assert graded("r-rb") == {
        "solved": 0,
        "score": pytest.approx(1 / 3),
        "answered": 0.75,
        "separate": pytest.approx(1 / 3),
    }
    reads = {"every": "edge", "holds": "'red' in [answer[u], answer[v]]", "needs_answers": False}
    assert graded("r-rb", constraints={"seen": reads})["seen"] == 1
    assert graded("r-rb", constraints={"end": {"every": "network", "holds": "True"}})["end"] == 0


def test_an_expression_that_fails_on_a_missing_answer_does_not_hold() -> None:
    fails = {"every": "edge", "holds": "len(answer[u] + answer[v]) > 0", "needs_answers": False}
    assert graded("r-rb", constraints={"joined": fails})["joined"] == pytest.approx(1 / 3)
    assert graded("----", constraints={"joined": fails}, score="len(answer['Ann'])")["score"] == 0
    with pytest.raises(ExpressionError, match=r"answer\[u\] \* 'x'"):
        graded("rbrb", constraints={"joined": {"every": "edge", "holds": "answer[u] * 'x'"}})


def test_a_score_is_a_number_that_results_can_hold() -> None:
    for text in ("10 ** 1200", "1e999", "float('nan')"):
        with pytest.raises(ExpressionError, match="a number is needed"):
            graded("rbrb", score=text)


def test_pairs_within_hops_and_where() -> None:
    close = {"every": "pair", "within": 2, "holds": "answer[u] != answer[v]"}
    assert graded("rbbr", constraints={"close": close})["close"] == pytest.approx(4 / 5)
    everyone = {"every": "pair", "holds": "answer[u] != answer[v]"}
    assert graded("rbbr", constraints={"far": everyone})["far"] == pytest.approx(4 / 6)
    assert graded("rbbr", constraints={"far": {**everyone, "within": 10**9}})["far"] == pytest.approx(4 / 6)
    ends = {"every": "agent", "where": "degree[agent] == 1", "holds": "answer[agent] == 'red'"}
    assert graded("rbbb", constraints={"ends": ends})["ends"] == 0.5
    nothing = {"every": "agent", "where": "degree[agent] == 9", "holds": "False"}
    assert graded("rrrr", constraints={"none": nothing}) == {"solved": 1, "score": 1, "answered": 1, "none": None}


def test_soft_constraints_weights_and_scores() -> None:
    red = {"red": {"every": "agent", "holds": "answer[agent] == 'red'", "weight": 3}}
    result = graded("rbrb", soft=red)
    assert result["solved"] == 1 and result["score"] == pytest.approx((1 + 3 * 0.5) / 4)
    assert graded("rbrb", soft=red, score="separate * red + answered")["score"] == 1.5
    part = {"share": {"every": "network", "holds": "count(values(answer), 'red') / n"}}
    assert graded("rbbb", constraints=part)["share"] == 0.25


def test_byzantine_agents_are_left_out() -> None:
    problem, case = on_path()
    answers = {"Ann": "red", "Bo": "red", "Cy": "red", "Di": "blue"}
    assert grade(problem, replace(case, unscored=frozenset({"Bo"})), answers)["separate"] == 1
    assert set(grade(problem, replace(case, unscored=frozenset(case.agents)), answers).values()) == {None}
    problem, case = on_path(constraints={"seen": {"every": "agent", "holds": "answer['Bo'] == 'red' and n == 4"}})
    assert grade(problem, replace(case, unscored=frozenset({"Bo"})), answers)["seen"] == 1


def test_expressions_know_the_honest_agents() -> None:
    """By the name that they have in worlds too, so that answers of byzantine agents can be told from the others'."""
    rules = {
        "among": {"every": "network", "holds": "len(honest) / n"},
        "believed": {"every": "agent", "holds": "all(b in honest for b in answer)"},
    }
    problem, case = on_path(constraints=rules, score="len([a for a in answer if a in honest]) / n")
    answers = dict.fromkeys(case.agents, "red")
    whole = grade(problem, case, answers)
    assert (whole["among"], whole["believed"], whole["score"]) == (1, 1, 1)
    without = grade(problem, replace(case, unscored=frozenset({"Bo"})), answers)
    assert (without["among"], without["believed"]) == (1 - 1 / len(case.agents), 0)
    assert without["score"] == 1 - 1 / len(case.agents)
    with pytest.raises(UserError, match="'honest' has a meaning of its own"):
        task(shared={"honest": "1"})


def test_numbers_among_options_are_numbers() -> None:
    apart = {"apart": {"every": "edge", "holds": "abs(answer[u] - answer[v]) >= 1.5"}}
    problem, case = on_path(answer={"choice": "[k / 2 for k in range(4)] + [9]"}, constraints=apart)
    assert problem.reply(case, "Ann").options == ("0.0", "0.5", "1.0", "1.5", "9")
    assert grade(problem, case, dict(zip(case.agents, ["0.0", "1.5", "9", "1.5"], strict=True)))["solved"] == 1


LIST = {"json": {"type": "array", "items": {"type": "integer"}}, "words": "a list"}
HEX = {"pattern": "0x([0-9a-f]+)", "words": "a number such as 0x1f"}
WHOLE = {"integer": {"min": 0, "max": "2 + degree[agent]"}}


@pytest.mark.parametrize(
    ("answer", "text", "action"),
    [
        (WHOLE, "So be it.\n### Final Answer ### 3", 3),
        (WHOLE, "### final answer ### **2**.", 2),
        (WHOLE, "### Final Answer ### 4", None),
        (WHOLE, "### Final Answer ### 1.5", None),
        (WHOLE, "no", None),
        ({"number": {"max": 1}}, "answer of 7 ### Final Answer ### -0.5", -0.5),
        ({"number": {}, "marker": "RESULT:"}, "Result: 1/4", 0.25),
        ({"text": {"max_chars": 5}}, "### Final Answer ### short", "short"),
        ({"text": {"max_chars": 5}}, "### Final Answer ### longer", None),
        (HEX, "from 0x1f to\n### Final Answer ### 0xff", "ff"),
        (HEX, "none", None),
        ({"boxed": True}, r"### Final Answer ### \boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (LIST, "### Final Answer ### [1, 2]", [1, 2]),
        (LIST, "### Final Answer ### [1, 'x']", None),
    ],
)  # fmt: skip
def test_forms_of_answers(answer: Mapping[str, Any], text: str, action: Any) -> None:
    problem, case = on_path(answer=answer, constraints={"fine": {"every": "agent", "holds": "True"}})
    reply = problem.reply(case, "Ann")
    parsed = reply.parse(text)
    assert parsed.action == action and (parsed.error is None) == (action is not None)
    assert grade(problem, case, dict.fromkeys(case.agents, parsed.action))["solved"] == (action is not None)
    if "integer" in answer:
        assert reply.options == (0, 1, 2, 3) and not reply.allows(True) and not reply.allows("3")


SEVERAL = {"several": "neighbors[agent]"}


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("### Final Answer ### Cy, Ann", ["Ann", "Cy"]),
        ("I say:\n### FINAL ANSWER ###\n**ann** and 'Cy'.\nBye", ["Ann", "Cy"]),
        ('### Final Answer ### ["Cy", "Cy"] for sure', ["Cy"]),
        ("### Final Answer ### None", []),
        ("### Final Answer ### []", []),
        ("### Final Answer ### Ann, Di", None),
        ("### Final Answer ### Ann, None", None),
        ("### Final Answer ###", None),
        ("I do not know", None),
    ],
)
def test_several_options(text: str, action: list[str] | None) -> None:
    mutual = {"mutual": {"every": "edge", "holds": "(v in answer[u]) == (u in answer[v])"}}
    problem, case = on_path(answer=SEVERAL, constraints=mutual)
    reply = problem.reply(case, "Bo")
    assert reply.parse(text).action == action and reply.options == ([], ["Cy"], ["Ann"], ["Ann", "Cy"])
    answers = {"Ann": ["Bo"], "Bo": action, "Cy": ["Bo"], "Di": []}
    grades = grade(problem, case, answers)
    assert grades["solved"] == (action == ["Ann", "Cy"]) and grades["answered"] == (0.75 if action is None else 1)
    for wrong in (["Di"], ["Ann", "Ann"], "Ann", [1], {"Ann": 1}):
        assert not reply.allows(wrong)
    assert not check_reply(reply) and "Ann, Cy" in problem.context(case, "Bo")["answer_format"]
    many = task(graphs="star", size=30, answer=SEVERAL, constraints=mutual)
    center = one_case(many)
    assert many.reply(center, center.agents[0]).options is None
    numbers = task(
        graphs=PATH,
        answer={"several": [1, 2, 3]},
        constraints={"x": {"every": "agent", "holds": "sum(answer[agent]) == 4"}},
    )
    assert grade(numbers, one_case(numbers), {key: ["1", "3"] for key in case.agents})["solved"] == 1


def test_free_answers_never_cost_an_episode() -> None:
    counts = {"right": {"every": "agent", "holds": "int(answer[agent]) == 3"}}
    problem, case = on_path(answer={"text": {}}, constraints=counts)
    answers = dict(zip(case.agents, ["3", "three", "\ud800", "3"], strict=True))
    assert grade(problem, case, answers)["right"] == 0.5
    problem, case = on_path(answer={"text": {}}, constraints=counts, score="int(answer['Bo'])")
    assert grade(problem, case, answers)["score"] == 0


# ----------------------------------------------------------------------------------------- facts


def test_facts_are_drawn_from_the_seed_and_known_to_their_agents() -> None:
    facts = {
        "shared": {"total": "sum(values(load))", "limit": "randint(5, 9)"},
        "known": {"load": "randint(1, limit)", "first": "agent == agents[0]"},
        "hidden": {"secret": "choice(agents)"},
    }
    problem = task(
        **facts, size=6, instances=2, goal="Load {{ load }} of {{ total }}.{% if first %} You start.{% endif %}"
    )
    cases = list(problem.cases(None, 1))
    assert cases == list(problem.cases(None, 1)) and cases[0].private != next(iter(problem.cases(1, 2))).private
    for case in cases:
        loads = {agent: case.private[agent]["known"]["load"] for agent in case.agents}
        assert case.target["secret"] in case.agents and all(
            1 <= load <= case.public["shared"]["limit"] for load in loads.values()
        )
        for i, agent in enumerate(case.agents):
            context = problem.context(case, agent)
            goal = f"Load {loads[agent]} of {sum(loads.values())}."
            assert context["goal"] == goal + " You start." * (i == 0)
            assert context["load"] == loads[agent] and "secret" not in context
            assert json.loads(json.dumps(context)) == context
    one = pickle.loads(pickle.dumps(problem))
    assert list(one.cases(None, 1)) == cases and one.context(cases[0], cases[0].agents[0]) == problem.context(
        cases[0], cases[0].agents[0]
    )


def test_another_fact_changes_no_draw() -> None:
    known = {"load": "randint(1, 1000)"}
    before, after = one_case(task(known=known)), one_case(task(known={"other": "uniform(0, 1)", **known}))
    assert [f["known"]["load"] for f in before.private.values()] == [f["known"]["load"] for f in after.private.values()]


@pytest.mark.parametrize(
    ("budget", "rounds"), [(None, 7), ("n + max_degree", 6), ("1 if n < 3 else limit", 5)]
)  # fmt: skip
def test_the_budget_of_rounds(budget: str | None, rounds: int) -> None:
    problem, case = on_path(budget=budget, shared={"limit": "5"})
    assert problem.rounds(case) == rounds


def test_a_link_joins_two_agents_whichever_of_them_has_it() -> None:
    assert parts({"a": ("b",), "b": (), "c": ("a",), "d": ("e",)}) == [{"a", "b", "c"}, {"d", "e"}]


def test_a_network_in_parts() -> None:
    pairs = [["Ann", "Bo"], ["Cy", "Di"]]
    with pytest.raises(DataError, match="2 parts of 2, 2 agents"):
        one_case(task(graphs=pairs))
    problem = task(graphs=pairs, connected=False, budget="2")
    assert problem.rounds(one_case(problem)) == 2


# -------------------------------------------------------------------------------------- networks

GENERATORS: list[tuple[str, dict[str, Any]]] = [
    ("barabasi_albert_graph", {"m": 2}),
    ("connected_watts_strogatz_graph", {"k": 4, "p": 0.3}),
    ("dual_barabasi_albert_graph", {"m1": 1, "m2": 2, "p": 0.5}),
    ("duplication_divergence_graph", {"p": 0.5}),
    ("extended_barabasi_albert_graph", {"m": 1, "p": 0.2, "q": 0.1}),
    ("gaussian_random_partition_graph", {"s": 5, "v": 3, "p_in": 0.9, "p_out": 0.3}),
    ("gnm_random_graph", {"m": "2 * n"}),
    ("gnp_random_graph", {"p": "3 * log(n) / n"}),
    ("newman_watts_strogatz_graph", {"k": 2, "p": 0.3}),
    ("planted_partition_graph", {"l": 2, "k": 5, "p_in": 0.8, "p_out": 0.3}),
    ("powerlaw_cluster_graph", {"m": 2, "p": 0.3}),
    ("random_geometric_graph", {"radius": 0.6}),
    ("random_partition_graph", {"sizes": [4, 6], "p_in": 0.9, "p_out": 0.3}),
    ("random_regular_graph", {"d": 3}),
    ("relaxed_caveman_graph", {"l": 2, "k": 5, "p": 0.3}),
    ("soft_random_geometric_graph", {"radius": 0.9}),
    ("stochastic_block_model", {"sizes": [4, 6], "p": [[0.8, 0.3], [0.3, 0.8]]}),
    ("watts_strogatz_graph", {"k": 4, "p": 0.3}),
    ("waxman_graph", {"beta": 0.9, "alpha": 0.5}),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "parameters"), GENERATORS)
def test_random_families_of_networkx(name: str, parameters: dict[str, Any]) -> None:
    problem = task(graphs={"random": name, "parameters": parameters}, size=10, instances=3)
    networks = list(problem.networks(0))
    assert networks == list(problem.networks(0)) and len({n.id for n in networks}) == 3
    assert len({tuple(map(len, n.adjacency.values())) + tuple(n.adjacency) for n in networks}) == 3
    for network in networks:
        assert len(network.adjacency) == 10 and len(parts(network.adjacency)) == 1
        assert all(
            agent not in others and len(set(others)) == len(others) for agent, others in network.adjacency.items()
        )
        assert one_case(problem).labels["graphs"] == name.removesuffix("_graph")


def test_edge_lists(tmp_path: Path) -> None:
    (tmp_path / "office.csv").write_text("Ann,Bo\nBo,Cy\n")
    own, numbered = task(graphs=[["Ann", "Bo"], ["Bo", "Cy"], ["Bo", "Ann"]]), task(graphs=[[0, 1], [1, 2]])
    read = task(graphs={"file": str(tmp_path / "office.csv")})
    assert one_case(own).topology == one_case(read).topology == {"Ann": ("Bo",), "Bo": ("Ann", "Cy"), "Cy": ("Bo",)}
    assert [len(others) for others in (one_case(numbered).topology or {}).values()] == [1, 2, 1]
    assert read.inputs(0) == (f"{tmp_path / 'office.csv'}: 3 agents, 2 edges: Ann–Bo, Bo–Cy",)
    assert len(list(own.cases(None, 0))) == 1  # the same thing each time
    drawn = list(task(graphs=PATH, known={"load": "randint(1, 99)"}, instances=2).cases(None, 0))
    assert len({case.id for case in drawn}) == 2 and drawn[0].private != drawn[1].private


# --------------------------------------------------------------------------------------- optimum


@pytest.mark.parametrize(
    ("algorithm", "best", "value"),
    [
        ("max_weight_matching", "len(solution)", 2), ("min_weighted_vertex_cover", "len(solution)", 3),
        ("min_weighted_dominating_set", "len(solution)", 2), ("dominating_set", "len(solution)", 2),
        ("greedy_color", "max(values(solution)) + 1", 2), ("maximum_independent_set", "len(solution)", 2),
        ("min_maximal_matching", "sum(len(pair) for pair in solution)", 4), ("node_clique", "len(solution)", 2),
        ("min_edge_dominating_set", "len([1 for u, v in solution if u in neighbors[v]])", 2),
        ("minimum_spanning_tree", "len(solution)", 3), ("kernighan_lin_bisection", "count(values(solution), 0)", 2),
    ],
)  # fmt: skip
def test_algorithms_to_compare_with(algorithm: str, best: str, value: int) -> None:
    problem, case = on_path(optimum={"algorithm": algorithm, "best": best, "value": "3"})
    assert case.target == {"gap": value}
    colors = dict(zip(case.agents, ["red", "blue"] * 2, strict=True))
    assert grade(problem, case, colors)["gap"] == pytest.approx((3 - value) / value)
    assert grade(problem, case, {**colors, "Ann": "blue"})["gap"] is None  # not solved
    assert grade(problem, replace(case, unscored=frozenset({"Ann"})), colors)["gap"] is None


# -------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answer": {"choice": [True, False]}}, "write 'Yes'"),
        ({"answer": {"choice": ["a", "a"]}}, "two options look the same"),
        ({"answer": {"choice": []}}, "there are no options"),
        ({"answer": {}}, "answer has no form"),
        ({"answer": {"choice": ["a"], "text": {}}}, "answer has choice and text; give one"),
        ({"answer": {"json": {"type": "list"}, "words": "x"}}, "`type:` one of array"),
        ({"answer": {"json": {"type": "array"}}}, "needs `words:`"),
        ({"answer": {"text": {}, "marker": " "}}, "the marker is empty"),
        ({"problem": "My toy"}, "small letters"),
        ({"constraints": {}}, "there are no constraints"),
        ({"constraints": {"answer": {"every": "edge", "holds": "True"}}}, "'answer' has a meaning of its own"),
        ({"constraints": {"all": {"every": "edge", "holds": "True"}}}, "'all' is a function of expressions"),
        ({"constraints": {"a b": {"every": "edge", "holds": "True"}}}, "'a b' is not a plain word"),
        ({"constraints": {"x": {"every": "edge", "within": 2, "holds": "True"}}}, "within is about pairs"),
        ({"constraints": {"x": {"every": "edge", "holds": "answer[agent]"}}}, "agent: unknown name"),
        ({"known": {"load": "1"}, "shared": {"load": "2"}}, "'load' stands among shared already"),
        ({"known": {"load": "cost[agent]", "cost": "load[agent]"}}, "facts need each other"),
        ({"hidden": {"right": "1"}, "answer": {"choice": "[right]"}}, "right: unknown name"),
        ({"goal": "{{ colour }}"}, "goal uses the fact 'colour'"),
        ({"hidden": {"right": "1"}, "goal": "{{ right }}"}, "goal uses the fact 'right'"),
        ({"graphs": {"random": "gnp_graph"}}, "Did you mean gnp_random_graph"),
        ({"graphs": {"random": "gnp_random_graph"}}, "needs the parameter p"),
        ({"graphs": {"random": "gnp_random_graph", "parameters": {"n": 3}}}, "The number of nodes is `size`"),
        ({"graphs": [["a", "a"]]}, "its own neighbor"),
        ({"graphs": [["a", "None"]]}, "cannot be an agent's name"),
        ({"graphs": []}, "has no edges"),
        ({"graphs": "complete", "size": 10_000}, "a network of more than 1,000,000 edges"),
        ({"score": "seperate"}, "Did you mean separate?"),
        ({"budget": "diamter"}, "Did you mean diameter?"),
        ({"optimum": {"algorithm": "magic", "best": "1", "value": "1"}}, "'algorithm' is 'magic'"),
    ],
)  # fmt: skip
def test_mistakes_show_when_the_spec_is_read(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        task(**changes)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answer": {"choice": "degree[agent]"}}, "must be a list that is not empty, found"),
        ({"answer": {"choice": "[[1]]"}}, "choice: the options of all agents: an option is a text or a number"),
        ({"answer": {"several": "['a'] * degree[agent]"}}, ": two options look the same: 'a'\n  List each once"),
        ({"answer": {"choice": "neighbors"}}, "It is a mapping with an entry for each agent: write neighbors[agent]"),
        ({"answer": {"integer": {"min": 5, "max": "degree[agent]"}}}, "no number is from 5 to"),
        ({"answer": {"integer": {"min": "0.5"}}}, "must be a whole number"),
        ({"graphs": "ring", "size": 2100, "constraints": {"x": {"every": "pair", "holds": "True"}}}, "`within:` keeps"),
        ({"known": {"load": "1 / (degree[agent] - degree[agent])"}}, "division by zero (with degree = "),
        ({"graphs": {"random": "random_regular_graph", "parameters": {"d": 9}}}, "graph(d=9, n=8) fails"),
        ({"graphs": {"random": "gnp_random_graph", "parameters": {"p": 0.01}}}, "gave no connected network"),
        ({"graphs": {"file": "/dev/zero"}}, "the edge list is not a file"),
        ({"graphs": {"random": "relaxed_caveman_graph", "parameters": {"l": 10, "k": 9000, "p": 0}}}, "000,000 edges"),
        ({"graphs": {"random": "stochastic_block_model", "parameters": {"sizes": [10**6], "p": [1]}}}, "000 agents"),
    ],
)  # fmt: skip
def test_mistakes_that_show_with_a_case(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        one_case(task(**changes))
    assert message in str(caught.value)


BODY = """
problem: toy
size: 4
goal: Differ.
question: Which?
answer: {choice: [1, 2, 3]}
constraints:
  apart: {every: edge, holds: "abs(answer[u] - answer[v]) >= limit"}
shared: {limit: 2}
budget: 1
"""


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        (">= limit", ">= limt", "x.yaml:10:64: limt: unknown name. Did you mean limit?"),
        ("edge", "node", "x.yaml:10:20: task 'network': 'every' is 'node'. Available: agent, edge, network, pair."),
        ("goal: Differ.", "goal: Differ, {{ power }}.", "x.yaml:6:9: goal uses the fact 'power'"),
        ("budget: 1", "budget: -1", "x.yaml:12:11: budget gives -1; it must be a whole number of at least 0"),
        ("budget: 1", "rounds: 1", "x.yaml:12:3: task 'network': unknown key 'rounds'"),
    ],
)
def test_mistakes_have_a_place(
    right: str,
    wrong: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    path = file(tmp_path, BODY.replace(right, wrong)).name
    assert main(["validate", path]) == 2
    assert message in "".join(capsys.readouterr())


def test_an_expression_that_fails_fails_its_episodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = file(tmp_path, BODY.replace("limit", "1 / (limit - 2)", 1))
    assert main(["eval", "--spec", path.name, "--quiet", "--output_path", "run"]) == 1
    shown = "".join(capsys.readouterr())
    assert "x.yaml:10:64: 1 / (limit - 2): division by zero (with limit = 2)\n" in shown
    assert "Traceback" not in shown and "rules.py" not in shown


def test_answers_of_any_kind_are_graded() -> None:
    rng = random.Random(1)
    problem, case = on_path()
    for _ in range(50):
        junk: list[Any] = [None, "red", "blue", 1, True, [], {}, ["red"], {"a": 1}, "x" * 9]
        answers = {agent: rng.choice(junk) for agent in case.agents}
        outcome = Outcome(answers)
        fine = [answers[a] in ("red", "blue") for a in case.agents]
        result = problem.grade(case, outcome)
        assert result["answered"] == sum(fine) / 4
        assert bool(problem.conflicts(case, outcome)) == (result["separate"] < 1)
