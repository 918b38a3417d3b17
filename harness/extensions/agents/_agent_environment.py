"""The model behind an agent program (`inner=`): what the fields of the engine say of it, and how a program finds it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from harness.api import Request, TurnId
from harness.api.errors import SetupError, near
from harness.api.inner_calls import InnerDoor, SeatCalls
from harness.engines.sampling import normalize
from harness.extensions.agents._prompt_program import Door
from harness.plugins.manifests import is_installed

if TYPE_CHECKING:
    from harness.extensions.agents.agent import Agent
    from harness.extensions.endpoints.server import Access, EndpointServer

OURS = ("inner", "inner_args", "inner_kwargs", "inner_limits", "inner_aliases", "env")
"""The fields of the engine that say which model answers its programs, and how."""
FACTS = ("base_url", "api_key", "anthropic_base_url", "model")
"""What a program has to know: `env` names variables for them, functions have parameters of these names."""
VARIABLES: Mapping[str, str] = {
    "OPENAI_BASE_URL": "base_url",
    "OPENAI_API_KEY": "api_key",
    "OPENAI_MODEL": "model",
    "ANTHROPIC_BASE_URL": "anthropic_base_url",
    "ANTHROPIC_API_KEY": "api_key",
    "ANTHROPIC_MODEL": "model",
}
"""Variables that every program gets → what they say."""
_LOCAL = "127.0.0.1,localhost"
_LIMITS = ("calls", "tokens", "cost", "seconds")


def check_fields(engine: Agent) -> None:
    """Raise `SetupError` for fields that do not fit together."""
    if engine.inner is None:
        made = {one.name: one.default_factory for one in fields(engine)}
        for name in OURS[1:]:
            if getattr(engine, name) != (make() if callable(make := made[name]) else None):
                hint = "Name the engine that answers, such as inner=vllm, or a name under models: of the spec."
                raise SetupError(f"{name}= is about the agent's own model; inner= names none", hint=hint, at=(name,))
        return
    if engine.a2a:
        hint = "Start the agent from here, with command= or call=, or let it call a model of its own."
        raise SetupError("inner= does not reach an A2A agent: nothing tells it where its model is", hint=hint)
    if engine.inner_args and not isinstance(engine.inner, str):
        raise SetupError("inner= is a mapping already: write the fields of inner_args= into it", at=("inner_args",))
    normalize(engine.inner_kwargs)
    for scope, limits in engine.inner_limits.items():
        if scope not in ("turn", "seat") or not isinstance(limits, Mapping):
            hint = "Write inner_limits={turn: {calls: 20}, seat: {tokens: 100000}}."
            raise SetupError(f"inner_limits has {scope!r:.60}: {limits!r:.60}", hint=hint, at=("inner_limits",))
        for name, most in limits.items():
            if name not in _LIMITS:
                raise SetupError(f"inner_limits: {scope} has no {name!r:.60}", hint=near(str(name), _LIMITS))
            if type(most) not in (int, float) or not 0 < most < math.inf:
                raise SetupError(f"inner_limits: {name} of a {scope} must be above 0, found {most!r:.60}")
    for variable, fact in engine.env.items():
        if not isinstance(variable, str) or not variable or "=" in variable or "\0" in variable:
            hint = "Write it as name: what it says, such as env={LLM_URL: base_url}."
            raise SetupError(f"env: {variable!r:.60} is no name of a variable", hint=hint, at=("env",))
        if fact not in FACTS:
            raise SetupError(f"env: {variable} is to say {fact!r:.60}", hint=near(str(fact), FACTS), at=("env",))


def reference_of(engine: Agent) -> str | Mapping[str, Any] | None:
    """The inner engine, as a plan takes it."""
    if isinstance(engine.inner, str) and engine.inner_args:
        return {"use": engine.inner, **engine.inner_args}
    return engine.inner


def check_packages() -> None:
    """Raise `SetupError` where the endpoints cannot be served."""
    if not is_installed("aiohttp"):
        hint = 'Install it: pip install "mas-eval-harness[openai]"'
        raise SetupError("inner= serves the agent's model with the package aiohttp", hint=hint)


class SeatDoors:
    """Serves the model of each seat to the program that plays it.

    Args:
        door: to the inner engine.
        aliases: other names than the model's that programs may ask for; "*" stands for all.
        env: further variables → what they say.
    """

    def __init__(self, door: InnerDoor, aliases: list[str], env: Mapping[str, str]) -> None:
        self._door, self._aliases = door, aliases
        self._env = {**VARIABLES, **env}
        self._open: dict[tuple[str, str], Access] = {}
        self._server: EndpointServer | None = None

    async def start(self) -> None:
        """Listen. Raises `SetupError`."""
        from harness.extensions.endpoints.server import EndpointServer

        self._server = EndpointServer()
        try:
            await self._server.start()
        except OSError as error:
            raise SetupError(f"the agent's model cannot be served: {error.strerror or error}") from None

    async def close(self) -> None:
        """Serve no more."""
        if self._server is not None:
            await self._server.close()
            self._server = None
        self._open.clear()

    def calls(self, request: Request) -> SeatCalls:
        """The model behind the seat that a request is for."""
        turn = TurnId.of(request.id)
        return self._door.seat(turn.episode, turn.agent)

    def access(self, request: Request) -> Access:
        """How the program of the seat reaches its model; the same in all turns of an episode."""
        turn = TurnId.of(request.id)
        seat = turn.episode, turn.agent
        if seat not in self._open:
            assert self._server is not None, "start() first"
            calls = self._door.seat(*seat)
            self._open[seat] = self._server.open(calls, f"{turn.episode}/{turn.agent}", self._aliases)
            calls.when_over(lambda: self._shut(seat))
        return self._open[seat]

    def _shut(self, seat: tuple[str, str]) -> None:
        access = self._open.pop(seat, None)
        if access is not None and self._server is not None:
            self._server.shut(access)

    def facts(self, request: Request) -> dict[str, str]:
        """What the program has to know (`FACTS`), the secret among it."""
        access = self.access(request)
        return {
            "base_url": access.base_url,
            "api_key": access.api_key,
            "anthropic_base_url": access.anthropic_base_url,
            "model": self.calls(request).name,
        }

    def variables(self, request: Request) -> dict[str, str]:
        """The same as variables of a process; what is at this machine is asked for without a proxy."""
        facts = self.facts(request)
        proxies = {name: ",".join(filter(None, [os.environ.get(name), _LOCAL])) for name in ("NO_PROXY", "no_proxy")}
        return {**{variable: facts[fact] for variable, fact in self._env.items()}, **proxies}

    def of_program(self, request: Request) -> Door:
        """The same, with what a confined program needs to reach the server."""
        assert self._server is not None, "start() first"
        return Door(self.variables(request), self._server.port, self.access(request).socket, self.calls(request))


def described(engine: Agent, facts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The fields of an engine as others see them: those about its model only where it has one."""
    return ((name, value) for name, value in facts.items() if engine.inner is not None or name not in OURS)
