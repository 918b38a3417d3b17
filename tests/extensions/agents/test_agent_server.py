"""The engine `agent` with servers: what is posted, what comes back, and what is tried again."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from aiohttp import web

from harness.api import Completion
from harness.api.errors import EngineFatalError, RefusedError, RequestError, SetupError
from harness.extensions.agents.agent import Agent
from tests.helpers.agents import Talk, hung

T = TypeVar("T")
Answer = Callable[[dict[str, Any]], Any]


class Server:
    """An agent behind HTTP; `answer` gives the JSON of a reply, or a whole response."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.questions: list[dict[str, Any]] = []
        self.keys: list[str | None] = []

    async def post(self, request: web.Request) -> web.StreamResponse:
        question = await request.json()
        self.questions.append(question)
        self.keys.append(request.headers.get("Authorization"))
        result = self.answer(question)
        return result if isinstance(result, web.StreamResponse) else web.json_response(result)


def using(server: Server, work: Callable[[Agent], Awaitable[T]], **fields: Any) -> T:
    """Start a server and its engine, do the work, close both."""

    async def main() -> T:
        app = web.Application(client_max_size=2**28)
        app.router.add_post("/reply", server.post)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/reply?key=hidden"
        engine = Agent(**{"url": url, "timeout": 30.0, "max_retries": 0, "backoff": 0.0, **fields})
        try:
            await engine.start()
            return await work(engine)
        finally:
            await engine.close()
            await runner.cleanup()

    return asyncio.run(main())


@pytest.mark.parametrize("kind", ["text/plain", "text/html", "application/octet-stream", "application/problem+json"])
def test_a_reply_counts_whatever_its_header_says(kind: str) -> None:
    text = json.dumps({"text": "yes, \u2713", "output_tokens": 2})
    server = Server(lambda question: web.Response(body=text.encode(), content_type=kind))
    answer = using(server, lambda engine: Talk(engine).ask("one"))
    assert (answer.text, answer.output_tokens) == ("yes, \u2713", 2)


@pytest.mark.parametrize("body", ["{", "[1]", "yes", '"yes"', "{'text': 1}", ""])
def test_what_is_no_reply_says_what_one_is(body: str) -> None:
    server = Server(lambda question: web.Response(text=body, content_type="text/plain"))
    with pytest.raises(RequestError, match=r'a reply is \{"text": …\}, found') as caught:
        using(server, lambda engine: Talk(engine).ask("one"))
    assert '{"text"' not in str(caught.value).partition("found")[2]


def test_new_messages_are_posted_and_a_reply_comes_back() -> None:
    server = Server(lambda question: {"text": "yes", "input_tokens": 3, "cost": 0.5, "id": question["id"]})

    async def work(engine: Agent) -> Completion:
        talk = Talk(engine)
        await talk.say("one")
        return await talk.ask("two")

    answer = using(server, work, args={"style": "kind"})
    assert (answer.text, answer.input_tokens, answer.cost) == ("yes", 3, 0.5)
    first, second = server.questions
    assert [m["content"] for m in first["messages"]] == ["Be kind.", "one"] and first["start"] == 0
    assert second == {
        "id": "toy/c0/0/Ann/1/0", "conversation": "toy/c0/0/Ann/0", "episode": "toy/c0/0", "agent": "Ann", "seed": 7,
        "sampling": {"max_tokens": 9}, "start": 3, "messages": [{"role": "user", "content": "two"}],
        "args": {"style": "kind"},
    }  # fmt: skip


def test_a_server_that_forgot_a_conversation_gets_all_of_it() -> None:
    server = Server(lambda question: web.Response(status=410) if question["start"] else {"text": "yes"})

    async def work(engine: Agent) -> str:
        talk = Talk(engine)
        await talk.say("one")
        return await talk.say("two")

    assert using(server, work) == "yes"
    assert [len(question["messages"]) for question in server.questions] == [2, 1, 4]


def test_with_history_every_request_holds_the_conversation() -> None:
    server = Server(lambda question: {"text": "yes"})

    async def work(engine: Agent) -> None:
        talk = Talk(engine)
        await talk.say("one")
        await talk.say("two")

    using(server, work, history=True)
    assert [len(question["messages"]) for question in server.questions] == [2, 4]


def test_what_a_key_is_named_is_sent_and_none_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("MY_AGENT_KEY", "mine")
    server = Server(lambda question: {"text": "yes"})
    using(server, lambda engine: Talk(engine).say("hi"))
    using(server, lambda engine: Talk(engine).say("hi"), api_key_env="MY_AGENT_KEY")
    assert "secret" not in str(server.keys) and server.keys[1] == "Bearer mine"


def test_a_passing_failure_is_tried_again() -> None:
    replies = iter([web.Response(status=500), web.Response(text="<html>"), web.json_response([1]), {"text": "yes"}])
    server = Server(lambda question: next(replies))
    assert using(server, lambda engine: Talk(engine).say("hi"), max_retries=3) == "yes"


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    ("reply", "error", "message"),
    [
        ({"error": "no credit left"}, RequestError, "the agent reports: no credit left"),
        ({"text": 5}, RequestError, "a reply must be text, found int: 5"),
        ({"answer": "x"}, RequestError, "found a mapping with answer"),
        ({"text": "x" * 1_000_001}, RequestError, "at most 1,000,000 characters"),
        ({"text": "x", "id": "another"}, RequestError, "another id"),
        (["x"], RequestError, r"a reply is .*, found"),
        (500, RequestError, "500"),
        (422, RefusedError, "422"),
        (404, EngineFatalError, "there is no agent at"),
        (401, EngineFatalError, "refuses the key"),
    ],
)
def test_what_a_server_does_wrong(reply: Any, error: type[Exception], message: str) -> None:
    server = Server(lambda question: web.Response(status=reply) if isinstance(reply, int) else reply)
    with pytest.raises(error, match=message) as caught:
        using(server, lambda engine: Talk(engine).say("hi"))
    assert "hidden" not in str(caught.value)


def test_a_hang_ends_at_its_time() -> None:
    heard = asyncio.Event()

    class Hanging(Server):
        async def post(self, request: web.Request) -> web.StreamResponse:
            heard.set()
            await asyncio.Event().wait()
            raise AssertionError

    error = using(Hanging(lambda question: None), lambda engine: hung(Talk(engine), "hi", heard.is_set))
    assert "no whole answer within" in error


def test_a_server_that_is_not_there_and_an_address_with_a_password() -> None:
    async def start(url: str) -> None:
        engine = Agent(url=url)
        try:
            await engine.start()
        finally:
            await engine.close()

    with pytest.raises(SetupError, match=r"no agent at http://127\.0\.0\.1:9/x: .*\n  Start it first"):
        asyncio.run(start("http://127.0.0.1:9/x"))
    with pytest.raises(SetupError, match=r"no user and no password\n  .*api_key_env"):
        asyncio.run(start("http://user:pass@localhost:9/x"))


def test_an_address_is_shown_and_recorded_without_secrets() -> None:
    engine = Agent(url="http://user:pass@localhost:8000/reply?key=hidden")
    needed = [one for one in engine.approvals() if one.digest]
    assert engine.model == "localhost:8000/reply" and {one.does for one in needed} == {"sent"}
    for text in (json.dumps(engine.describe()), *map(str, needed)):
        assert "pass" not in text and "hidden" not in text
