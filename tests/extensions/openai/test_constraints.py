"""Constraints in the words of servers, and plans whose forms a server cannot keep to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.api.errors import SetupError, SpecError
from harness.config.project import builtin
from harness.extensions.openai.constraints import constrained, gbnf
from harness.extensions.openai.openai import OpenAI
from tests.extensions.openai.test_openai import ask
from tests.helpers.fake_openai import FakeOpenAI

# What llama.cpp's server answered with, held to each of these.
GRAMMARS = [
    (r"Final Answer: \-?[0-9]{1,5}(\.[0-9]{1,3})?",
     '"Final Answer: " ("-"){0,1} ([0-9]){1,5} r0{0,1}\nr0 ::= (("." ([0-9]){1,3}))'),
    (r"AGREE|DISAGREE\n(x|y)", r'("AGREE" | "DISAGREE\n" ([xy]))'),
    (r"(.|\n)*\\boxed\{[^\n]{1,200}\}", r'((([^\n] | "\n")))* "\\boxed{" ([^\n]){1,200} "}"'),
    (r"[^\n]{1,4000}", r"([^\n]){1,2000} ([^\n]){0,2000}"),
    # Repetitions within one another, as in SILO-Bench's calls: in one rule llama.cpp multiplies them and refuses it.
    (r"(a{1,512}|b{1,512}){1,10}", 'r0{1,10}\nr0 ::= (((("a"){1,512} | ("b"){1,512})))'),
    (r"^a+b*?\d\w\s$", r'("a")+ ("b")* [0-9] [a-zA-Z0-9_] [ \t\n\r]'),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "grammar"), GRAMMARS)
def test_a_regular_expression_as_a_grammar_of_llama(pattern: str, grammar: str) -> None:
    assert gbnf(pattern) == f"root ::= {grammar}"


@pytest.mark.parametrize("pattern", [r"(?=a)b", r"(a)\1", r"\bword", r"a(?!b)", "(", r"\Aa"])
def test_what_no_grammar_can_say_is_said(pattern: str) -> None:
    with pytest.raises(SetupError) as caught:
        gbnf(pattern)
    assert "regular expression" in caught.value.message and "structured=none" in str(caught.value.hint)


@given(st.text(max_size=20))
def test_any_text_is_one_literal(text: str) -> None:
    """A literal of GBNF reads the escapes of JSON, and no quotation mark ends it early."""
    grammar = constrained({"choice": [text]}, "llama.cpp")["grammar"]
    assert re.fullmatch(r'root ::= "(?:[^"\\\n\r]|\\["\\bfnrt]|\\u[0-9a-fA-F]{4}|\\x7F)*"', grammar)


def test_each_form_travels_in_llamas_words() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"]}
    constraints: list[dict[str, Any]] = [
        {"json": schema}, {"choice": ["left", 'say "right"']}, {"regex": "a|bc"}, {"grammar": 'root ::= "yes"'},
    ]  # fmt: skip
    with FakeOpenAI() as server:
        for constraint in constraints:
            ask(server, engine={"structured": "llama.cpp"}, constraint=constraint)
    sent = [{k: v for k, v in body.items() if k in ("json_schema", "grammar")} for body in server.bodies]
    assert sent == [
        {"json_schema": schema},
        {"grammar": 'root ::= "left" | "say \\"right\\""'},
        {"grammar": 'root ::= ("a" | "bc")'},
        {"grammar": 'root ::= "yes"'},
    ]


@pytest.mark.parametrize("spec", ["dpbench_quick", "arithmetic", "agentsnet_quick", "repeated_dilemmas"])
def test_a_plan_whose_forms_a_server_cannot_keep_to_asks_it_nothing(spec: str, tmp_path: Path) -> None:
    with FakeOpenAI() as server:
        engine = OpenAI(model="fake", base_url=server.url, api_key_env="NO_SUCH_KEY")
        overrides = ["structured_output=true"]
        with pytest.raises(SpecError, match=r"turn '\w+' is held to its form.*structured=llama\.cpp") as caught:
            harness.evaluate(spec, engine, overrides=overrides, output_path=tmp_path / "r", project=builtin(), limit=1)
    assert server.bodies == [] and "structured_output" in str(caught.value.place)


@pytest.mark.parametrize("structured", ["vllm", "llama.cpp", "none"])
def test_servers_that_can_are_asked(structured: str, tmp_path: Path) -> None:
    with FakeOpenAI(lambda body: "ACTION: WAIT") as server:
        engine = OpenAI(model="fake", base_url=server.url, api_key_env="NO_SUCH_KEY", structured=structured)  # type: ignore[arg-type]
        overrides, folder = ["structured_output=true"], tmp_path / "r"
        harness.evaluate("dpbench_quick", engine, overrides=overrides, output_path=folder, project=builtin(), limit=1)
    words = {"vllm": "structured_outputs", "llama.cpp": "grammar"}
    assert all((words.get(structured, "") in body) is (structured != "none") for body in server.bodies)
