"""`harness probe`: a card for each dialect, and what a run makes of it before its first request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api.errors import UserError
from tests.extensions.openai.dialects.play import ENGINE, by_seed, play, report
from tests.extensions.openai.dialects.speaker import Speaker
from tests.helpers.commands import invoke
from tests.helpers.fake_openai import FakeOpenAI, raw, status
from tests.helpers.toy import TOY

CARDS = Path(__file__).parent / "cards"
UNSUPPORTED = "Unsupported parameter: '{0}' is not supported with this model."
ALTERNATE = "Conversation roles must alternate user/assistant/user/assistant/..."
DIALECTS: dict[str, Speaker] = {
    "vllm": Speaker(
        listed={"max_model_len": 2048, "owned_by": "vllm"},
        stops=4,
        too_many_stops="{'type': 'too_long', 'loc': 'body.stop', 'msg': 'List should have at most 4 items'}",
        structured=("structured_outputs", "response_format"),
        echoes=("texts", "chats"),
    ),
    "vllm_without_tools": Speaker(
        listed={"max_model_len": 2048},
        tools='"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        structured=("structured_outputs",),
        parallel="This model only supports single tool-calls at once!",
        reasoning="reasoning_content",
    ),
    "openai": Speaker(
        stops=4,
        structured=("response_format",),
        headers={
            "x-ratelimit-limit-requests": "500",
            "x-ratelimit-limit-tokens": "30000",
            "x-ratelimit-reset-tokens": "6s",
        },
        texts=False,
        window=16385,
    ),
    "openai_reasoning": Speaker(
        stops=0,
        too_many_stops=UNSUPPORTED.format("stop"),
        words=("max_completion_tokens",),
        refused_word=UNSUPPORTED.format("max_tokens") + " Use 'max_completion_tokens' instead.",
        temperature="Unsupported value: 'temperature' does not support 0 with this model.",
        structured=("response_format",),
        reasoning="hidden",
        texts=False,
    ),
    "llama_cpp": Speaker(
        listed={"meta": {"n_ctx": 4096}}, structured=("json_schema", "grammar", "response_format"), drops=("tools",)
    ),
    "gemini": Speaker(reasoning="hidden", usage="beside", structured=("response_format",), texts=False),
    "ollama": Speaker(words=("max_tokens",), structured=("response_format",), calls=1, reasoning="reasoning"),
    "gemma_template": Speaker(system="System role not supported", in_a_row=ALTERNATE, drops=("tools",)),
    "mistral": Speaker(
        empty="Assistant message must have either content or tool_calls, but not none.",
        seed="Extra inputs are not permitted: seed",
        parallel="Expected last role User or Tool",
        reasoning="text",
    ),
    "stream_only": Speaker(stream="only", usage="none", ignores_stops=True),
    "stream_always": Speaker(stream="always", ignores_seed=True, drops=("system",), words=(), calls=0),
}  # fmt: skip


def probed(capsys: pytest.CaptureFixture[str], server: FakeOpenAI, *more: str) -> tuple[int, str, str]:
    return invoke(capsys, "probe", server.url, *more)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_card_says_what_the_server_does(dialect: str, capsys: pytest.CaptureFixture[str]) -> None:
    with DIALECTS[dialect].serve() as server:
        code, out, err = probed(capsys, server)
    assert code == 0, err
    shown = out.replace(server.url, "http://SERVER/v1")
    assert shown == (CARDS / f"{dialect}.txt").read_text("utf-8")


def card_of(dialect: str, server: FakeOpenAI, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The file with a server's card."""
    file = folder / f"{dialect}.json"
    code, _, err = probed(capsys, server, "-o", str(file))
    assert code == 0, err
    server.bodies.clear()
    return str(file)


SCORED: dict[str, Any] = {
    "name": "scored",
    "task": {
        "use": "dataset_qa",
        "doc_to_text": "q",
        "doc_to_target": "a",
        "doc_to_choice": "c",
        "scoring": "loglikelihood",
    },
    "protocol": "single",
    "prompts": "qa/scored",
    "metrics": ["score"],
}  # fmt: skip
LONG = {**SCORED, "task": {**SCORED["task"], "scoring": None}, "prompts": "qa/standard"}
SUMS = {
    "name": "sums",
    "task": {"use": "arithmetic", "size": 1, "terms": 2},
    "protocol": "single",
    "prompts": "qa/standard",
}
TOLD: dict[str, tuple[Any, dict[str, Any], str, str]] = {
    "gemma_template": ("toy", {}, "has a system message, and the server takes no such messages", "'system': 'merge'"),
    "stream_always": ("toy", {}, "leaves such messages out of its prompts", "'system': 'merge'"),
    "vllm_without_tools": ("silo_quick", {}, "offers none: the server takes no tools .*400: .*auto", "reply_via: text"),
    "openai_reasoning": ("toy", {}, "has a temperature, and the server takes no temp", "--gen_kwargs temperature=null"),
    "openai": (SCORED, {}, "the server gives none of texts .HTTP 404: Not Found", "such as vLLM's"),
    "vllm": (LONG, {}, "has about [0-9,]+ tokens, and the server's window has 2,048", "longer context"),
    "mistral": (SUMS, {"structured": "openai"}, "does not do that by structured=openai", "Leave structured_output"),
    "llama_cpp": (SUMS, {"structured": "vllm"}, "does not do that by structured=vllm", "'structured': 'llama.cpp'"),
}  # fmt: skip


@pytest.mark.parametrize("dialect", TOLD)
def test_a_spec_that_needs_more_is_refused_before_the_first_call(
    dialect: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, fields, why, hint = TOLD[dialect]
    if spec in (SCORED, LONG):
        question = "Why?" if spec is SCORED else "Why does the river run? " * 600
        (tmp_path / "rows.jsonl").write_text(json.dumps({"q": question, "c": ["so", "no"], "a": "so"}))
        spec = {**spec, "task": {**spec["task"], "data_files": {"test": str(tmp_path / "rows.jsonl")}}}
    changes = {"silo_quick": ("protocol.reply_via=tool_calls",)}.get(str(spec), ())
    if "structured" in fields:
        spec = {**spec, "structured_output": True}
    with DIALECTS[dialect].serve() as server:
        card = card_of(dialect, server, tmp_path, capsys)
        engine = {**ENGINE, "base_url": server.url, "card": card, **fields}
        project = TOY if spec == "toy" else None
        with pytest.raises(UserError, match=why) as caught:
            harness.evaluate(
                spec, "openai", model_args=engine, overrides=changes, output_path=tmp_path / "run", project=project
            )
        assert hint in str(caught.value) and server.bodies == [] and not (tmp_path / "run").exists()


def test_what_a_card_says_is_known_from_the_first_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The name for the most tokens, and stops; run.json keeps the card."""
    with DIALECTS["openai_reasoning"].serve() as server:
        card = card_of("openai_reasoning", server, tmp_path, capsys)
        changes = ("generation_kwargs={stop: ['4'], max_tokens: 40}",)
        done = play(tmp_path / "run", server, {"card": card}, overrides=changes)
        assert len(server.bodies) == report(done)["requests"] and not done.failed
        assert all("max_completion_tokens" in body and "stop" not in body for body in server.bodies)
    kept = done.meta["engine_args"]["model"]["card"]
    assert kept["max_tokens"] == ["max_completion_tokens"] and kept["stops"] == 0
    assert kept == {name: value for name, value in json.loads(Path(card).read_text()).items() if name != "card"}
    assert {turn["reply"] for turn in done.turns()} == {""}, "cut here, at the stop that was not sent"
    assert "card" not in json.dumps(done.meta["identity"])


def test_a_run_goes_on_without_its_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Speaker().serve() as server:
        card = card_of("plain", server, tmp_path, capsys)
        play(tmp_path / "run", server, {"card": card})
        server.bodies.clear()
        play(tmp_path / "run", server)
        assert server.bodies == []


@pytest.mark.parametrize(
    ("change", "why"),
    [({"model": "other"}, "the card is about the model 'other'"), ({"window": 7}, "lists 2,048 now")],
)
def test_a_card_of_another_server_is_refused(
    change: dict[str, Any], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with DIALECTS["vllm"].serve() as server:
        card = Path(card_of("vllm", server, tmp_path, capsys))
        card.write_text(json.dumps({**json.loads(card.read_text()), **change, "token_characters": 1e9}))
        with pytest.raises(UserError, match=why) as caught:
            play(tmp_path / "run", server, {"card": str(card)})
        assert "harness probe" in str(caught.value) and server.bodies == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "no card .*: No such file"),
        ("{", "not a card of this version"),
        ("[" * 100_000, "not a card of this version"),
        ("9" * (1 << 21), "not a card of this version"),
        ('{"card": 2}', "not a card of this version"),
        ('{"card": 1, "server": "s", "model": "fake", "at": "", "harness": "", "requests": 1, "stops": "x"}', "stops"),
    ],
)
def test_what_is_no_card(text: str | None, why: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "card.json").write_text(text)
    with FakeOpenAI(by_seed) as server, pytest.raises(UserError, match=why):
        play(tmp_path / "run", server, {"card": str(tmp_path / "card.json")})


def test_which_model_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeOpenAI(models=["a", "b"]) as server:
        code, _, err = probed(capsys, server)
        assert code == 2 and "lists 2 models: a, b" in err and "--model_args model=NAME" in err
        code, out, _ = probed(capsys, server, "--model_args", "model=b", "--format", "json")
        assert code == 0 and json.loads(out)["model"] == "b"
        code, _, err = probed(capsys, server, "--model_args", "model=c")
        assert code == 2 and "has no model 'c'" in err


def test_a_server_that_answers_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeOpenAI(faults=lambda body: status(402, "Your balance is empty.")) as server:
        code, _, err = probed(capsys, server)
    assert code == 2 and "answers no question to fake: HTTP 402: Your balance is empty." in err
    code, _, err = probed(capsys, server)
    assert code == 2 and "no usable server at" in err
    code, _, err = invoke(capsys, "probe", "localhost:8000/v1")
    assert code == 2 and "has no http:// or https:// before it" in err


def test_the_format_is_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with Speaker().serve() as server:
        server.models_fault = raw('{"data": []}')
        code, out, _ = probed(
            capsys, server, "--model_args", "model=fake", "--format", "json", "-o", str(tmp_path / "c")
        )
    assert code == 0 and json.loads((tmp_path / "c").read_text()) == {"card": 1, **json.loads(out)}
