"""The lines of docs/how-to/trainers.md for SkyRL and verl, with stand-ins for what these packages give them."""

from __future__ import annotations

import asyncio
import json
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from harness.api import Completion
from harness.api.errors import DataError
from harness.extensions.training import PendingTurn, TrainingEnv
from harness.extensions.training.rows import named, play_rows, prompts
from tests.docs.test_docs import ROOT, blocks

PAGE = ROOT / "docs" / "how-to" / "trainers.md"


def test_a_row_names_its_agent_and_its_sample() -> None:
    with TrainingEnv("agentsnet_quick", limit=1) as env:
        own = prompts(env, env.tasks[:1])
        names = list(env.learners(env.tasks[0]))
        assert named(own) == [(env.tasks[0].id, agent, 0) for agent in names]
        assert [sample for _, _, sample in named([*own, *own])] == [0] * len(names) + [1] * len(names)
        for content in ("What is 2 + 2?", '{"task": [1], "agent": "x"}', "[" * 100_000):
            with pytest.raises(DataError, match="names no task and agent"):
                named([[{"role": "user", "content": content}]])


def test_nothing_is_learned_from_an_episode_that_failed() -> None:
    """Where replies cost something, failing would else be the best that a model can do."""

    async def generate(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> Completion:
        if seat.episode.endswith("#1") and seat.index:
            raise OSError("out of memory")
        return Completion("0", prompt_token_ids=(1,) * len(messages), token_ids=(1,), logprobs=(-0.5,))

    spec = {"extends": "agentsnet_quick", "rewards": {"length": {"use": "tokens", "kind": "output", "weight": -1}}}
    with TrainingEnv(spec, limit=1) as env:
        batch = prompts(env, env.tasks[:1])
        rows = asyncio.run(play_rows(env, batch * 3, generate))
        good, failed = rows[: len(batch)], rows[len(batch) : 2 * len(batch)]
        assert all(row.reward < 0 and any(row.mask) for row in good)
        assert [row.reward for row in failed] == [row.reward for row in good]
        assert all(row.completion_ids and not any(row.mask) for row in failed)


def test_a_batch_that_failed_has_rows() -> None:
    async def generate(*_: Any) -> str:
        raise OSError("out of memory")

    with TrainingEnv("agentsnet_quick", limit=1) as env:
        rows = asyncio.run(play_rows(env, prompts(env, env.tasks[:1]), generate))
        assert {row.reward for row in rows} == {0.0} and {sum(row.mask) for row in rows} == {0}
        with pytest.raises(DataError, match="does not learn in task"):
            other = [[{"role": "user", "content": json.dumps({"task": env.tasks[0].id, "agent": "x"})}]]
            asyncio.run(play_rows(env, other, generate))


def shown(note: str) -> str:
    [code] = [body for name, body in blocks(PAGE, "python") if name == note]
    return code


def stand_ins(monkeypatch: pytest.MonkeyPatch, **modules: dict[str, Any]) -> None:
    for name, content in modules.items():
        module = ModuleType(name.replace("__", "."))
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, module.__name__, module)


def reply_ids(tokenizer: Any) -> list[int]:
    return [*tokenizer.encode("0"), tokenizer.eos_token_id]


@pytest.mark.torch
def test_the_lines_for_skyrl(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.helpers.byte_model import byte_tokenizer

    tokenizer = byte_tokenizer()
    asked: list[dict[str, Any]] = []

    class Engine:
        async def generate(self, batch: dict[str, Any]) -> dict[str, Any]:
            asked.append(batch)
            ids = reply_ids(tokenizer)
            return {"response_ids": [ids], "response_logprobs": [[-0.5] * len(ids)], "stop_reasons": ["stop"]}

    stand_ins(monkeypatch, skyrl__train__generators__base={"GeneratorInterface": object})
    scope: dict[str, Any] = {}
    exec(shown("skyrl"), scope)
    with TrainingEnv("teams/star", limit=1) as env:
        generator = scope["HarnessGenerator"](env, Engine(), tokenizer)
        batch = prompts(env, env.tasks[:1]) * 2
        output = asyncio.run(generator.generate({"prompts": batch, "sampling_params": {"temperature": 1.0}}))
    assert {len(value) for value in output.values() if value is not None} == {len(batch)}
    for ids, mask, logprobs in zip(
        output["response_ids"], output["loss_masks"], output["rollout_logprobs"], strict=True
    ):
        assert len(ids) == len(mask) == len(logprobs) and mask[0] == mask[-1] == 1
    assert all(one["sampling_params"]["temperature"] == 1.0 for one in asked)


@pytest.mark.torch
def test_the_lines_for_verl(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.helpers.byte_model import byte_tokenizer

    tokenizer = byte_tokenizer()

    class Base:
        def __init__(self, server_manager: Any, tokenizer: Any) -> None:
            self.server_manager, self.tokenizer = server_manager, tokenizer

    class Server:
        async def generate(self, *, request_id: str, prompt_ids: list[int], sampling_params: Any) -> Any:
            ids = reply_ids(tokenizer)
            return SimpleNamespace(token_ids=ids, log_probs=[-0.5] * len(ids), stop_reason="completed")

    content = {
        "AgentLoopBase": Base,
        "AgentLoopOutput": lambda **fields: SimpleNamespace(**fields),
        "AgentLoopMetrics": lambda: None,
        "register": lambda name: lambda cls: cls,
    }
    stand_ins(monkeypatch, verl__experimental__agent_loop__agent_loop=content)
    monkeypatch.setenv("HARNESS_SPEC", "teams/star")
    scope: dict[str, Any] = {}
    exec(shown("verl"), scope)
    with TrainingEnv("teams/star") as env:
        [prompt, *_] = prompts(env, env.tasks[:1])
    loop = scope["HarnessAgentLoop"](Server(), tokenizer)
    output = asyncio.run(loop.run({"temperature": 1.0}, raw_prompt=prompt, uid="5f0c"))
    assert len(output.response_ids) == len(output.response_mask) == len(output.response_logprobs)
    assert output.reward_score is not None and output.num_turns >= 2
