"""Which agents write their calls as text, and which are offered them as tools."""

from __future__ import annotations

from typing import Literal

from harness.api import Case

CallForm = Literal["text", "tools"]
CallForms = CallForm | dict[str, CallForm]
"""One form for all agents, or group of the spec's `agents:` → its form. Groups without an entry write text."""


def offers_tools(calls: CallForms, case: Case, agent: str) -> bool:
    """Whether an agent of `case` is offered its calls as tools."""
    if isinstance(calls, str):
        return calls == "tools"
    return calls.get(case.roles.get(agent, "default")) == "tools"


def named_groups(calls: CallForms) -> tuple[str, ...]:
    """The groups that `calls` names."""
    return () if isinstance(calls, str) else tuple(calls)
