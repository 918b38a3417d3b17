"""`check_engine` passes engines that keep their contract, and names each promise that one breaks."""

import http.server
import json
import math
import threading
from collections.abc import Callable
from dataclasses import field
from typing import Any

import pytest

from harness.api import Completion, Engine, Request, RequestError, plugin
from harness.engines.likelihoods import ComputesLikelihoods, LikelihoodRequest
from harness.engines.mock import Mock
from harness.extensions.openai.openai import OpenAI
from harness.extensions.yaml_tasks.conformance import check_engine


def color(request: Request) -> Completion:
    return Completion("red", input_tokens=12, output_tokens=1, latency=0.1)


def test_an_engine_that_keeps_its_contract_passes() -> None:
    assert check_engine(Mock(function=color)) == []


class Server(http.server.BaseHTTPRequestHandler):
    """A chat server of the standard library's."""

    def do_GET(self) -> None:
        self.send({"data": [{"id": "m"}]})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": "red"}
        usage = {"prompt_tokens": 12, "completion_tokens": 1}
        self.send({"model": "m", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})

    def send(self, body: Any) -> None:
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing on stderr."""


def test_the_client_of_servers_passes() -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert check_engine(OpenAI(model="m", base_url=f"http://127.0.0.1:{server.server_port}/v1")) == []
        server.shutdown()


def raising(error: Exception) -> Callable[[Request], Completion]:
    def answer(request: Request) -> Completion:
        raise error

    return answer


def adding(request: Request) -> Completion:
    request.thread.add("assistant", "red")
    return color(request)


def rewriting(request: Request) -> Completion:
    request.thread.messages[-1]["content"] += " Be brief."
    return color(request)


def call_without_id(request: Request) -> Completion:
    return Completion("", tool_calls=[{"name": "choose", "arguments": "{}"}] if request.tools else None)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda request: Completion(None), "text is None"),  # type: ignore[arg-type]
        (lambda request: Completion("red", output_tokens=-1), "output_tokens is -1"),
        (lambda request: Completion("red", latency=math.nan), "latency is nan"),
        (raising(RequestError("the server is gone")), "it does not answer a short request: the server is gone"),
        (raising(KeyError("choices")), "a request fails with what is no EngineError: KeyError"),
        (adding, "complete() changes the conversation"),
        (rewriting, "complete() changes the conversation"),
        (call_without_id, "a tool call is {'name': 'choose'"),
    ],
)
def test_what_an_engine_breaks_is_named(answer: Callable[[Request], Completion], problem: str) -> None:
    assert any(problem in line for line in check_engine(Mock(function=answer))), check_engine(Mock(function=answer))


@plugin
class Odd(Engine, ComputesLikelihoods):
    """Breaks what does not lie in its replies."""

    incidental = frozenset({"timeout"})
    width = 0
    deterministic = True
    model: str = "odd"
    count: list[str] = field(default_factory=list)
    secret: Any = field(default_factory=set)

    async def start(self) -> None:
        if self.count:
            raise RuntimeError("address in use")

    async def complete(self, request: Request) -> Completion:
        self.count.append(request.id)
        return Completion(f"color {len(self.count)}")

    async def loglikelihood(self, request: LikelihoodRequest) -> Completion:
        return Completion("", likelihoods=[[0.5, True], [-1.0, False]])

    def count_tokens(self, text: str) -> int:
        return -1


def test_promises_beside_the_replies_are_checked() -> None:
    broken = "\n".join(check_engine(Odd()))
    for problem in (
        "describe() is no JSON",
        "names timeout, which describe() does not have",
        "width is 0",
        "the same request got two different replies",
        "a likelihood is [0.5, True]",
        "count_tokens() is -1",
        "it fails: RuntimeError: address in use",  # when it is started once more
    ):
        assert problem in broken, broken
