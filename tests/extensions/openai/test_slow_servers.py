"""Servers that work on a few requests at once: waiting in their queue is no failure, and llama.cpp's says how many."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Completion
from harness.api.errors import ContextLengthError, UserError
from harness.engines.gate import Gate
from harness.extensions.openai.openai import OpenAI
from harness.extensions.openai.replicas import Replica
from tests.conftest import request
from tests.extensions.openai.test_openai import using
from tests.helpers.fake_openai import FakeOpenAI, chat, hang, raw, status
from tests.helpers.skipped_time import skipping
from tests.helpers.toy import TOY

PROPS = {"default_generation_settings": {"params": {"seed": 4294967295}, "n_ctx": 2048}, "total_slots": 2,
         "model_alias": "smollm2", "build_info": "b0-unknown", "is_sleeping": False}  # fmt: skip
"""What llama.cpp's server says at /props, without most of its settings."""
TOO_LONG = "request (3031 tokens) exceeds the available context size (2048 tokens), try increasing it"
"""Its words for a prompt that does not fit, as HTTP 400 with the type exceed_context_size_error."""


class Client:
    """A server of so many slots, each request taking `seconds(number)`; the others wait in their order."""

    def __init__(self, slots: int, seconds: Callable[[int], float]) -> None:
        self.slots, self.seconds, self.number = asyncio.Semaphore(slots), seconds, -1

    async def post(self, path: str, **_: Any) -> Any:
        self.number += 1
        seconds = self.seconds(self.number)
        async with self.slots:
            await asyncio.sleep(seconds)
        return {}


def fates(slots: int, count: int, timeout: float, seconds: Callable[[int], float]) -> list[tuple[float, str]]:
    """When each of so many requests that are sent at once ends, and with which error."""

    async def main(clock: Callable[[], float]) -> list[tuple[float, str]]:
        replica = Replica("x", Client(slots, seconds), 1000)

        async def one() -> tuple[float, str]:
            try:
                await replica.post("/", {}, timeout)
            except TimeoutError as error:
                return clock(), str(error)
            return clock(), ""

        return await asyncio.gather(*(one() for _ in range(count)))

    return skipping(main)


@pytest.mark.parametrize("slots", [1, 2, 7])
def test_waiting_in_a_servers_queue_is_no_failure(slots: int) -> None:
    lengths = random.Random(slots)
    ends = fates(slots, 256, 10.0, lambda n: lengths.uniform(1, 9.5))
    assert not any(error for _, error in ends)
    assert max(when for when, _ in ends) > 100, "ten times the timeout"


def test_a_server_that_answers_nothing_fails_at_the_timeout() -> None:
    ends = fates(4, 50, 10.0, lambda n: 1e6)
    assert {when for when, _ in ends} == {10.0}
    first = ends[0][1]
    assert first.startswith("no whole answer within 10 s; it had 50 requests at once")
    assert "--max_concurrency" in first and "timeout=" in first
    assert fates(1, 1, 10.0, lambda n: 1e6) == [(10.0, "no whole answer within 10 s")]


def test_a_request_that_others_overtake_fails_at_its_timeout() -> None:
    ends = fates(2, 100, 10.0, lambda n: 1e6 if n == 0 else 1.0)
    assert ends[0][0] == 10.0 and ends[0][1]
    assert not any(error for _, error in ends[1:])


def test_a_server_that_dies_with_a_queue_is_given_up_one_timeout_later() -> None:
    ends = fates(2, 100, 10.0, lambda n: 1.0 if n < 40 else 1e6)
    assert sum(not error for _, error in ends) == 40
    assert {when for when, error in ends if error} <= {29.0, 30.0}, "ten seconds after the last answer"


def run_of(server: FakeOpenAI, folder: Path, **options: Any) -> harness.Run:
    fields: dict[str, Any] = {"base_url": server.url, "model": "fake", "api_key_env": "NO_SUCH_KEY", "backoff": 0.0}
    more = options.pop("fields", {})
    return harness.evaluate("toy", OpenAI(**fields, **more), repeats=3, output_path=folder, project=TOY, **options)


def test_llamas_slots_are_read_and_no_more_requests_go_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "harness")
    with FakeOpenAI(lambda body: "a", props=PROPS) as server:
        run_of(server, tmp_path / "r", max_concurrency=64)
    assert server.peak <= 2
    lines = [record.getMessage() for record in caplog.records]
    assert any("2 slots (-np) of 2,048 tokens each, prompt and reply together (-c divided by -np)" in o for o in lines)


@pytest.mark.parametrize(
    "props",
    [{}, {"total_slots": "2"}, {"total_slots": 0, "default_generation_settings": 7}, {"role": "router"}],
)
def test_what_a_server_does_not_say_bounds_nothing(props: dict[str, Any]) -> None:
    async def work(engine: OpenAI) -> tuple[int | None, Completion]:
        return engine.width, await engine.complete(request("?"))

    with FakeOpenAI(lambda body: "a", props=props) as server:
        assert using(server, work)[0] is None


def test_other_servers_are_not_asked_for_slots() -> None:
    with FakeOpenAI(lambda body: "a") as server:
        assert using(server, lambda e: e.complete(request("?"))).text == "a"
    assert server.asked_props == 0


def test_slots_of_several_servers_add_up() -> None:
    async def main(one: FakeOpenAI, two: FakeOpenAI) -> tuple[int | None, int]:
        engine = OpenAI(model="fake", base_url=[one.url, two.url], api_key_env="NO_SUCH_KEY")
        await engine.start()
        width = engine.width, Gate(engine, 4).most_in_flight
        await engine.close()
        return width

    with FakeOpenAI(props=PROPS) as one, FakeOpenAI(props={**PROPS, "total_slots": 3}) as two:
        assert asyncio.run(main(one, two)) == (5, 4)
    with FakeOpenAI(props=PROPS) as one, FakeOpenAI() as two:
        assert asyncio.run(main(one, two)) == (None, 4)


def test_a_prompt_that_fits_no_slot_says_how_slots_share_the_context() -> None:
    fault = status(400, TOO_LONG, type="exceed_context_size_error", n_prompt_tokens=3031, n_ctx=2048)
    with FakeOpenAI(props=PROPS, script=[fault]) as server, pytest.raises(ContextLengthError) as caught:
        using(server, lambda e: e.complete(request("?")))
    assert "has 2 slots (-np) of 2,048 tokens each" in str(caught.value)


def test_a_run_at_a_server_that_hangs_names_the_option(tmp_path: Path) -> None:
    with FakeOpenAI(faults=lambda body: hang) as server:
        fields = {"timeout": 0.2, "max_retries": 0}
        with pytest.raises(UserError, match="max_concurrency"):
            run_of(server, tmp_path / "r", fields=fields)


def test_json_counts_whatever_the_header_says() -> None:

    for kind in ("text/plain", "text/html", "application/octet-stream"):
        with FakeOpenAI(script=[raw(json.dumps(chat("fine")), kind)]) as server:
            assert using(server, lambda e: e.complete(request("?")), max_retries=0).text == "fine"
