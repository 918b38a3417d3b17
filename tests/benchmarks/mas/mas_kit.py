"""Episodes of MAS-Bench with scripted replies, from their text on, without an engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.api import Turn
from harness.config import project
from harness.runtime.steps import Drive, drive

BUILTIN = project.builtin()
BACKENDS = BROADCASTING, P2P, KV = ("mas/broadcasting", "mas/p2p", "mas/shared_kv")
MESSAGING = (BROADCASTING, P2P)
Script = Mapping[tuple[int, int], str]
"""(number of the agent, round) → its reply; it waits where there is none."""


def load(kind: str, name: str, **parameters: Any) -> Any:
    """A plugin, ready to use."""
    return BUILTIN.load(kind, name)(**parameters)


def rounds(channel: Any, **parameters: Any) -> Any:
    """The protocol on a channel: a name, or an object."""
    on = load("channels", channel) if isinstance(channel, str) else channel
    return load("protocols", "command_rounds", channel=on, **{"max_rounds": 5, **parameters})


def unreliable(channel: str, **faults: Any) -> Any:
    return load("channels", "unreliable", channel=load("channels", channel), **faults)


def fence(*commands: str) -> str:
    """Each command in a block of its own."""
    return "\n".join(f"```\n{command}\n```" for command in commands)


def post(backend: str, text: str, to: int = 1) -> str:
    """A message as the backend sends it."""
    return f"broadcast_message {text}" if backend == BROADCASTING else f"send_message {to} {text}"


def word(backend: str) -> str:
    return "broadcast from" if backend == BROADCASTING else "from"


def play(
    channel: Any, script: Script, agents: int = 3, items: int = 1, again: Script | None = None, **parameters: Any
) -> Drive:
    """Sorting. `again` is the script of the second phase. Only replies with a command can be played this way."""
    task = load("tasks", "mas/sorting", agents=agents, items=items)

    def answer(turn: Turn) -> Any:
        lines = (again or {}) if "previous" in turn.context else script
        text = lines.get((turn.context["id"], turn.observation["round"]), "```\nwait\n```")
        parsed = turn.reply.parse(text)
        assert parsed.error is None, text
        return parsed.action

    return drive(rounds(channel, **parameters), task, next(iter(task.cases(1, 0))), answer)


def seen(played: Drive, agent: int, number: int) -> Turn:
    """The agent's turn in a round (of the first phase)."""
    return next(turn for turn in played.turns() if turn.context["id"] == agent and turn.observation["round"] == number)


def results_of(played: Drive, agent: int, number: int) -> list[str]:
    """What the agent is shown in a round of what its commands returned."""
    return [result["text"] for result in seen(played, agent, number).observation["results"]]


def returned(played: Drive, agent: int, number: int) -> list[str]:
    """The replies to the commands that the agent gave in a round."""
    return results_of(played, agent, number + 1)
