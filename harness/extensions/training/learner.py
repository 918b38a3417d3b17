"""The engine in whose place a trainer's own model writes the replies, and what it keeps of them."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.api import CallsTools, Completion, ContinuesText, Engine, Facts, Policy, Reply, Request, Thread
from harness.api.errors import HarnessError, RequestError
from harness.runtime.steps import Steps

from .conversations import AgentConversation, ReplyStep

Messages = Sequence[dict[str, Any]]
Generated = str | Completion | None
"""A reply; None: there is none, and the move is a failed request."""
Generate = Callable[
    [Sequence[dict[str, Any]], tuple[Facts, ...], Facts, "PendingTurn"], Generated | Awaitable[Generated]
]
"""`generate(messages, tools, sampling, seat)`: a function, or a coroutine function."""


class TrainerError(HarnessError):
    """The trainer gave something that is no reply, or its token ids are not its text."""


@dataclass(frozen=True, slots=True)
class PendingTurn:
    """A reply that is asked of the trainer's model.

    Attributes:
        agent, group: whose turn it is, and its group under `agents:`.
        episode: id of the episode, as of its rollout: the task's, with "#sample" after the first of a group, and with
            "#sample@epoch" after the first epoch.
        turn: the turn's name: the template of its prompt.
        index: which of the agent's turns it is, from 0.
        attempt: 0; 1, 2, … where an unreadable reply is asked for again.
        conversation: which of the agent's conversations it continues, from 0.
        seed: for this call's sampling.
        messages: the conversation so far, as of OpenAI's chat API. Do not change it.
        tools: functions that the model may call.
        sampling: generation_kwargs of the spec.
        prefill: how the reply begins; the trainer's text comes after it.
        constraint: to what the reply is held, as `Reply.constraint` returns it; None: free text.
        request: the whole, as engines get it.
        observation, context: what the turn's prompt was rendered from.
    """

    agent: str
    group: str
    episode: str
    turn: str
    index: int
    attempt: int
    conversation: int
    seed: int
    messages: Messages
    tools: tuple[Facts, ...]
    sampling: Facts
    prefill: str
    constraint: Mapping[str, Any] | None
    request: Request
    observation: Facts
    context: Facts

    @property
    def reply(self) -> Reply:
        """The form of the reply: its options, its `noop`, how it is parsed."""
        assert self.request.reply is not None
        return self.request.reply

    @property
    def shown(self) -> str:
        """What the agent has been shown since its last reply, as one text."""
        said = [at for at, one in enumerate(self.messages) if one["role"] == "assistant"]
        return "\n\n".join(str(one["content"]) for one in self.messages[said[-1] + 1 if said else 0 :])


def _check_signature(generate: Any) -> None:
    """Raise `TrainerError` unless it can be called with four arguments."""
    usage = "generate(messages, tools, sampling, seat)"
    if not callable(generate):
        raise TrainerError(f"generate is {generate!r:.80}, neither a function {usage} nor an engine")
    try:
        signature = inspect.signature(generate)
    except (ValueError, TypeError):  # of some functions in C nothing is known
        return
    try:
        signature.bind(None, None, None, None)
    except TypeError:
        raise TrainerError(f"generate is called as {usage}, but takes {signature}") from None


def _in_own_thread(function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
    """Call a function that may hang: no other call waits for its thread, and no end of the process does."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if result.done():  # it was given up
            return
        if error is None:
            result.set_result(value)
        else:
            result.set_exception(
                RuntimeError("generate raised StopIteration") if type(error) is StopIteration else error
            )

    def call() -> None:
        value, error = None, None
        try:
            value = function(*arguments)
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=call, daemon=True).start()
    return result


class NoEngine(Engine, CallsTools, ContinuesText):
    """Stands for the trainer's model in a plan: it can do what any text model can."""

    def __init__(self, name: str = "trainer") -> None:
        self.name = name

    @property
    def model(self) -> str:
        return self.name

    async def complete(self, request: Request) -> Completion:
        raise RequestError("the trainer's model answers in rollouts only")


class ByPolicy(NoEngine):
    """A policy in the place of the trainer's model: a floor, or a teacher. It has no conversations.

    Args:
        make: gives a new one for each agent.
    """

    def __init__(self, make: Callable[[], Policy]) -> None:
        super().__init__("policy")
        self.make = make


class Learner(NoEngine):
    """Asks the trainer for the replies of one episode, and keeps the conversations.

    Args:
        generate: the trainer's function, or an engine.
        episode: id of the episode.
        groups: agent → its group.
        timeout: seconds that a reply may take; None: as long as it takes.
        decode: token ids → text, to check that what the trainer returns as ids is its text; None: it is not checked.

    Attributes:
        game: the episode, once it has begun.
        raised: what the trainer's function raised, but not that it was too slow.

    Raises `TrainerError` for a function that cannot be called so.
    """

    def __init__(
        self,
        generate: Generate | Engine,
        episode: str,
        groups: Mapping[str, str],
        timeout: float | None = None,
        decode: Callable[[Sequence[int]], str] | None = None,
    ) -> None:
        super().__init__()
        self.episode, self.groups, self.timeout, self.decode = episode, groups, timeout, decode
        if not isinstance(generate, Engine):
            _check_signature(generate)
        self.generate = generate
        self.raised: list[BaseException] = []
        self.game: Steps | None = None
        self._threads: dict[str, list[Thread]] = {}
        self._steps: dict[tuple[str, int], list[ReplyStep]] = {}
        self._tools: dict[tuple[str, int], tuple[Facts, ...]] = {}

    def count_tokens(self, text: str) -> int | None:
        return self.generate.count_tokens(text) if isinstance(self.generate, Engine) else None

    async def complete(self, request: Request) -> Completion:
        agent, index, attempt = request.id.removeprefix(f"{self.episode}/").rsplit("/", 2)
        threads = self._threads.setdefault(agent, [])
        if not threads or threads[-1] is not request.thread:
            threads.append(request.thread)
        assert self.game is not None
        number, at, batch = len(threads) - 1, len(request.thread.messages), self.game.number
        completion = await self._ask(request, agent, int(index), int(attempt), number)
        step = ReplyStep(at, completion, int(index), batch, int(attempt))
        self._steps.setdefault((agent, number), []).append(step)
        self._tools[agent, number] = request.tools
        return completion

    async def _ask(self, request: Request, agent: str, index: int, attempt: int, number: int) -> Completion:
        if isinstance(self.generate, Engine):
            engine: Completion = await self._in_time(self.generate.complete(request), request)
            return engine
        assert self.game is not None and self.game.batch is not None
        turn = next(turn for turn in self.game.batch if turn.agent == agent)
        seat = PendingTurn(
            agent=agent,
            group=self.groups[agent],
            episode=self.episode,
            turn=turn.name,
            index=index,
            attempt=attempt,
            conversation=number,
            seed=request.seed,
            messages=request.thread.messages,
            tools=request.tools,
            sampling=request.sampling,
            prefill=request.prefill,
            constraint=request.constraint,
            request=request,
            observation=turn.observation,
            context=turn.context,
        )
        return self._checked(await self._given(seat), request)

    async def _given(self, seat: PendingTurn) -> Any:
        """What the trainer's function returns. Raises what it raises, which `raised` keeps, and `TimeoutError`."""
        assert not isinstance(self.generate, Engine)
        arguments = seat.messages, seat.tools, seat.sampling, seat
        try:
            if self.timeout is None or inspect.iscoroutinefunction(self.generate):
                given: Any = self.generate(*arguments)
            else:  # a function that hangs can be waited for no longer only where it has a thread of its own
                given = _in_own_thread(self.generate, *arguments)
            return await self._in_time(given, seat.request) if inspect.isawaitable(given) else given
        except TimeoutError:
            raise
        except Exception as error:
            self.raised.append(error)
            raise

    async def _in_time(self, given: Awaitable[Any], request: Request) -> Any:
        """What is awaited. Raises `TimeoutError` if it takes too long."""
        if self.timeout is None:
            return await given
        try:
            return await asyncio.wait_for(given, self.timeout)
        except TimeoutError:
            raise TimeoutError(f"generate gave no reply to {request.id} within {self.timeout:g} s") from None

    def _checked(self, given: Any, request: Request) -> Completion:
        """What the trainer gave, as a completion. Raises `RequestError` if that is nothing, `TrainerError`."""
        if given is None:
            raise RequestError("the trainer's model gave no reply")
        completion = Completion(given) if isinstance(given, str) else given
        if not isinstance(completion, Completion) or not isinstance(completion.text, str):
            raise TrainerError(f"generate returned {given!r:.80}, neither a text nor a harness.api.Completion")
        ids, logprobs = completion.token_ids, completion.logprobs
        for name in ("prompt_token_ids", "token_ids"):
            if any(type(one) is not int or one < 0 for one in getattr(completion, name) or ()):
                raise TrainerError(f"{name} of the reply to {request.id} are not all whole numbers from 0")
        if logprobs is not None and (ids is None or len(logprobs) != len(ids)):
            message = f"the reply to {request.id} has {len(logprobs)} log-probabilities for {len(ids or ())} token ids"
            raise TrainerError(message)
        if logprobs is not None and not all(math.isfinite(one) and one < 1e-3 for one in logprobs):
            raise TrainerError(f"the log-probabilities of the reply to {request.id} are not all finite and at most 0")
        if ids is not None and completion.output_tokens is None:  # for metrics of length
            prompt = completion.prompt_token_ids
            count = len(prompt) if prompt is not None else completion.input_tokens
            completion = replace(completion, output_tokens=len(ids), input_tokens=count)
        if self.decode is not None and ids is not None and completion.text.strip() not in self.decode(ids):
            message = f"the token ids of the reply to {request.id} decode to {self.decode(ids)!r:.80}"
            raise TrainerError(f"{message}, not to its text {completion.text!r:.80}")
        return completion

    def conversations(self, rewards: Mapping[tuple[str, int], float] = {}) -> list[AgentConversation]:
        """All conversations of the agents, up to their last replies. `rewards`: of single turns."""
        found = []
        for agent, threads in self._threads.items():
            for number, thread in enumerate(threads):
                steps = self._steps.get((agent, number), [])
                if not steps:
                    continue
                last = {step.turn: step for step in steps}
                own = tuple(
                    ReplyStep(
                        step.message,
                        step.completion,
                        step.turn,
                        step.batch,
                        step.attempt,
                        rewards.get((agent, step.turn), 0.0) if last[step.turn] is step else 0.0,
                    )
                    for step in steps
                )
                messages = thread.messages[: steps[-1].message + 1]
                found.append(
                    AgentConversation(agent, self.groups[agent], number, messages, self._tools[agent, number], own)
                )
        return found
