"""The prompts of an agent as its model gets them, with what it did already known: nothing is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.api import Facts, Move, Reply, Turn
from harness.config.prompts import PromptSet
from harness.engines.mock import Mock
from harness.runtime.players import ModelPlayer

if TYPE_CHECKING:
    from harness.storage.inner_calls import InnerCall

_UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """A turn as it was played: what the agent saw, and what it did.

    Attributes:
        number: the turn's place in the episode, over all agents, from 0.
        round: the batch that it belongs to, from 0; the turns of a round are simultaneous.
        agent: the agent.
        index: the agent's own turns before this one.
        name: the template of its prompt.
        context: what the agent knows from the start; None if the turn could not be played again.
        observation: what the agent saw; None as for `context`.
        prompt: the messages of the agent's conversation between its last turn and its first reply in this one: (role,
            text), role "system", "user", or "tool" for the result of a tool call. Empty if the turn could not be played
            again.
        retries: the messages to the agent after each unreadable reply.
        fresh: whether a new conversation starts here.
        move: the move; None while the agent has not answered yet.
        reply: the form of the reply; None if the turn could not be played again.
        tools: functions that the agent could call from this turn on, each {"name", "description", "parameters"}; empty
            if they are those of its previous turn.
        messages: all messages of the turn as a model's conversation has them (`harness.api.Thread`): those of `prompt`
            but for the beginning of a reply, the replies with their calls of tools, the retries.
        inner: what an agent program asked its own model in this turn, in the order in which it did.
    """

    number: int
    round: int
    agent: str
    index: int
    name: str
    context: Facts | None = None
    observation: Facts | None = None
    prompt: tuple[tuple[str, str], ...] = ()
    retries: tuple[str, ...] = ()
    fresh: bool = False
    move: Move | None = None
    reply: Reply | None = field(default=None, repr=False, compare=False)
    tools: tuple[Facts, ...] = ()
    messages: tuple[Mapping[str, Any], ...] = field(default=(), repr=False, compare=False)
    inner: tuple[InnerCall, ...] = field(default=(), repr=False)

    @property
    def signatures(self) -> str:
        """The tools, one per line: `send_message(target_id, content): what it is for`; below each, its arguments that
        have a description."""
        return "\n".join(map(signature, self.tools))


def signature(tool: Facts) -> str:
    """A function that a model may call, in a line; below it a line for each argument that has a description."""
    arguments = tool["parameters"].get("properties", {})  # each by a JSON Schema, which may be true or false
    said = [(name, one.get("description")) for name, one in arguments.items() if isinstance(one, dict)]
    about = [f"    {name}: {text}" for name, text in said if text is not None]
    return "\n".join([f"{tool['name']}({', '.join(arguments)}): {tool['description']}", *about])


class PromptReader(ModelPlayer):
    """A player that only rebuilds its agent's conversation: the one that a model would get, even if a policy plays."""

    def __init__(self, prompts: PromptSet, agent: str) -> None:
        super().__init__(Mock(), prompts, {}, False, agent, 0)
        self._chose = False  # whether a policy made the last move

    def read(self, turn: Turn, move: Move | None, round_number: int, number: int = 0) -> RecordedTurn:
        """The agent's next turn with its prompt. Raises `PromptError`.

        Args:
            turn: what the protocol asks.
            move: what the agent did; None if it has not answered yet.
            round_number: that of its batch.
            number: the turn's place in the episode, over all agents.
        """
        index = self.turns
        before = 0 if turn.fresh else len(self.thread.messages)
        offered = () if turn.fresh else self.tools
        if self._chose and offered and not turn.fresh:  # a policy's actions have no calls; a model's would have
            self._unanswered = [str(i) for i in range(len(turn.call_results))]
        self._chose = move is not None and not move.calls and move.error_kind is None
        self.recall(turn, move or Move(turn.agent, turn.name, None, "", _UNANSWERED))
        own = tuple(self.thread.messages[before:])
        messages = [(m["role"], m["content"]) for m in own]
        first = self.asked - before
        begun = [("assistant", self.prefill)] if self.prefill else []
        return RecordedTurn(
            number=number,
            round=round_number,
            agent=turn.agent,
            index=index,
            name=turn.name,
            context=turn.context,
            observation=turn.observation,
            prompt=(*messages[:first], *begun),
            retries=tuple(text for role, text in messages[first:] if role == "user"),
            fresh=turn.fresh or index == 0,
            move=move,
            reply=turn.reply,
            tools=self.tools if self.tools != offered else (),
            messages=own,
        )
