"""Several servers of one model: who is asked, who is left out, what is left when all are gone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest
from aiohttp import web

import harness
from harness.api import Request, Thread
from harness.api.errors import EngineFatalError, RequestError, SetupError
from harness.cli import main
from harness.extensions.openai.openai import OpenAI
from harness.extensions.openai.replicas import Replica, Replicas
from tests.extensions.openai import test_openai
from tests.helpers.fake_openai import FakeOpenAI, Fault, garbage, hang, reset, status
from tests.helpers.toy import TOY

T = TypeVar("T")
DEAD = status(500, "EngineCore encountered an issue. See stack trace (above) for the root cause.")


def using(servers: list[FakeOpenAI], work: Callable[[OpenAI], Awaitable[T]], **fields: Any) -> T:
    return test_openai.using(None, work, model="fake", base_url=[server.url for server in servers], **fields)


async def say(engine: OpenAI, thread: Thread, text: str) -> str:
    thread.add("user", text)
    answer = (await engine.complete(Request(text, thread, {}, 1))).text
    thread.add("assistant", answer)
    return answer


def heard(server: FakeOpenAI) -> list[str]:
    """What a server was asked last, request by request."""
    return [body["messages"][-1]["content"] for body in server.bodies]


@pytest.fixture
def servers() -> Any:
    with ExitStack() as stack:
        yield [stack.enter_context(FakeOpenAI(lambda body, i=i: f"from {i}")) for i in range(3)]  # type: ignore[misc]


@pytest.mark.slow
def test_a_conversation_stays_and_new_ones_go_where_least_is_in_flight(servers: list[FakeOpenAI]) -> None:
    async def work(engine: OpenAI) -> list[set[str]]:
        async def talk(number: int) -> set[str]:
            thread = Thread()
            return {await say(engine, thread, f"{number}.{turn}") for turn in range(4)}

        return await asyncio.gather(*map(talk, range(30)))

    places = using(servers, work)
    assert all(len(one) == 1 for one in places), "one server a conversation"
    assert [len(server.bodies) for server in servers] == [40, 40, 40]


def test_one_that_goes_away_is_left_out_and_its_conversations_go_on(servers: list[FakeOpenAI]) -> None:
    async def work(engine: OpenAI) -> tuple[list[str], Any]:
        threads = [Thread() for _ in range(6)]
        before = await asyncio.gather(*(say(engine, thread, "one") for thread in threads))
        assert sorted(before) == ["from 0", "from 0", "from 1", "from 1", "from 2", "from 2"]
        servers[1].stop()
        after = await asyncio.gather(*(say(engine, thread, "two") for thread in threads))
        assert [b for a, b in zip(before, after, strict=True) if a != "from 1"] == [a for a in before if a != "from 1"]
        return after, engine.report()

    after, report = using(servers, work, max_retries=0)
    assert set(after) == {"from 0", "from 2"}
    assert {key: report[key] for key in ("requests", "retries", "failures")} == {
        "requests": 12,
        "retries": 0,
        "failures": 0,
    }
    assert [(one["base_url"], one["outages"]) for one in report["replicas"]] == [
        (servers[0].url, 0), (servers[1].url, 1), (servers[2].url, 0),
    ]  # fmt: skip
    assert "onnect" in report["replicas"][1]["unhealthy"] and "unhealthy" not in report["replicas"][0]


@pytest.mark.slow
def test_a_server_that_hangs_is_probed_once_and_not_for_every_request(servers: list[FakeOpenAI]) -> None:
    probes: list[web.Request] = []

    async def count(server: FakeOpenAI, request: web.Request) -> web.StreamResponse:
        probes.append(request)
        return await hang(server, request)

    async def work(engine: OpenAI) -> list[str]:
        servers[0].faults, servers[0].models_fault = lambda body: hang, count
        return await asyncio.gather(*(say(engine, Thread(), "?") for _ in range(9)))

    assert set(using(servers, work, timeout=1, max_connections=1)) == {"from 1", "from 2"}
    assert len(servers[0].bodies) == 3 and len(probes) == 1


@pytest.mark.slow
def test_a_model_that_died_behind_its_server_is_left_out_at_once(servers: list[FakeOpenAI]) -> None:
    servers[0].faults = lambda body: DEAD

    async def work(engine: OpenAI) -> list[str]:
        return [await say(engine, Thread(), "?") for _ in range(9)]

    assert set(using(servers, work)) == {"from 1", "from 2"}
    assert len(servers[0].bodies) == 1


def test_a_broken_connection_is_no_reason_to_leave_a_server(servers: list[FakeOpenAI]) -> None:
    servers[0].script = [reset, status(503), None]

    async def work(engine: OpenAI) -> tuple[str, Any]:
        return await say(engine, Thread(), "?"), engine.report()

    answer, report = using(servers, work)
    assert answer == "from 0" and [one["outages"] for one in report["replicas"]] == [0, 0, 0]
    assert report["retries"] == 2


@pytest.mark.sampled(1)
@pytest.mark.parametrize("fault", [status(502, "bad gateway"), garbage, reset])
def test_what_one_cannot_do_whenever_it_tries_another_does(servers: list[FakeOpenAI], fault: Fault) -> None:
    servers[0].faults = lambda body: fault  # and it lists its models all the while

    async def work(engine: OpenAI) -> tuple[list[str], Any]:
        return [await say(engine, Thread(), "?") for _ in range(9)], engine.report()

    answers, report = using(servers, work, max_retries=2)
    assert set(answers) == {"from 1", "from 2"} and len(servers[0].bodies) == 6, "left out for the second one"
    assert report["failures"] == 0 and report["replicas"][0]["outages"] == 1


@pytest.mark.slow
def test_what_none_of_them_can_do_is_that_requests_failure(servers: list[FakeOpenAI]) -> None:
    for server in servers:
        server.faults = lambda body: status(500, "?!") if body["messages"][-1]["content"] == "?!" else None

    async def work(engine: OpenAI) -> str:
        with pytest.raises(RequestError, match=r"still failing .*\?!"):
            await say(engine, Thread(), "?!")
        return await say(engine, Thread(), "?")

    assert using(servers, work, max_retries=1).startswith("from ")
    assert sorted(len(server.bodies) for server in servers) == [1, 2, 2], "two are asked, and none is left out for it"


def test_a_rolling_restart_stops_nothing(servers: list[FakeOpenAI]) -> None:
    """A request that began while others were out goes to who is back when its own server goes."""

    async def slow(server: FakeOpenAI, request: Any) -> Any:
        await server.closing.wait()
        return await reset(server, request)

    async def work(engine: OpenAI) -> str:
        for other in engine._replicas.all[1:]:
            other.mark_unhealthy("restarting")
        servers[0].script = [slow]
        requests = asyncio.create_task(say(engine, Thread(), "?"))
        while not servers[0].bodies:
            await asyncio.sleep(0)
        servers[0].stop()
        return await requests

    assert using(servers, work, max_retries=2) in ("from 1", "from 2")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("how", ["away", "dead"])
def test_when_all_are_gone_nothing_more_is_asked(servers: list[FakeOpenAI], how: str) -> None:
    async def work(engine: OpenAI) -> None:
        for server in servers:
            if how == "away":
                server.stop()
            server.faults = lambda body: DEAD
        with pytest.raises(EngineFatalError, match=r"all servers are gone|has died: .*EngineCore"):
            await say(engine, Thread(), "?")
        total = sum(len(server.bodies) for server in servers)
        assert total == (0 if how == "away" else 3)
        with pytest.raises(EngineFatalError):
            await say(engine, Thread(), "?")
        assert sum(len(server.bodies) for server in servers) == total

    using(servers, work, max_retries=1)


def test_one_that_is_back_is_asked_again_by_a_single_request_first() -> None:
    first, second = Replica("a", None, 1), Replica("b", None, 1)
    both = Replicas([first, second])
    first.mark_unhealthy("gone")
    assert [both.choose(Thread()).name for _ in range(3)] == ["b", "b", "b"]
    first.since -= 3600
    assert [both.choose(Thread()).name for _ in range(3)] == ["a", "b", "b"]
    first.unhealthy = None
    assert both.choose(Thread()).name == "a"
    second.mark_unhealthy("gone")
    first.mark_unhealthy("gone")
    assert both.choose(Thread()).name in "ab"


@pytest.mark.slow
def test_servers_that_are_not_there_at_the_start_are_left_out_unless_none_is(servers: list[FakeOpenAI]) -> None:
    servers[0].stop()
    servers[2].models_fault = status(500, "no memory")

    async def work(engine: OpenAI) -> tuple[set[str], Any, str]:
        text = {await say(engine, Thread(), "?") for _ in range(6)}
        report = engine.report()["replicas"]
        engine._replicas.all[2].since -= 3600
        return text, report, await say(engine, Thread(), "is it back?")

    text, report, later = using(servers, work)
    assert text == {"from 1"} and later == "from 2", "tried again after a while"
    assert [one["outages"] for one in report] == [1, 0, 1]
    assert "onnect" in report[0]["unhealthy"] and "no memory" in report[2]["unhealthy"]
    servers[1].stop()
    servers[2].stop()
    with pytest.raises(SetupError, match=f"no usable server at {servers[2].url}"):
        using(servers, lambda engine: say(engine, Thread(), "?"))


def test_a_key_that_one_server_refuses_is_reported_at_the_start(servers: list[FakeOpenAI]) -> None:
    servers[1].key = "sk-1"
    with pytest.raises(SetupError, match=f"{servers[1].url} refuses the key"):
        using(servers, lambda engine: say(engine, Thread(), "?"))


@pytest.mark.parametrize("urls", [[], ["http://a/v1", "http://a/v1/chat/completions"]])
def test_addresses_are_different_ones(urls: list[str]) -> None:
    with pytest.raises(SetupError, match="must be different addresses"):
        OpenAI(model="m", base_url=urls)


@pytest.mark.parametrize(
    ("urls", "says"),
    [
        ([5], "an address must be text, found 5"),
        (["http://a/v1", None], "an address must be text, found None"),
        (["http://[::1/v1"], "base_url: Invalid IPv6 URL"),
        ("http://a:port/v1", "base_url: Port could not be cast"),
    ],
)
def test_what_is_no_address_is_reported_as_such(urls: Any, says: str) -> None:
    with pytest.raises(SetupError, match=says):
        OpenAI(model="m", base_url=urls)


def test_no_address_is_shown_with_its_password() -> None:
    with pytest.raises(SetupError, match="must be different addresses, found http://h/v1, http://h/v1") as caught:
        OpenAI(model="m", base_url=["http://u:sec:ret@h/v1", "http://u:sec:ret@h/v1"])
    assert "sec" not in str(caught.value)
    engine = OpenAI(model="m", base_url=["https://me:sk-1@a/v1?key=sk-1", "http://b/v1"])
    assert engine.describe()["base_url"] == ["https://a/v1", "http://b/v1"]


def test_a_run_over_several_servers_reports_each(servers: list[FakeOpenAI], tmp_path: Path) -> None:
    for server in servers:
        server.answer = lambda body: "a"
    urls = ",".join(server.url for server in servers)
    arguments = ["--model_args", f"model=fake,base_url=[{urls}]", "--output_path", str(tmp_path / "r"), "--quiet"]
    with contextlib.chdir(TOY.root):
        assert main(["eval", "--spec", "toy", "--model", "openai", *arguments]) == 0
    run = harness.load_run(tmp_path / "r", TOY)
    report = run.meta["engines"]["model"]
    assert [one["base_url"] for one in report["replicas"]] == [server.url for server in servers]
    assert sum(one["requests"] for one in report["replicas"]) == report["requests"] == 60
    again = harness.evaluate(
        "toy", "openai", model_args={"model": "fake", "base_url": servers[0].url}, output_path=tmp_path / "r",
        project=TOY, resume=True,
    )  # fmt: skip
    assert len(again.scores) == 8
