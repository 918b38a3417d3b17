"""Log-likelihoods by vLLM's own OpenAI server, on the CPU, are those that the model computes by itself."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.api import Completion, Request, Thread
from harness.engines.chat_tokens import chat_tokens
from harness.engines.likelihoods import Continuation, LikelihoodRequest
from harness.extensions.networks.tools import schema
from harness.extensions.openai.openai import OpenAI
from harness.runtime.call_messages import messages_of
from tests.helpers.commands import invoke

pytestmark = pytest.mark.vllm

WAIT = 300  # seconds for vLLM to load
LENGTH = 2048


@pytest.fixture(scope="module")
def address(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A served tiny model, in single precision: how texts are batched then shows in no digit that counts."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log"
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(tiny_model)]
    command += ["--served-model-name", "tiny", "--host", "127.0.0.1", "--port", str(port), "--dtype", "float32"]
    command += ["--max-model-len", str(LENGTH), "--max-num-seqs", "16", "--enforce-eager"]
    command += ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
    environment = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1"}
    with log.open("wb") as file:
        server = subprocess.Popen(command, stdout=file, stderr=file, env=environment, start_new_session=True)
    url = f"http://127.0.0.1:{port}/v1"
    try:
        end = time.monotonic() + WAIT
        while not _answers(f"{url}/models"):
            assert server.poll() is None and time.monotonic() < end, log.read_text()[-3000:]
            time.sleep(0.2)
        yield url
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@pytest.fixture(scope="module")
def computed(tiny_model: Path) -> Callable[[LikelihoodRequest], list[list[Any]]]:
    """What the model gives, without any engine, for the token ids that the engine `vllm` would send."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32)
    tokens = chat_tokens(str(tiny_model))

    def score(context: list[int], text: list[int]) -> tuple[float, bool]:
        with torch.no_grad():
            rows = torch.log_softmax(model(torch.tensor([[*context, *text]])).logits[0].double(), -1)
        rows = rows[len(context) - 1 : -1]
        own = rows.gather(1, torch.tensor(text).unsqueeze(1)).squeeze(1)
        return float(own.sum()), bool((own >= rows.max(1).values).all())

    def score_all(request: LikelihoodRequest) -> list[list[Any]]:
        each = [[score(*pair) for pair in pairs] for pairs in tokens.pairs(request, LENGTH)]
        return [[sum(number for number, _ in parts), all(greedy for _, greedy in parts)] for parts in each]

    return score_all


def ask(url: str, requests: list[LikelihoodRequest], **fields: Any) -> list[Any]:
    async def main() -> list[Any]:
        engine = OpenAI(base_url=url, model="tiny", api_key_env="NO_SUCH_KEY", **fields)
        await engine.start()
        try:
            return [answer.likelihoods for answer in await asyncio.gather(*map(engine.loglikelihood, requests))]
        finally:
            await engine.close()

    return asyncio.run(main())


def plain(text: str, *texts: str, rolling: bool = False) -> LikelihoodRequest:
    thread = Thread(chat=False)
    thread.add("user", text)
    return LikelihoodRequest("q", thread, continuations=tuple(map(Continuation, texts)), rolling=rolling)


def chat(*texts: str) -> LikelihoodRequest:
    thread = Thread()
    thread.add("system", "Be brief.")
    thread.add("user", "Which group are you?")
    own = (*thread.messages, {"role": "assistant", "content": "We are"})
    more = (Continuation(" Group 1", own), Continuation(" one", "Carol and Dave agree on"))
    return LikelihoodRequest("q", thread, continuations=(*map(Continuation, texts), *more))


REQUESTS = [
    plain("The agents of a network talk to", " their neighbors.", " Bob", " my colour is 3"),
    plain("The agents of a network talk to ", "their neighbors."),
    chat("A", "Group 1", "final answer: 42"),
    plain("In Japanese: ", "日本語 naïve", " Ünïcode"),
]
EXACT = [
    plain("", "Yes No Group 1"),
    plain("", "The agents of a network agree. " * 300, "short", rolling=True),
    plain("A context that is longer than the model takes. " * 300, " Yes", " No"),
]


def test_a_servers_numbers_are_the_models(address: str, tiny_model: Path, computed: Any) -> None:
    expected = [computed(one) for one in [*REQUESTS, *EXACT]]
    assert_same(ask(address, [*REQUESTS, *EXACT], tokenizer=str(tiny_model)), expected)
    assert_same(ask(address, REQUESTS), expected[: len(REQUESTS)])


def assert_same(found: list[Any], expected: list[Any]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert [pair[0] for pair in one] == pytest.approx([pair[0] for pair in other], rel=1e-5, abs=1e-4)
        assert [pair[1] for pair in one] == [pair[1] for pair in other]


def test_the_card_of_the_server(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What `harness probe` says of vLLM's own server; a model with random weights says noise, so only what it cannot
    change."""
    code, out, err = invoke(capsys, "probe", address, "--format", "json")
    card = json.loads(out)
    assert code == 0, err
    said = ("system", "roles_in_a_row", "empty_turns", "temperature", "seed", "texts")
    assert {name: card[name] for name in said} == dict.fromkeys(said, "taken")
    assert card["models"] == ["tiny"] and card["window"] == LENGTH and card["same_seed"] and card["two_seeds"]
    assert card["max_tokens"] == ["max_tokens", "max_completion_tokens"] and card["usage"] == "adds up"
    assert "choice" in card["structured"]["vllm"] and card["structured"]["llama.cpp"] == []
    assert card["tools"] == "dropped", "the template has none"
    assert card["likelihoods"] == ["texts", "chats"]


def test_a_server_takes_a_conversation_of_calls_however_broken_they_were(address: str) -> None:
    wait = {"name": "wait", "description": "Ends the round.", "parameters": schema((), ("why",))}
    thread, broken = Thread(), ("{", "true", "[null]", '{"why": "\\ud800"}', "")
    thread.add("user", "What do you do?")

    async def main() -> list[Completion]:
        engine = OpenAI(model="tiny", base_url=address, send_seed=False, extra_body={"tool_choice": "required"})
        await engine.start()
        try:
            answers = []
            for number, arguments in enumerate(broken):
                request = Request(f"r{number}", thread, {"max_tokens": 60, "temperature": 0}, 0, tools=(wait,))
                answers.append(await engine.complete(request))
                made = [{"id": "", "name": "wait me!", "arguments": arguments}, *(answers[-1].tool_calls or ())]
                calls = messages_of(made, len(thread.messages))
                thread.add("assistant", answers[-1].text, tool_calls=calls)
                for call in calls:
                    thread.add("tool", "your round has ended", tool_call_id=call["id"])
                thread.add("user", "And now?")
            return answers
        finally:
            await engine.close()

    for answer in asyncio.run(main()):
        assert answer.output_tokens and (answer.tool_calls or answer.text)
        assert all(call["name"] == "wait" for call in answer.tool_calls or ())


def test_the_servers_token_ids_are_those_of_the_model(address: str, tiny_model: Path) -> None:
    from transformers import AutoTokenizer

    async def work() -> list[Completion]:
        engine = OpenAI(model="tiny", base_url=address, return_token_ids=True, return_logprobs=True)
        await engine.start()
        try:
            thread, answers = Thread(), []
            for turn in range(3):
                thread.add("user", f"Round {turn}.")
                answers.append(await engine.complete(Request(f"e/a/{turn}/0", thread, {"max_tokens": 6}, turn)))
                thread.add("assistant", answers[-1].text)
            text = Thread(chat=False)
            text.add("user", "Once upon a time")
            answers.append(await engine.complete(Request("e/b/0/0", text, {"max_tokens": 6}, 1)))
            return answers
        finally:
            await engine.close()

    answers = asyncio.run(work())
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    first = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Round 0."}], add_generation_prompt=True, tokenize=False
    )
    assert answers[0].prompt_token_ids == tuple(tokenizer.encode(first, add_special_tokens=False))
    for answer in answers:
        assert answer.token_ids and answer.logprobs and answer.prompt_token_ids
        assert len(answer.token_ids) == len(answer.logprobs) == answer.output_tokens
        assert len(answer.prompt_token_ids) == answer.input_tokens and all(one <= 0 for one in answer.logprobs)
    assert answers[-1].prompt_token_ids == tuple(tokenizer.encode("Once upon a time"))
