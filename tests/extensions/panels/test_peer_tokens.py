"""What crosses from agent to agent is counted by the engine's tokenizer, once, whatever is asked again."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

from harness.api import Case, Completion, Outcome, Play, Protocol, Request, Task, Turn, plugin
from harness.config.project import builtin
from harness.engines.gate import Gate
from harness.engines.mock import Mock
from harness.extensions.openai.openai import OpenAI
from harness.runtime.episode import play
from harness.runtime.players import ModelPlayer
from harness.runtime.steps import Steps

BUILTIN = builtin()


@plugin
class Hearsay(Protocol):
    """The second agent hears the first."""

    def possible_agents(self, case: Case) -> tuple[str, ...]:
        return ("A", "B")

    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        reply, context = task.reply(case, "A"), {**task.context(case, "A"), "confidence": "none"}
        [output] = yield [Turn("A", "answer", {}, reply, context)]
        text = output.text or ""
        [heard] = yield [Turn("B", "answer", {}, reply, context, parse_retries=2, peer_texts=(text, "and more"))]
        return Outcome(group=heard.action)


async def calls(engine: Any) -> list[list[Completion]]:
    task = BUILTIN.load("tasks", "arithmetic")(size=1)
    case = next(iter(task.cases(1, 0)))
    prompts = BUILTIN.prompts("panels/standard")
    players = {s: ModelPlayer(engine, prompts, {}, False, f"e/{s}", 0) for s in ("A", "B")}
    batches: list[Any] = []
    await play(Steps(Hearsay(), task, case, random.Random(0)), players, {}, lambda *_: None, batches.append)
    return [list(move.calls) for [move] in batches]


def test_tokens_of_others_are_counted_with_the_first_call_of_a_turn() -> None:
    replies = iter(["The answer is 12", "what?", "The answer is 12"])

    def answer(request: Request) -> str:
        return next(replies)

    alone, heard = asyncio.run(calls(Gate(Mock(function=answer), 4)))
    assert [call.peer_tokens for call in alone] == [None]
    assert [call.peer_tokens for call in heard] == [6, None], "four words and two; the retry shows nothing new"


def test_an_engine_that_cannot_count_says_nothing() -> None:
    class Mute(Mock):
        def count_tokens(self, text: str) -> None:  # type: ignore[override]
            return None

    _, heard = asyncio.run(calls(Mute(text="The answer is 3")))
    assert heard[0].peer_tokens is None


def test_a_server_counts_nothing_unless_a_tokenizer_is_named() -> None:
    assert OpenAI(model="m", base_url="http://localhost:1/v1").count_tokens("one") is None


def test_tokens_that_an_engine_reports_itself_are_not_counted_anew() -> None:
    recorded = Completion("The answer is 3", peer_tokens=41)
    _, heard = asyncio.run(calls(Mock(function=lambda request: recorded)))
    assert heard[0].peer_tokens == 41, "as a recorded run has it"
