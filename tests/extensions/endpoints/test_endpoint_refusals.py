"""What an endpoint refuses, in the form that each provider's client knows, and without a word of its secrets."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from harness.api import (
    BudgetSpentError,
    Completion,
    ContextLengthError,
    EngineFatalError,
    InnerRequest,
    LimitReachedError,
    NoTurnError,
    RefusedError,
    RequestError,
)
from harness.extensions.endpoints import _openai, chat, messages, responses
from harness.extensions.endpoints._fields import Fields
from tests.helpers.endpoint_seats import HELLO, Place, Scripted, serve

ROOT = Path(__file__).parents[3]
BODY: dict[str, Any] = {"model": "tiny", "messages": HELLO}
IMAGE = [{"type": "image_url", "image_url": {"url": "data:"}}]
FUNCTION = {"name": "look", "parameters": {}}
DEEP: dict[str, Any] = {}
for _ in range(200):
    DEEP = {"items": DEEP}


@pytest.mark.parametrize(
    ("more", "what", "param"),
    [
        ({"temprature": 1}, "Did you mean temperature?", "temprature"),
        ({"temperature": "hot"}, "temperature must be a number", None),
        ({"max_tokens": 3, "max_completion_tokens": 4}, "mean the same but differ", None),
        ({"max_tokens": 10**400}, "max_tokens must be at most", "max_tokens"),
        ({"stop": [""]}, "none empty", None),
        ({"n": 2}, "n must be 1", "n"),
        ({"logprobs": True}, "logprobs is not supported", "logprobs"),
        ({"logit_bias": {"3": 100}}, "logit_bias is not supported", "logit_bias"),
        ({"audio": {"voice": "x"}}, "audio is not supported", "audio"),
        ({"modalities": ["text", "audio"]}, "modalities must be text", "modalities"),
        ({"functions": [FUNCTION]}, "say tools", "functions"),
        ({"stream": "yes"}, "stream must be true or false", "stream"),
        ({"stream_options": {"include_usage": True}}, "only allowed with stream", "stream_options"),
        ({"messages": "hello"}, "messages must be a list", "messages"),
        ({"messages": []}, "at least one message", "messages"),
        ({"messages": ["hello"]}, "messages[0] must be an object", "messages[0]"),
        ({"messages": [{"role": "usr", "content": "x"}]}, "Did you mean user", "messages[0].role"),
        ({"messages": [{"role": "user", "content": IMAGE}]}, "only text is supported", "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": 3}]}, "must be a text or a list", "messages[0].content"),
        ({"messages": [{"role": "user", "contents": "x"}]}, "Did you mean content", "messages[0].contents"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "tool_call_id is missing", "messages[0].tool_call_id"),
        ({"tools": [{"type": "custom"}]}, "only functions are supported", "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "function is missing", "tools[0].function"),
        ({"tools": [{"type": "function", "function": FUNCTION}], "tool_choice": "any"}, "cannot be", "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "x"}}}, "cannot be", "tool_choice"),
        ({"response_format": {"type": "xml"}}, "response_format.type cannot be", "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "json_schema is missing", "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": DEEP}}}, "nested deeper", None),
        ({"tools": [{"type": "function", "function": {"name": "x", "parameters": DEEP}}]}, "nested deeper", None),
        ({"model": 3}, "model is missing: it is tiny", "model"),
    ],
)  # fmt: skip
def test_a_wrong_request_is_explained(more: dict[str, Any], what: str, param: str) -> None:
    async def work(place: Place) -> None:
        status, answer = await place.post("/chat/completions", {**BODY, **more})
        error = answer["error"]
        assert (status, error["type"]) == (400, "invalid_request_error")
        assert what in error["message"]
        assert param is None or error["param"] == param
        assert place.model.asks == []

    serve(work)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"", "the request is not JSON"),
        (b"{", "the request is not JSON"),
        (b'{"model": NaN}', "NaN is no number"),
        (b'{"temperature": 1e999}', "1e999 is too large a number"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "must be an object"),
        (b'{"model": "\xff"}', "not UTF-8"),
        (b'{"model": ' + b"9" * 5000 + b"}", "the request is not JSON"),
    ],
    ids=["empty", "cut", "nan", "infinite", "deep", "list", "latin", "long number"],
)
@pytest.mark.parametrize("path", ["/chat/completions", "/completions", "/responses", "/messages"])
def test_what_is_no_json_is_refused(body: bytes, what: str, path: str) -> None:
    async def work(place: Place) -> None:
        status, answer = await place.post(path, body)
        assert status == 400
        assert what in answer["error"]["message"]

    serve(work)


def test_half_a_character_reaches_the_model_as_a_question_mark() -> None:
    async def work(place: Place) -> None:
        body = b'{"model": "tiny", "messages": [{"role": "user", "content": "a\\ud800b \\ud83d\\ude00"}]}'
        assert (await place.post("/chat/completions", body))[0] == 200
        assert place.ask.messages[0]["content"] == "a?b 😀"

    serve(work)


FAILURES = [
    (LimitReachedError("10 calls of 10"), 429, "insufficient_quota", "10 calls of 10"),
    (NoTurnError("the seat has no turn"), 409, "no_turn", "the seat has no turn"),
    (ContextLengthError("9 tokens of 5"), 400, "context_length_exceeded", "9 tokens of 5"),
    (RefusedError("no such schema"), 400, "refused_by_engine", "no such schema"),
    (RequestError("no answer of http://abcdefgh:1/v1 in 60 s"), 502, "engine_error", "no answer of … in 60 s"),
    (EngineFatalError("401: wrong key"), 503, "run_stopped", "the run has stopped"),
    (BudgetSpentError("max_calls", 10), 503, "run_stopped", "the run has stopped"),
    (KeyError("api_key=abcdefgh"), 500, "internal_error", "the model failed: KeyError"),
]


@pytest.mark.parametrize(("said", "status", "code", "what"), FAILURES, ids=[type(one[0]).__name__ for one in FAILURES])
def test_failures_are_said_once(said: Exception, status: int, code: str, what: str) -> None:
    """The clients of both providers ask again by themselves after most of these: the harness has done so already."""

    async def work(place: Place) -> None:
        with pytest.raises(openai.APIStatusError, match=what) as found:
            await place.openai.chat.completions.create(**BODY)
        assert (found.value.status_code, found.value.code) == (status, code)
        with pytest.raises(anthropic.APIStatusError, match=what) as other:
            await place.anthropic.messages.create(**BODY, max_tokens=5)
        assert other.value.status_code == status
        assert len(place.model.asks) == 2
        assert "abcdefgh" not in f"{found.value.body}{other.value.body}"

    serve(work, said)


def test_every_seat_has_a_secret_of_its_own() -> None:
    async def work(place: Place) -> None:
        model = Scripted([Completion("red")])
        other = place.server.open(model, "episode/other")
        client = place.openai.with_options
        reply = await client(base_url=other.base_url, api_key=other.api_key).chat.completions.create(**BODY)
        assert reply.choices[0].message.content == "red"
        assert len(place.model.asks) == 0
        for key in (place.access.api_key, "", "sk-seat-x", "ü"):
            status, answer = await place.post_to(other.id, BODY, key)
            assert (status, answer["error"]["code"]) == (401, "invalid_api_key")
        place.server.shut(other)
        assert (await place.post_to(other.id, BODY, other.api_key))[0] == 410
        assert (await place.post_to("nobody", BODY, other.api_key))[0] == 404
        assert len(model.asks) == 1
        with pytest.raises(openai.APIStatusError, match="this seat is closed"):
            await client(base_url=other.base_url, api_key=other.api_key).chat.completions.create(**BODY)

    serve(work)


def test_a_call_that_is_open_when_its_seat_closes_is_answered() -> None:
    async def work(place: Place) -> None:
        asked, go = asyncio.Event(), asyncio.Event()

        async def slow(ask: InnerRequest) -> Completion:
            asked.set()
            await go.wait()
            return Completion("late")

        place.model.said = [slow]
        call = asyncio.create_task(place.openai.chat.completions.create(**BODY))
        await asked.wait()
        place.server.shut(place.access)
        go.set()
        assert (await call).choices[0].message.content == "late"

    serve(work)


def test_names_of_models() -> None:
    async def work(place: Place) -> None:
        for name in ("tiny", "claude-x"):
            await place.openai.chat.completions.create(**{**BODY, "model": name})
            assert place.ask.model == name
        with pytest.raises(openai.NotFoundError, match="Did you mean tiny") as found:
            await place.openai.chat.completions.create(**{**BODY, "model": "tinny"})
        assert found.value.code == "model_not_found"
        anything = place.server.open(place.model, "episode/other", accepts=["*"])
        assert (await place.post_to(anything.id, {**BODY, "model": "gpt-5"}, anything.api_key))[0] == 200
        assert (await place.post_to(anything.id, {**BODY, "model": "x" * 1000}, anything.api_key))[0] == 400

    serve(work, accepts=["claude-x"])


def test_wrong_paths_and_methods_are_answered_in_json() -> None:
    async def work(place: Place) -> None:
        assert (await place.post("/chat/completion", BODY))[0] == 404
        assert "/chat/completions" in (await place.post("/chat/completion", BODY))[1]["error"]["message"]
        assert (await place.post("/chat/completions", None, "GET"))[0] == 405
        assert (await place.post("/models", BODY))[0] == 405
        assert (await place.post("/embeddings", BODY))[0] == 404
        _, answer = await place.post("/message", BODY, anthropic_version="2023-06-01")
        assert answer["error"]["type"] == "not_found_error"

    serve(work)


def test_no_secret_is_written_down(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def work(place: Place) -> None:
        key = place.access.api_key
        assert key not in repr(place.access)
        place.model.said = [ValueError(f"a bug with {key}")]
        answers: list[Any] = [await place.post("/chat/completions", BODY)]
        answers += [await place.post_to("nobody", BODY, key)]
        answers += [await place.post("/chat/completions", {**BODY, "model": key[:-1]})]
        reader, writer = await place.connect()
        writer.write(place.request("/chat/completions", BODY).replace(b"Host: x", b"Ho st: x"))
        answers += [await reader.read()]
        assert "a model failed: ValueError" in caplog.text
        secret = key.removeprefix("sk-seat-")
        assert secret not in f"{answers[0]}{answers[1]}{answers[3]}{caplog.text}{place.server!r}"

    serve(work)


@pytest.mark.parametrize("path", ["/chat/completions", "/responses", "/messages"])
@pytest.mark.parametrize("tools", [0, "", False, {}], ids=repr)
def test_tools_that_are_no_list_are_refused_first(path: str, tools: Any) -> None:
    async def work(place: Place) -> None:
        body = {"model": "tiny", "messages": HELLO, "max_tokens": 5}
        if path == "/responses":
            body = {"model": "tiny", "input": "hello"}
        status, _ = await place.post(path, {**body, "tools": tools})
        assert status == 400 and not place.model.asks

    serve(work)


def test_the_model_is_shown_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_SEAT_TOKEN", "a secret of its owner")

    async def work(place: Place) -> None:
        keys = [place.access.api_key, place.server.open(Scripted([]), "other").api_key, "a secret of its owner"]
        said = [{"role": "user", "content": f"my environment: {' '.join(keys)}"}]
        assert (await place.post("/chat/completions", {**BODY, "messages": said}))[0] == 200
        assert place.ask.messages[0]["content"] == "my environment: … … …"

    serve(work)


def test_the_page_names_every_field_that_is_ignored_or_refused() -> None:
    page = (ROOT / "docs" / "reference" / "endpoints.md").read_text("utf-8")
    ignored, refused = page.partition("**Ignored**")[2].split("**Refused**")
    fields = [one for module in (_openai, chat, responses, messages) for one in vars(module).values()]
    found = [one for one in fields if isinstance(one, Fields)]
    assert len(found) > 10
    for one in found:
        assert {name for name in one.ignored if f"`{name}`" not in ignored} == set()
        assert {name for name in one.refused if f"`{name}`" not in refused} == set()
