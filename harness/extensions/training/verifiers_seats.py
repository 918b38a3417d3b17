"""The seats of one episode as agents of `verifiers`: each conversation is an interaction, and leaves a trace.

`verifiers` runs an agent's program (its "harness") against a server in this process, which records every model call.
The program here sends one request a turn, with the conversation as the runtime has it, and starts no process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from time import perf_counter
from types import TracebackType
from typing import Any, Literal, Self

import verifiers.v1 as vf

from harness.api import Completion, Facts
from harness.api.errors import RefusedError, RequestError
from harness.engines.tool_calls import offered
from harness.extensions.openai.constraints import as_held, constrained
from harness.extensions.openai.wire import GarbledError, read_completion

from .learner import PendingTurn, TrainerError
from .rollout import Rollout

INFO = "harness"
"""Where a trace's `info` says whose it is."""
_REFUSALS = frozenset({400, 413, 422})
"""Statuses with which a working server refuses one request: the move fails, and the episode goes on."""


@dataclass
class _Call:
    """A request on its way through the program of a seat."""

    body: dict[str, Any]
    answer: Any = None
    refusal: str | None = None


_CALL: ContextVar[_Call] = ContextVar("call")


class SeatConfig(vf.HarnessConfig):
    """Knobs of the program, `--env.GROUP.harness.…`."""

    structured: Literal["none", "openai", "vllm", "llama.cpp"] = "none"
    """How the server is asked to hold replies to their form, where the spec wants that: as the engine `openai` does.
    The client of trainers, which sends token ids only, asks for nothing."""


class SeatHarness(vf.Harness[SeatConfig]):
    """The program of a seat. It can be played by an environment of this package only."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def session(self, *arguments: Any, **more: Any) -> vf.HarnessSession:
        """As of `vf.Harness`."""
        return _SeatSession(self, *arguments, **more)

    async def launch(self, *arguments: Any, **more: Any) -> vf.ProgramResult:
        """As of `vf.Harness`. Raises `TypeError`: a seat has no prompt of its own."""
        raise TypeError("the program of a seat plays in environments of mas-eval-harness only")


class _SeatSession(vf.HarnessSession):
    """Sends what the runtime asks to the server of `verifiers`."""

    _client: Any = None

    async def _run(self, messages: vf.Messages | None = None) -> vf.ProgramResult:
        import openai

        call = _CALL.get()
        if self._client is None:
            http = openai.DefaultAsyncHttpxClient(trust_env=False, verify=not self.endpoint.startswith("http:"))
            self._client = openai.AsyncOpenAI(
                base_url=self.endpoint, api_key=self.secret, http_client=http, timeout=None
            )
        try:
            call.answer = await self._client.post("/chat/completions", body=call.body, cast_to=object)
        except openai.APIStatusError as error:
            if error.status_code not in _REFUSALS:
                raise
            call.refusal = str(error)
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")

    async def close(self) -> None:
        """As of `vf.HarnessSession`."""
        await super().close()
        if self._client is not None:
            await self._client.close()


@dataclass
class _Conversation:
    """A conversation of an agent. `known`: how many messages the trace has."""

    agent: str
    group: str
    index: int
    stack: contextlib.AsyncExitStack
    interaction: vf.Interaction
    known: int = 0
    turns: set[int] = field(default_factory=set)


class Seats:
    """The seats of one episode; a context manager that ends their interactions.

    Args:
        agents: those of `verifiers`.
        names: group under `agents:` → the name of its agent there.
        task: what is played.

    Attributes:
        failure: what ended the episode, if that was an agent.
    """

    def __init__(self, agents: vf.Agents, names: Mapping[str, str], task: vf.Task) -> None:
        self.agents, self.names, self.task = agents, names, task
        self._every: list[_Conversation] = []
        self._open: dict[str, _Conversation] = {}
        self._over: set[str] = set()
        self.failure: vf.RolloutError | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async with contextlib.AsyncExitStack() as all_of:  # ends each of them, also after one that fails
            for one in reversed(self._every):  # the first one first: that is the order of the episode's traces
                all_of.push_async_callback(one.stack.__aexit__, kind, error, trace)

    async def generate(
        self, messages: Sequence[dict[str, Any]], tools: tuple[Facts, ...], sampling: Facts, seat: PendingTurn
    ) -> Completion:
        """A reply, by the agent of a seat, as `TrainingEnv.rollout` asks for it.

        Raises:
            RequestError: the server refused this request, or a limit of the agent is reached: the move fails.
            vf.ProviderError: the server does not answer.
            TrainerError: the spec asks for something that no chat is.
        """
        if seat.prefill or not seat.request.thread.chat:
            raise TrainerError(f"{seat.request.id} asks the model to continue a text; agents of verifiers chat only")
        if seat.agent in self._over:
            raise RequestError(f"the agent {self.names[seat.group]!r} has reached its limit")
        one = await self._conversation(seat)
        interaction = one.interaction
        how = self._structured(seat.group)
        body: dict[str, Any] = {"messages": list(messages), **sampling}
        if tools:
            body["tools"] = offered(tools)
        if seat.constraint:
            body |= constrained(seat.constraint, how)
        call = _Call(body)
        new = list(messages[one.known :]) or list(messages[-1:])
        began, token = perf_counter(), _CALL.set(call)
        try:
            segment = await interaction.turn(new[1:] if one.known and new[0]["role"] == "assistant" else new)
        finally:
            _CALL.reset(token)
        if segment.terminated:
            await self._ended(one, call)
        one.known = len(messages)
        one.turns.add(seat.index)
        return self._completion(one, call, perf_counter() - began, seat, how)

    def _structured(self, group: str) -> str:
        config = getattr(self.agents, self.names[group]).config.harness
        return str(getattr(config, "structured", "none"))

    async def _conversation(self, seat: PendingTurn) -> _Conversation:
        """The conversation that a turn continues; a new one where it begins anew, or where the last one ended."""
        one = self._open.get(seat.agent)
        if one is not None and one.index == seat.conversation:
            return one
        if one is not None:
            await one.interaction.close()
        stack = contextlib.AsyncExitStack()
        agent = getattr(self.agents, self.names[seat.group])
        interaction = await stack.enter_async_context(agent.interaction(self.task))
        one = _Conversation(seat.agent, seat.group, seat.conversation, stack, interaction)
        interaction.trace.info[INFO] = {"agent": seat.agent, "group": seat.group, "conversation": seat.conversation}
        self._open[seat.agent] = one
        self._every.append(one)
        return one

    async def _ended(self, one: _Conversation, call: _Call) -> None:
        """Say why a turn got no reply. Raises as `generate`."""
        del self._open[one.agent]
        trace = one.interaction.trace
        if trace.errors:
            error = trace.errors[-1]
            self.failure = vf.ProviderError(error.message, status_code=error.status_code or 502)
            raise self.failure
        if trace.stop_condition is not None:  # a limit, as of `--env.GROUP.max_turns`
            self._over.add(one.agent)
            raise RequestError(f"the agent {self.names[one.group]!r} was stopped: {trace.stop_condition}")
        raise RefusedError(call.refusal or "the server gave no reply")

    @staticmethod
    def _completion(one: _Conversation, call: _Call, latency: float, seat: PendingTurn, how: str) -> Completion:
        verbatim = bool(seat.constraint) or seat.request.thread.verbatim
        try:
            found = read_completion(call.answer, latency, constrained=verbatim, with_tools=bool(seat.tools))
        except GarbledError as error:
            raise RequestError(str(error)) from error
        return replace(as_held(found, seat.constraint, how), **_tokens(one.interaction.trace))

    def pay(self, rollout: Rollout) -> None:
        """Write rewards and metrics to the traces of an episode that was played."""
        assert rollout.rewards is not None
        numbers = {name: number for name in rollout.score.numbers if (number := rollout.score.number(name)) is not None}
        for one in self._every:
            trace = one.interaction.trace
            trace.record_reward("episode", rollout.rewards.agents[one.agent])
            paid = {turn: rollout.rewards.turns.get((one.agent, turn)) for turn in sorted(one.turns)}
            own = {str(turn): number for turn, number in paid.items() if number is not None}  # keys are texts on wires
            if own:
                trace.record_reward("turns", sum(own.values()))
                trace.info[INFO]["turn_rewards"] = own
            trace.record_metrics(numbers)


def _tokens(trace: vf.Trace) -> dict[str, Any]:
    """What the last call of a trace has in token ids, as fields of a `Completion`; nothing without them."""
    node = trace.nodes[trace.calls[-1].node]
    if not any(node.mask):
        return {}
    path, at = [], node.parent
    while at is not None:
        path.append(trace.nodes[at])
        at = trace.nodes[at].parent
    asked = [i for one in reversed(path) for i in one.token_ids]
    start = node.mask.index(True)
    return {
        "prompt_token_ids": asked + node.token_ids[:start],
        "token_ids": node.token_ids[start:],
        "logprobs": list(node.logprobs) if len(node.logprobs) == len(node.token_ids) - start else None,
    }
