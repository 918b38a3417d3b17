"""Answers that are none, or another's: one line for the user, and nothing lost."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from harness.api.errors import SetupError
from harness.extensions.openai.replicas import as_json
from harness.extensions.openai.wire import read_completion
from harness.runtime.runner import RunStoppedError
from tests.extensions.openai.dialects.play import by_seed, calm, errors, every, play, report
from tests.extensions.openai.dialects.speaker import events
from tests.helpers.commands import invoke
from tests.helpers.fake_openai import Body, FakeOpenAI, Fault, chat, garbage, half, raw, status
from tests.helpers.toy import results


def naming(where: str, of_another: bool) -> Fault:
    """An answer that names a request: in its JSON as vLLM does, or in a header as gateways do."""

    async def fault(server: FakeOpenAI, request: web.Request) -> web.StreamResponse:
        own, _, number = request.headers["X-Request-Id"].rpartition("-")
        name = f"{own}-{int(number, 16) + of_another:012x}"
        said = chat("?" if of_another else by_seed(await request.json()))
        if where == "json":
            return web.json_response({**said, "id": f"chatcmpl-{name}"})
        return web.json_response(said, headers={"X-Request-Id": name})

    return fault


@pytest.mark.parametrize("where", ["json", "header"])
def test_a_reply_to_another_request_is_asked_for_again(where: str, tmp_path: Path) -> None:
    """vLLM names its answers by the X-Request-Id of the request."""
    with FakeOpenAI(by_seed, faults=every(3, naming(where, of_another=True))) as server:
        done = play(tmp_path / "wild" / "run", server)
        assert report(done)["retries"] == len(server.bodies) - report(done)["requests"] > 5
    assert results(tmp_path / "wild" / "run") == calm(tmp_path / "calm" / "run")


@pytest.mark.parametrize("where", ["json", "header"])
def test_a_server_that_names_each_request_rightly(where: str, tmp_path: Path) -> None:
    with FakeOpenAI(faults=lambda body: naming(where, of_another=False)) as server:
        done = play(tmp_path / "run", server)
    assert report(done)["retries"] == report(done)["failures"] == 0


async def nothing_but_400(server: FakeOpenAI, request: web.Request) -> web.StreamResponse:
    """The answer of llama-cpp-python's server, by starlette_context, to a request whose name is no UUID."""
    return web.Response(status=400)


async def if_named_by_a_uuid(server: FakeOpenAI, request: web.Request) -> web.StreamResponse:
    try:
        UUID(request.headers["X-Request-Id"])
    except ValueError:
        return await nothing_but_400(server, request)
    return web.json_response(chat(by_seed(await request.json())))


def request_names(server: FakeOpenAI) -> list[str]:
    return [value for headers in server.headers for name, value in headers.items() if name.lower() == "x-request-id"]


def test_a_server_that_takes_uuids_only(tmp_path: Path) -> None:
    with FakeOpenAI(faults=lambda body: if_named_by_a_uuid) as server:
        done = play(tmp_path / "run", server)
        names = request_names(server)
    assert errors(done) == [] and report(done)["failures"] == 0
    assert len({*names}) == len(names)


def test_a_probe_names_its_requests_as_a_run_does(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeOpenAI(lambda body: "hello") as server:
        assert invoke(capsys, "probe", server.url)[0] == 0
        names = request_names(server)
    assert [str(UUID(name)) for name in names] == names and len({*names}) == len(names) > 5


def test_a_refusal_without_a_word_says_so(tmp_path: Path) -> None:
    with (
        FakeOpenAI(faults=lambda body: nothing_but_400) as server,
        pytest.raises(RunStoppedError, match="400 with an empty body"),
    ):
        play(tmp_path / "run", server)


def test_a_model_that_is_gone_in_the_middle_of_a_run(tmp_path: Path) -> None:
    """The list is that of the run's beginning, and says so: it names the model."""
    gone = status(404, "The model `fake` does not exist.")
    with (
        FakeOpenAI(by_seed, faults=lambda body: gone if len(body["messages"]) > 2 else None) as server,
        pytest.raises(RunStoppedError, match=r"no model 'fake' at .*when the run began it listed: fake"),
    ):
        play(tmp_path / "run", server)


def test_replies_to_others_alone_stop_the_run(tmp_path: Path) -> None:
    with (
        FakeOpenAI(faults=lambda body: naming("json", of_another=True)) as server,
        pytest.raises(RunStoppedError, match=r"the server answers request \d+ with the reply to request \d+"),
    ):
        play(tmp_path / "run", server, {"max_retries": 0})


@pytest.mark.parametrize("fault", [garbage, half], ids=["cut JSON", "cut connection"])
def test_half_a_body_is_asked_for_again(fault: Fault, tmp_path: Path) -> None:
    with FakeOpenAI(by_seed, faults=every(3, fault)) as server:
        done = play(tmp_path / "wild" / "run", server)
    assert report(done)["retries"] > 5 and report(done)["failures"] == 0
    assert results(tmp_path / "wild" / "run") == calm(tmp_path / "calm" / "run")


def test_a_list_of_ten_megabytes_is_read(tmp_path: Path) -> None:
    names = [f"provider/model-{number:06}-{'x' * 180}" for number in range(45_000)]
    listed = json.dumps({"data": [{"id": name} for name in [*names, "fake"]]})
    assert len(listed) > 9_000_000
    with FakeOpenAI(by_seed) as server:
        server.models_fault = raw(listed)
        done = play(tmp_path / "run", server)
        with pytest.raises(SetupError, match="has no model 'fakes'") as caught:
            play(tmp_path / "other", server, {"model": "fakes"})
    assert not done.failed
    assert "Did you mean fake?" in str(caught.value) and len(str(caught.value)) < 8000


PAGE = "<!DOCTYPE html>\n<html><head><title>Sign in - Example SSO</title></head><body>…</body></html>"


def test_a_page_to_log_in_is_said_before_anything_is_asked(tmp_path: Path) -> None:
    with FakeOpenAI(by_seed) as server:
        server.models_fault = raw(PAGE, "text/html")
        with pytest.raises(SetupError) as caught:
            play(tmp_path / "run", server)
        assert server.bodies == []
    assert "answers with a web page ('Sign in - Example SSO') in place of JSON" in caught.value.message
    assert "A page to log in is that of a gateway" in str(caught.value)


def test_a_login_that_ends_in_the_middle_stops_the_run_which_goes_on_later(tmp_path: Path) -> None:
    pages = raw(PAGE, "text/html")
    with FakeOpenAI(by_seed, script=[None] * 9, faults=lambda body: pages) as server:
        with pytest.raises(RunStoppedError, match=r"web page \('Sign in - Example SSO'\) in place of JSON"):
            play(tmp_path / "wild" / "run", server, {"max_retries": 1}, max_concurrency=1)
        server.faults = lambda body: None
        done = play(tmp_path / "wild" / "run", server, {"max_retries": 1})
    assert not done.failed
    assert results(tmp_path / "wild" / "run") == calm(tmp_path / "calm" / "run")


def streaming(text: Callable[[str], str]) -> Callable[[Body], Fault]:
    return lambda body: raw(text(events(chat(by_seed(body)))), "text/event-stream")


def test_a_stream_that_was_not_asked_for_is_read(tmp_path: Path) -> None:
    with FakeOpenAI(faults=streaming(lambda text: text)) as server:
        done = play(tmp_path / "wild" / "run", server)
        assert len(server.bodies) == report(done)["requests"]
    assert results(tmp_path / "wild" / "run") == calm(tmp_path / "calm" / "run")


def test_a_stream_that_was_cut_is_asked_for_again(tmp_path: Path) -> None:
    whole = streaming(lambda text: text)
    cut = raw('data: {"choices": [{"index": 0, "delta": {"content": "a"}}]}\n\ndata: {"choi', "text/event-stream")
    some = every(3, cut)
    with FakeOpenAI(faults=lambda body: some(body) or whole(body)) as server:
        done = play(tmp_path / "wild" / "run", server)
    assert report(done)["retries"] > 5 and report(done)["failures"] == 0
    assert results(tmp_path / "wild" / "run") == calm(tmp_path / "calm" / "run")


@given(
    content=st.text(),
    reasoning=st.text(),
    calls=st.lists(st.tuples(st.text(min_size=1), st.text()), max_size=3),
    ending=st.sampled_from(["stop", "length"]),
)
def test_a_stream_joins_to_the_answer_in_one_piece(
    content: str, reasoning: str, calls: list[tuple[str, str]], ending: str
) -> None:
    message: Body = {"role": "assistant", "content": content, "reasoning_content": reasoning}
    message["tool_calls"] = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(calls)
    ]
    whole = chat(message, {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}, ending)
    pieces = read_completion(as_json(events(whole)), 0.0, with_tools=True)
    assert pieces == read_completion(whole, 0.0, with_tools=True)


@given(
    st.lists(st.one_of(st.text(), st.sampled_from(["data: ", "data: {}", "\n", "[DONE]", 'data: {"choices":[{}]}'])))
)
def test_no_stream_raises(parts: list[str]) -> None:
    as_json("data: " + "".join(parts))


def test_a_proxy_before_this_machine_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # it does not listen
        monkeypatch.setenv("HTTP_PROXY", f"http://user:pass@127.0.0.1:{taken.getsockname()[1]}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        with FakeOpenAI() as server:
            code, _, err = invoke(capsys, "probe", server.url)
            assert code == 2 and "no usable server at" in err and server.bodies == []
            assert "HTTP_PROXY is set, so that requests to 127.0.0.1 go to that proxy" in err
            assert "export NO_PROXY=127.0.0.1" in err and "pass" not in err
            monkeypatch.setenv("NO_PROXY", "127.0.0.1")
            assert invoke(capsys, "probe", server.url)[0] == 0


def test_a_name_of_three_hundred_characters_is_cut_with_a_digest(tmp_path: Path) -> None:
    names = [f"organization/{'model-' * 48}{end}" for end in "ab"]
    assert len(names[0]) > 300
    shown = []
    with FakeOpenAI(lambda body: chat(by_seed(body)) | {"model": body["model"]}, models=names) as server:
        for number, name in enumerate(names):
            done = play(tmp_path / str(number), server, {"model": name})
            shown.append(done.meta["model"])
            assert done.meta["engine_args"]["model"]["model"] == name, "whole where it is asked for"
            table = (tmp_path / str(number) / "tables.md").read_text()
            assert name not in table and "who answered" not in table
    assert len({*shown}) == 2 and {len(name) for name in shown} == {120}


def test_a_model_that_never_stops_ends_every_turn_at_its_tokens(tmp_path: Path) -> None:
    """A small model repeats itself until `max_tokens`: each reply ends there and is a reply, read as far as it goes."""

    def answer(body: Body) -> Body:
        return chat(" ".join(["a"] * body["max_tokens"]), finish_reason="length")

    with FakeOpenAI(answer) as server:
        done = play(tmp_path / "run", server)
        assert report(done)["requests"] == len(server.bodies)
    ends: list[Any] = [turn["finish_reason"] for turn in done.turns()]
    assert {*ends} == {"length"} and report(done)["failures"] == 0 and not done.failed
