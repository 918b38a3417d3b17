"""What the fields of the engine `agent` say of a program that acts by itself (`interface: mcp`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.api.errors import SetupError
from harness.extensions.agents._agent_log import AgentLog

if TYPE_CHECKING:
    from harness.extensions.agents._acting_agent import ActingAgent
    from harness.extensions.agents._agent_environment import SeatDoors
    from harness.extensions.agents.agent import Agent


def check_fields(engine: Agent) -> None:
    """Raise `SetupError` for fields that do not fit together."""
    if engine.interface != "mcp":
        return
    which = next((name for name in ("url", "a2a", "history") if getattr(engine, name)), None)
    if which is not None:
        hint = "It takes command= or call=, which is started once for each seat and keeps its own memory."
        raise SetupError(f"interface=mcp takes no {which}=", hint=hint, at=(which,))
    if engine.command and engine.args:
        hint = "Write them into the command."
        raise SetupError("interface=mcp gives a command no args=", hint=hint, at=("args",))


async def start(engine: Agent, words: Sequence[str], log: AgentLog, doors: SeatDoors | None) -> ActingAgent:
    """What starts the programs of an engine. `words`: of its command. Raises `SetupError`."""
    from harness.extensions.agents._acting_agent import ActingAgent
    from harness.extensions.agents._acting_programs import FunctionLauncher, ProgramLauncher

    if engine.call:
        launcher: FunctionLauncher | ProgramLauncher = FunctionLauncher(engine.call, engine.args, log)
    else:
        launcher = ProgramLauncher(engine.model, words, log)
    form = ActingAgent(engine.model, launcher, engine.timeout, engine.concurrency, log, doors)
    await form.start()
    return form
