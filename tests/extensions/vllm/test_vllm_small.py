"""vLLM with a small real model: what random weights do not show. Decoding at temperature 0, one request at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.api import Thread
from harness.engines.likelihoods import Continuation, LikelihoodRequest
from harness.runtime.runner import BudgetReachedError
from tests.conftest import Driven
from tests.helpers.small_families import FAMILIES, SHORT, check_played, families, moves, replies

pytestmark = pytest.mark.vllm
PAIRS = (
    ("The capital of France is", " Paris"),
    ("The capital of France is", " Berlin"),
    ("Question: What is two plus two?\nAnswer:", " four"),
    ("", "Once upon a time there was a dog."),
    ("The agents of a network talk to their neighbors and agree on one answer. " * 8, "They all say yes."),
)


@pytest.mark.slow
@families
def test_a_spec_of_the_family_is_played_and_read(family: str, small_engine: Driven, tmp_path: Path) -> None:
    spec, overrides = FAMILIES[family]
    run = small_engine.play(spec, tmp_path / "run", *SHORT, "structured_output=true", *overrides, limit=1)
    assert run.scores and not run.failed
    check_played(tmp_path / "run", family)
    again = run.meta["engines"]["model"]["asked_again"]
    assert 0 < again["asked"] == again["equal"], "the engine is deterministic"
    if family == "world":
        assert run.scores[0].numbers["score"] == 1, "the model passes a word on, which random weights do not"


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_to_the_same_replies(small_engine: Driven, tmp_path: Path) -> None:
    more = (*SHORT, "matrix.condition=[count, chain]")
    small_engine.play("tiny", tmp_path / "whole", *more, limit=1)
    with pytest.raises(BudgetReachedError):
        small_engine.play("tiny", tmp_path / "cut", *more, limit=1, max_calls=3, max_concurrency=1)
    assert 0 < len(moves(tmp_path / "cut")) < 8
    small_engine.play("tiny", tmp_path / "cut", *more, limit=1)
    assert replies(tmp_path / "cut") == replies(tmp_path / "whole")


def test_likelihoods_are_those_of_lm_eval_with_transformers(small_engine: Driven, small_model: Path) -> None:
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    theirs = HFLM(pretrained=str(small_model), device="cpu", dtype="float32", batch_size=1)
    instances = [Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(PAIRS)]
    expected: list[Any] = theirs.loglikelihood(instances, disable_tqdm=True)
    for (context, text), (logprob, greedy) in zip(PAIRS, expected, strict=True):
        thread = Thread(chat=False)
        thread.add("user", context)
        request = LikelihoodRequest(f"l/{text}", thread, continuations=(Continuation(text),))
        answer = small_engine.run(small_engine.engine.loglikelihood(request))
        assert answer.likelihoods is not None
        [(ours, is_greedy)] = answer.likelihoods
        assert ours == pytest.approx(logprob, abs=1e-3) and is_greedy == greedy
    assert expected[0][0] > expected[1][0] + 2, "the model knows the capital of France"
