"""Agents that are servers: JSON over HTTP, with the connections, retries and limits of the engine `openai`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from harness.api import Completion, Request
from harness.api.errors import EngineError, EngineFatalError, RefusedError, SetupError
from harness.extensions.agents._agent_environment import SeatDoors
from harness.extensions.agents.conversations import REPLY, Conversation, Conversations, question_of, read_object
from harness.extensions.openai.openai import OpenAI
from harness.extensions.openai.replicas import PROBE, Replica
from harness.extensions.openai.wire import GarbledError

UNKNOWN = 410
"""The status of a server that does not know a conversation: it gets the whole one."""


class _Place(Replica):
    """The server of an agent. It lists no models: whatever it answers, it is there."""

    async def probe(self, timeout: float) -> list[str]:
        import openai

        with contextlib.suppress(openai.APIStatusError):
            async with asyncio.timeout(min(PROBE, timeout)):
                await self.client.get(self.name, cast_to=object)
        return []


class AgentServer(OpenAI):
    """Asks a server. Its fields are those of `OpenAI`; `base_url` is where requests are posted."""

    replica = _Place

    def __post_init__(self) -> None:
        self.url = str(self.base_url)
        if "@" in urlsplit(self.url).netloc:
            hint = "Name the environment variable with its key: api_key_env=MY_KEY, sent as a bearer token."
            raise SetupError("url= takes no user and no password", hint=hint)
        super().__post_init__()
        self.conversations = Conversations()
        self.args: Mapping[str, Any] = {}
        self.history = False
        self.doors: SeatDoors | None = None

    @property
    def called(self) -> tuple[str, str | None]:
        """What the server calls itself once it is started, and its `Engine.weights`."""
        return "", None

    async def complete(self, request: Request) -> Completion:
        """Send what is new; the whole conversation, where the server says that it does not know it."""
        conversation = self.conversations.of(request)
        messages = len(request.thread.messages)
        start = 0 if self.history else conversation.start(request.thread)
        conversation.session = None  # it is not known what the server knows, should this fail
        self._requests += 1
        try:
            answer = await self._send(request, self._question(request, conversation, start))
        except RefusedError as error:
            if getattr(error.__cause__, "status_code", None) != UNKNOWN or not start:
                raise
            answer = await self._send(request, self._question(request, conversation, 0))
        conversation.session = True
        conversation.answered(messages, answer.text)
        return answer

    def _question(self, request: Request, conversation: Conversation, start: int) -> dict[str, Any]:
        endpoint = None if self.doors is None else self.doors.facts(request)
        return question_of(request, conversation, start, self.args, endpoint)

    async def _send(self, request: Request, body: dict[str, Any]) -> Completion:
        def read(data: Any, seconds: float) -> Completion:
            if not isinstance(data, dict):
                raise GarbledError(f"a reply is {REPLY}, found {str(data)[:200]!r}")
            answer = read_object(data, request)
            return answer if answer.latency is not None else replace(answer, latency=seconds)

        return await self._answer(request, self.url, body, read)

    def _connect(self) -> list[Replica]:
        try:
            return super()._connect()
        except SetupError as error:
            message = error.message.replace("the engine openai", "an agent with url= or a2a=")
            raise SetupError(message, hint=error.hint) from None

    async def _probe(self, replica: Replica) -> SetupError | None:
        try:
            await replica.probe(self.timeout)
        except Exception as error:
            replica.mark_unhealthy(why := self._line(error))
            return SetupError(f"no agent at {replica.name}: {why}", hint="Start it first, and check url=.")
        return None

    def _refusal(
        self, replica: Replica, path: str, error: Exception, with_tools: bool = False, by_program: bool = False
    ) -> EngineError | None:
        status = getattr(error, "status_code", None)
        if status == UNKNOWN:
            return RefusedError(self._line(error))
        if status == 404:
            return EngineFatalError(f"there is no agent at {replica.name}: {self._line(error)}")
        return super()._refusal(replica, path, error, with_tools, by_program)
