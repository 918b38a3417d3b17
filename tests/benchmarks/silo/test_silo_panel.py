"""Panels on SILO-Bench's problems with the whole input in one hand: any task with one agent can be put to a panel."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.api import Completion, Outcome, Request, Turn
from harness.api.errors import PluginError, SpecError
from harness.config import project
from harness.engines.mock import Mock
from harness.extensions.networks.answers import INTEGER, INTEGERS, TEXT, Answer, normalize, same
from harness.extensions.panels.answer_with_confidence import AnswerWithConfidence
from harness.extensions.panels.questions import GRADES, QuestionTask
from harness.extensions.yaml_tasks import conformance
from harness.runtime.steps import drive
from tests.extensions.datasets.documents_kit import BUILTIN, cases
from tests.extensions.panels.exchange_kit import scripted

METHODS: list[tuple[str, dict[str, Any]]] = [
    ("vote", {"agents": 3}),
    ("debate", {"summarize": "shared"}),
    ("self_refine", {}),
    ("self_refine", {"mode": "fused"}),
    ("reconcile", {"confidence": "json"}),
    ("mixture_of_agents", {"layers": 3}),
    ("discussion", {"order": "round_robin", "style": "agree", "decision": "supermajority"}),
]
TASKS = ["global_maximum", "prefix_sum", "word_frequency", "longest_palindrome", "matrix_multiply"]


def task_of(name: str, **parameters: Any) -> Any:
    return BUILTIN.load("tasks", f"silo/{name}")(**{"whole": True, "agents": 3, "items": 5, **parameters})


def oracle(turn: Turn) -> Any:
    return BUILTIN.load("policies", "silo/oracle")().choose(turn, None)


@pytest.mark.parametrize(("method", "parameters"), METHODS)
@pytest.mark.parametrize("name", TASKS)
def test_a_panel_of_oracles_is_right_by_every_method(method: str, parameters: dict[str, Any], name: str) -> None:
    task = task_of(name)
    case = cases(task)[0]
    protocol = BUILTIN.load("protocols", method)(**parameters)
    outcome = drive(protocol, task, case, oracle).outcome
    assert task.grade(case, outcome)["success"] == 1 and outcome.facts["unanimous_at"] == 0
    assert conformance.check_protocol(protocol, task) == []


def test_one_agent_of_a_team_of_one_is_a_panel_too() -> None:
    task = task_of("global_maximum", whole=False, agents=1)
    assert task.misfit(QuestionTask) is None
    assert "`whole: true`" in (task_of("global_maximum", whole=False).misfit(QuestionTask) or "")


@pytest.mark.parametrize(("method", "parameters"), METHODS)
def test_models_get_task_and_data_and_the_group_answer_counts(method: str, parameters: dict[str, Any]) -> None:
    task = task_of("global_maximum")
    [case] = cases(task)
    best = max(case.private["Agent-0"]["shard"])

    def say(agent: str, number: int) -> str:
        return f"Looking at 17 and 23.\nVerdict: approved\nFinal answer: {0 if agent == 'Agent-2' else best}"

    result = scripted(method, say, "silo/panel", task, **parameters)
    assert task.question.split(".")[0] in result.asked[0].prompt
    assert json.dumps(case.private["Agent-0"]["shard"]) in result.asked[0].prompt
    assert result.asked[0].prompt.rstrip().endswith(("Final answer: …", "}")), "JSON replies have a form of their own"
    assert result.grade["success"] == 1


def test_an_answer_behind_its_marker() -> None:
    form = Answer(INTEGERS, "Final answer:")
    assert form.parse("I see 3 of them.\nFinal answer: [1, 2]\nNo:\n**FINAL ANSWER:** [1, 3]").action == [1, 3]
    assert form.parse("[4]").action == [4], "without it the reply is the answer"
    assert "behind 'Final answer:'" in str(form.parse("I do not know.").error)
    assert form.parse("Final answer:").error is not None
    assert Answer(INTEGER).parse("Final answer: 3").action == 3, "also where nothing asks for it"
    words = Answer(TEXT, "Final answer:")
    assert words.parse("Final answer: abba").action == words.parse("abba").action == "abba"
    assert words.parse("First I look at it.\nThen I think.").error is not None
    assert conformance.check_reply(form) == conformance.check_reply(words) == []


def test_an_oracle_says_nothing_where_no_answer_is_asked_for() -> None:
    task = task_of("global_maximum")
    played = drive(BUILTIN.load("protocols", "self_refine")(cap=1), task, cases(task)[0], oracle)
    [_, [(turn, move)], _] = played.batches
    assert move.action == turn.reply.noop and not isinstance(turn.reply, AnswerWithConfidence)
    several = BUILTIN.load("tasks", "silo/global_maximum")(agents=2)
    case = cases(several)[0]
    instance = Turn("Agent-0", "answer", {}, several.reply(case, "Agent-0"), several.context(case, "Agent-0"))
    with pytest.raises(PluginError, match="plays sharded tasks in rounds of calls"):
        oracle(instance)


def test_the_spec_compares_a_debate_with_votes_of_as_few_and_as_many_calls(tmp_path: Path) -> None:
    def model(request: Request) -> Completion:
        return Completion("Final answer: 5", input_tokens=1, output_tokens=1)

    overrides = ["task.instances=2", "matrix.problem=[global_maximum]"]
    run = harness.evaluate("silo_panel", Mock(function=model), overrides=overrides, output_path=tmp_path / "run")
    calls = {str(score.labels["method"]): score.numbers["calls"] for score in run.scores}
    assert calls == {"vote": 3, "vote of 6": 6, "debate": 6}
    assert run.meta["engines"]["model"]["calls_asked"] == 2 * (3 + 3 + 3), "first answers are shared"


def test_a_system_message_that_says_nothing_is_not_sent(tmp_path: Path) -> None:
    requests: list[list[str]] = []

    def model(request: Request) -> str:
        requests.append([message["role"] for message in request.thread.messages])
        return "Final answer: 5"

    overrides = ["task.instances=1", "matrix.problem=[global_maximum]"]
    spec = {"extends": "silo_panel", "name": "mixed", "matrix": {"method": [
        {"name": "mixed", "protocol": {"use": "mixture_of_agents"}}]}}  # fmt: skip
    harness.evaluate(spec, Mock(function=model), overrides=overrides, output_path=tmp_path)
    assert sorted(requests) == [["system", "user"], ["user"], ["user"], ["user"]]
    assert project.builtin().prompts("silo/panel").render("system", {}) == ""


# ---------------------------------------------------------------------- votes and grades of panels


def test_answers_that_grading_takes_for_the_same_are_one_candidate() -> None:
    task = task_of("average_value")
    [case] = cases(task)
    assert task.digits == 2
    form = task.reply(case, "Agent-0")
    for one, two in (("51.45", "51.4476"), ("5", "5.0"), ("5.001", "5"), ("-0.001", "0"), ("1e2", "100")):
        a, b = (form.parse(f"Final answer: {text}").action for text in (one, two))
        assert task.canonical(case, a) == task.canonical(case, b), (one, two)
    assert task.canonical(case, 51.46) != task.canonical(case, 51.45)
    assert task.canonical(case, True) != task.canonical(case, 1), "a truth value is never a number"
    texts = ["51.45", "51.4476", "0"]
    result = scripted(
        "vote", lambda agent, number: f"Final answer: {texts[int(agent[-1])]}", "silo/panel", task, agents=3
    )
    assert result.outcome.facts["votes"] == {"51.45": 2.0, "0": 1.0} and result.outcome.group == 51.45


values = st.recursive(
    st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)


@given(values, values, st.sampled_from(["average_value", "global_maximum"]))
def test_normal_forms_tell_apart_what_grading_does(one: Any, two: Any, name: str) -> None:
    task = task_of(name)
    [case] = cases(task)
    a, b = (task.canonical(case, value) for value in (one, two))
    assert a == task.canonical(case, json.loads(json.dumps(one)))
    if task.digits is None:
        assert (a == b) == same(normalize(one), normalize(two))
    elif a == b:
        assert same(normalize(one), normalize(two), task.digits - 1), "apart by less than a unit of the last decimal"


def test_what_became_of_a_panels_answers_is_graded(tmp_path: Path) -> None:
    task = task_of("global_maximum")
    [case] = cases(task)
    right = case.target[0]
    facts = {"history": [[right, 0, None], [0, 0, right]], "proposal": 0}
    grade = task.grade(case, Outcome({}, 0, facts))
    assert set(grade) == set(task.grades) > set(GRADES)
    mapping = {name: grade[name] for name in GRADES}
    assert mapping == {
        "available": 1, "lost": 1, "gained": 0, "to_right": 1, "to_wrong": 1, "first": 1 / 3, "ever": 1, "drift": 0,
        "proposal": 0,
    }  # fmt: skip
    assert all(task.grade(case, Outcome({"Agent-0": right}))[name] is None for name in GRADES), "no panel answered"
    several = task_of("global_maximum", whole=False)
    assert not set(GRADES) & {*several.grades, *several.grade(several.example(), Outcome())}


def test_overrides_on_a_sharded_task_go_by_its_own_grade(tmp_path: Path) -> None:
    task = {"use": "silo/global_maximum", "agents": 3, "whole": True, "instances": 2}
    best = [max(case.private["Agent-0"]["shard"]) for case in cases(task_of("global_maximum", items=20, instances=2))]

    def model(request: Request) -> str:
        message = request.thread.messages[-1]["content"]
        return f"Final answer: {best[0]}" if "Others have answered" in message else "Final answer: 0"

    metrics = ["silo/success", *({"use": "panels/override", "which": which, "of": "success", "name": which}
               for which in ("all", "wrong", "harmful"))]  # fmt: skip
    spec = {"name": "x", "task": task, "protocol": {"use": "darkforest", "agents": 3}, "prompts": "silo/panel"}
    run = harness.evaluate({**spec, "metrics": metrics}, Mock(function=model), output_path=tmp_path)
    results = [tuple(score.numbers[name] for name in ("all", "wrong", "harmful")) for score in run.scores]
    assert results == [(1, 1, 1), (1, 1, float(best[0] == best[1]))]
    bad = {**spec, "metrics": [{"use": "panels/override", "which": "wrong"}]}
    with pytest.raises(SpecError, match=r"needs 'score', which 'all' does not produce.*success"):
        harness.evaluate(bad, Mock(), output_path=tmp_path / "bad")
