"""`self_refine`: calls, what the solver sees of its own past, when it stops and what the answer then is."""

import importlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api.errors import ContextLengthError, PluginError
from harness.extensions.datasets.boxed import Boxed
from harness.extensions.datasets.number import Number
from harness.extensions.yaml_tasks.conformance import check_reply
from tests.extensions.panels.exchange_kit import BUILTIN, Episode, Say, question, right, scripted

MODULE = importlib.import_module(BUILTIN.load("protocols", "self_refine").__module__.rpartition(".")[0] + "._feedback")
YES, NO = "All is right.\nVerdict: approved", "The second step is wrong.\nVerdict: revise"


def solver(*texts: Any) -> Say:
    def say(agent: str, number: int) -> str:
        if isinstance(texts[number], Exception):
            raise texts[number]
        return str(texts[number])

    return say


def answers(*numbers: int) -> list[str]:
    return [f"The answer is {number}." for number in numbers]


def split(*texts: Any, **parameters: Any) -> Episode:
    return scripted("self_refine", solver(*texts), **parameters)


def fused(*texts: Any, **parameters: Any) -> Episode:
    return scripted("self_refine", solver(*texts), mode="fused", **parameters)


def test_the_cap_ends_it_after_nine_calls_split_and_five_fused() -> None:
    one, two, three, four, five = answers(1, 2, 3, 4, 5)
    result = split(one, NO, two, NO, three, NO, four, NO, five)
    assert (len(result.asked), result.outcome.group, result.outcome.facts["exit"]) == (9, 5, "cap")
    assert [move.turn for move in result.moves] == ["answer", *["feedback", "refine"] * 4]
    result = fused(one, *(f"{NO}\n{text}" for text in (two, three, four, five)))
    assert (len(result.asked), result.outcome.group, result.outcome.facts["exit"]) == (5, 5, "cap")
    assert result.outcome.facts["history"] == [[1], [2], [3], [4], [5]] and result.outcome.facts["changed"] == 4


@pytest.mark.parametrize("stops_at", [1, 2, 3, 4])
def test_a_stop_by_feedback_t_takes_one_and_t_and_t_minus_one_calls(stops_at: int) -> None:
    texts = [*answers(0)]
    for t in range(1, stops_at):
        texts += [NO, *answers(t)]
    result = split(*texts, YES)
    assert len(result.asked) == 1 + stops_at + (stops_at - 1)
    facts = result.outcome.facts
    assert (facts["exit"], facts["critiques"], result.outcome.group) == ("stop", stops_at, stops_at - 1)
    assert facts["stop"]["critique"] == stops_at
    start, end = facts["stop"]["span"]
    assert result.moves[-1].action["feedback"][start:end] == "approved"


def test_only_the_solver_speaks_and_only_to_itself() -> None:
    result = split(*answers(1), NO, *answers(2), YES, agents=3, solver="Agent-1")
    assert {request.agent for request in result.asked} == {"Agent-1"} == {*result.outcome.answers}
    assert all(request.roles == ["user"] for request in result.asked), "each turn is a new conversation"
    assert result.outcome.facts["peer_characters"] == 0
    assert all(call.peer_tokens is None for move in result.moves for call in move.calls)


def test_a_critique_sees_the_answer_and_a_rewrite_all_answers_with_their_feedback() -> None:
    result = split(*answers(1), NO, *answers(2), NO, *answers(3), YES)
    assert result.saw() == {
        "Agent-0.0": [],
        "Agent-0.1": ["Agent-0.0"],
        "Agent-0.2": ["Agent-0.0", "Agent-0.1"],
        "Agent-0.3": ["Agent-0.2"],
        "Agent-0.4": ["Agent-0.0", "Agent-0.1", "Agent-0.2", "Agent-0.3"],
        "Agent-0.5": ["Agent-0.4"],
    }
    last = split(*answers(1), NO, *answers(2), NO, *answers(3), YES, past="last")
    assert last.saw()["Agent-0.4"] == ["Agent-0.2", "Agent-0.3"]
    assert all(question()[1].public["question"] in request.prompt for request in result.asked)


def test_a_fused_rewrite_sees_the_answer_and_earlier_pairs() -> None:
    result = fused(*answers(1), *(f"{NO}\n{text}" for text in answers(2, 3, 4)), f"{YES}\n{answers(4)[0]}")
    prompt = result.prompt("Agent-0", 3)
    earlier = prompt.index("=== Earlier answer 2 ===")
    assert prompt.index("The answer is 1.") < earlier < prompt.index("The answer is 2.")
    assert prompt.index("=== The answer to look at now ===") < prompt.index("The answer is 3.")
    assert prompt.count("The second step is wrong.") == 2, "the critique of each earlier answer, once"
    assert (
        fused(*answers(1), *(f"{NO}\n{text}" for text in answers(2, 3, 4, 5)), past="last")
        .prompt("Agent-0", 3)
        .count("The second step is wrong.")
        == 1
    )


@pytest.mark.parametrize(("on_stop", "answer", "history"), [("approved", 1, [[1]]), ("rewrite", 8, [[1], [8]])])
def test_the_approved_answer_counts_unless_rewritten(on_stop: Any, answer: int, history: Any) -> None:
    result = fused(*answers(1), f"{YES}\n{answers(8)[0]}", on_stop=on_stop)
    assert (result.outcome.group, result.outcome.facts["history"]) == (answer, history)
    start, end = result.outcome.facts["stop"]["span"]
    assert (result.moves[-1].text or "")[start:end] == "approved"


def test_an_approval_needs_no_answer_behind_it() -> None:
    for on_stop in ("approved", "rewrite"):
        result = fused(*answers(1), YES, on_stop=on_stop, parse_retries=2)
        assert (len(result.asked), result.outcome.group, result.moves[-1].error) == (2, 1, None)


def test_numbers_of_a_critique_are_no_answer() -> None:
    result = fused(*answers(1), "The answer is 99 in step 2.\nVerdict: revise\nI cannot do better.", cap=1)
    assert result.outcome.group is None and result.moves[-1].error_kind == "parse"


def test_an_answer_that_cannot_be_read_is_none_or_the_one_before() -> None:
    assert split(*answers(1), NO, "dunno", cap=1).outcome.group is None
    result = split(*answers(1), NO, "dunno", cap=1, invalid="previous")
    assert result.outcome.group == 1 and result.outcome.facts["history"] == [[1], [None]]
    assert split("dunno", NO, "dunno", cap=1, invalid="previous").outcome.group is None


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_call_that_fails_ends_it(at: int) -> None:
    texts: list[Any] = [*answers(1), NO, *answers(2), NO, *answers(3)]
    texts[at] = ContextLengthError("full")
    result = split(*texts)
    assert len(result.asked) == at + 1 and result.outcome.facts["exit"] == "error"
    assert result.outcome.group == (None if at == 0 else 1), "the last text there is"
    assert result.outcome.facts["history"] == [[None if at == 0 else 1]]


def test_a_critique_without_a_verdict_does_not_stop_and_is_reported() -> None:
    result = split(*answers(1), "It is approved, I think.", *answers(2), YES)
    assert result.outcome.group == 2 and result.moves[1].error_kind == "parse"
    assert "It is approved, I think." in result.prompt("Agent-0", 2)


def test_every_answer_is_graded_the_final_one_and_the_best_one() -> None:
    good = right(question()[1])
    grade = split(*answers(good), NO, *answers(good + 1), YES).grade
    mapping = {"score": 0, "available": 1, "lost": 1, "ever": 1, "to_wrong": 1, "to_right": 0}
    assert {name: grade[name] for name in mapping} == mapping
    grade = split(*answers(good + 1), NO, *answers(good), YES).grade
    assert (grade["score"], grade["gained"], grade["first"], grade["to_right"]) == (1, 1, 0, 1)


def test_a_confidence_is_asked_for_and_read() -> None:
    result = scripted("self_refine", solver("The answer is 4.\nConfidence: 90%", YES), confidence="line")
    assert result.moves[0].action == {"answer": 4, "confidence": 0.9, "malformed": False}
    assert "Confidence:" in result.prompt("Agent-0", 0) and "Confidence: …" not in result.prompt("Agent-0", 1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"signal": "Revise"}, "the verdict of a critique that does not stop"), ({"signal": " "}, "a few words"),
     ({"signal": "a\nb"}, "a few words"), ({"solver": "Agent-9"}, "no agent 'Agent-9' to solve")],
)  # fmt: skip
def test_parameters_that_cannot_be(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(PluginError, match=message):
        split(*answers(1), YES, **parameters)


def test_another_signal() -> None:
    result = split(*answers(1), "Fine.\nVerdict: nothing to change", signal="nothing to change")
    assert result.outcome.facts["exit"] == "stop" and "Verdict: nothing to change" in result.prompt("Agent-0", 1)


# ------------------------------------------------------------------------------------ verdict lines


@pytest.mark.parametrize(
    ("text", "stops"),
    [
        ("Verdict: approved", True),
        ("… so it holds.\n**Verdict:** **Approved**.", True),
        ("> verdict: APPROVED, no changes", True),
        ("Verdict: not approved", False),
        ("Verdict: disapproved", False),
        ("Verdict: approvedly", False),
        ("Verdict: revise, it cannot be approved", False),
        ("It is approved.", False),
        ("You asked for 'Verdict: approved' or not.\nVerdict: revise", False),
        ("Verdict: approved\nOn second thoughts:\nVerdict: revise", False),
        ("", False),
    ],
)
def test_the_signal_counts_in_the_last_verdict_line_only(text: str, stops: bool) -> None:
    parsed = MODULE.Feedback("approved").parse(text)
    action = parsed.action or parsed.fallback_action or MODULE.Feedback("approved").noop
    assert (action["span"] is not None) == stops
    assert (parsed.error is None) == ("erdict:" in text.replace("'Verdict", "").replace("**Verdict:**", "Verdict:"))


def test_what_a_critique_may_be_is_checked() -> None:
    form = MODULE.Feedback("approved")
    assert check_reply(form) == [] and check_reply(MODULE.AnswerAfterCritique(Number(), "approved")) == []
    assert form.allows(form.noop) and form.allows({"feedback": "x", "span": [0, 1]})
    for wrong in (None, "x", {"feedback": 1, "span": None}, {"feedback": "x", "span": 3}, {"feedback": "x"}):
        assert not form.allows(wrong)


@given(st.text(max_size=200), st.text(max_size=60))
def test_whatever_stands_before_the_verdict_is_no_part_of_the_answer(critique: str, answer: str) -> None:
    head = critique.replace("erdict", "")
    text, span, rest = MODULE.split_reply(f"{head}\nVerdict: approved\n{answer}", "approved")
    assert rest == answer.strip() and text.endswith("Verdict: approved")
    assert f"{head}\nVerdict: approved\n{answer}"[slice(*span)] == "approved"
    boxed = MODULE.AnswerAfterCritique(Boxed(), "approved")
    assert boxed.parse("\\boxed{7}\nVerdict: revise\n\\boxed{8}").action == "8"


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    parsed = MODULE.Feedback("approved").parse(text)
    assert parsed.action is None or parsed.error is None
    assert MODULE.split_reply(text, "approved")[2] == text or "erdict" in text.lower()
