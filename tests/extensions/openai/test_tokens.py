"""Token ids and log-probabilities of servers: asked for, read, and missed before the first request of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Completion, Request, Thread
from harness.api.errors import EngineError, SetupError
from harness.extensions.openai.openai import OpenAI
from harness.extensions.openai.tokens import TokenFields
from harness.extensions.openai.wire import GarbledError
from tests.helpers.fake_openai import Body, FakeOpenAI, chat, completion, status

IDS = [5, 6, 7]
PROMPT = [1, 2, 3, 4, 5, 6, 7]
VALUES = [-0.5, -1.25, 0.0]


def like_vllm(body: Body) -> Body:
    """What vLLM's server answers: ids where they are asked for, and log-probabilities likewise."""
    if "prompt" in body:
        answer = completion("a b c")
        scores: Body = {"token_logprobs": VALUES, "tokens": ["a", "b", "c"]}
        answer["choices"][0] |= {"token_ids": IDS, "prompt_token_ids": PROMPT} if body.get("return_token_ids") else {}
    else:
        answer = chat("a b c")
        scores = {"content": [{"token": "x", "logprob": value} for value in VALUES]}
        answer |= {"prompt_token_ids": PROMPT} if body.get("return_token_ids") else {}
        answer["choices"][0] |= {"token_ids": IDS} if body.get("return_token_ids") else {}
    answer["choices"][0] |= {"logprobs": scores} if body.get("logprobs") in (True, 0) and "logprobs" in body else {}
    return answer


class LikeLlama(FakeOpenAI):
    """llama.cpp's server: ids stand beside log-probabilities, prompts are named by two requests of their own."""

    named = PROMPT

    def route(self, router: web.UrlDispatcher) -> None:
        super().route(router)
        router.add_post("/apply-template", self._template)
        router.add_post("/tokenize", self._tokenize)

    async def _template(self, request: web.Request) -> web.StreamResponse:
        messages = (await request.json())["messages"]
        return web.json_response({"prompt": "|".join(one["content"] for one in messages)})

    async def _tokenize(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        assert body["add_special"] and body["parse_special"] and body["content"] in ("Hi", "Hello?")
        return web.json_response({"tokens": self.named})


def like_llama(body: Body) -> Body:
    answer = completion("a b c") if "prompt" in body else chat("a b c")
    if body.get("logprobs"):
        rows = [{"id": i, "token": "x", "logprob": value} for i, value in zip(IDS, VALUES, strict=True)]
        answer["choices"][0]["logprobs"] = {"content": rows}
    return answer


def ask(server: FakeOpenAI, plain: bool = False, **fields: Any) -> Completion:
    async def work() -> Completion:
        engine = OpenAI(model="fake", base_url=server.url, backoff=0.001, max_retries=1, **fields)
        await engine.start()
        try:
            thread = Thread(chat=not plain)
            thread.add("user", "Hello?")
            return await engine.complete(Request("e/a/0/0", thread, {}, 1))
        finally:
            await engine.close()

    return asyncio.run(work())


def llama() -> LikeLlama:
    return LikeLlama(like_llama, props={"total_slots": 2})


@pytest.mark.parametrize("make", [lambda: FakeOpenAI(like_vllm), llama], ids=["vllm", "llama.cpp"])
@pytest.mark.parametrize("plain", [False, True], ids=["chat", "text"])
def test_ids_and_log_probabilities_come_with_the_reply(make: Callable[[], FakeOpenAI], plain: bool) -> None:
    with make() as server:
        answer = ask(server, plain, return_token_ids=True, return_logprobs=True)
        assert (answer.text, answer.prompt_token_ids, answer.token_ids) == ("a b c", tuple(PROMPT), tuple(IDS))
        assert answer.logprobs == tuple(VALUES)
        answer = ask(server, plain, return_token_ids=True)
        assert answer.token_ids == tuple(IDS) and answer.logprobs is None
        answer = ask(server, plain, return_logprobs=True)
        assert answer.token_ids == tuple(IDS) and answer.logprobs == tuple(VALUES), "they are of these ids"
        before = len(server.bodies)
        answer = ask(server, plain)
        assert (answer.prompt_token_ids, answer.token_ids, answer.logprobs) == (None, None, None)
        assert not {"return_token_ids", "logprobs"} & server.bodies[before].keys(), "nothing is asked for unasked"


def refuses(body: Body) -> Any:
    return (
        status(400, "Unrecognized request argument supplied: return_token_ids") if "return_token_ids" in body else None
    )


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (FakeOpenAI(), "has no token ids"),
        (FakeOpenAI(faults=refuses), "Unrecognized request argument"),
        (FakeOpenAI(lambda body: {**like_vllm(body), "prompt_token_ids": None}), "has no token ids"),
        (FakeOpenAI(like_llama, props={"total_slots": 2}), "404"),
    ],
    ids=["leaves them out", "refuses the field", "none of the prompt", "llama.cpp without /tokenize"],
)
def test_a_server_without_them_is_named_before_the_run(server: FakeOpenAI, words: str) -> None:
    with server, pytest.raises(SetupError, match="gives no token ids with its replies") as caught:
        ask(server, return_token_ids=True)
    assert words in str(caught.value) and "return_token_ids" in str(caught.value.hint)
    assert len(server.bodies) == 1


def test_log_probabilities_that_are_missing_are_named_too() -> None:
    def without(body: Body) -> Body:
        answer = like_vllm(body)
        answer["choices"][0].pop("logprobs", None)
        return answer

    with FakeOpenAI(without) as server, pytest.raises(SetupError, match="token ids and log-probabilities"):
        ask(server, return_logprobs=True)


def test_prompts_that_llama_counts_otherwise_are_not_passed_off_as_its_own() -> None:
    server = llama()
    server.named = [*PROMPT, 8]
    with server, pytest.raises(EngineError, match="counts 7 tokens in the prompt, and names 8"):
        ask(server, return_token_ids=True)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["content", "id", "logprob"]), inner),
    max_leaves=8,
)


@given(anything, anything, anything, st.booleans())
def test_whatever_a_server_says_of_tokens_is_read_or_refused(ids: Any, prompt: Any, scores: Any, llama: bool) -> None:
    fields = TokenFields(True, True)
    fields.is_llama = llama
    try:
        found = fields.read({"choices": [{"token_ids": ids, "logprobs": scores}], "prompt_token_ids": prompt})
    except GarbledError:
        return
    assert len(found["token_ids"]) == len(found["logprobs"])
    assert all(type(one) is int and one >= 0 for one in found["token_ids"] + found["prompt_token_ids"])
