"""Token ids and log-probabilities of vLLM with a small real model, and other weights for it while it is up."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import storage
from harness.api import Completion, Move, Request, Thread
from harness.api.errors import EngineFatalError, SetupError
from harness.engines.cache import Cache
from harness.engines.gate import Wrapper
from harness.engines.likelihoods import Continuation, LikelihoodRequest
from harness.extensions.vllm.vllm import VLLM
from harness.storage.finished_episodes import batches
from tests.conftest import VLLM_ARGS, Driven, request
from tests.helpers.small_families import FAMILIES

pytestmark = [pytest.mark.vllm, pytest.mark.slow]
ARGS = {**VLLM_ARGS, "dtype": "float32", "max_num_seqs": 8, "return_token_ids": True, "return_logprobs": True}
WARM = ("generation_kwargs.temperature=0.7", "generation_kwargs.max_tokens=12")
PLAYED: dict[str, tuple[str, ...]] = {
    "agentsnet": ("protocol.rounds=2",),
    "dpbench": ("protocol.max_timesteps=2",),
    "openspiel": ("protocol.max_timesteps=3",),
    "silo": ("protocol.max_rounds=2",),
    "world": (),
}


class Overheard(VLLM):
    """Notes what vLLM is given and what it returns, by the request's id."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.heard: dict[str, tuple[list[int], Any, Thread]] = {}

    async def _generate(self, request: Request, ids: list[int], make_parameters: Callable[[], Any]) -> Any:
        output = await super()._generate(request, ids, make_parameters)
        self.heard[request.id] = [*ids], output, request.thread
        return output


class StaysOpen(Wrapper):
    """The engine, for a cache that neither starts nor closes it."""

    async def start(self) -> None:
        """It has started."""

    async def close(self) -> None:
        """It stays open."""

    async def complete(self, request: Request) -> Completion:
        return await request.send(self.inner)


@pytest.fixture(scope="module")
def engine(small_model: Path) -> Iterator[Driven]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what vLLM's dependencies say while they are imported
        driven = Driven(Overheard(pretrained=str(small_model), **ARGS))
        driven.run(driven.engine.start())
    yield driven
    driven.close()


@pytest.fixture(scope="module")
def transformers_model(small_model: Path) -> Any:
    import torch
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(str(small_model), dtype=torch.float32)


def logprobs(model: Any, prompt: tuple[int, ...], reply: tuple[int, ...]) -> list[float]:
    """The log-probabilities of a reply's tokens at temperature 1, computed by transformers."""
    import torch

    with torch.no_grad():
        rows = torch.log_softmax(model(torch.tensor([[*prompt, *reply]])).logits[0], -1)
    return [float(rows[len(prompt) - 1 + i, token]) for i, token in enumerate(reply)]


def turns(folder: Path) -> dict[tuple[str, str], list[Move]]:
    """The moves of each agent, read back from a run's journal."""
    found: dict[tuple[str, str], list[Move]] = {}
    for end, played in batches(*storage.journals(folder)):
        for move in (move for batch in played for move in batch):
            found.setdefault((end["e"], move.agent), []).append(move)
    return found


@pytest.mark.parametrize("family", sorted(PLAYED))
def test_the_ids_are_those_that_vllm_read_and_wrote(family: str, engine: Driven, tmp_path: Path) -> None:
    assert isinstance(engine.engine, Overheard)
    engine.engine.heard.clear()
    spec, overrides = FAMILIES[family]
    engine.play(spec, tmp_path / "run", *overrides, *WARM, *PLAYED[family], limit=1)
    tokenizer = engine.engine._engine.get_tokenizer()
    before: dict[Thread, tuple[int, ...]] = {}
    appended = 0
    for (episode, agent), moves in turns(tmp_path / "run").items():
        for index, move in enumerate(moves):
            for attempt, call in enumerate(move.calls):
                given, output, thread = engine.engine.heard[f"{episode}/{agent}/{index}/{attempt}"]
                assert call.prompt_token_ids == tuple(given) == tuple(output.prompt_token_ids)
                assert call.token_ids == tuple(output.outputs[0].token_ids)
                assert call.logprobs is not None and len(call.logprobs) == len(call.token_ids) == call.output_tokens
                assert tokenizer.decode(call.token_ids, skip_special_tokens=True) == call.text
                assert call.prompt_token_ids is not None and len(call.prompt_token_ids) == call.input_tokens
                if (earlier := before.get(thread)) is not None:
                    assert call.prompt_token_ids[: len(earlier)] == earlier, "ChatML appends"
                    appended += 1
                before[thread] = (*call.prompt_token_ids, *call.token_ids)
    assert len(engine.engine.heard) == len(before) + appended > 1
    assert appended > 1 or family not in ("agentsnet", "openspiel", "silo")


def test_log_probabilities_are_those_at_temperature_1(engine: Driven, transformers_model: Any) -> None:
    answer = engine.ask("Name three animals.", temperature=0.6, top_p=0.9, max_tokens=16)
    assert answer.prompt_token_ids and answer.token_ids and answer.logprobs
    expected = logprobs(transformers_model, tuple(answer.prompt_token_ids), tuple(answer.token_ids))
    assert list(answer.logprobs) == pytest.approx(expected, abs=2e-3)


def test_other_weights_answer_otherwise_and_nothing_old_is_reused(
    engine: Driven, small_model: Path, transformers_model: Any, tmp_path: Path
) -> None:
    import copy

    import torch

    other = copy.deepcopy(transformers_model)
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in other.parameters():
            weight.add_(0.02 * weight.std() * torch.randn_like(weight) if weight.dim() > 1 else 0)
    other.save_pretrained(tmp_path / "other")
    vllm = engine.engine
    cache = Cache(StaysOpen(vllm), tmp_path / "cache.sqlite")
    engine.run(cache.start())

    def asked(question: str = "Write a sentence about the sea.") -> Completion:
        return engine.run(cache.complete(request(question, temperature=0.0, max_tokens=12)))

    def scored(model: Any) -> None:
        answer = asked()
        assert answer.prompt_token_ids and answer.token_ids and answer.logprobs
        expected = logprobs(model, tuple(answer.prompt_token_ids), tuple(answer.token_ids))
        assert list(answer.logprobs) == pytest.approx(expected, abs=2e-3)
        thread = Thread(chat=False)
        thread.add("user", "The capital of France is" * 8)
        rated = LikelihoodRequest("l", thread, continuations=(Continuation(" Paris"),))
        likelihood = engine.run(vllm.loglikelihood(rated)).likelihoods
        assert likelihood is not None
        tokenizer = vllm._engine.get_tokenizer()
        context, text = (tuple(tokenizer.encode(one)) for one in (thread.text, " Paris"))
        assert likelihood[0][0] == pytest.approx(sum(logprobs(model, context, text)), abs=5e-3)

    first = vllm.weights
    assert first is None
    scored(transformers_model)
    original = asked()
    assert (cache.hits, cache.misses) == (1, 1)
    name = engine.run(vllm.update_weights(tmp_path / "other"))
    assert vllm.weights == name != first and "sha256:" in name
    scored(other)
    assert (cache.hits, cache.misses) == (1, 2), "no reply of the old weights"
    assert asked().logprobs != original.logprobs
    with pytest.raises(SetupError, match="holds no weights"):
        engine.run(vllm.update_weights(tmp_path))
    assert vllm.weights == name, "nothing was touched"

    async def fails(llm: Any) -> None:
        raise ValueError("the trainer is gone")

    with pytest.raises(SetupError, match="the trainer is gone"):
        engine.run(vllm.update_weights(fails))
    with pytest.raises(EngineFatalError, match="the trainer is gone"):
        engine.run(cache.complete(request("Another question.")))

    async def restores(llm: Any) -> None:
        await llm.collective_rpc("reload_with_head", kwargs={"weights_path": str(small_model)})

    assert engine.run(vllm.update_weights(restores, name="step 0")) == "step 0"
    scored(transformers_model)
    assert asked().text == original.text and cache.misses == 4, "one of them is the call that failed"
    folder = tmp_path / "run"
    engine.play("tiny", folder, *WARM, "matrix.condition=[chain]", limit=1)
    assert "step 0" in json.dumps(harness.load_run(folder).meta["identity"])
    engine.run(cache.close())
