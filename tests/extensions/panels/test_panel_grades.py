"""What became of a panel's answers: its members, the peer text, and the grades that follow from its history."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Case, Completion, Outcome, Request, Turn
from harness.api.errors import PluginError, SpecError
from harness.config import project, spec
from harness.engines.mock import Mock
from harness.evaluation.evaluate import evaluate
from harness.evaluation.run import Run
from harness.extensions.panels.questions import GRADES, QuestionTask, panel_grades
from harness.runtime.steps import drive

BUILTIN = project.builtin()


def graded(history: Sequence[Sequence[Any]], final: Any, proposal: Any = None) -> dict[str, float | None]:
    return panel_grades(
        Outcome({}, final, {"history": history, "proposal": proposal}), lambda action: action == "right"
    )


def test_an_available_answer_can_be_lost() -> None:
    result = graded([["right", "wrong", None]], "wrong")
    assert (result["available"], result["lost"], result["gained"], result["first"]) == (1, 1, 0, pytest.approx(1 / 3))
    assert graded([["wrong", "wrong"]], "right")["gained"] == 1
    assert graded([["wrong"], ["right"]], "right")["available"] == 0, "what came later was not there at first"


def test_flips_are_counted_from_round_to_round() -> None:
    result = graded([["right", "wrong", "wrong"], ["wrong", "right", "right"], ["wrong", "right", None]], "right")
    assert (result["to_right"], result["to_wrong"], result["ever"]) == (2, 2, 1)


@pytest.mark.parametrize(
    ("history", "final", "drift"),
    [
        ([["right", "right", "odd"], ["odd", "odd", "right"]], "odd", 1),
        ([["right", "right", "odd"]], None, 1),  # a majority for the right answer, and no decision
        ([["right", "right", "odd"], ["odd", "odd", "right"]], "right", 0),
        ([["right", "odd", None], ["odd", "odd", "right"]], "odd", 0),  # the right answer never led alone
        ([["right", None, None], ["odd", "odd", "odd"]], "odd", 1),
        ([["right", "right", "odd", "wrong"], ["odd"] * 4], "odd", 1),
    ],
)
def test_drift_is_a_lead_of_the_right_answer_that_got_lost(history: list[list[Any]], final: Any, drift: int) -> None:
    assert graded(history, final)["drift"] == drift


def test_a_coordinator_has_a_grade_of_its_own() -> None:
    assert graded([["wrong"]], "wrong", proposal="right")["proposal"] == 1
    assert graded([["wrong"]], "wrong")["proposal"] is None


def test_without_a_history_there_is_nothing_to_grade() -> None:
    assert panel_grades(Outcome({}, "right"), lambda action: True) == dict.fromkeys(GRADES)


@given(
    st.lists(
        st.lists(st.sampled_from(["right", "wrong", "odd", None]), min_size=3, max_size=3), min_size=1, max_size=4
    ),
    st.sampled_from(["right", "wrong", None]),
)
def test_grades_hold_together(history: list[list[Any]], final: Any) -> None:
    result = graded(history, final)
    right = float(final == "right")
    assert result["available"] is not None and result["lost"] is not None and result["gained"] is not None
    assert right == result["available"] - result["lost"] + result["gained"]
    flips = (result["to_right"] or 0) - (result["to_wrong"] or 0)
    assert flips == history[-1].count("right") - history[0].count("right")
    assert result["ever"] == float(any("right" in answers for answers in history))
    assert result["drift"] is not None and result["drift"] <= result["ever"] * (1 - right)


def test_a_protocol_brings_its_panel_and_a_spec_assigns_it(tmp_path: Any) -> None:
    mapping = {"default": "The answer is 1.", "other": "The answer is 2."}

    def answer(request: Request) -> Completion:
        return Completion(mapping["default"], input_tokens=7, output_tokens=5)

    body = {
        "name": "x",
        "task": {"use": "arithmetic", "size": 2, "terms": 2},
        "protocol": {"use": "vote", "agents": 3},
        "prompts": "panels/standard",
        "models": {"other": {"use": "mock", "text": mapping["other"]}},
        "agents": {"default": "model", "others": {"model": "other", "agents": ["Agent-1", "Agent-2"]}},
        "metrics": ["score", "calls"],
    }
    run = evaluate(body, Mock(function=answer), output_path=tmp_path / "run")
    assert [score.numbers["calls"] for score in run.scores] == [3, 3]
    [end] = {str(line) for line in _votes(run)}
    assert end == "{'1': 1.0, '2': 2.0}"
    wrong = {**body, "agents": {"default": "model", "others": {"model": "other", "agents": ["Agent-3"]}}}
    with pytest.raises(SpecError, match=r"group 'others': no free agent 'Agent-3'"):
        evaluate(wrong, Mock(), output_path=tmp_path / "wrong")


def _votes(run: Run) -> list[Any]:
    from harness import storage

    return [
        line["outcome"]["facts"]["votes"]
        for _, line in storage.lines(run.folder / "journal.jsonl")
        if line["k"] == "end"
    ]


def test_a_case_with_agents_of_its_own_takes_no_panel() -> None:
    protocol = BUILTIN.load("protocols", "vote")(agents=3)
    task = BUILTIN.load("tasks", "arithmetic")(size=1)
    several = Case("c", ("A", "B"), {"question": "?", "choices": None}, target={"answers": ["1"]})
    with pytest.raises(PluginError, match=r"agents: 3, but 'c' has 2 agents of its own"):
        drive(protocol, task, several)
    own = BUILTIN.load("protocols", "vote")()
    turns: list[Turn] = list(drive(own, task, several).turns())
    assert [turn.agent for turn in turns] == ["A", "B"]


def test_a_vote_may_have_as_many_calls_as_another_method() -> None:
    task = BUILTIN.load("tasks", "arithmetic")(size=1)
    case = next(iter(task.cases(1, 0)))
    played = drive(BUILTIN.load("protocols", "vote")(agents=3, calls=7), task, case, lambda turn: 5)
    assert [[turn.agent for turn, _ in batch] for batch in played.batches] == [
        ["Agent-0", "Agent-1", "Agent-2"],
        ["Agent-0", "Agent-1", "Agent-2"],
        ["Agent-0"],
    ]
    assert [turn.fresh for turn in played.turns()] == [False] * 3 + [True] * 4
    assert played.outcome.group == 5 and played.outcome.facts["votes"] == {"5": 7.0}


def test_the_whole_input_of_a_sharded_task_can_be_put_to_a_panel(tmp_path: Any) -> None:
    task = {"use": "silo/global_maximum", "agents": 4, "whole": True, "instances": 2}
    body = {"name": "x", "task": task, "protocol": {"use": "vote", "agents": 3}, "prompts": "silo/silence",
            "metrics": ["silo/success"]}  # fmt: skip
    loaded = spec.parse(body, BUILTIN)
    assert loaded.name == "x"
    result = BUILTIN.load("tasks", "silo/global_maximum")(agents=4, whole=True, instances=1)
    case = result.example()
    protocol = BUILTIN.load("protocols", "vote")(agents=3)
    played = drive(protocol, result, case, lambda turn: case.target[0] if turn.agent != "Agent-0" else -1)
    assert result.grade(case, played.outcome)["success"] == 1, "the panel's answer counts, not that of its first member"
    assert BUILTIN.load("tasks", "silo/global_maximum")(agents=4).misfit(QuestionTask) is not None
