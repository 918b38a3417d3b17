"""Every schema that the harness sends is one that OpenAI's strict mode takes, and replies held to it are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import harness
from harness.api import Reply, Turn
from harness.config import resolve
from harness.config.project import builtin
from harness.config.spec import load
from harness.engines.mock import Mock
from harness.extensions.openai.strict import BOUNDS, response_format, restored
from harness.replies.parse_guard import read
from harness.runtime.steps import drive
from tests.core.replies.every_form import FORMS
from tests.extensions.openai.dialects.play import ENGINE, errors, report
from tests.extensions.openai.test_openai import ask
from tests.helpers.fake_openai import Body, FakeOpenAI, Fault, status
from tests.helpers.shipped import specs
from tests.helpers.strict_mode import complaint, filled, refuse, tool_complaint

HELD = {name: form for name, (form, _) in FORMS.items() if "json" in (form.constraint() or {})}
OPEN = {"table"}
"""Forms of objects with names of the model's own, for which strict mode has no schema."""


def sent(schema: Any) -> Body:
    made: Body = response_format(schema)["json_schema"]
    return made


def examples(form: Reply) -> list[tuple[Any, Any]]:
    """(action, its reply as the form's schema has it)."""
    schema: Any = (form.constraint() or {})["json"]
    found = []
    for action in form.examples:
        said = {name: value for name, value in form.says(action).items() if value is not None}
        for value in (said, said.get("answer")):
            if Draft202012Validator(schema).is_valid(value):
                found.append((action, value))
                break
    return found


@pytest.mark.parametrize("name", HELD)
def test_strict_mode_takes_the_schema_of_every_form(name: str) -> None:
    schema: Any = (HELD[name].constraint() or {})["json"]
    made = sent(schema)
    assert made["strict"] == (name not in OPEN)
    if made["strict"]:
        assert complaint(made["schema"]) is None
        for null in (True, False):
            value = filled(made["schema"], null)
            back = json.loads(restored(json.dumps(value), schema))
            looser = {name: one for name, one in schema.items() if name not in ("minItems", "maxItems")}
            assert Draft202012Validator(looser).is_valid(back), back


@pytest.mark.parametrize("name", HELD)
def test_null_is_read_as_if_the_field_lacked(name: str) -> None:
    form = HELD[name]
    schema: Any = (form.constraint() or {})["json"]
    for action, value in examples(form):
        asked = {"answer": value} if "properties" not in schema and name not in OPEN else value
        if "properties" in schema:
            asked = {**dict.fromkeys(schema["properties"]), **value}
        text = restored(json.dumps(asked), schema)
        assert json.loads(text) == value
        assert read(form, text).action == read(form, json.dumps(value)).action == action
        if "properties" in schema and not name.endswith("reference"):  # that reads what the paper's own code reads
            assert read(form, json.dumps(asked)).action == action, "also where another server gives null"
    assert examples(form) or name in ("rating", "rating in JSON", "considered, JSON"), "see that there are some"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", specs())
def test_the_schemas_of_every_spec_are_taken(name: str) -> None:
    """Those of its replies, whether it asks for structured output or a user does, and those of its tools."""
    plan = resolve.plan(load(name, builtin()), builtin(), Mock(text="7"))
    seen: set[str] = set()
    kinds: dict[Any, Any] = {}
    for condition in plan.conditions:
        kinds.setdefault((type(condition.task), repr(condition.protocol)), condition)
    for condition in [*kinds.values()][:12]:
        case = condition.assign_groups(condition.task.example(), 0)
        for turn in drive(condition.protocol, condition.task, case).turns():
            taken(turn, seen)


def taken(turn: Turn, seen: set[str]) -> None:
    schema = (turn.reply.constraint() or {}).get("json")
    if schema is not None and (key := json.dumps(schema)) not in seen:
        seen.add(key)
        made = sent(schema)
        assert made["schema"]["type"] == "object" and (not made["strict"] or complaint(made["schema"]) is None)
    for tool in turn.reply.tools:
        assert tool_complaint(tool) is None, tool


@pytest.mark.parametrize("null", [True, False])
def test_a_run_at_a_server_in_strict_mode(tmp_path: Path, null: bool) -> None:
    """A message for each neighbor that may lack, and an answer that is no object."""

    def answer(body: Body) -> str:
        schema = body["response_format"]["json_schema"]["schema"]
        return json.dumps(filled(schema, null))

    changes = ["structured_output=true", "matrix={topology: [ring], agents: [4]}"]
    with FakeOpenAI(answer, faults=refuse) as server:
        engine = {**ENGINE, "base_url": server.url}
        done = harness.evaluate(
            "sharded/networks", "openai", model_args=engine, output_path=tmp_path / "run", overrides=changes, limit=1
        )
    assert report(done)["failures"] == 0 and errors(done) == []
    assert all(body["response_format"]["json_schema"]["strict"] for body in server.bodies)
    assert "null" not in json.dumps([turn["reply"] for turn in done.turns()])


def test_a_server_that_knows_fewer_keywords_gets_no_others() -> None:
    """Anthropic: "For 'integer' type, properties maximum, minimum are not supported"."""
    schema = {
        "type": "object",
        "properties": {"maximum": {"type": "integer", "minimum": 1, "maximum": 5}, "b": {"type": "string"}},
        "required": ["maximum"],
        "additionalProperties": False,
    }

    def refused(body: Body) -> Fault | None:
        made = json.dumps(body["response_format"])
        wrong = '"minimum"' in made or '"maximum": 5' in made
        message = "output_format.schema: For 'integer' type, properties maximum, minimum are not supported"
        return status(400, message) if wrong else refuse(body)

    with FakeOpenAI(lambda body: '{"maximum": 3, "b": null}', faults=refused) as server:
        answer = ask(server, constraint={"json": schema})
    assert answer.text == '{"maximum": 3}' and len(server.bodies) == 2
    assert "maximum" in server.bodies[1]["response_format"]["json_schema"]["schema"]["properties"]


KINDS: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(max_size=4), "integer": st.integers(-9, 9), "boolean": st.booleans(),
}  # fmt: skip


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> Any:
    """Schemas as forms declare them."""
    kind = draw(st.sampled_from(["string", "integer", "boolean", "enum", *(["object", "array"] if depth else [])]))
    if kind == "enum":
        return {"enum": draw(st.lists(st.sampled_from(["a", "b", 1, 2.5, True]), min_size=1, unique_by=repr))}
    if kind == "array":
        return {"type": "array", "items": draw(schemas(depth - 1)), "uniqueItems": False}
    if kind != "object":
        return {"type": kind, "default": None, **draw(st.sampled_from([{}, {"description": "x"}]))}
    names = draw(st.lists(st.sampled_from(["a", "b", "minimum", "enum", "answer"]), unique=True, min_size=1))
    properties = {name: draw(schemas(depth - 1)) for name in names}
    required = [name for name in names if draw(st.booleans())]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


@given(st.data())
def test_any_schema_becomes_strict_and_its_replies_come_back(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    before = json.dumps(schema)
    made = sent(schema)
    assert made["strict"] and complaint(made["schema"]) is None and json.dumps(schema) == before
    value = filled(made["schema"], data.draw(st.booleans()))
    assert Draft202012Validator(made["schema"]).is_valid(value)
    assert Draft202012Validator(schema).is_valid(json.loads(restored(json.dumps(value), schema)))


@given(st.text() | st.recursive(st.none() | st.text(), lambda one: st.lists(one) | st.dictionaries(st.text(), one)))
def test_no_reply_raises(value: Any) -> None:
    for schema in ({"type": "integer"}, {"type": "object", "properties": {"a": {"type": "array", "items": {}}}}):
        text = value if isinstance(value, str) else json.dumps(value)
        assert isinstance(restored(text, schema), str)


def test_what_strict_mode_cannot_say_is_asked_for_without_it() -> None:
    for schema in (
        {"type": "object", "additionalProperties": {"type": "number"}},
        {"type": "array", "items": {"type": "object"}},
        {"allOf": [{"type": "object"}, {"required": ["a"]}]},
        {"type": "array", "prefixItems": [{"type": "string"}]},
    ):
        made = sent(schema)
        assert not made["strict"] and made["schema"].get("type", "object") == "object"


def test_an_enum_that_is_too_large_is_left_to_the_form() -> None:
    words = [f"word {i}" for i in range(1500)]
    made = sent({"type": "object", "properties": {"a": {"enum": words}}, "required": ["a"]})
    assert made["strict"] and made["schema"]["properties"]["a"] == {"type": "string"}
    assert complaint(made["schema"]) is None


def test_the_stand_in_refuses_what_is_documented() -> None:
    """Else the tests above would prove nothing."""
    right = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert complaint(right) is None
    changes: list[dict[str, Any]] = [
        {"required": []}, {"additionalProperties": True}, {"properties": {"a": {"enum": ["x"]}}},
        {"properties": {"a": {"type": "string", "maxLength": 3}}}, {"type": "array"}, {"allOf": []},
        {"properties": {"a": {"type": "array"}}}, {"anyOf": []},
    ]  # fmt: skip
    for change in changes:
        assert complaint({**right, **change}) is not None, change
    assert {"minimum", "pattern"} <= BOUNDS
