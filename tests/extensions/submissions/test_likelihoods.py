"""`harness verify --ask` above temperature 0: recorded replies against what the model says, with a model of which every
probability is known."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import harness
from harness.api import Completion, Engine, Request
from harness.api.errors import ContextLengthError, EngineError, EngineFatalError, RefusedError, RequestError
from harness.config.project import find
from harness.engines.reply_likelihoods import TOP, ReplyLikelihoodRequest, ScoresReplies
from harness.extensions.submissions.authenticity import ScoredReply, compare, of_run
from harness.extensions.submissions.check import ASKED_AGAIN, CLAIMED, CONSISTENT, Verification, verify

SPEC: dict[str, Any] = {
    "name": "open",
    "task": "open_questions",
    "protocol": {"use": "single"},
    "prompts": "qa/standard",
    "repeats": 5,
    "generation_kwargs": {"temperature": 1.0},
    "metrics": [{"use": "tokens", "kind": "total", "name": "tokens"}],
    "tables": [{"title": "Tokens", "rows": "model", "metrics": "tokens"}],
}
WORDS, LENGTH = 300, 16


@lru_cache(WORDS * 4)
def weights(previous: int, temperature: float) -> tuple[float, ...]:
    """How likely each word is behind another one: by Zipf's law, in an order of the word's own."""
    order = random.Random(previous).sample(range(WORDS), WORDS)
    values = [(1 / (place + 1) ** 1.5) ** (1 / temperature) for place in order]
    total = math.fsum(values)
    return tuple(value / total for value in values)


def said(rng: random.Random, length: int, temperature: float) -> str:
    words = [0]
    for _ in range(length):
        words += rng.choices(range(WORDS), weights(words[-1], temperature))
    return " ".join(f"w{word}" for word in words[1:])


class Toy(Engine, ScoresReplies):
    """Words of which each depends on the one before.

    Args:
        reply: what it says in place of that.
        bent: what the server does with the temperature.
        seed: of this server, which has random numbers of its own.
    """

    def __init__(
        self, reply: Callable[[Request], str | None] = lambda request: None, bent: float = 1.0, seed: int = 0
    ) -> None:
        self._reply, self._bent, self._seed = reply, bent, seed

    @property
    def model(self) -> str:
        return "toy"

    async def complete(self, request: Request) -> Completion:
        temperature = request.sampling["temperature"] * self._bent
        text = self._reply(request) or said(random.Random(request.seed + self._seed), LENGTH, temperature)
        return Completion(text, input_tokens=20, output_tokens=len(text.split()))

    async def score_reply(self, request: ReplyLikelihoodRequest) -> Completion:
        words = [0, *(int(word[1:]) for word in request.text.split())]
        return Completion("", likelihoods=rows(words))


def rows(words: list[int]) -> list[list[float]]:
    places = [(weights(before, 1.0), word) for before, word in pairwise(words)]
    return [[math.log(w[word]), *map(math.log, sorted(w, reverse=True)[:TOP])] for w, word in places]


def played(folder: Path, engine: Engine, **spec: Any) -> Path:
    harness.evaluate({**SPEC, **spec}, engine, output_path=folder)
    return folder


def asked(folder: Path, model: Engine, calls: int = 120, seed: int = 1) -> Verification:
    return verify(folder, find(), model=model, calls=calls, seed=seed)


def other(request: Request) -> str | None:
    """One reply in forty is another author's, to whom all words are alike."""
    rng = random.Random(request.seed)
    return " ".join(f"w{rng.randrange(WORDS)}" for _ in range(LENGTH)) if rng.random() < 1 / 40 else None


def test_an_honest_run_is_asked_again_though_no_text_comes_twice(tmp_path: Path) -> None:
    folder = played(tmp_path / "run", Toy())
    verdict = asked(folder, Toy(seed=1))
    assert (verdict.level, verdict.differences) == (ASKED_AGAIN, [])
    assert "the evidence that some of 120 replies are not the model's is " in verdict.confirmed[-1]


def test_one_reply_in_forty_of_another_author_is_found_and_named(tmp_path: Path) -> None:
    folder = played(tmp_path / "run", Toy(other))
    assert verify(folder, find()).level == CONSISTENT
    verdict = asked(folder, Toy(seed=1))
    assert verdict.level == CLAIMED
    [line] = verdict.differences
    assert line.startswith("the evidence that some of 120 replies are not the model's is ")
    assert "all/explain-2/3/Agent-0/0/0 (" in line, "it is named"


@pytest.mark.parametrize("bent", [0.6, 1.6])
def test_what_a_server_does_with_the_temperature_is_not_held_against_a_run(tmp_path: Path, bent: float) -> None:
    """Both runs have replies of the same server, which is cooler or hotter than its likelihoods."""
    folder = played(tmp_path / "run", Toy(bent=bent))
    assert not asked(folder, Toy(bent=bent, seed=1)).differences


def test_a_hotter_run_is_not_that_of_the_stated_temperature(tmp_path: Path) -> None:
    folder = played(tmp_path / "run", Toy(bent=1.6))
    assert asked(folder, Toy(seed=1)).level == CLAIMED


@pytest.mark.parametrize("fact", ["model", "weights", "structured"])
def test_a_server_of_another_model_is_no_proof(tmp_path: Path, fact: str) -> None:
    class Other(Toy):
        def identity(self, *, location: bool) -> dict[str, Any]:
            return {**super().identity(location=location), fact: "other"}

    Other.__name__ = Toy.__name__
    verdict = asked(played(tmp_path / "run", Toy(bent=1.6)), Other(seed=1))
    assert (verdict.level, verdict.differences) == (CONSISTENT, [])
    assert any(line.endswith("so ask the run's own to be sure") for line in verdict.remarks)


def test_a_reply_is_counted_once_among_those_that_cannot_be_compared(tmp_path: Path) -> None:
    def fail(request: Request) -> str:
        raise RequestError("bad gateway")

    words = {"temperature": 1.0, "repetition_penalty": 1.2}
    remarks = asked(played(tmp_path / "bent", Toy(), generation_kwargs=words), Toy(fail)).remarks
    assert [line for line in remarks if "cannot be compared" in line] == [
        "120 of 120 replies cannot be compared: they were drawn with penalties or other weights"
    ]
    remarks = asked(played(tmp_path / "run", Toy()), Toy(fail)).remarks
    assert "120 of 120 replies cannot be compared: they were asked again in vain" in remarks


def test_what_cannot_be_compared_is_counted(tmp_path: Path) -> None:
    short = played(tmp_path / "short", Toy(lambda request: said(random.Random(request.seed), 3, 1.0)))
    verdict = asked(short, Toy())
    assert verdict.level == CONSISTENT
    assert any("120 of 120 replies are too short to tell, of fewer than 8 tokens" in line for line in verdict.remarks)
    few = asked(played(tmp_path / "few", Toy()), Toy(), calls=10)
    assert few.level == CONSISTENT and "10 replies could be compared by likelihood: too few" in few.remarks[-1]
    words = {"temperature": 1.0, "repetition_penalty": 1.2}
    bent = asked(played(tmp_path / "bent", Toy(), generation_kwargs=words), Toy())
    assert bent.level == CONSISTENT
    assert "120 of 120 replies cannot be compared: they were drawn with penalties or other weights" in bent.remarks


class Chatty(Toy):
    """A server that scores some of the replies that it is asked to score."""

    def __init__(self, scored: Callable[[int], bool], error: type[EngineError]) -> None:
        super().__init__(seed=1)
        self._scored, self._error, self.completed, self.scored = scored, error, 0, 0

    async def complete(self, request: Request) -> Completion:
        self.completed += 1
        return await super().complete(request)

    async def score_reply(self, request: ReplyLikelihoodRequest) -> Completion:
        self.scored += 1
        if self._scored(self.scored):
            return await super().score_reply(request)
        raise self._error("this server has the chat alone")


@pytest.mark.parametrize("error", [EngineFatalError, RefusedError])
def test_a_server_that_scores_nothing_is_asked_nothing(tmp_path: Path, error: type[EngineError]) -> None:
    model = Chatty(lambda number: False, error)
    verdict = asked(played(tmp_path / "run", Toy()), model)
    assert (verdict.level, model.completed) == (CONSISTENT, 0) and model.scored <= 3
    assert verdict.remarks[-1] == (
        "nothing was asked of 120 calls at a temperature above 0: toy scores no replies: this server has the chat alone"
    )


def test_a_server_that_fails_to_score_one_reply_is_asked_the_others(tmp_path: Path) -> None:
    verdict = asked(played(tmp_path / "run", Toy()), Chatty(lambda number: number > 1, ContextLengthError))
    assert (verdict.level, verdict.differences) == (ASKED_AGAIN, [])


def test_an_engine_without_likelihoods_is_asked_nothing_and_says_so(tmp_path: Path) -> None:
    from harness.engines.mock import Mock

    def refuse(request: Request) -> str:
        raise AssertionError("nothing is learned from its answer")

    verdict = asked(played(tmp_path / "run", Toy()), Mock(model="toy", function=refuse))
    assert verdict.level == CONSISTENT
    assert verdict.remarks[-1] == (
        "nothing was asked of 120 calls at a temperature above 0: the engine of toy gives no likelihoods of a "
        "reply's tokens"
    )


# ------------------------------------------------------------------------------------ the test itself

LOGARITHMS = st.lists(st.floats(-50, 50), min_size=1, max_size=30)


@given(LOGARITHMS)
def test_evidence_of_a_run_is_that_of_a_mixture(replies: list[float]) -> None:
    found = of_run(replies)
    assert min(0, *replies) * len(replies) - 1e-9 <= found <= sum(max(one, 0) for one in replies) + 1e-9
    assert of_run([*replies, 20.0]) >= of_run([*replies, 1.0])


VALUES = st.floats(-30, 0) | st.sampled_from([0.0, -99.0, -9999.0, -math.inf]) | st.floats()
TEMPERATURES = st.floats(0.1, 3) | st.floats(0, exclude_min=True) | st.sampled_from([0.001, 1.3])


@example([[-1.0, -0.5, -1.0, -9999.0]], 1.3)
@example([[-1.0, -0.5, -1.0]], 0.001)
@example([[-math.inf, -0.5, -math.inf], [math.nan, -1.0], [0.0, -math.inf]], 1.0)
@given(st.lists(st.lists(VALUES, max_size=21), min_size=1, max_size=5), TEMPERATURES)
def test_any_likelihoods_of_a_server_give_finite_evidence(values: list[list[float]], temperature: float) -> None:
    scored = [[*row[:1], *sorted(row[1:], reverse=True)] for row in values]
    reply = ScoredReply.of(scored, temperature)
    result = compare([reply] * 3, [reply] * 4)
    assert all(map(math.isfinite, (result.evidence, result.control, *result.replies)))


@pytest.mark.slow
def test_honest_runs_are_rarely_rejected_and_one_percent_of_other_replies_is_found() -> None:
    """Drawn from the model of this file: 20 runs of 300 calls, and 20 with 3 replies of another author."""
    rng = random.Random(3)

    def reply(words: list[int]) -> ScoredReply:
        return ScoredReply.of(rows(words), 1.0)

    def honest() -> ScoredReply:
        return reply([0, *(int(word[1:]) for word in said(rng, 12, 1.0).split())])

    pool = [honest() for _ in range(900)]
    others = [reply([0, *(rng.randrange(WORDS) for _ in range(12))]) for _ in range(50)]
    rejected = found = 0
    for _ in range(20):
        drawn = rng.sample(pool, 600)
        recorded, fresh = drawn[:300], drawn[300:]
        rejected += compare(recorded, fresh).rejects
        found += compare([*recorded[3:], *rng.sample(others, 3)], fresh).rejects
    assert rejected == 0 and found >= 19, (rejected, found)
