"""What `harness probe` says of llama.cpp's own server, and that it is so (`pytest -m tiny`)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from harness.api import Completion, Request, Thread
from harness.extensions.openai.openai import OpenAI
from harness.extensions.tiny import weights
from tests.helpers.commands import invoke

pytestmark = pytest.mark.tiny
NAME = weights.SMOLLM2.name
SERVE = Path(weights.__file__).with_name("serve.py")
COUNT = "Count from one to twelve in words, with blanks between them and nothing else: one two three"
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The server with the small model, as the engine `tiny` starts it: 2 slots of 2,048 tokens."""
    command = [sys.executable, "-P", str(SERVE), str(weights.get()), NAME, "2", "2048", "2"]
    environment = {"OMP_WAIT_POLICY": "passive", **os.environ}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as run:
        assert run.stdout is not None
        try:
            yield f"{run.stdout.readline().strip()}/v1"
        finally:
            run.kill()


@pytest.fixture(scope="module")
def card(address: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Its card."""
    file = tmp_path_factory.mktemp("card") / "card.json"
    command = [sys.executable, "-m", "harness", "probe", address, "-o", str(file)]
    subprocess.run(command, check=True, capture_output=True)
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return {**found, "file": str(file)}


def ask(address: str, text: str = COUNT, **more: Any) -> Any:
    """A completion, by the package's own client."""
    with openai.OpenAI(base_url=address, api_key="none", max_retries=0) as client:
        words = {"temperature": 0, **more}
        return client.chat.completions.create(model=NAME, messages=[{"role": "user", "content": text}], **words)


def test_the_card(card: dict[str, Any]) -> None:
    said = {"system", "roles_in_a_row", "empty_turns", "temperature", "seed", "texts"}
    assert {name: card[name] for name in said} == dict.fromkeys(said, "taken")
    assert card["models"] == [NAME] and card["window"] == 2048 and card["stops"] == 16
    assert card["max_tokens"] == ["max_tokens", "max_completion_tokens"]
    assert card["same_seed"] and card["two_seeds"]
    assert card["tools"] == "dropped" and card["reasoning"] == "none" and card["usage"] == "adds up"
    assert card["structured"] == {"openai": ["json"], "vllm": [], "llama.cpp": ["json", "choice"]}
    assert card["likelihoods"] == [] and card["streaming"] == "asked" and card["rate_limits"] == {}
    assert 4 < card["token_characters"] < 7


@pytest.mark.slow
def test_what_it_says_is_so(address: str) -> None:
    """The same by another client: stops, lengths, seeds, a template without tools."""
    whole = ask(address, max_tokens=40).choices[0].message.content
    last = ask(address, max_tokens=40, stop=[*(f"<{n}>" for n in range(15)), whole[5:9]]).choices[0].message.content
    assert whole.startswith(last) and len(last) <= 5 < len(whole)
    assert ask(address, max_completion_tokens=2).usage.completion_tokens == 2
    drawn = [ask(address, temperature=1, seed=n, max_tokens=20).choices[0].message.content for n in (5, 5, 6)]
    assert drawn[0] == drawn[1] != drawn[2]
    bare, offered = ask(address, max_tokens=1), ask(address, max_tokens=1, tools=[TOOL])
    assert bare.usage.prompt_tokens == offered.usage.prompt_tokens


@pytest.mark.slow
def test_a_spec_with_tools_is_refused(
    address: str, card: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = f"base_url={address},model={NAME},structured=llama.cpp,card={card['file']}"
    command = ["eval", "--spec", "tiny", "--limit", "1", "--model", "openai", "--model_args", arguments]
    command += ["--set", "matrix.condition=[chain]", "--output_path", str(tmp_path / "run")]
    code, _, err = invoke(capsys, *command, "--set", "reply_via=tool_calls", "--set", "structured_output=false")
    assert code == 2 and "offers none: the server leaves tools out of its prompts" in err
    assert invoke(capsys, *command)[0] == 0
    record = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))
    assert record["engine_args"]["model"]["card"]["tools"] == "dropped"


def test_its_token_ids_are_those_that_it_counted_and_spell_the_reply(address: str) -> None:
    ended: list[Completion] = []

    async def work() -> list[Completion]:
        engine = OpenAI(model=NAME, base_url=address, return_token_ids=True, return_logprobs=True)
        await engine.start()
        try:
            ends = Thread()
            ends.add("user", "Write the word blue and nothing else.")
            ended.append(await engine.complete(Request("e/b/0/0", ends, {"max_tokens": 40, "temperature": 0}, 0)))
            thread, answers = Thread(), []
            for turn in range(2):
                thread.add("user", f"Say yes, for round {turn}.")
                answers.append(await engine.complete(Request(f"e/a/{turn}/0", thread, {"max_tokens": 4}, turn)))
                thread.add("assistant", answers[-1].text)
            return answers
        finally:
            await engine.close()

    def tokens(text: str) -> tuple[int, ...]:
        body = json.dumps({"content": text, "parse_special": True}).encode()
        request = urllib.request.Request(f"{address.removesuffix('/v1')}/tokenize", body)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request) as answer:
            return tuple(json.load(answer)["tokens"])

    first, second = asyncio.run(work())
    for answer in (first, second):
        assert answer.prompt_token_ids and answer.token_ids and answer.logprobs
        assert len(answer.prompt_token_ids) == answer.input_tokens
        assert len(answer.token_ids) == len(answer.logprobs) and all(one <= 0 for one in answer.logprobs)
    assert first.prompt_token_ids and second.prompt_token_ids
    assert second.prompt_token_ids[: len(first.prompt_token_ids)] == first.prompt_token_ids, "ChatML appends"
    [whole] = ended
    assert whole.finish_reason == "stop" and whole.token_ids == (*tokens(whole.text), *tokens("<|im_end|>"))
    behind = second.prompt_token_ids[len(first.prompt_token_ids) :]
    assert behind[: len(tokens(first.text))] == tokens(first.text)
