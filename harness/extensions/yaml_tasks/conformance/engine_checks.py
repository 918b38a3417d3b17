"""Whether an engine keeps its contract, from what it does with a few short requests.

For the tests of an engine's author: against a stand-in of its server, or the server itself.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Iterator
from typing import Any

from harness.api import CallsTools, Completion, Engine, Request
from harness.api.engine import Thread
from harness.api.errors import EngineError
from harness.engines.likelihoods import ComputesLikelihoods, Continuation, LikelihoodRequest
from harness.storage.plugin_errors import describe

_COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
_TOOL = {
    "name": "choose",
    "description": "Choose a color.",
    "parameters": {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]},
}


def check_engine(engine: Engine) -> list[str]:
    """It starts, answers short requests, alone and several at once, with completions of the right types, leaves the
    conversation as it was, fails with errors of engines only, and closes; then all of it once more. What its base
    classes promise is asked too: calls of tools, log-likelihoods.

    Sends about a dozen requests of ten tokens. Not inside a running event loop: engines start in one of their own.
    """
    try:
        broken = [*_check_fields(engine)]
    except Exception as error:
        broken = [f"its fields cannot be described: {describe(error)}"]
    for _ in range(2):  # a run may start it again
        broken += asyncio.run(_check_life(engine))
    return list(dict.fromkeys(broken))


def _check_fields(engine: Engine) -> Iterator[str]:
    if not (isinstance(engine.model, str) and engine.model):
        yield f"model is {engine.model!r}, not a text"
    for name, facts in (("describe()", engine.describe()), ("identity()", engine.identity(location=True))):
        try:
            json.dumps(facts)
        except (TypeError, ValueError) as error:
            yield f"{name} is no JSON: {error}"
    unknown = (engine.incidental | engine.location) - engine.describe().keys()
    if unknown:
        yield f"incidental or location names {', '.join(sorted(unknown))}, which describe() does not have"


async def _check_life(engine: Engine) -> list[str]:
    broken: list[str] = []
    try:
        engine.check()
        await engine.start()
        if engine.width is not None and not (isinstance(engine.width, int) and engine.width > 0):
            broken.append(f"width is {engine.width!r}, not a number of requests")
        asked = [_request(str(number)) for number in range(4)]
        before = [_content(one) for one in asked]
        alone = await _ask(engine, asked[0], broken)
        together = await asyncio.gather(*(_ask(engine, one, broken) for one in asked))
        broken += [problem for reply in (alone, *together) if reply is not None for problem in _problems(reply)]
        if [_content(one) for one in asked] != before:
            broken.append("complete() changes the conversation or the sampling that it is given")
        if engine.deterministic:
            pair = [await _ask(engine, _request("again"), broken) for _ in range(2)]
            if None not in pair and pair[0].text != pair[1].text:  # type: ignore[union-attr]
                broken.append("it is deterministic, and the same request got two different replies")
        if isinstance(engine, CallsTools) and engine.tools_problem is None:
            reply = await _ask(engine, _request("tool", tools=(_TOOL,)), broken)
            broken += [] if reply is None else _problems(reply)
        if isinstance(engine, ComputesLikelihoods):
            broken += await _check_likelihoods(engine)
        tokens = engine.count_tokens("Say one word.")
        if tokens is not None and not _is_count(tokens):
            broken.append(f"count_tokens() is {tokens!r}, not a number of tokens")
        json.dumps(engine.report())
    except Exception as error:
        broken.append(f"it fails: {describe(error)}")
    finally:
        try:
            await engine.close()
        except Exception as error:
            broken.append(f"close() fails: {describe(error)}")
    return broken


def _request(id: str, **more: Any) -> Request:
    thread = Thread()
    thread.add("system", "You answer with one word.")
    thread.add("user", f"Name a color. ({id})")
    return Request(f"check/{id}", thread, {"temperature": 0.0, "max_tokens": 10}, seed=7, **more)


def _content(request: Request) -> str:
    return json.dumps([request.thread.messages, dict(request.sampling)])


async def _ask(engine: Engine, request: Request, broken: list[str]) -> Completion | None:
    """The reply to a request; None where there is none, with the reason among what is broken."""
    try:
        answer: Awaitable[Completion] = request.send(engine)
        reply = await answer
    except EngineError as error:
        broken.append(f"it does not answer a short request: {error}")
        return None
    except Exception as error:
        broken.append(f"a request fails with what is no EngineError: {describe(error)}")
        return None
    if not isinstance(reply, Completion):
        broken.append(f"complete() returns {type(reply).__name__}, not a Completion")
        return None
    return reply


def _problems(reply: Completion) -> list[str]:
    broken = []
    if not isinstance(reply.text, str):
        broken.append(f"text is {reply.text!r:.80}, not a text")
    for name in _COUNTS:
        if (count := getattr(reply, name)) is not None and not _is_count(count):
            broken.append(f"{name} is {count!r}, not a number of tokens")
    for name in ("latency", "cost"):
        if (number := getattr(reply, name)) is not None and not _is_amount(number):
            broken.append(f"{name} is {number!r}, not a number of at least 0")
    for call in reply.tool_calls or ():
        if not all(isinstance(call.get(key), str) for key in ("id", "name", "arguments")):
            broken.append(f"a tool call is {call!r:.80}: it has the texts id, name and arguments")
    return broken


async def _check_likelihoods(engine: ComputesLikelihoods) -> list[str]:
    asked = _request("likelihoods")
    texts = (Continuation("red"), Continuation("blue"))
    try:
        reply = await engine.loglikelihood(LikelihoodRequest(asked.id, asked.thread, continuations=texts))
    except EngineError:  # a client of many servers may find that this one gives none
        return []
    scores = reply.likelihoods
    if scores is None or len(scores) != len(texts):
        return [f"loglikelihood() of {len(texts)} texts gives {scores!r:.80}"]
    return [
        f"a likelihood is {pair!r}: it is [log-likelihood, whether greedy decoding gives the text]"
        for pair in scores
        if not (len(pair) == 2 and isinstance(pair[1], bool) and math.isfinite(pair[0]) and pair[0] <= 0)
    ]


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0
