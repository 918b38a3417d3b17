"""Tokens as they are billed, and counts of prompts that do not grow with them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from harness.runtime.runner import BudgetReachedError
from tests.extensions.openai.dialects.play import by_seed, play, report
from tests.helpers.fake_openai import Body, FakeOpenAI, chat


def usage(**counts: Any) -> Any:
    return lambda body: chat(by_seed(body), counts)


BESIDE = {
    "prompt_tokens": 21,
    "completion_tokens": 4,
    "total_tokens": 85,
    "completion_tokens_details": {"reasoning_tokens": 60},
}


@pytest.mark.parametrize(
    ("counts", "output"),
    [
        (BESIDE, 64),
        ({**BESIDE, "completion_tokens": 0, "total_tokens": 81}, 60),
        ({"prompt_tokens": 21, "completion_tokens": 64, "total_tokens": 85}, 64),
        ({"prompt_tokens": 21, "completion_tokens": 64}, 64),
        ({"prompt_tokens": 21, "completion_tokens": 64, "total_tokens": 0}, 64),
    ],
)
def test_reasoning_that_is_counted_beside_the_reply_is_output(
    tmp_path: Path, counts: dict[str, Any], output: int
) -> None:
    """Gemini and gateways before it: github.com/router-for-me/CLIProxyAPI/issues/5733,
    github.com/mozilla-ai/any-llm/issues/1290."""
    with FakeOpenAI(usage(**counts)) as server:
        done = play(tmp_path / "run", server)
        asked = len(server.bodies)
    turns = list(done.turns())
    assert sum(turn["output_tokens"] for turn in turns) == output * asked
    assert sum(turn["input_tokens"] for turn in turns) == 21 * asked


def test_a_budget_of_tokens_counts_what_is_billed(tmp_path: Path) -> None:
    with FakeOpenAI(usage(**BESIDE)) as server, pytest.raises(BudgetReachedError) as caught:
        play(tmp_path / "run", server, max_tokens_total=850, max_concurrency=1)
    assert caught.value.stopped["asked"] == {"calls": 10, "tokens": 850}


@pytest.mark.parametrize(
    "cached",
    [
        {"prompt_tokens_details": {"cached_tokens": 16}},  # OpenAI, vLLM, SGLang
        {"prompt_cache_hit_tokens": 16},  # DeepSeek
        {"cached_tokens": 16},  # Moonshot
        {"cache_read_input_tokens": 16},  # gateways before Anthropic
    ],
)
def test_cached_input_is_counted_apart(tmp_path: Path, cached: dict[str, Any]) -> None:
    with FakeOpenAI(usage(prompt_tokens=21, completion_tokens=1, total_tokens=22, **cached)) as server:
        done = play(tmp_path / "run", server)
        asked = len(server.bodies)
    turns = list(done.turns())
    assert sum(turn["cached_tokens"] for turn in turns) == 16 * asked
    assert sum(turn["input_tokens"] for turn in turns) == 21 * asked


COUNTS: dict[str, Any] = {
    "all": lambda tokens: sum(tokens),
    "what is left after a cut": lambda tokens: min(sum(tokens), 40),
    "what no cache held": lambda tokens: tokens[-1],
    "always the same": lambda tokens: 100,
}


@pytest.mark.parametrize("counted", COUNTS)
def test_a_count_that_does_not_grow_is_reported_with_both_its_causes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, counted: str
) -> None:
    """Ollama answers 200 to a part of a prompt and counts that: github.com/ollama/ollama/issues/17889,
    github.com/esengine/DeepSeek-Reasonix/pull/10245. Others cut nothing and count a part."""

    def answer(body: Body) -> Body:
        tokens = COUNTS[counted]([len(message["content"]) // 4 for message in body["messages"]])
        return chat(by_seed(body) + " " * 300, {"prompt_tokens": tokens, "completion_tokens": 1})

    with FakeOpenAI(answer) as server, caplog.at_level(logging.WARNING):
        done = play(tmp_path / "run", server, overrides=("protocol.rounds=4",))
    stands = counted != "all"
    assert (report(done).get("prompts_not_grown", 0) > 0) == stands
    assert ("cuts long prompts in silence, or leaves tokens uncounted" in caplog.text) == stands


@pytest.mark.parametrize(
    ("said", "usd"),
    [
        ({"cost": 0.25}, 0.25),
        ({"cost": {"input_tokens_cost": 0.1, "total_cost": 0.25}}, 0.25),
        ({"cost": 0}, None),
        ({"cost": 0.01, "is_byok": True}, None),
        ({"cost": "0.25"}, None),
    ],
)
def test_what_a_reply_says_that_it_cost(tmp_path: Path, said: dict[str, Any], usd: float | None) -> None:
    """OpenRouter: openrouter.ai/docs/use-cases/usage-accounting; Perplexity: docs.perplexity.ai."""
    with FakeOpenAI(usage(prompt_tokens=7, completion_tokens=1, **said)) as server:
        done = play(tmp_path / "run", server)
        asked = len(server.bodies)
    paid = sum(counts.get("usd", 0) for score in done.scores for counts in score.usage.values())
    assert paid == (0 if usd is None else usd * asked)
