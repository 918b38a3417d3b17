"""Context windows: a reply gets what is left; only a prompt that does not fit by itself is too long."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.extensions.openai.dialects.play import by_seed, calm, errors, play, refusing, report
from tests.helpers.fake_openai import Body, FakeOpenAI, Fault, raw, status
from tests.helpers.toy import results

WINDOW = 4096
LONG = ("generation_kwargs.max_tokens=4000",)


def tokens(body: Body) -> int:
    """The prompt's, by the stand-in server's tokenizer."""
    return 100 * len(body["messages"])


def words(form: str) -> Callable[[Body], Fault | None]:
    """A server that refuses a prompt and a reply that do not fit its window together, in these words."""

    def faults(body: Body) -> Fault | None:
        prompt, asked = tokens(body), body.get("max_tokens", 0)
        if prompt + asked <= WINDOW:
            return None
        named = {"window": WINDOW, "prompt": prompt, "asked": asked, "total": prompt + asked}
        return status(400, form.format(**named, least=WINDOW - asked + 1))

    return faults


BOTH = {
    "vLLM to 0.9": "This model's maximum context length is {window} tokens. However, you requested {total} tokens "
    "({prompt} in the messages, {asked} in the completion). Please reduce the length of the messages or completion.",
    "vLLM from 0.10": "'max_tokens' or 'max_completion_tokens' is too large: {asked}. This model's maximum context "
    "length is {window} tokens and your request has {prompt} input tokens ({asked} > {window} - {prompt}).",
    "vLLM from 0.15": "This model's maximum context length is {window} tokens. However, you requested {asked} output "
    "tokens and your prompt contains at least {least} input tokens, for a total of at least {total} tokens.",
    "SGLang": "Requested token count exceeds the model's maximum context length of {window} tokens. You requested a "
    "total of {total} tokens: {prompt} tokens from the input messages and {asked} tokens for the completion.",
    "OpenRouter": "This endpoint's maximum context length is {window} tokens. However, you requested about {total} "
    "tokens ({prompt} of text input, {asked} in the output). Please reduce the length of either one.",
    "TGI": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= {window}. Given: {prompt} `inputs` "
    "tokens and {asked} `max_new_tokens`",
    "Anthropic": "input length and `max_tokens` exceed context limit: {prompt} + {asked} > {window}, decrease input "
    "length or `max_tokens` and try again",
}


@pytest.mark.parametrize("server_words", BOTH)
def test_a_reply_that_is_asked_too_long_gets_what_is_left(tmp_path: Path, server_words: str) -> None:
    """vLLM: github.com/vllm-project/vllm/issues/42474 and /33418 (the count that is none), /20409 (before);
    DeepSeek in vLLM's words: github.com/evalstate/fast-agent/issues/621."""
    with FakeOpenAI(by_seed, faults=words(BOTH[server_words])) as server:
        done = play(tmp_path / "wild" / "run", server, overrides=LONG)
        bodies = server.bodies
    assert errors(done) == [] and report(done)["failures"] == report(done)["retries"] == 0
    fit = [body for body in bodies if tokens(body) + body.get("max_tokens", 0) <= WINDOW]
    assert len(fit) == report(done)["requests"] < len(bodies)
    counted = "at least" not in BOTH[server_words]
    assert all(body.get("max_tokens") in (4000, WINDOW - tokens(body) if counted else None) for body in fit)
    assert results(tmp_path / "wild" / "run") == calm(
        tmp_path / "calm" / "run", overrides=("generation_kwargs.max_tokens=4000",)
    )


ALONE = {
    "OpenAI": "This model's maximum context length is 100 tokens. However, your messages resulted in 300 tokens.",
    "vLLM to 0.9": "This model's maximum context length is 100 tokens. However, you requested 308 tokens (300 in the "
    "messages, 8 in the completion).",
    "vLLM": "This model's maximum context length is 100 tokens. However, your request has 300 input tokens. Please "
    "reduce the length of the input messages.",
    "SGLang": "The input (300 tokens) is longer than the model's context length (100 tokens).",
    "llama.cpp": "request (300 tokens) exceeds the available context size (100 tokens), try increasing it",
    "TGI": "Input validation error: `inputs` must have less than 100 tokens. Given: 300",
    "TGI with the reply": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 100. Given: 300 "
    "`inputs` tokens and 8 `max_new_tokens`",
    "Bedrock": "Input is too long for requested model.",
    "Cohere": "too many tokens: size limit exceeded by 200 tokens. Try using shorter or fewer inputs.",
    "Groq": "Please reduce the length of the messages or completion.",
    "xAI": "This model's maximum prompt length is 100 but the request contains 300 tokens.",
    "Moonshot": "Invalid request: Your request exceeded model token limit: 100",
    "Zhipu": "Prompt exceeds max length",
    "DashScope": "Range of input length should be [1, 100]",
}


@pytest.mark.parametrize("server_words", ALONE)
def test_a_prompt_that_does_not_fit_is_too_long_at_once(tmp_path: Path, server_words: str) -> None:
    too_long = refusing(ALONE[server_words], lambda body: len(body["messages"]) > 3)
    with FakeOpenAI(by_seed, faults=too_long) as server:
        done = play(tmp_path / "run", server)
        assert len(server.bodies) == report(done)["requests"]
    kinds = {turn["error_kind"] for turn in done.turns() if turn["error_kind"] not in (None, "parse")}
    assert kinds == {"context_length"}


async def body_too_large(server: FakeOpenAI, request: web.Request) -> web.StreamResponse:
    """What nginx and other servers answer to a body that is longer than they read."""
    return web.Response(status=413)


GROQ = "Request too large for model `fake` in organization `o` on tokens per minute (TPM): Limit 100, Requested 300"


@pytest.mark.parametrize(
    ("fault", "kind"), [(body_too_large, "context_length"), (status(413, GROQ), "refused")], ids=["bare", "rate"]
)
def test_a_413_without_a_word_is_too_long(tmp_path: Path, fault: Fault, kind: str) -> None:
    with FakeOpenAI(by_seed, faults=lambda body: fault if len(body["messages"]) > 3 else None) as server:
        done = play(tmp_path / "run", server, max_error_rate=1)
    assert {turn["error_kind"] for turn in done.turns()} - {None, "parse"} == {kind}


CAPS = {
    "OpenAI": "max_tokens is too large: 100000. This model supports at most 512 completion tokens, whereas you "
    "provided 100000.",
    "Groq": "`max_tokens` must be less than or equal to `512`, the maximum value for `max_tokens` is less than the "
    "`context_window` for this model",
    "DeepSeek": "Invalid max_tokens value, the valid range of max_tokens is [1, 512]",
}


@pytest.mark.parametrize("server_words", CAPS)
def test_a_model_with_a_bound_of_its_own_gets_that(tmp_path: Path, server_words: str) -> None:
    refuse = refusing(CAPS[server_words], lambda body: body["max_tokens"] > 512)
    with FakeOpenAI(by_seed, faults=refuse) as server:
        done = play(tmp_path / "run", server, overrides=("generation_kwargs.max_tokens=100000",))
        assert server.bodies[-1]["max_tokens"] == 512
    assert errors(done) == [] and report(done)["failures"] == 0


def test_a_window_that_is_listed_is_known_before(tmp_path: Path) -> None:
    """vLLM and SGLang list `max_model_len`, and give a reply without a bound what is left."""
    listed: Any = '{"data": [{"id": "fake", "max_model_len": 4096}]}'
    with FakeOpenAI(by_seed, faults=words(BOTH["vLLM from 0.15"])) as server:
        server.models_fault = raw(listed)
        done = play(tmp_path / "run", server, overrides=("generation_kwargs.max_tokens=5000",))
        assert len(server.bodies) == report(done)["requests"]
    assert errors(done) == []
