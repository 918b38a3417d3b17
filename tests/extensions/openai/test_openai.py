"""The engine for OpenAI-compatible servers, against a scripted one on loopback."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from aiohttp import web

from harness.api import Completion, Thread
from harness.api.errors import ContextLengthError, EngineFatalError, RefusedError, RequestError, SetupError
from harness.extensions.openai import bodies
from harness.extensions.openai.openai import OpenAI
from tests.conftest import request
from tests.helpers.fake_openai import (
    FakeOpenAI,
    Fault,
    bomb,
    chat,
    drip,
    empty_choices,
    endless,
    garbage,
    half,
    hang,
    malformed,
    not_json,
    raw,
    reset,
    status,
    unreadable,
    wire,
)

T = TypeVar("T")


def using(server: FakeOpenAI | None, work: Callable[[OpenAI], Awaitable[T]], **fields: Any) -> T:
    """Start an engine at the server, do the work, close it. Retries take no time."""

    async def main() -> T:
        address = {"base_url": server.url, "model": "fake"} if server else {}
        engine = OpenAI(**{"backoff": 0.0, "max_backoff": 0.0, "api_key_env": "NO_SUCH_KEY", **address, **fields})
        await engine.start()
        try:
            return await work(engine)
        finally:
            await engine.close()

    return asyncio.run(main())


def ask(server: FakeOpenAI, *, engine: dict[str, Any] | None = None, **question: Any) -> Completion:
    """One question to a server."""
    return using(server, lambda e: e.complete(request("Hello?", **question)), **(engine or {}))


# ---------------------------------------------------------------------------------- what is sent and read


def test_a_conversation_goes_out_and_its_answer_comes_back() -> None:
    thread_text = [("system", "You are Alice."), ("user", "Hi"), ("assistant", "Hello"), ("user", "Again")]
    requests = request("")
    requests.thread.messages.clear()
    for role, content in thread_text:
        requests.thread.add(role, content)
    with FakeOpenAI(lambda body: "well met") as server:
        answer = using(server, lambda e: e.complete(requests))
    assert server.bodies[0]["messages"] == [{"role": r, "content": c} for r, c in thread_text]
    assert answer.text == "well met"
    assert (answer.input_tokens, answer.output_tokens, answer.finish_reason) == (7, 2, "stop")
    assert answer.latency is not None and answer.latency > 0


def test_sampling_words_and_seed_arrive() -> None:
    with FakeOpenAI() as server:
        ask(server, until="END", do_sample=False, max_tokens=9, top_k=5)
        ask(server, engine={"send_seed": False, "extra_body": {"chat_template_kwargs": {"thinking": False}}})
    body, other = server.bodies
    assert (body["stop"], body["temperature"], body["max_tokens"], body["top_k"]) == (["END"], 0.0, 9, 5)
    assert body["seed"] == request("Hello?").seed & 0x7FFFFFFF
    assert "seed" not in other and other["chat_template_kwargs"] == {"thinking": False}


@pytest.mark.parametrize(
    ("structured", "constraint", "sent"),
    [
        (
            "openai",
            {"json": {"type": "object", "properties": {}}},
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {
                        "name": "reply",
                        "schema": {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
                        "strict": True,
                    },
                }
            },
        ),
        ("vllm", {"choice": ["a", "b"]}, {"structured_outputs": {"choice": ["a", "b"]}}),
        ("vllm", {"regex": "[ab]"}, {"structured_outputs": {"regex": "[ab]"}}),
        ("none", {"choice": ["a", "b"]}, {}),
        ("openai", None, {}),
    ],
)
def test_constraints_travel_as_the_server_wants_them(structured: str, constraint: Any, sent: dict[str, Any]) -> None:
    with FakeOpenAI() as server:
        ask(server, engine={"structured": structured}, constraint=constraint)
    body = server.bodies[0]
    assert {k: body[k] for k in ("response_format", "structured_outputs") if k in body} == sent


def test_a_constraint_that_cannot_travel_is_said_not_dropped() -> None:
    with FakeOpenAI() as server, pytest.raises(SetupError, match=r"choice.*\n.*structured=vllm"):
        ask(server, constraint={"choice": ["a", "b"]})


WAIT = {"name": "wait", "description": "Ends the round.", "parameters": {"type": "object", "properties": {}}}


def native(*calls: Any, content: str | None = None) -> dict[str, Any]:
    """A server's message that calls tools."""
    return chat({"role": "assistant", "content": content, "tool_calls": list(calls)}, finish_reason="tool_calls")


def test_tools_go_out_and_calls_come_back() -> None:
    whole = {"id": "call_1", "type": "function", "function": {"name": "wait", "arguments": '{"a": "\ud800"}'}}
    odd = {"function": {"name": "send", "arguments": {"to": 3}}}
    answer = native(whole, odd, {"function": {"name": None}}, "no call", {"id": 7}, content="I wait.")
    with FakeOpenAI(lambda body: answer) as server:
        with_tools = using(server, lambda e: e.complete(replace(request("Hello?"), tools=(WAIT,))))
        without = ask(server)
    assert server.bodies[0]["tools"] == [{"type": "function", "function": WAIT}] and "tools" not in server.bodies[1]
    assert with_tools.tool_calls == [
        {"id": "call_1", "name": "wait", "arguments": '{"a": "?"}'},
        {"id": "", "name": "send", "arguments": '{"to": 3}'},
        {"id": "", "name": "", "arguments": ""},
    ]
    assert (with_tools.text, with_tools.finish_reason) == ("I wait.", "tool_calls")
    assert without.tool_calls is None, "what was not offered does not count"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("calls", [None, [], "wait", {"name": "wait"}, [[]], [{"function": "wait"}]])
def test_what_is_no_call_is_none(calls: Any) -> None:
    message = {"role": "assistant", "content": "hm", "tool_calls": calls}
    with FakeOpenAI(lambda body: chat(message)) as server:
        answer = using(server, lambda e: e.complete(replace(request("Hello?"), tools=(WAIT,))))
    assert (answer.text, answer.tool_calls) == ("hm", None)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "refusal",
    [
        status(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        status(400, "registry.example/gemma:2b does not support tools"),
        status(500, "tools param requires --jinja flag"),
        status(404, "No endpoints found that support tool use."),
        status(400, "Unrecognized request argument supplied: tools"),
        status(422, "tools: Extra inputs are not permitted"),
    ],
)
def test_a_server_that_takes_no_tools_ends_the_run_with_a_remedy(refusal: Fault) -> None:
    asking = replace(request("Hello?"), tools=(WAIT,))
    with FakeOpenAI(script=[refusal]) as server, pytest.raises(EngineFatalError, match="takes no tools") as caught:
        using(server, lambda e: e.complete(asking))
    assert "--enable-auto-tool-choice" in str(caught.value) and len(server.bodies) == 1


def test_once_a_server_has_taken_tools_such_a_refusal_is_its_requests_own() -> None:
    asking = replace(request("Hello?"), tools=(WAIT,))

    async def twice(engine: OpenAI) -> None:
        await engine.complete(asking)
        await engine.complete(asking)

    refused = status(400, "tools are not supported with such a message")
    with FakeOpenAI(script=[None, refused]) as server, pytest.raises(RefusedError) as caught:
        using(server, twice)
    assert type(caught.value) is RefusedError


def test_an_overflow_is_no_refusal_of_tools() -> None:
    asking = replace(request("Hello?"), tools=(WAIT,))
    fault = status(400, "The maximum allowed context length is 9 tokens; the request has 12, tools among them.")
    with FakeOpenAI(script=[fault]) as server, pytest.raises(ContextLengthError):
        using(server, lambda e: e.complete(asking))


def test_reasoning_is_kept_apart_from_the_answer() -> None:
    with FakeOpenAI(lambda body: "<think>hm</think>Yes") as server:
        answer = ask(server)
    assert (answer.reasoning, answer.text) == ("hm", "Yes")


def test_the_endpoints_whole_address_is_a_base_url_too() -> None:
    with FakeOpenAI() as server:
        assert ask(server, engine={"base_url": server.url + "/chat/completions"}).text == "hello"


def test_no_more_requests_in_flight_than_connections() -> None:
    async def many(engine: OpenAI) -> list[Completion]:
        return await asyncio.gather(*(engine.complete(request(f"{k}", key=k)) for k in range(40)))

    with FakeOpenAI(lambda body: body["messages"][0]["content"]) as server:
        answers = using(server, many, max_connections=4)
    assert [a.text for a in answers] == [str(k) for k in range(40)]
    assert 1 <= server.peak <= 4


# ---------------------------------------------------------------------------------- faults


FAULTS = {
    "429": status(429, "slow down", headers={"Retry-After": "86400"}),
    "500": status(500),
    "503": status(503),
    "reset": reset,
    "half": half,
    "garbage": garbage,
    "not json": not_json,
    "empty choices": empty_choices,
    "an error inside 200": raw('{"error": {"message": "upstream is busy"}}'),
    **unreadable,
    **malformed,
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_passing_fault_is_retried(fault: str) -> None:
    async def work(engine: OpenAI) -> tuple[str, Any]:
        return (await engine.complete(request("Hello?"))).text, engine.report()

    with FakeOpenAI(script=[FAULTS[fault], FAULTS[fault], None]) as server:
        text, report = using(server, work)
    assert text == "hello"
    limited = {"retries": 0, "rate_limited": 2} if fault == "429" else {"retries": 2}
    assert report == {"requests": 1, **limited, "failures": 0, "answered_as": {"fake": 1}}
    assert len({json.dumps(b) for b in server.bodies}) == 1  # the same question each time, seed and all


@pytest.mark.sampled(4)
@pytest.mark.parametrize("fault", sorted(FAULTS.keys() - {"429"}))
def test_a_lasting_fault_fails_the_request_and_not_the_engine(fault: str) -> None:
    async def work(engine: OpenAI) -> str:
        with pytest.raises(RequestError, match="still failing after 3 tries"):
            await engine.complete(request("Hello?"))
        return (await engine.complete(request("And now?"))).text

    with FakeOpenAI(script=[FAULTS[fault]] * 3) as server:
        assert using(server, work, max_retries=2) == "hello"


@pytest.mark.parametrize("fault", [hang, drip])
def test_a_server_that_comes_to_no_end_is_given_up(fault: Fault) -> None:
    with FakeOpenAI(script=[fault, None]) as server:
        assert ask(server, engine={"timeout": 0.4}).text == "hello"


@pytest.mark.sampled
@pytest.mark.parametrize("fault", endless)
@pytest.mark.parametrize("place", ["answers", "models"])
def test_a_body_without_end_is_read_up_to_its_bound(fault: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for bound in ("MAX_BODY_BYTES", "MAX_SCORES_BYTES"):
        monkeypatch.setattr(bodies, bound, 1 << 20)
    with FakeOpenAI(script=[endless[fault], None] if place == "answers" else []) as server:
        if place == "answers":
            assert ask(server).text == "hello"
        else:
            server.models_fault = endless[fault]
            with pytest.raises(SetupError, match="more than 1,048,576 bytes"):
                ask(server)
    assert 1 << 20 < server.sent < 1 << 24


@pytest.mark.slow
def test_a_small_body_that_unpacks_to_a_large_one_is_unpacked_up_to_its_bound() -> None:
    fault = bomb(megabytes=bodies.MAX_BODY_BYTES * 20 >> 20)  # before the measurement: making it takes memory too
    with FakeOpenAI(script=[fault, None]) as server:

        async def work(engine: OpenAI) -> tuple[str, int]:
            tracemalloc.start()
            try:
                return (await engine.complete(request("Hello?"))).text, tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

        text, peak = using(server, work)
    assert text == "hello"
    assert peak < 3 * bodies.MAX_BODY_BYTES


def test_a_long_answer_in_gzip_is_read_whole() -> None:
    text = "yes " * 100_000
    body = gzip.compress(json.dumps(chat(text)).encode())
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: "
    with FakeOpenAI(script=[wire(head + b"%d\r\n\r\n" % len(body) + body)]) as server:
        assert ask(server).text == text
    assert "br" not in server.headers[0]["Accept-Encoding"] and len(server.bodies) == 1


@pytest.mark.parametrize("text", ["\ud800", "a\udfff"])
def test_a_request_that_cannot_be_written_is_its_own_fault(text: str) -> None:
    with FakeOpenAI() as server, pytest.raises(RefusedError):
        using(server, lambda e: e.complete(request(text)))
    assert not server.bodies


def test_faults_of_one_request_leave_its_siblings_alone() -> None:
    async def many(engine: OpenAI) -> list[Any]:
        requests = [engine.complete(request(f"{k}", key=k)) for k in range(12)]
        return await asyncio.gather(*requests, return_exceptions=True)

    refuse, long = status(400, "bad"), status(400, "maximum context length is 9")
    with FakeOpenAI(script=[refuse, None, long, reset, None, garbage]) as server:
        answers = using(server, many)
    kinds = sorted(type(a).__name__ for a in answers)
    assert kinds == ["Completion"] * 10 + ["ContextLengthError", "RefusedError"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (status(400, "no such parameter"), RefusedError),
        (status(422, "no such parameter"), RefusedError),
        (status(400, "This model's maximum context length is 9 tokens."), ContextLengthError),
        (status(400, "too long", code="context_length_exceeded"), ContextLengthError),
        (status(400, "no", type="exceed_context_size_error"), ContextLengthError),
        (raw('{"error": {"message": "maximum context length is 9 tokens"}}'), ContextLengthError),
        (status(401, "bad key"), EngineFatalError),
        (status(403, "not for you"), EngineFatalError),
        (status(404, "no such model"), EngineFatalError),
        (status(429, "pay first", code="insufficient_quota"), EngineFatalError),
        (status(402, "Insufficient Balance"), EngineFatalError),
        (status(403, "this model requires moderation, and your input was flagged"), RefusedError),
    ],
)
def test_a_refusal_is_final_at_once(fault: Any, error: type[Exception]) -> None:
    with FakeOpenAI(script=[fault]) as server, pytest.raises(error) as caught:
        ask(server)
    assert type(caught.value) is error
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    "refusal",
    [
        status(404, "The model `Qwen2.5-7b` does not exist."),
        status(400, "Model Not Exist"),
        status(400, "Qwen2.5-7b is not a valid model ID"),
        status(422, "no", code="model_not_found"),
    ],
)
def test_an_unknown_model_is_known_at_the_start(refusal: Any) -> None:
    async def nothing(engine: OpenAI) -> None:
        raise AssertionError("it started")

    with FakeOpenAI(models=["Qwen2.5-7B", "llama"]) as server:
        server.models.append("Qwen2.5-7b")
        server.script = [refusal]
        server.models_fault = raw('{"data": [{"id": "Qwen2.5-7B"}, {"id": "llama"}]}')
        with pytest.raises(
            SetupError, match=r"has no model 'Qwen2.5-7b'\n  Did you mean Qwen2.5-7B\? Available"
        ) as caught:
            using(server, nothing, model="Qwen2.5-7b")
    assert server.url in str(caught.value)


@pytest.mark.parametrize("models", ['{"data": [{"id": "other"}]}', '{"data": []}', None])
def test_a_name_that_a_server_takes_without_listing_it_is_fine(models: str | None) -> None:
    """Ollama's names without their tags, OpenRouter's variants, llama.cpp: any name; many servers list nothing."""
    with FakeOpenAI(models=["llama3"]) as server:
        server.models_fault = raw(models) if models else status(404)
        assert ask(server, engine={"model": "llama3"}).text == "hello"
    assert len(server.bodies) == (2 if models and "other" in models else 1), (
        "one token is asked for, where it may be wrong"
    )


def test_a_model_that_goes_away_names_those_the_server_has() -> None:
    async def work(engine: OpenAI) -> Completion:
        server.models.remove("fake")
        return await engine.complete(request("Hello?"))

    with (
        FakeOpenAI(models=["fake", "two"]) as server,
        pytest.raises(EngineFatalError, match="when the run began it listed: fake, two"),
    ):
        using(server, work)


def test_while_a_single_server_may_be_asked_again_no_probe_is_sent() -> None:
    probes: list[web.Request] = []

    async def count(server: FakeOpenAI, request: web.Request) -> web.StreamResponse:
        probes.append(request)
        return web.json_response({"data": []})

    async def work(engine: OpenAI) -> str:
        server.models_fault = count
        return (await engine.complete(request("Hello?"))).text

    with FakeOpenAI(script=[reset, hang, reset, None]) as server:
        assert using(server, work, timeout=1, max_retries=3) == "hello"
    assert not probes


def test_a_server_that_goes_away_is_fatal() -> None:
    async def work(engine: OpenAI) -> None:
        assert (await engine.complete(request("Hello?"))).text == "hello"
        server.stop()
        with pytest.raises(EngineFatalError, match="server is gone"):
            await engine.complete(request("Hello?"))

    with FakeOpenAI() as server:
        using(server, work, max_retries=1)


# ---------------------------------------------------------------------------------- starting


def test_no_server() -> None:
    with FakeOpenAI() as server:
        url = server.url
    with pytest.raises(SetupError, match=f"no usable server at {url}: .*[Cc]onnect.*\n.*Start it first"):
        using(None, lambda e: e.complete(request("Hello?")), base_url=url, model="m")


def test_nothing_can_be_asked_before_the_start_and_after_the_end() -> None:
    async def end(engine: OpenAI) -> None:
        await engine.close()
        await engine.complete(request("Hello?"))

    with pytest.raises(EngineFatalError, match="not started"):
        asyncio.run(OpenAI(model="m").complete(request("Hello?")))
    with FakeOpenAI() as server, pytest.raises(EngineFatalError, match="closed"):
        using(server, end)


def test_a_server_that_is_still_loading() -> None:
    with FakeOpenAI() as server:
        server.models_fault = status(503, "loading model")
        with pytest.raises(SetupError, match=r"503.*loading model"):
            ask(server)


def test_a_server_without_a_model_list_is_taken_at_its_word() -> None:
    with FakeOpenAI() as server:
        server.models_fault = status(404)
        assert ask(server).text == "hello"
    with pytest.raises(SetupError, match="needs model="):
        OpenAI(base_url=server.url)


def test_a_base_url_without_v1_is_recognized() -> None:
    with FakeOpenAI() as server, pytest.raises(EngineFatalError, match=r"base_url is wrong \(it ends in /v1\)"):
        ask(server, engine={"base_url": server.url.removesuffix("/v1")})


def test_a_key_comes_from_the_environment_and_is_never_shown() -> None:
    os.environ["HARNESS_TEST_KEY"] = "sk-very-secret"
    echo = status(400, "the key sk-very-secret may not do that")

    async def work(engine: OpenAI) -> str:
        with pytest.raises(RequestError) as caught:
            await engine.complete(request("Hello?"))
        return f"{caught.value} {engine.describe()} {engine!r} {engine.report()}"

    try:
        with FakeOpenAI(key="sk-very-secret", script=[echo]) as server:
            text = using(server, work, api_key_env="HARNESS_TEST_KEY")
        with FakeOpenAI(key="another") as server, pytest.raises(SetupError, match=r"refuses the key.*\n.*HARNESS"):
            ask(server, engine={"api_key_env": "HARNESS_TEST_KEY"})
    finally:
        del os.environ["HARNESS_TEST_KEY"]
    assert "sk-very-secret" not in text
    assert "the key … may not do that" in text


def test_the_provider_needs_a_key() -> None:
    async def work() -> None:
        engine = OpenAI(model="m", api_key_env="NO_SUCH_KEY")
        with pytest.raises(SetupError, match=r"NO_SUCH_KEY is not set\n.*base_url="):
            await engine.start()
        with pytest.raises(EngineFatalError, match="not started"):
            await engine.complete(request("Hello?"))

    asyncio.run(work())


def test_the_description_holds_no_secrets() -> None:
    engine = OpenAI(
        model="m", base_url="https://me:pass@host.example/v1?token=t", extra_body={"api_key": "k", "top_a": 1}
    )
    nested = {"headers": [{"Authorization": "Bearer x"}], "max_tokens": 3}
    facts = engine.describe()
    assert facts["base_url"] == "https://host.example/v1"
    assert facts["extra_body"] == {"api_key": "…", "top_a": 1}
    assert json.loads(json.dumps(facts))["model"] == "m"
    assert "Bearer" not in str(OpenAI(model="m", extra_body=nested).describe())
    assert OpenAI(model="m", extra_body=nested).describe()["extra_body"]["max_tokens"] == 3


def test_without_the_package_it_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "openai.py").write_text("raise ImportError('not today')\n")
    script = (
        "import asyncio; from harness.extensions.openai.openai import OpenAI; asyncio.run(OpenAI(model='m').start())"
    )
    root = str(Path(__file__).parents[3])
    path = os.pathsep.join([str(tmp_path), root])
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == 1
    assert "SetupError: the engine openai needs the package openai (not today)" in done.stderr
    assert 'pip install "mas-eval-harness[openai]"' in done.stderr


def test_threads_are_left_as_they_are() -> None:
    thread = Thread()
    thread.add("user", "Hello?")
    requests = request("")
    requests.thread.messages[:] = thread.messages
    with FakeOpenAI() as server:
        using(server, lambda e: e.complete(requests))
    assert requests.thread.messages == thread.messages
