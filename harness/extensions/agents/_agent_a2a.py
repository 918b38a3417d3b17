"""Agents that speak A2A, by the package `a2a-sdk`, with the retries and limits of the engine `openai`."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
)
from a2a.utils import errors as protocol

from harness.api import Completion, Facts, Request
from harness.api.causes import causes
from harness.api.errors import EngineError, EngineFatalError, RefusedError, SetupError
from harness.extensions.agents._agent_card import BINDINGS, KnownCard, card_address, read_card
from harness.extensions.agents._agent_reply import Gathered, Whereabouts
from harness.extensions.agents._agent_server import AgentServer
from harness.extensions.agents.conversations import Conversation, question_of, read_answer
from harness.extensions.openai.bodies import ENCODINGS, bound
from harness.extensions.openai.replicas import PROBE, Replica, public

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0
"""Seconds between two looks at a task of an agent that does not stream."""
_FORGOTTEN = (protocol.TaskNotFoundError, protocol.UnsupportedOperationError, protocol.InvalidParamsError)
"""What an agent answers that no longer knows a conversation, or whose task has ended meanwhile."""
_PASSING = (protocol.InternalError, protocol.InvalidAgentResponseError, protocol.JSONParseError, A2AClientError)
"""Errors of the protocol after which another try may help."""


class _Connection:
    """What an agent is asked through; it stands where other servers have the client of the package `openai`.

    Args:
        url: the agent's address.
        key: sent as a bearer token; "" for none.
        timeout: seconds to connect.
        most: the most connections.

    Attributes:
        card: the agent's, once it was fetched.
    """

    def __init__(self, url: str, key: str, timeout: float, most: int) -> None:
        self.base_url = self._url = url
        self.card: KnownCard | None = None
        self._http = httpx.AsyncClient(
            headers={"Accept-Encoding": ENCODINGS, **({"Authorization": f"Bearer {key}"} if key else {})},
            timeout=httpx.Timeout(None, connect=timeout),
            limits=httpx.Limits(max_connections=most + 1),
            event_hooks={"response": [bound]},
        )  # it follows no redirects: prompts and the key go to the address that was approved
        self._client: Client = None  # from `meet` on
        self._ending: set[asyncio.Task[Any]] = set()

    async def meet(self) -> None:
        """Fetch the card. Raises `SetupError` for one that cannot be used, `EngineFatalError` where it has become
        another agent's, and what the packages raise."""
        base, path = card_address(self._url)
        try:
            card = read_card(await A2ACardResolver(self._http, base, path).get_agent_card(), self._url)
        except protocol.A2AError as error:
            raise _translated(error) from error
        if self.card is not None and card.identity != self.card.identity:
            raise EngineFatalError(f"another agent is there now: {card.identity}, not {self.card.identity}")
        if self.card is None:
            config = ClientConfig(
                httpx_client=self._http,
                supported_protocol_bindings=[*BINDINGS],
                accepted_output_modes=["text/plain"],
            )
            self.card, self._client = card, ClientFactory(config).create(card.sent)

    async def post(self, path: str, *, cast_to: Any, body: Mapping[str, Any], options: Any) -> dict[str, Any]:
        """Send a message and wait for the answer; returns the reply's mapping, and the `Whereabouts` that follows it.

        Raises what `Gathered.answer` raises, and the errors of the package `openai` for those of HTTP.
        """
        before: Whereabouts | None = body["session"]
        message = Message(
            message_id=body["id"],
            role=Role.ROLE_USER,
            context_id=before.context if before else "",
            task_id=before.task if before else "",
            parts=[Part(text=text, metadata={"role": role}) for role, text in body["parts"]],
            metadata=body["metadata"],
        )
        asked = SendMessageRequest(message=message, configuration=SendMessageConfiguration(history_length=0))
        answer = Gathered(before)
        try:
            await self._gather(self._client, asked, answer)
        except asyncio.CancelledError:
            if answer.task and not answer.is_over:
                self._end(answer.task)
            raise
        except protocol.A2AError as error:
            raise _translated(error) from error
        reply, session = answer.answer()
        return {"reply": reply, "session": session}

    async def _gather(self, client: Client, asked: SendMessageRequest, answer: Gathered) -> None:
        try:
            async with contextlib.aclosing(client.send_message(asked)) as events:
                async for event in events:
                    answer.take(event)
                    if answer.is_over:
                        return
        except A2AClientError:
            if not answer.task:
                raise  # else the stream broke, and the task goes on
        pause = _FIRST_PAUSE
        while answer.task and not answer.is_over:
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
            answer.take_task(await client.get_task(GetTaskRequest(id=answer.task, history_length=0)))

    def _end(self, task: str) -> None:
        """Tell the agent that the answer is no longer waited for."""

        async def cancel() -> None:
            with contextlib.suppress(Exception):  # it may be gone
                async with asyncio.timeout(PROBE):
                    await self._client.cancel_task(CancelTaskRequest(id=task))

        self._ending.add(ending := asyncio.create_task(cancel()))
        ending.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """Release the connections."""
        for ending in self._ending:
            ending.cancel()
        await self._http.aclose()


class _Place(Replica):
    client: _Connection

    async def probe(self, timeout: float) -> list[str]:
        async with asyncio.timeout(min(PROBE, timeout)):
            await self.client.meet()
        return []


class A2AAgent(AgentServer):
    """Asks an A2A agent. Its fields are those of `OpenAI`; `base_url` is the agent's address, or its card's."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if urlsplit(self.url).query:
            hint = "Name the environment variable with its key: api_key_env=MY_KEY."
            raise SetupError("a2a= takes no query", hint=hint)

    @property
    def _card_read(self) -> KnownCard | None:
        card: KnownCard | None = next((replica.client.card for replica in self._replicas.all), None)
        return card

    @property
    def called(self) -> tuple[str, str | None]:
        card = self._card_read
        return ("", None) if card is None else (card.name, card.identity)

    def report(self) -> Facts:
        """As of a server, and the agent's card."""
        return {**super().report(), **({"agent": card.facts} if (card := self._card_read) else {})}

    def _connect(self) -> list[Replica]:
        connection = _Connection(self.url, self._check_key(), self.timeout, self.max_connections)
        return [_Place(public(self.url), connection, self.max_connections)]

    async def _probe(self, replica: Replica) -> SetupError | None:
        try:
            await replica.probe(self.timeout)
        except SetupError:
            raise
        except Exception as error:
            replica.mark_unhealthy(why := self._line(error))
            final = self._refusal(replica, "", error)
            why = str(final) if isinstance(final, EngineFatalError) else why
            hint = "Start it first, and check a2a=: its card is at /.well-known/agent-card.json below it."
            return SetupError(f"no A2A agent at {replica.name}: {why}", hint=hint)
        return None

    async def complete(self, request: Request) -> Completion:
        """Send what is new; the whole conversation, where the agent does not know it."""
        conversation = self.conversations.of(request)
        messages = len(request.thread.messages)
        start = 0 if self.history else conversation.start(request.thread)
        session = conversation.session if start else None
        conversation.session = None  # it is not known what the agent knows, should this fail
        self._requests += 1
        try:
            answer, after = await self._say(request, conversation, start, session)
        except RefusedError as error:
            if not start or not isinstance(error.__cause__, _FORGOTTEN):
                raise
            answer, after = await self._say(request, conversation, 0, None)
        conversation.session = after
        conversation.answered(messages, answer.text)
        return answer

    async def _say(
        self, request: Request, conversation: Conversation, start: int, session: Whereabouts | None
    ) -> tuple[Completion, Whereabouts | None]:
        question = question_of(request, conversation, start, self.args)
        new = question.pop("messages")
        metadata = {**question, "seed": str(request.seed)}  # a number of JSON here is a float, too short for a seed
        parts = _parts(new)
        body = {"id": uuid.uuid4().hex, "parts": parts, "metadata": metadata, "session": session}

        def read(data: Any, seconds: float) -> tuple[Completion, Whereabouts | None]:
            return replace(read_answer(data["reply"]), latency=seconds), data["session"]

        return await self._answer(request, self.url, body, read)

    def _refusal(
        self, replica: Replica, path: str, error: Exception, with_tools: bool = False, by_program: bool = False
    ) -> EngineError | None:
        text, status = self._line(error), getattr(error, "status_code", None) or 0
        if isinstance(error, protocol.A2AError) and not isinstance(error, _PASSING):
            return RefusedError(text)
        if 300 <= status < 400:
            to = public(error.response.headers.get("location", ""))[:200]  # type: ignore[attr-defined]
            return EngineFatalError(f"{replica.name} redirects to {to}; give that address, if you trust it: {text}")
        if status in (401, 403) and not self.api_key_env:
            return EngineFatalError(f"{replica.name} asks for a key; name its variable: api_key_env=MY_KEY: {text}")
        return super()._refusal(replica, path, error, with_tools, by_program)


def _parts(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """(role, text) of each message, a part for each. Those of a conversation that the agent has lost, or never had, say
    who has said them."""
    last = len(messages) - 1
    begun = any(message["role"] == "assistant" for message in messages)
    parts = []
    for number, message in enumerate(messages):
        role, text = message["role"], str(message["content"] or "")
        if begun and role != "system":
            said = "You answered" if role == "assistant" else "You were asked"
            text = f"{'Now you are asked' if number == last else said}:\n\n{text}"
        parts.append((role, text))
    return parts


def _translated(error: protocol.A2AError) -> Exception:
    """An error of the client as one of the package `openai`, where it is of HTTP; else as it is."""
    import openai

    found: Exception = error
    if not isinstance(error, A2AClientError | protocol.MethodNotFoundError):
        return found
    for cause in causes(error):
        if isinstance(cause, httpx.HTTPStatusError):
            return openai.APIStatusError(str(cause), response=cause.response, body=None)
        if isinstance(cause, httpx.RequestError):
            return openai.APIConnectionError(message=str(cause), request=cause.request)
    return found
