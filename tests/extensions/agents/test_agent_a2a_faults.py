"""The engine `agent` with A2A agents that lie, break off, flood and vanish."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest
from a2a.types import AgentCapabilities
from aiohttp import web
from google.protobuf.json_format import MessageToDict

import harness
from harness.api.errors import EngineFatalError, RefusedError, RequestError, SetupError
from harness.extensions.agents.agent import Agent
from tests.helpers.a2a import Played, app_of, card_of, says, served
from tests.helpers.agents import Talk, hung

T = TypeVar("T")
SAID = {"message": {"messageId": "m", "contextId": "c", "role": "ROLE_AGENT", "parts": [{"text": "yes"}]}}
WORKS = {"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}}


def result(value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "1", "result": value}


def failure(code: int, message: str = "no") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "1", "error": {"code": code, "message": message}}


class Hostile:
    """A server whose card is sound unless `card` says otherwise; `answer` gives JSON, or a whole response."""

    def __init__(self, answer: Callable[[dict[str, Any]], Any], streaming: bool = False, card: Any = None) -> None:
        self.answer, self.streaming, self.card = answer, streaming, card
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []

    async def get(self, request: web.Request) -> web.StreamResponse:
        self.keys.append(request.headers.get("Authorization"))
        if isinstance(self.card, web.StreamResponse):
            return self.card
        card = card_of(f"http://{request.host}/", capabilities=AgentCapabilities(streaming=self.streaming))
        return web.json_response(self.card if self.card is not None else MessageToDict(card))

    async def post(self, request: web.Request) -> web.StreamResponse:
        self.keys.append(request.headers.get("Authorization"))
        self.asked.append(await request.json())
        found = self.answer(self.asked[-1])
        if isinstance(found, web.Response):
            return found
        if isinstance(found, Iterator):
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            for one in found:
                try:
                    await response.write(one)
                except ConnectionError:
                    break
                await asyncio.sleep(0)
            return response
        return web.json_response(found)


def using(server: Hostile, work: Callable[[Agent], Awaitable[T]], **fields: Any) -> T:
    async def main() -> T:
        app = web.Application(client_max_size=2**28)
        app.router.add_get("/.well-known/agent-card.json", server.get)
        app.router.add_post("/", server.post)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        engine = Agent(**{"a2a": url, "timeout": 30.0, "max_retries": 0, "backoff": 0.0, **fields})
        try:
            await engine.start()
            return await work(engine)
        finally:
            await engine.close()
            await runner.cleanup()

    return asyncio.run(main())


def say(engine: Agent) -> Awaitable[str]:
    return Talk(engine).say("hi")


def event(value: Any) -> bytes:
    return f"data: {json.dumps(result(value))}\n\n".encode()


@pytest.mark.parametrize(
    "body",
    [
        "{", "[1]", "", pytest.param("<html><title>Log in</title></html>", id="page"),
        '{"result": {}}', '{"result": 5}', '{"result": {"task": 3}}',
        pytest.param('{"result": {"task": {"id": "t"}, "message": {}}}', id="both"),
        pytest.param('{"result": {"statusUpdate": {"status": {"state": 99}}}}', id="state"),
        '{"jsonrpc": "2.0"}', '{"error": "x"}',
        pytest.param("[" * 100_000, id="deep"), pytest.param('{"result": ' * 900 + "1" + "}" * 900, id="nested"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("streaming", [True, False], ids=["stream", "whole"])
def test_garbage_is_an_error_of_the_move(body: str, streaming: bool) -> None:
    kind = "text/event-stream" if streaming else "application/json"
    text = f"data: {body}\n\n" if streaming and body else body
    server = Hostile(lambda asked: web.Response(text=text, content_type=kind), streaming)
    with pytest.raises(RequestError) as caught:
        using(server, say)
    assert len(str(caught.value)) < 700


def test_a_passing_failure_is_tried_again() -> None:
    replies = iter([web.Response(status=500), failure(-32603), web.Response(text="<html>"), result(SAID)])
    assert using(Hostile(lambda asked: next(replies)), say, max_retries=3) == "yes"


def test_a_server_that_is_asked_too_often_is_waited_for() -> None:
    replies = iter([web.Response(status=429, headers={"Retry-After": "0"}), result(SAID)])
    assert using(Hostile(lambda asked: next(replies)), say, max_retries=1) == "yes"


@pytest.mark.parametrize(
    ("reply", "error", "message"),
    [
        (failure(-32602, "bad params"), RefusedError, "bad params"),
        (failure(-32601), RefusedError, "no"),
        (failure(-32005), RefusedError, "no"),
        (failure(-1, "overloaded"), RequestError, "overloaded"),
        (failure(-32603, "x" * 1_000_000), RequestError, "xxx"),
        (422, RefusedError, "422"),
        (500, RequestError, "500"),
        (404, EngineFatalError, "there is no agent at"),
        (401, EngineFatalError, "asks for a key; name its variable: api_key_env"),
        (307, EngineFatalError, r"redirects to http://198\.51\.100\.7/; give that address, if you trust it"),
    ],
    ids=["params", "method", "type", "unknown", "long", "422", "500", "404", "401", "307"],
)
def test_what_a_server_refuses(reply: Any, error: type[Exception], message: str) -> None:
    def answer(asked: Any) -> Any:
        away = {"Location": "http://198.51.100.7/?secret=hidden"}
        return web.Response(status=reply, headers=away) if isinstance(reply, int) else reply

    with pytest.raises(error, match=message) as caught:
        using(Hostile(answer), say)
    assert "hidden" not in str(caught.value) and len(str(caught.value)) < 700


def test_a_key_is_sent_where_it_is_named_and_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("MY_AGENT_KEY", "mine-and-only-mine")
    server = Hostile(lambda asked: result(SAID))
    using(server, say)
    assert server.keys == [None, None]
    using(server, say, api_key_env="MY_AGENT_KEY")
    assert server.keys[2:] == ["Bearer mine-and-only-mine"] * 2
    refusing = Hostile(lambda asked: web.Response(status=403, text="mine-and-only-mine"))
    with pytest.raises(EngineFatalError, match="refuses the key in MY_AGENT_KEY") as caught:
        using(refusing, say, api_key_env="MY_AGENT_KEY")
    assert "only-mine" not in str(caught.value)


def _forever(first: Any, then: Any) -> Iterator[bytes]:
    yield event(first)
    while True:
        yield event(then)


@pytest.mark.parametrize("size", [10_000, 1 << 20])
def test_an_endless_stream_ends(size: int) -> None:
    said = {"role": "ROLE_AGENT", "messageId": "m", "parts": [{"text": "x" * size}]}
    update = {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING", "message": said}}
    server = Hostile(lambda asked: _forever(WORKS, {"statusUpdate": update}), streaming=True)
    with pytest.raises(RequestError, match="longer than any answer"):
        using(server, say)


def test_an_answer_of_fifty_megabytes_is_not_read() -> None:
    body = json.dumps(result({"message": {**SAID["message"], "parts": [{"text": "x" * 50_000_000}]}}))
    server = Hostile(lambda asked: web.Response(text=body, content_type="application/json"))
    with pytest.raises(RequestError, match="longer than any answer"):
        using(server, say)


def test_a_stream_that_breaks_goes_on_where_its_task_is() -> None:
    done = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}
    states = iter([WORKS["task"], {**done, "artifacts": [{"artifactId": "a", "parts": [{"text": "yes"}]}]}])

    def answer(asked: dict[str, Any]) -> Any:
        if asked["method"] == "GetTask":
            return result(next(states))
        return iter([event(WORKS), b"data: {\n\n"])

    server = Hostile(answer, streaming=True)
    assert using(server, say) == "yes" and [one["method"] for one in server.asked[1:]] == ["GetTask"] * 2


def test_a_task_that_is_worked_on_for_ever_ends_at_its_time_and_is_cancelled() -> None:
    def answer(asked: dict[str, Any]) -> Any:
        return result(WORKS if asked["method"] == "SendMessage" else WORKS["task"])

    server = Hostile(answer)

    async def work(engine: Agent) -> str:
        error = await hung(Talk(engine), "hi", lambda: len(server.asked) > 1)
        while server.asked[-1]["method"] != "CancelTask":
            await asyncio.sleep(0)
        return error

    assert "no whole answer within" in using(server, work)


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ([], "Agent card must be a JSON object"),
        ({"name": 5}, "no A2A agent at"),
        ({"name": "x"}, "it names no interface"),
        ({"name": "x", "url": "http://198.51.100.7/"}, "is another place"),
        ({"name": "x", "supportedInterfaces": "x"}, "no A2A agent at"),
        ({"name": "x", "skills": 7}, "no A2A agent at"),
        (web.Response(text="<html>"), "Failed to parse JSON"),
        (web.Response(status=404), "no A2A agent at .*there is no agent at"),
        (web.Response(status=302, headers={"Location": "http://198.51.100.7/"}), "redirects to http://198.51.100.7/"),
        (web.Response(body=b" " * 50_000_000), "longer than any answer"),
        (web.Response(text="[" * 100_000, content_type="application/json"), "no A2A agent at"),
    ],
    ids=["list", "name", "bare", "elsewhere", "text", "skills", "page", "404", "302", "50-mb", "deep"],
)
def test_a_card_that_is_none(card: Any, message: str) -> None:
    server = Hostile(lambda asked: result(SAID), card=card)
    with pytest.raises(SetupError, match=message):
        using(server, say)
    assert not server.asked


def test_no_agent_is_there() -> None:
    with pytest.raises(
        SetupError, match=r"no A2A agent at http://127\.0\.0\.1:9: .*\n  Start it first, and check a2a="
    ):
        asyncio.run(Agent(a2a="http://127.0.0.1:9").start())


class Vanishing(BaseHTTPRequestHandler):
    """Answers three messages; from then on it breaks off every connection."""

    answered: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self._send(MessageToDict(card_of(f"http://{self.headers['Host']}", capabilities=AgentCapabilities())))

    def do_POST(self) -> None:
        self.answered.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self._send(result(SAID))

    def _send(self, value: Any) -> None:
        if len(self.answered) > 3:
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

    def log_message(self, *args: Any) -> None:
        """Nothing."""


def test_a_server_that_vanishes_stops_the_run_and_nothing_is_lost(tmp_path: Path) -> None:
    Vanishing.answered.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Vanishing)
    port = server.server_port
    engine = Agent(a2a=f"http://127.0.0.1:{port}", max_retries=1, backoff=0.0, concurrency=1)

    def run() -> harness.Run:
        return harness.evaluate("arithmetic", engine, limit=2, output_path=tmp_path, max_concurrency=1)

    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        with pytest.raises(harness.RunStoppedError, match="the server is gone"):
            run()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    with pytest.raises(SetupError, match="no A2A agent at"):
        run()
    agent = Played(says("The answer is 4."))
    with served(lambda url: app_of(agent, card_of(url)), port):
        assert len(run().scores) == 6
    assert len(agent.heard) == 3
