"""A form that no text answers, with a request and an ability of its own: what an extension adds and the core asks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.api import Ability, Action, Completion, Engine, Parsed, Reply, Request, Thread, Turn
from harness.api.errors import EngineFatalError
from harness.engines.cache import Cache
from harness.engines.gate import Gate
from harness.engines.mock import Mock
from harness.replies import WrappedReply
from harness.runtime.players import ModelPlayer
from tests.helpers.toy import TOY


@dataclass(frozen=True, slots=True)
class CountRequest(Request):
    """How many letters has the conversation?"""

    letter: str = ""

    def send(self, engine: Engine) -> Awaitable[Completion]:
        if isinstance(engine, CountsLetters):
            return engine.count(self)
        if engine.any_request:
            return engine.complete(self)
        raise EngineFatalError(f"the engine of {engine.model} {CountsLetters.lack}")


class CountsLetters(Ability):
    """It counts."""

    need = "has letters counted"
    lack = "counts no letters"

    async def count(self, request: CountRequest) -> Completion:
        found = request.thread.text.count(request.letter)
        return Completion("", output_tokens=found)


@dataclass(frozen=True, slots=True)
class Count(Reply):
    """The number of a letter in the conversation."""

    letter: str

    @property
    def ability(self) -> type[CountsLetters]:
        return CountsLetters

    def allows(self, action: Action) -> bool:
        return type(action) is int

    def parse(self, text: str) -> Parsed:
        return Parsed(error="no text counts")

    def request_for(self, asked: Request) -> CountRequest:
        return CountRequest(asked.id, asked.thread, {}, 0, reply=asked.reply, letter=self.letter)

    def parse_completion(self, completion: Completion) -> Parsed:
        if completion.output_tokens is None:
            raise KeyError("the form's own mistake")
        return Parsed(completion.output_tokens)

    def message_of(self, completion: Completion) -> str:
        return f"There are {completion.output_tokens}."


class Counter(Engine, CountsLetters):
    model = "counter"

    async def complete(self, request: Request) -> Completion:
        raise AssertionError("no text is asked for")


class Mute(Engine):
    model = "mute"

    async def complete(self, request: Request) -> Completion:
        raise AssertionError("it is not asked")


def played(engine: Engine, reply: Reply) -> tuple[Any, ModelPlayer]:
    player = ModelPlayer(Gate(engine), TOY.prompts("toy/base"), {}, False, "e/S0", 1)
    turn = Turn("S0", "say", {"round": 0, "heard": {}}, reply, {"name": "S0"}, parse_retries=3)
    return asyncio.run(player.act(turn)), player


@pytest.mark.parametrize("reply", [Count("o"), WrappedReply(WrappedReply(Count("o")))])
def test_an_engine_with_the_ability_answers_through_the_gate(reply: Reply) -> None:
    move, player = played(Counter(), reply)
    asked = "".join(message["content"] for message in player.thread.messages[:-1])
    assert (move.action, move.error, len(move.calls)) == (asked.count("o"), None, 1) and move.action > 0
    assert player.thread.messages[-1] == {"role": "assistant", "content": f"There are {move.action}."}


def test_an_engine_without_it_is_given_up_and_one_that_answers_all_is_asked() -> None:
    with pytest.raises(EngineFatalError, match="the engine of mute counts no letters"):
        played(Mute(), Count("o"))
    seen: list[Request] = []

    def answer(request: Request) -> Completion:
        seen.append(request)
        return Completion("", output_tokens=7)

    move, _ = played(Mock(function=answer), Count("o"))
    assert move.action == 7 and isinstance(seen[0], CountRequest)


def test_a_mistake_of_the_form_is_no_answer_and_is_not_asked_for_again() -> None:
    move, _ = played(Mock(function=lambda request: Completion("a text")), Count("o"))
    assert (move.action, move.error_kind, len(move.calls)) == (None, "parse", 1)
    assert "the answer hits a bug: KeyError" in move.error


def test_caches_tell_apart_what_such_a_request_asks(tmp_path: Path) -> None:
    """Also where its class says nothing of keys."""

    async def counted() -> list[int | None]:
        cache = Cache(Counter(), tmp_path / "cache.sqlite")
        await cache.start()
        thread = Thread()
        thread.add("user", "Look at this book")
        answers = [await cache.complete(CountRequest("r", thread, {}, 0, letter=letter)) for letter in "oko"]
        await cache.close()
        assert cache.hits == 1
        return [answer.output_tokens for answer in answers]

    assert asyncio.run(counted()) == [4, 2, 4]
