"""A recorded run in its engines' place that compares what it is asked with what was asked then.

Playing a run against its own record asks every prompt again, reads every reply again and grades every episode again,
with the code that is here. Nothing of the record is believed but the models' replies, and the calls that agents'
programs made of their model.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from harness.api import CallsTools, Completion, ContinuesText, Engine, InnerUsage, Move, Request, Thread
from harness.api.errors import (
    EngineError,
)
from harness.api.inner_calls import RepeatsPrograms
from harness.engines.call_keys import CallKeys
from harness.storage import RECORDED_ERRORS

MAX_LISTED = 1000
"""Ids of calls that are kept of each kind of difference."""


class NotRecordedError(EngineError):
    """The record holds no answer to a call."""

    kind = "not recorded"


@dataclass
class CallCounts:
    """What became of the calls of a run that was played again.

    Attributes:
        equal: calls whose request has the recorded digest.
        other: ids of calls whose request is not the one that is recorded.
        unknown: calls that do not say what was asked (of versions before 0.8.0).
        missing: ids of calls without a recorded answer.
        sample: some of the answered requests with their recorded answers, evenly drawn.
    """

    equal: int = 0
    other: list[str] = field(default_factory=list)
    unknown: int = 0
    missing: list[str] = field(default_factory=list)
    sample: list[tuple[Request, Completion]] = field(default_factory=list)


class ComparingEngine(Engine, CallsTools, ContinuesText):
    """Answers each request by its id from the moves of a run.

    Args:
        model: the name in tables.
        facts: what the recorded run says that its engine was.
        moves: id of a turn (`turn_id`) → the move.
        size: how many calls to draw for `CallCounts.sample`.
        seed: of that draw.
        weights: `Engine.weights` of the engine that played.
    """

    any_request = True

    def __init__(
        self,
        model: str,
        facts: Mapping[str, Any],
        moves: Mapping[str, Move],
        size: int = 0,
        seed: int = 0,
        weights: object = None,
    ) -> None:
        self._model, self._facts, self._moves = model, dict(facts), moves
        self._keys = CallKeys(self._facts if weights is None else {**self._facts, "weights": weights})
        self._size, self._rng, self._answered = size, random.Random(seed), 0
        self.counts = CallCounts()

    @property
    def model(self) -> str:
        return self._model

    def describe(self) -> dict[str, Any]:
        return {name: value for name, value in self._facts.items() if name != "engine"}

    async def complete(self, request: Request) -> Completion:
        turn, _, number = request.id.rpartition("/")
        move, attempt = self._moves.get(turn), int(number)
        calls = move.calls if move is not None else ()
        if attempt < len(calls):
            answer = calls[attempt]
            self._compare(request, answer)
            return replace(answer, request_digest=None)
        error = None if move is None or attempt > len(calls) else RECORDED_ERRORS.get(move.error_kind or "")
        if move is not None and error is not None:
            raise error(move.error or "")
        if len(self.counts.missing) < MAX_LISTED:
            self.counts.missing.append(request.id)
        raise NotRecordedError("the record holds no answer")

    def _compare(self, request: Request, answer: Completion) -> None:
        if answer.request_digest is None:
            self.counts.unknown += 1
        elif answer.request_digest == self._keys.digest(request):
            self.counts.equal += 1
        elif len(self.counts.other) < MAX_LISTED:
            self.counts.other.append(request.id)
        self._answered += 1
        place = len(self.counts.sample)
        if place >= self._size:  # each call is in the sample with the same probability
            place = self._rng.randrange(self._answered)
            if place >= self._size:
                return
            self.counts.sample.pop(place)
        self.counts.sample.append((replace(request, thread=copied(request.thread)), answer))


class ComparingProgram(ComparingEngine, RepeatsPrograms):
    """In the place of programs that called a model of the run: what they asked in each turn is what is recorded.

    Args:
        inner: what `CallsModels.inner_engine` gives.
        model, facts, moves, size, seed, weights: as in `ComparingEngine`.
    """

    def __init__(
        self,
        inner: str | Engine,
        model: str,
        facts: Mapping[str, Any],
        moves: Mapping[str, Move],
        size: int = 0,
        seed: int = 0,
        weights: object = None,
    ) -> None:
        super().__init__(model, facts, moves, size, seed, weights)
        self._answers = inner

    @property
    def inner_engine(self) -> str | Engine:
        return self._answers

    def inner_usage(self, episode: str, agent: str, index: int) -> InnerUsage | None:
        move = self._moves.get(turn_id(episode, agent, index))
        return None if move is None else move.inner_calls


def turn_id(episode: str, agent: str, index: int) -> str:
    """What the ids of a turn's requests begin with."""
    return f"{episode}/{agent}/{index}"


def copied(thread: Thread) -> Thread:
    """The thread as it is now, without what engines know of it."""
    copy = Thread(chat=thread.chat, verbatim=thread.verbatim)
    copy.messages = [*thread.messages]
    return copy
