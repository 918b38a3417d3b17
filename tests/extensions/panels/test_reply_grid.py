"""Every protocol asks again for unreadable replies, and lets decoding keep to every form that is not free text."""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import harness
from harness.api import Reply, Request, Turn, as_text
from harness.api.errors import HarnessError
from harness.cli import main
from harness.config import resolve
from harness.config.project import builtin
from harness.config.spec import load
from harness.engines.likelihoods import likelihoods_of
from harness.engines.mock import Mock
from harness.extensions.panels.answer_with_confidence import AnswerWithConfidence
from harness.extensions.yaml_tasks.contract import ActWithFields
from harness.replies import FreeText, WrappedReply
from harness.replies.parse_guard import read
from harness.runtime.steps import drive
from tests.core.replies.every_form import ACT, BESIDE, FORMS
from tests.extensions.panels.test_margins import BATCHES, PLAYED, answered, conditions

FREE = ("FreeText", "Feedback", "AnswerAfterCritique")
"""Forms with room for any text: nothing for decoding to keep to, and nothing to ask for again but an empty text."""


NARROWER = ("rating", "calls", "commands")
"""Forms that take more than decoding may write: halves, optional arguments."""


def turns(name: str) -> Iterator[tuple[str, Turn]]:
    """(condition, turn) of all that is asked in what is played, where protocols ask again once."""
    for condition in conditions(name):
        protocol: Any = condition.protocol
        if "parse_retries" in {one.name for one in fields(protocol)}:
            protocol = replace(protocol, parse_retries=1)
        case = condition.task.example()
        game = protocol.play(condition.task, case, protocol.possible_agents(case), random.Random(0))
        batch = next(game)
        for _ in range(BATCHES):
            yield from ((condition.id, turn) for turn in batch)
            try:
                batch = game.send([answered(turn, "The answer is 42.") for turn in batch])
            except StopIteration:
                break
        game.close()


def is_free(form: Reply) -> bool:
    while isinstance(form, WrappedReply) and type(form).__name__ not in FREE:
        form = form.inner
    return type(form).__name__ in FREE


def decoded(form: Reply, action: Any) -> str | None:
    """What constrained decoding can write that says this; None where it has no such text."""
    allowed, text = form.constraint() or {}, form.written(action)
    if "choice" in allowed:
        return text if text in allowed["choice"] else None
    if "regex" in allowed:
        return next((one for one in (text, f"{text}\n") if re.fullmatch(allowed["regex"], one)), None)
    said = {name: value for name, value in form.says(action).items() if value is not None}
    reasoned = {"reasoning": "so", **said, "answer": as_text(said.get("answer"))}
    objects = (said, *(_value(one) for one in said.values()), reasoned)
    return next((json.dumps(one) for one in objects if Draft202012Validator(allowed["json"]).is_valid(one)), None)


def _value(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", [*reversed(PLAYED)])
def test_every_turn_is_asked_again_and_can_be_constrained(name: str) -> None:
    for condition, turn in turns(name):
        form = turn.reply
        assert turn.parse_retries >= 1, (condition, turn.name)
        assert is_free(form) or form.tools or form.constraint(), (condition, turn.name)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", [*reversed(PLAYED)])
def test_prompts_ask_for_every_field_as_it_is_declared(name: str) -> None:
    sets = {condition.id: condition.groups[0].prompts for condition in conditions(name)}
    for condition, turn in turns(name):
        prompts = sets[condition]
        opening = "\n".join(message["content"] for message in prompts.opening(turn.context))
        asked = f"{opening}\n{prompts.render(turn.name, {**turn.context, **turn.observation})}".casefold()
        for field in turn.reply.fields:
            ways = [field.lead.strip().casefold(), f'"{field.name}"'.casefold()]
            assert any(way in asked for way in ways), (condition, turn.name, field.lead)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", FORMS)
def test_decoding_may_write_what_a_form_writes_and_the_form_reads_it(name: str) -> None:
    form = FORMS[name][0]
    texts = {decoded(form, action): action for action in form.examples} if form.constraint() is not None else {}
    assert None not in texts or name.startswith(NARROWER)
    assert [*texts] != [None]
    for text, action in texts.items():
        parsed = read(form, text) if text is not None else None
        assert parsed is None or (parsed.error is None and form.says(parsed.action) == form.says(action)), text


# ------------------------------------------------------------------------------------- contracts


def test_constrained_text_of_a_contract_is_one_that_it_reads() -> None:
    inner = FORMS["contract, value"][0].act  # type: ignore[attr-defined]
    form = AnswerWithConfidence(inner, "line")
    allowed: Any = form.constraint()
    said = {"answer": 12, "confidence": 0.5}
    Draft202012Validator(allowed["json"]).validate(said)
    assert read(form, json.dumps(said)).action == {"answer": 12, "confidence": 0.5, "malformed": False}
    act = ActWithFields(ACT, BESIDE, 1)
    regex = dict(act.constraint() or {})["regex"]
    for action in act.examples:
        assert re.fullmatch(regex, act.written(action)) and read(act, act.written(action)).action == action
    assert as_text(FreeText().constraint()) == "null"


def questions(folder: Path, **more: Any) -> Path:
    """A spec over one question with two options, in a file."""
    (folder / "rows.jsonl").write_text('{"q": "Why?", "c": ["so", "no"], "a": "so"}\n')
    task = {
        "use": "dataset_qa", "data_files": {"test": str(folder / "rows.jsonl")}, "doc_to_text": "q",
        "doc_to_target": "a", "doc_to_choice": "c", **more.pop("task", {}),
    }  # fmt: skip
    spec = {
        "name": "asked", "prompts": "qa/standard", "metrics": ["score"], "protocol": "single", "task": task,
        "tables": [{"title": "T", "rows": "model", "metrics": "score"}], **more,
    }  # fmt: skip
    file = folder / "asked.yaml"
    file.write_text(json.dumps(spec))
    return file


SCORED = {"task": {"scoring": "loglikelihood"}, "prompts": "qa/scored", "metrics": ["score"]}
LETTERS = {"task": {"answer": {"form": "letter"}}, "prompts": "panels/standard"}
FREE_TEXT = {"task": {"answer": {"form": "text"}, "doc_to_choice": None}}
SLOW = pytest.mark.slow
TOOLS = ["structured_output=true", "protocol.reply_via=tool_calls"]


@pytest.mark.parametrize(
    ("spec", "changes", "why"),
    [
        pytest.param(FREE_TEXT, ["structured_output=true"], "any text answers turn 'answer'", id="free"),
        pytest.param(SCORED, ["structured_output=true"], "turn 'answer' is scored by log-likelihoods", id="scored"),
        pytest.param(SCORED, ["protocol.parse_retries=1"], "leave parse_retries out", id="scored, retries", marks=SLOW),
        pytest.param("silo_quick", TOOLS, "turn 'round' calls tools", id="tools", marks=SLOW),
    ],
)
def test_what_would_change_nothing_is_refused(
    spec: Any, changes: list[str], why: str, tmp_path: Path, capsys: Any
) -> None:
    spec = spec if isinstance(spec, str) else str(questions(tmp_path, **spec))
    with pytest.raises(HarnessError, match=re.escape(why)):
        harness.evaluate(spec, Mock(text="so"), overrides=changes, output_path=tmp_path / "run")
    assert main(["validate", spec, *(part for one in changes for part in ("--set", one))])
    printed = capsys.readouterr()
    assert why in printed.out + printed.err


@pytest.mark.parametrize("protocol", ["{use: vote, agents: 2, weights: confidence}", "{use: reconcile, agents: 2}"])
def test_turns_that_are_scored_have_no_other_property(protocol: str, tmp_path: Path) -> None:
    changes = [f"protocol={protocol}", "protocol.confidence=likelihood", "protocol.parse_retries=1"]
    spec = load(str(questions(tmp_path, **LETTERS)), builtin(), changes)
    [condition] = resolve.plan(spec, builtin(), Mock()).conditions
    turns = [*drive(condition.protocol, condition.task, condition.task.example()).turns()]
    scored = [turn for turn in turns if likelihoods_of(turn.reply) is not None]
    assert scored and len(scored) < len(turns)
    for turn in turns:
        form, other = turn.reply, turn not in scored
        assert (turn.parse_retries, form.constraint() is not None, bool(form.fields)) == (int(other), other, other)
        assert not form.tools


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["silo_calls", "mas_calls"])
def test_conditions_without_a_form_beside_others_are_played(spec: str, tmp_path: Path) -> None:
    """Their turns with tools are free; those with calls in text are constrained."""
    harness.evaluate(spec, Mock(), overrides=["structured_output=true"], limit=1, output_path=tmp_path / "run")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("turn", "spec", "protocol"),
    [
        ("digest", "arithmetic", ["prompts=panels/standard", "protocol={use: debate, summarize: shared}"]),
        ("feedback", "arithmetic", ["prompts=panels/standard", "protocol={use: self_refine}"]),
        ("work", "teams/tree", []),
    ],
)
def test_free_texts_that_only_think_are_asked_for_again(
    turn: str, spec: str, protocol: list[str], tmp_path: Path
) -> None:
    def reply(request: Request) -> str:
        thinks = not request.id.endswith("/1") and request.reply is not None and is_free(request.reply)
        return "<think>Hm.</think>" if thinks else "Sum it.\nVerdict: revise\nThe answer is 42."

    changes = [*protocol, "protocol.parse_retries=1"]
    run = harness.evaluate(spec, Mock(function=reply), overrides=changes, limit=1, output_path=tmp_path / "run")
    turns = [one for one in run.turns() if one["template"] == turn]
    assert turns and all(one["calls"] == 2 and not one["error"] for one in turns), turns[:1]
