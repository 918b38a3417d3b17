"""An engine that gives the recorded replies where prompts are those of the recorded run, and asks a model elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import random
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace

from harness.api import (
    CallsModels,
    CallsTools,
    Completion,
    ContinuesText,
    Engine,
    Facts,
    InnerUsage,
    Move,
    Request,
    derive_seed,
)
from harness.api.errors import (
    BudgetSpentError,
    EngineError,
    EngineFatalError,
)
from harness.api.inner_calls import RepeatsPrograms
from harness.config.plan import Job, Plan, protocol_seed
from harness.runtime.episode import play
from harness.runtime.seats import seats
from harness.runtime.steps import Recorded, Steps, by_turn
from harness.storage import RECORDED_ERRORS

from .base_run import BaseRun
from .replay_key import KeepsReplies

Journaled = Mapping[str, Recorded]


class Memory:
    """What models were asked in episodes of a run, and what they said.

    The journal has no prompts: an episode is played from its record when the first of its replies is asked for, with
    the players of a run, so that what is compared is what a model would be sent.

    Args:
        parent: the run; of the episodes that it has read.
        since: replies from this turn of an episode on are forgotten; None keeps all.
    """

    def __init__(self, parent: BaseRun, since: int | None = None) -> None:
        self.parent, self.since = parent, since
        self._replies: dict[str, Completion | EngineError] = {}  # request → what came
        self._prompts: dict[str, bytes] = {}  # request → a digest of what was asked
        self._forgotten: set[str] = set()
        self._inner: dict[str, InnerUsage] = {}  # turn → what its program asked
        self._learned: dict[str, asyncio.Lock | None] = {}
        for name in parent.batches:
            self._remember(name)

    def _remember(self, episode: str) -> None:
        self._learned[episode] = asyncio.Lock()
        moves = by_turn(self.parent.batches[episode])
        for number, (turn, move) in enumerate(moves.items()):
            if move.inner_calls is not None:
                self._inner[turn_id(episode, *turn)] = move.inner_calls
            for name, one in _calls(episode, *turn, move):
                self._replies[name] = one
                if self.since is not None and number >= self.since:
                    self._forgotten.add(name)

    async def reply_to(self, request: Request) -> Completion | EngineError | None:
        """What a model said to the very same prompt in this turn; None if nothing is kept."""
        if request.id not in self._replies or request.id in self._forgotten:
            return None
        return self._replies[request.id] if await self._prompt(request.id) == _digest(request) else None

    def inner_usage(self, turn: str) -> InnerUsage | None:
        """What a program asked its model in a turn; None where no program played."""
        return self._inner.get(turn)

    def counted(self, request: str, said: Completion, tokens: int | None) -> Completion:
        """A changed reply with its tokens: the input of the turn as it was recorded, and its own output.

        Args:
            request: the call's id.
            said: the reply.
            tokens: its tokens, if a model counts them. Without one the same text in the run says it, else the tokens a
                character of the run's replies do.
        """
        recorded = self._replies.get(request)
        known = recorded if isinstance(recorded, Completion) else None
        return replace(
            said,
            input_tokens=None if known is None else known.input_tokens,
            output_tokens=self._tokens(said.shown) if tokens is None else tokens,
            peer_tokens=None if known is None else known.peer_tokens,
        )

    def _tokens(self, text: str) -> int | None:
        """Of a text as a reply, by the replies of the run; None where they have no counts."""
        counts: dict[str, int] = {}
        for one in self._replies.values():
            if isinstance(one, Completion) and one.output_tokens is not None and one.reasoning is None:
                counts[one.shown] = one.output_tokens
        characters = sum(map(len, counts))
        if text in counts or not characters:
            return counts.get(text)
        return max(1, round(len(text) * sum(counts.values()) / characters))

    async def count(self, again: Plan, jobs: Mapping[str, Job], moves: Journaled, said: Container[str]) -> Counter[str]:
        """Count the calls of a run that plays these episodes again, by its journal: kept, changed, asked.

        Args:
            again: its plan.
            jobs: its episodes, by id.
            moves: episode → its recorded moves, also of those that have not ended.
            said: requests whose reply was changed.
        """
        counts = Counter[str]()
        for episode, recorded in moves.items():
            calls = {name: one for turn, move in recorded.items() for name, one in _calls(episode, *turn, move)}
            if not calls:
                continue
            prompts: dict[str, bytes] = {}
            with contextlib.suppress(EngineFatalError):  # what has not ended is known as far as it is recorded
                await _learn(again, jobs[episode], episode, _Recorder(calls, prompts))
            for name in calls:
                same = name in self._replies and name not in self._forgotten and name in prompts
                kept = same and await self._prompt(name) == prompts[name]
                counts["changed" if name in said else "kept" if kept else "asked"] += 1
        return counts

    async def _prompt(self, name: str) -> bytes | None:
        """A digest of what a recorded request asked; its episode is played from its record where that is not known."""
        episode = name.rsplit("/", 3)[0]
        if (lock := self._learned[episode]) is not None:
            async with lock:
                if self._learned[episode] is not None:
                    recorder = _Recorder(self._replies, self._prompts)
                    await _learn(self.parent.plan, self.parent.jobs[episode], episode, recorder)
                    self._learned[episode] = None
        return self._prompts.get(name)


def turn_id(episode: str, agent: str, index: int) -> str:
    """What the ids of a turn's requests begin with."""
    return f"{episode}/{agent}/{index}"


def _calls(episode: str, agent: str, index: int, move: Move) -> Iterator[tuple[str, Completion | EngineError]]:
    """(request, what came of it) of every call of a move."""
    said: list[Completion | EngineError] = [*move.calls]
    if (error := RECORDED_ERRORS.get(move.error_kind or "")) is not None and not move.asked_no_more:
        said.append(error(move.error or ""))  # the call after the last answered one failed
    yield from ((f"{episode}/{agent}/{index}/{attempt}", one) for attempt, one in enumerate(said))


async def _learn(plan: Plan, job: Job, episode: str, recorder: _Recorder) -> None:
    """Play an episode from its record, and note what every call was asked."""
    condition, case, repeat = job
    engines: dict[str, Engine] = {group.model or "model": recorder for group in condition.groups}
    seated = seats(plan, condition, case, repeat)
    engines |= {seat.group.model or "model": recorder for seat in seated.values()}
    players = {agent: seat.player(engines, episode) for agent, seat in seated.items()}
    rng = random.Random(protocol_seed(plan, condition, case, repeat))
    game = Steps(condition.protocol, condition.task, case, rng)
    await play(game, players, {}, lambda *_: None, limits=condition.limits)


def _digest(request: Request) -> bytes:
    """A digest of all that a model sees of a request; of a conversation only what came since the last call is read."""
    thread = request.thread
    done, running = thread.memo.get("replay") or (0, hashlib.sha256())
    if done < len(thread.messages):
        running = running.copy()
        for message in thread.messages[done:]:
            running.update(json.dumps(message, sort_keys=True).encode() + b"\n")
        thread.memo["replay"] = (len(thread.messages), running)
    rest = [thread.chat, request.prefill, request.tools, *replace(request, sampling={}, seed=0).key]
    return hashlib.sha256(running.digest() + json.dumps(rest, sort_keys=True, default=repr).encode()).digest()


class _Recorder(Engine, CallsTools, ContinuesText):
    """Repeats the recorded replies, and notes the prompts."""

    model = "recorded"
    any_request = True

    def __init__(self, said: Mapping[str, Completion | EngineError], prompts: dict[str, bytes]) -> None:
        self.replies, self.prompts = said, prompts

    async def complete(self, request: Request) -> Completion:
        known = self.replies.get(request.id)
        if known is None:
            raise EngineFatalError(f"the recorded run holds no answer to {request.id!r}: its code was another one")
        self.prompts[request.id] = _digest(request)
        if isinstance(known, EngineError):
            raise known
        return known


class RecordedEngine(Engine, KeepsReplies, CallsTools, ContinuesText):
    """The replies of a recorded run while prompts stay the same to the letter; else those of a model.

    Args:
        memory: the recorded replies.
        inner: the model that is asked where a prompt is another one; None: nothing can be asked. It is started when it
            is first asked.
        model: the name in tables.
        changed: request → the completion in place of the recorded one.
        sample: None: calls have the seeds that they had then; a number draws others.
        max_calls: how many calls of `inner` there may be; `asked` of them were made before.
        once: whether the very same call, by the same seed, is asked once and then answered alike.
    """

    any_request = True

    def __init__(
        self,
        memory: Memory,
        inner: Engine | None,
        model: str,
        changed: Mapping[str, Completion],
        sample: int | None = None,
        max_calls: int | None = None,
        asked: int = 0,
        once: bool = False,
    ) -> None:
        self.memory, self.inner, self._model = memory, inner, model
        self.changed, self.sample, self.max_calls, self.before = changed, sample, max_calls, asked
        self.kept = self.asked = self.altered = 0
        self.otherwise: set[str] = set()  # turns with a reply that is not the recorded one
        self._new: dict[tuple[str, bytes], Completion] | None = {} if once else None
        self._started: asyncio.Lock | None = asyncio.Lock()

    @property
    def model(self) -> str:
        return self._model

    async def complete(self, request: Request) -> Completion:
        """The changed, the recorded or a new reply.

        Raises:
            BudgetSpentError: `max_calls` is reached.
            EngineFatalError: a model would have to be asked, and there is none; it lacks an ability, or gave up.
            EngineError: the recorded failure, or a new one.
        """
        if (other := self.changed.get(request.id)) is not None:
            self.altered += 1
            self.otherwise.add(request.id.rpartition("/")[0])
            return self.memory.counted(request.id, other, self.count_tokens(other.shown))
        said = await self.memory.reply_to(request)
        if said is not None:
            self.kept += 1
            if isinstance(said, EngineError):
                raise said
            return said
        self.otherwise.add(request.id.rpartition("/")[0])
        if self._new is None:
            return await self._ask(request)
        key = request.id, _digest(request)
        if key not in self._new:
            self._new[key] = await self._ask(request)
        return self._new[key]

    async def _ask(self, request: Request) -> Completion:
        agent, index = request.id.split("/")[-3:-1]
        if self.inner is None:
            why = f"{agent} is asked something else in its own turn {index} than in the recorded run, and"
            hint = "give --model, and --model_args as that run had them"
            raise EngineFatalError(f"{why} no model is there to answer: {hint}")
        if calls_models(self.inner):
            raise EngineFatalError(
                f"{agent} would be asked again in its own turn {index}: {NOT_ASKED}. {NOT_ASKED_HINT}"
            )
        if self.max_calls is not None and self.before + self.asked >= self.max_calls:
            raise BudgetSpentError("max_calls", self.max_calls)
        self.asked += 1
        if self._started is not None:
            async with self._started:
                if self._started is not None:
                    await self.inner.start()
                    self._started = None
        if self.sample is not None:
            request = replace(request, seed=derive_seed(request.seed, "sample", self.sample))
        return await request.send(self.inner)

    def count_tokens(self, text: str) -> int | None:
        """Of the model that is asked; None while none was."""
        return self.inner.count_tokens(text) if self.inner is not None and self._started is None else None

    def describe(self) -> Facts:
        """What the asked model is: the recorded run and the changes are in the spec."""
        asks = self.inner
        inner = {} if asks is None else {"asks": type(asks).__name__, **asks.identity(location=False)}
        return {**inner, "model": self.model}

    def report(self) -> Facts:
        own = {"replies_kept": self.kept, "replies_changed": self.altered, "replies_asked": self.asked}
        return {**(self.inner.report() if self.inner is not None and self._started is None else {}), **own}

    def stop_retrying(self, reason: Exception) -> None:
        if self.inner is not None:
            self.inner.stop_retrying(reason)

    async def close(self) -> None:
        if self.inner is not None and self._started is None:
            await self.inner.close()


class RecordedProgram(RecordedEngine, RepeatsPrograms):
    """The replies of programs that called a model of the recorded run, with what they asked it while replies are kept.

    `answers` is what `CallsModels.inner_engine` gives.
    """

    answers: str | Engine

    @property
    def inner_engine(self) -> str | Engine:
        return self.answers

    def inner_usage(self, episode: str, agent: str, index: int) -> InnerUsage | None:
        turn = turn_id(episode, agent, index)
        return None if turn in self.otherwise else self.memory.inner_usage(turn)


NOT_ASKED = "an agent whose program calls a model of the run (inner=) cannot go on with a recorded conversation"
NOT_ASKED_HINT = "Give another model (--model), or let a policy play: --swap AGENT=POLICY"


def calls_models(engine: Engine | None) -> bool:
    """Whether an engine has an inner engine: its programs need a run in which they play from the first turn on."""
    return isinstance(engine, CallsModels) and engine.inner_engine is not None
