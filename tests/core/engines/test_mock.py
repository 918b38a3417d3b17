"""A function in the model's place."""

from __future__ import annotations

import asyncio
import json

import pytest

from harness.api import Completion, Request
from harness.api.errors import ContextLengthError
from harness.engines.mock import Mock
from tests.conftest import request


def test_a_fixed_text() -> None:
    assert asyncio.run(Mock(text="yes", latency=0.001).complete(request("?"))) == Completion(text="yes")
    assert asyncio.run(Mock().complete(request("?"))).text == ""


def test_a_function_plain_or_async_gives_text_or_completion() -> None:
    async def later(asked: Request) -> Completion:
        await asyncio.sleep(0)
        return Completion(text=asked.id, output_tokens=1)

    result = asyncio.run(
        Mock(function=lambda asked: asked.thread.messages[-1]["content"].upper()).complete(request("a"))
    )
    assert result.text == "A"
    assert asyncio.run(Mock(function=later).complete(request("a", key=3))) == Completion("test/3/0/0", output_tokens=1)


def test_a_function_may_fail_as_engines_do() -> None:
    def full(asked: Request) -> str:
        raise ContextLengthError("too long")

    with pytest.raises(ContextLengthError):
        asyncio.run(Mock(function=full).complete(request("?")))


def test_its_description_is_json_and_names_the_function() -> None:
    def shout(asked: Request) -> str:
        return "A"

    facts = json.loads(json.dumps(Mock(function=shout, model="m").describe()))
    assert facts["model"] == "m" and facts["function"].endswith("shout")
    assert Mock(text="x").describe()["function"] is None
