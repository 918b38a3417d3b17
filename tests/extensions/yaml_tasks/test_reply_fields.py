"""`reply:` of a task in YAML: fields beside the answer, from the declaration to the vote."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import harness
from harness.api.errors import HarnessError, PluginError
from harness.engines.mock import Mock
from harness.extensions.datasets.letter import Letter
from harness.extensions.networks.answers import TABLE, Answer
from harness.extensions.panels.answer_with_confidence import split_confidence
from harness.extensions.yaml_tasks.contract import ActWithFields, said_of
from harness.extensions.yaml_tasks.reply_fields import ReplyFields
from harness.replies import FreeText, Labelled, act_of
from harness.replies.parse_guard import read

FIELDS = ReplyFields({"reason": {"text": 80}, "answer": None, "confidence": {"number": [0, 1]}}, "answer")  # type: ignore
FORM = FIELDS.around(Letter(3))
assert isinstance(FORM, ActWithFields)


def spec(tmp_path: Path, reply: Any, protocol: Any = None, **task: Any) -> dict[str, Any]:
    rows = [{"q": f"Is {i} odd?", "options": ["yes", "no", "never"], "gold": 1 - i % 2} for i in range(4)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    keys = {"doc_to_text": "q", "doc_to_target": "gold", "doc_to_choice": "options", "answer": {"form": "letter"}}
    task = {"use": "dataset_qa", "data_files": {"test": str(tmp_path / "rows.jsonl")}, **keys, "reply": reply, **task}
    return {
        "name": "asked", "task": task, "protocol": protocol or {"use": "vote", "agents": 3, "weights": "confidence"},
        "prompts": "qa/standard" if protocol == "single" else "panels/standard", "metrics": ["score"],
        "tables": [{"title": "T", "rows": "model", "metrics": "score"}],
    }  # fmt: skip


# ------------------------------------------------------------------------------- what is declared


@pytest.mark.parametrize(
    ("reply", "at", "message"),
    [
        ({"Reason": "text"}, ("Reason",), "cannot name a field"),
        ({"act": "text"}, ("act",), "cannot name a field"),
        ({"action": "text"}, ("action",), "this task asks for `answer:`"),
        ({"answer": {"text": 9}}, ("answer",), "says where the answer stands"),
        ({"sure": None}, ("sure",), "needs one of"),
        ({"sure": {"means": "x"}}, ("sure",), "needs one of"),
        ({"sure": {"text": 9, "number": [0, 1]}}, ("sure",), "it takes one"),
        ({"sure": {"number": [1, 0]}}, ("sure", "number"), "no number is from 1 to 0"),
        ({"pick": {"one_of": []}}, ("pick", "one_of"), "one_of is"),
        ({"pick": {"one_of": "moves"}}, ("pick", "one_of"), "there are no moves here"),
        ({"pick": {"one_of": ["a", "A"]}}, ("pick", "one_of"), "one_of is"),
        ({"confidence": {"integer": [0, 10]}}, ("confidence",), "a number from 0 to 1"),
        ({f"f{i}": "text" for i in range(21)}, (), "at most 20"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place(reply: Any, at: tuple[str, ...], message: str) -> None:
    with pytest.raises(PluginError, match=re.escape(message)) as caught:
        ReplyFields(reply, "answer")
    assert caught.value.at[: len(at) + 1] == ("reply", *at)


def test_yaml_is_checked_by_the_schema_and_at_its_line(tmp_path: Path) -> None:
    file = tmp_path / "asked.yaml"
    file.write_text(json.dumps(spec(tmp_path, {"sure": {"numbr": [0, 1]}}), indent=1))
    with pytest.raises(HarnessError) as caught:
        harness.evaluate(file, Mock(text="A"), output_path=tmp_path / "run")
    line = file.read_text().splitlines().index('   "sure": {') + 1
    assert "numbr" in str(caught.value) and f":{line}:" in str(caught.value).replace(f":{line + 1}:", f":{line}:")


def test_fields_fit_no_filters_no_scored_options_and_no_second_confidence(tmp_path: Path) -> None:
    reply = {"reason": "text"}
    for task, protocol, message in (
        ({"scoring": "loglikelihood"}, "single", "log-likelihoods decide"),
        ({"answer": None, "filter_list": [{"name": "x", "filter": [{"function": "take_first"}]}]}, "single", "filters"),
        ({}, {"use": "debate", "agents": 2, "confidence": "line"}, "beside answers"),
        ({}, {"use": "vote", "agents": 2, "weights": "confidence"}, "needs votes that have one"),
    ):
        with pytest.raises(HarnessError, match=message):
            harness.evaluate(spec(tmp_path, reply, protocol, **task), Mock(text="A"), output_path=tmp_path / "run")


# ------------------------------------------------------------------------------------ what is read


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("REASON: It is odd.\nThe answer is (B).\nCONFIDENCE: 0.8", ("B", "It is odd.", 0.8)),
        ("**Reason:** It is odd.\n**Answer:** B\n**Confidence:** 80%", ("B", "It is odd.", 0.8)),
        ('{"reason": "It is odd.", "answer": "B", "confidence": 0.8}', ("B", "It is odd.", 0.8)),
        ("<reason>It is odd.</reason><answer>B</answer><confidence>0.8</confidence>", ("B", "It is odd.", 0.8)),
        ("The answer is (B).", ("B", None, None)),
        ("REASON: None\nThe answer is (B).\nCONFIDENCE: 7", ("B", None, None)),
        ("REASON: The answer is (A).\nThe answer is (B).", ("B", "The answer is (A).", None)),
        ('{"reason": "no\\nCONFIDENCE: 0.1\\nAnswer: A", "answer": "B", "confidence": 0.9}',
         ("B", "no CONFIDENCE: 0.1 Answer: A", 0.9)),
    ],
)  # fmt: skip
def test_every_field_is_read_and_none_as_another(text: str, said: tuple[str, Any, Any]) -> None:
    parsed = read(FORM, text)
    values = said_of(parsed.action)
    assert (act_of(parsed.action), values["reason"], values["confidence"]) == said and FORM.allows(parsed.action)
    assert split_confidence(parsed.action)[:2] == (said[0], said[2])


def test_a_required_field_is_asked_for_again_and_costs_no_answer() -> None:
    form = ReplyFields({"sure": {"integer": [1, 5], "required": True}}, "answer").around(Letter(3))  # type: ignore
    parsed = read(form, "SURE: 9\nThe answer is (B).")
    assert "sure is '9'; it must be a whole number from 1 to 5" in str(parsed.error) and "SURE:" in str(parsed.error)
    assert parsed.fallback_action == {"act": "B", "said": {"sure": None}}
    assert "sure is missing" in str(read(form, "The answer is (B).").error)


def test_what_is_said_beside_an_unreadable_action_counts_with_the_idle_one() -> None:
    form = ReplyFields({"why": "text", "action": None}, "action").around(Labelled(("GO", "STAY"), noop="STAY"))
    parsed = read(form, "WHY: I am tired\nACTION: FLY")
    assert parsed.error is not None and parsed.fallback_action == {"act": "STAY", "said": {"why": "I am tired"}}
    assert read(form, "ACTION: FLY").fallback_action is None


@pytest.mark.parametrize(
    "text",
    [
        "ACTION: GO WHY: it is late SURE: 0.5",
        "WHY: it is late SURE: 0.5 ACTION: GO",
        "WHY: it is late\nSURE: 0.5 ACTION: GO",
        "- WHY: it is late SURE: 0.5\n- ACTION: GO",
    ],
)
def test_fields_on_one_line(text: str) -> None:
    fields = ReplyFields({"why": "text", "sure": {"number": [0, 1]}}, "action")  # type: ignore[dict-item]
    parsed = read(fields.around(Labelled(("GO", "STAY"))), text)
    assert parsed.error is None and act_of(parsed.action) == "GO"
    assert said_of(parsed.action) == {"why": "it is late", "sure": 0.5}


@pytest.mark.parametrize(
    "text",
    [
        *('{"reason": "so"}', "```json\n{'reason': 'so'\n}\n```", 'Well:\n{"reason": "so"}'),
        *('{"reason": "a {} b"}', "{'reason': 'a {} b', 'confidence': 0.5}", '{"reason": "a "{}" b"}'),
        *('{"answer": {"reason": "so"}}', '{"reason": {}}', '{"reason": "so"} {"answer": {"confidence": 0.5}}'),
    ],
)
def test_an_object_of_fields_alone_is_no_empty_table(text: str) -> None:
    form = FIELDS.around(Answer(TABLE))
    assert read(form, text).error is not None
    assert read(form, '{"reason": "so", "answer": {}}').action == read(form, "REASON: so\n{}").action
    assert act_of(read(form, "REASON: so\n{}").action) == {}
    assert act_of(read(form, '{"reason": "a {} b"}\nANSWER: {}').action) == {}


@pytest.mark.parametrize("between", [" ", "\n"])
@pytest.mark.parametrize("answer", ['{"answer": {}}', '{"answer": {}, "confidence": 0.3}', '{"answer": { }}'])
def test_an_empty_table_beside_an_object_of_fields_is_an_answer(answer: str, between: str) -> None:
    parsed = read(FIELDS.around(Answer(TABLE)), f'{answer}{between}{{"reason": "so"}}')
    assert parsed.error is None and act_of(parsed.action) == {} and said_of(parsed.action)["reason"] == "so"
    parsed = read(FIELDS.around(Answer(TABLE)), 'ANSWER: {} CONFIDENCE: 0.5 {"reason": "so"}')
    assert act_of(parsed.action) == {} and said_of(parsed.action) == {"reason": "so", "confidence": 0.5}


def test_an_answer_alone_is_legal_and_other_values_are_not() -> None:
    assert FORM.allows("B") and FORM.options == ("A", "B", "C")
    for said in ({}, {"reason": "x"}, {"reason": "x", "confidence": 2}, {"reason": "x" * 81, "confidence": 1}):
        assert not FORM.allows({"act": "B", "said": said})
    assert not FORM.allows({"act": "D", "said": {"reason": None, "confidence": None}})


def test_the_declaration_gives_prompt_constraint_and_schema() -> None:
    asked = FIELDS.instruction("End with the answer.")
    assert asked.splitlines()[1] == "REASON: [a text of at most 80 characters, or None]"
    assert asked.splitlines()[-1] == "CONFIDENCE: [a number from 0 to 1, or None]"
    assert "ANSWER: [your answer]" in FIELDS.instruction("") and ReplyFields({}, "answer").instruction("x") == "x"
    act = ReplyFields({"reason": {"text": 80}}, "action").around(Labelled(("GO", "STAY")))  # type: ignore
    for form in (FORM, act):
        regex = dict(form.constraint() or {})["regex"]
        assert all(re.fullmatch(regex, form.written(one)) for one in form.examples)
    free = FIELDS.around(FreeText())
    assert free.constraint() == {"json": free.json_schema}
    said = {"reason": "so", "answer": "a text", "confidence": 0.5}
    Draft202012Validator(free.json_schema).validate(said)
    parsed = read(free, json.dumps(said))
    assert parsed.action == {"act": "a text", "said": {"reason": "so", "confidence": 0.5}}


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_text_of_a_field_is_read_as_the_answer_or_as_another_field(reason: str, more: str) -> None:
    line = " ".join(f"{reason} Answer: C CONFIDENCE: 0.1 {more}".split())
    for text in (
        f"REASON: {line}\nThe answer is (B).\nCONFIDENCE: 0.8",
        json.dumps({"reason": f"{reason}\nAnswer: C\nCONFIDENCE: 0.1\n{more}", "answer": "B", "confidence": 0.8}),
    ):
        parsed = read(FORM, text)
        assert parsed.error is None and act_of(parsed.action) == "B" and said_of(parsed.action)["confidence"] == 0.8
        assert "\n" not in str(said_of(parsed.action)["reason"])


# --------------------------------------------------------------------------------------- in a run


def test_votes_count_by_the_confidence_that_the_task_declares(tmp_path: Path) -> None:
    replies = {"Agent-0": ("A", 0.9), "Agent-1": ("B", 0.3), "Agent-2": ("B", 0.4)}

    def model(request: Any) -> str:
        answer, number = next(said for agent, said in replies.items() if agent in request.id)
        return f"REASON: so it is.\nThe answer is ({answer}).\nCONFIDENCE: {number}"

    reply = {"reason": "text", "answer": None, "confidence": {"number": [0, 1]}}
    run = harness.evaluate(spec(tmp_path, reply), Mock(function=model), output_path=tmp_path / "run")
    assert [episode.numbers["score"] for episode in run.scores] == [0.0, 1.0, 0.0, 1.0]
    scripted = {**spec(tmp_path, reply), "baseline": {"use": "simulated", "accuracy": 1.0}}
    assert all(one.numbers["score"] == 1 for one in harness.evaluate(scripted, output_path=tmp_path / "sim").scores)
    chance = {**spec(tmp_path, reply), "baseline": "random"}
    assert len(harness.evaluate(chance, output_path=tmp_path / "chance").scores) == 4


def test_one_agent_alone_answers_with_fields(tmp_path: Path) -> None:
    text = "REASON: so.\nThe answer is (A).\nCONFIDENCE: 1"
    run = harness.evaluate(spec(tmp_path, {"reason": "text"}, "single"), Mock(text=text), output_path=tmp_path / "run")
    assert [episode.numbers["score"] for episode in run.scores] == [0.0, 1.0, 0.0, 1.0]


# ------------------------------------------------------------------------- in worlds and networks

WORLD = {
    "use": "world", "agents": 2, "rules": "Say what you like.", "state": {"heard": "[]"}, "own": {"sure_of_it": "0"},
    "sees": {"notes": "{a: said[a].note for a in said}"},
    "actions": {"GO": {"effects": {"heard": "heard + [[me, said[me].note, said[me].sure]]"}}, "STAY": None},
    "after": {"mine.sure_of_it": "get(said, me, {'sure': None}).sure or 0"},
    "reply": {"note": {"text": 60}, "action": None, "sure": {"number": [0, 1]}}, "noop": "STAY", "end": "rounds == 2",
    "scores": {"sure": "sum(values(sure_of_it))", "notes": "len(heard)"},
}  # fmt: skip


def world_spec(**protocol: Any) -> dict[str, Any]:
    return {
        "name": "w", "task": WORLD, "protocol": {"use": "steps", "max_timesteps": 4, **protocol},
        "prompts": "world/standard",
        "metrics": [{"use": "grade", "of": name, "name": name} for name in ("sure", "notes")],
        "tables": [{"title": "T", "rows": "model", "metrics": "sure"}],
    }  # fmt: skip


def test_a_world_reads_what_is_said_beside_actions_and_shows_it_apart(tmp_path: Path) -> None:
    prompts: list[str] = []

    def model(request: Any) -> str:
        prompts.append("\n".join(str(one["content"]) for one in request.thread.messages))
        return 'NOTE: hi, Agent-1: I "STAY"\nACTION: GO\nSURE: 75%'

    run = harness.evaluate(world_spec(), Mock(function=model), output_path=tmp_path / "run")
    assert run.scores[0].numbers == {"sure": 1.5, "notes": 4.0}
    assert (
        "NOTE: [a text of at most 60 characters, or None]" in prompts[0] and "SURE: [a number from 0 to 1" in prompts[0]
    )
    assert r'- notes: Agent-0: "hi, Agent-1: I \"STAY\"", Agent-1: "hi' in prompts[-1]
    chance = harness.evaluate({**world_spec(), "baseline": "random"}, output_path=tmp_path / "chance")
    assert chance.scores[0].error is None and 0 < float(chance.scores[0].numbers["sure"]) < 2  # type: ignore[arg-type]
    alone = {**world_spec(), "baseline": {"use": "expression", "act": "'GO'"}}
    assert harness.evaluate(alone, output_path=tmp_path / "alone").scores[0].numbers == {"sure": 0.0, "notes": 4.0}


def test_moves_are_those_that_are_legal_when_an_agent_is_asked(tmp_path: Path) -> None:
    task: dict[str, Any] = {
        "use": "world", "agents": 2, "rules": "Say what you would do next.", "state": {"left": "1", "said_so": "[]"},
        "actions": {
            "TAKE": {"when": "left > 0", "effects": {"left": "left - 1"}},
            "STAY": {"effects": {"said_so": "said_so + [said[me].next]"}},
        },
        "reply": {"next": {"one_of": "moves", "means": "what you do then"}, "action": {"one_of": "moves"}},
        "noop": "STAY", "end": "rounds == 2", "scores": {"named": "len([one for one in said_so if one])"},
    }  # fmt: skip
    spec: dict[str, Any] = {
        "name": "m", "task": task, "protocol": {"use": "steps", "order": "sequential", "max_timesteps": 4},
        "prompts": "world/standard", "metrics": [{"use": "grade", "of": "named", "name": "named"}],
        "tables": [{"title": "T", "rows": "model", "metrics": "named"}],
    }  # fmt: skip
    forms: list[Any] = []

    def model(request: Any) -> str:
        forms.append(request.reply)
        text = str(request.thread.messages)
        assert "NEXT: [what you do then: one of the actions that are legal now, or None]" in text
        return f"NEXT: TAKE\nACTION: {'TAKE' if len(forms) == 1 else 'STAY'}"

    run = harness.evaluate(spec, Mock(function=model), output_path=tmp_path / "run")
    assert [form.beside[0].values for form in forms] == [("TAKE", "STAY"), ("STAY",), ("STAY",), ("STAY",)]
    assert dict(forms[1].constraint())["regex"].startswith("NEXT: (STAY)")
    assert run.scores[0].numbers == {"named": 0.0}, "TAKE is no move any more where STAY was played"
    chance = harness.evaluate({**spec, "baseline": "random"}, output_path=tmp_path / "chance")
    assert chance.scores[0].error is None and chance.scores[0].numbers["named"] == 3.0
    with pytest.raises(HarnessError, match="says where the action stands"):
        other = {**spec, "task": {**task, "reply": {"action": {"one_of": ["TAKE"]}}}}
        harness.evaluate(other, Mock(text="x"), output_path=tmp_path / "other")


def test_talk_and_a_field_message_would_have_one_label(tmp_path: Path) -> None:
    spec = world_spec(channel="neighbors", talk_rounds=1)
    spec["task"] = {**WORLD, "reply": {"message": "text", "note": "text", "sure": {"number": [0, 1]}}}
    with pytest.raises(HarnessError, match="rename the field"):
        harness.evaluate(spec, Mock(text="x"), output_path=tmp_path / "run")


def test_constraints_of_a_network_see_what_is_said_beside_answers(tmp_path: Path) -> None:
    task = {
        "use": "network", "problem": "sure", "goal": "Agree.", "question": "Which?",
        "answer": {"choice": ["red", "blue"]},
        "graphs": [["a", "b"]], "connected": True, "reply": {"why": "text", "sure": {"number": [0, 1]}},
        "constraints": {
            "same": {"every": "edge", "holds": "answer[u] == answer[v]"},
            "sure": {"every": "agent", "holds": "(said[agent].sure or 0) > 0.5"},
        },
    }  # fmt: skip
    spec = {
        "name": "n", "task": task, "protocol": {"use": "local_rounds", "channel": "neighbors", "rounds": 0},
        "metrics": [{"use": "grade", "of": name, "name": name} for name in ("solved", "sure")],
        "tables": [{"title": "T", "rows": "model", "metrics": "solved"}],
    }  # fmt: skip
    numbers = []
    for sure in ("0.9", "None"):
        text = f"WHY: so\nSURE: {sure}\n### Final Answer ### red"
        run = harness.evaluate(spec, Mock(text=text), output_path=tmp_path / sure)
        numbers.append(run.scores[0].numbers)
    assert numbers == [{"solved": 1.0, "sure": 1.0}, {"solved": 0.0, "sure": 0.0}]


def test_a_sharded_question_has_fields_beside_its_answer(tmp_path: Path) -> None:
    task = {
        "use": "sharded", "problem": "sum", "agents": 2, "whole": True, "instances": 2, "items": 2,
        "question": "The sum?",
        "draw": {"data": "[randint(1, 9) for i in range(agents * per_agent)]"}, "truth": "sum(data)",
        "reply": {"why": "text", "answer": None, "confidence": {"number": [0, 1]}},
    }  # fmt: skip
    asked: list[str] = []

    def model(request: Any) -> str:
        asked.append(str(request.thread.messages[-1]["content"]))
        data = re.findall(r"\[[\d, ]+\]", asked[-1])[-1]
        return f"WHY: added\nFinal answer: {sum(json.loads(data))}\nCONFIDENCE: 0.9"

    spec = {
        "name": "s", "task": task, "protocol": {"use": "vote", "agents": 2, "weights": "confidence"},
        "prompts": "silo/panel", "metrics": [{"use": "grade", "of": "success", "name": "success"}],
        "tables": [{"title": "T", "rows": "model", "metrics": "success"}],
    }  # fmt: skip
    run = harness.evaluate(spec, Mock(function=model), output_path=tmp_path / "run")
    assert [one.numbers["success"] for one in run.scores] == [1.0, 1.0] and "WHY: [a text" in asked[0]
