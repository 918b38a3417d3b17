"""Synchronous message passing between neighbors (AgentsNet, Section 4 and Algorithm 1)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from harness.api import Case, Channel, Outcome, Play, PluginError, Range, Reply, Task, Turn, plugin
from harness.extensions.networks import LocalTask, NeighborChannel, links
from harness.extensions.networks.messages import Messages
from harness.extensions.panels.traffic import Traffic
from harness.extensions.panels.two_pass import TwoPassProtocol
from harness.replies import Choice, Parsing


@plugin
class LocalRounds(TwoPassProtocol):
    """In each of T rounds all agents write to their neighbors at once; then each gives its answer.

    T counts the messages that an agent can send to one neighbor. The first ones follow the system prompt alone, the
    last ones arrive with the final question, so an agent has T + 1 turns. Turns: `start` (round 1), `talk` (rounds
    2 … T), `answer`. Every observation has the channel's `inbox` and `silent`, `round` (from 1), `rounds_left` (this
    one included), `last_round`, `neighbors`, `options` (of the answer) and `chain_of_thought`.

    Attributes:
        channel: delivers the messages: neighbors.
        rounds: T, or "paper" for the task's own budget.
        parse_retries: how often to ask again for an unreadable reply; then the agent is silent, or has no answer.
        chain_of_thought: whether every turn asks the model to think step by step first.
        parsing: how replies are parsed; "reference" is AgentsNet's own code, quirks included.
        max_chars: cut messages to this length; None for no limit.
    """

    channel: Channel
    rounds: Literal["paper"] | int = "paper"
    parse_retries: Annotated[int, Range(ge=0)] = 1
    chain_of_thought: bool = True
    parsing: Parsing = "tolerant"
    max_chars: Annotated[int, Range(ge=1)] | None = None

    needs = LocalTask
    needs_channel = NeighborChannel
    facts = ("rounds", "messages", "characters", "sent", "dropped", *TwoPassProtocol.facts)

    def __post_init__(self) -> None:
        if self.rounds != "paper" and self.rounds < 0:
            raise PluginError(f"rounds must be 0 or more, found {self.rounds}")

    def one_pass(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Yield T batches of messages and one of answers; every batch has one turn for every agent."""
        channel = self.channel.open(case, rng)
        assert isinstance(task, LocalTask)
        total = task.rounds(case) if self.rounds == "paper" else self.rounds
        neighbors = links(case)
        contexts = {
            agent: {"neighbors": list(neighbors[agent]), **task.context(case, agent), "rounds": total}
            for agent in agents
        }
        letters = {
            agent: Messages(neighbors[agent], self.max_chars, self.parsing, task.agent_names) for agent in agents
        }
        answers = {agent: self._answer(task, case, agent) for agent in agents}
        traffic, messages, dropped = Traffic(agents), 0, 0

        def turn(agent: str, name: str, left: int, reply: Reply) -> Turn:
            observation = {
                **channel.observation(agent),
                "round": total - left + 1,
                "rounds_left": left,
                "last_round": left == 1,
                "neighbors": neighbors[agent],
                "options": reply.options,
                "chain_of_thought": self.chain_of_thought,
            }
            return Turn(agent, name, observation, reply, contexts[agent], self.parse_retries)

        for t in range(total):
            moves = yield [turn(agent, "talk" if t else "start", total - t, letters[agent]) for agent in agents]
            channel.commit(moves)
            for move in moves:
                for receiver, text in (move.action or {}).items():
                    traffic.note(move.agent, [receiver], text)
                    messages += 1
            dropped += sum(letters[move.agent].dropped(move.text) for move in moves if move.text is not None)

        moves = yield [turn(agent, "answer", 0, answers[agent]) for agent in agents]
        facts = {"rounds": total, "messages": messages, "characters": traffic.characters, "sent": traffic.sent}
        facts["dropped"] = dropped
        return Outcome(answers={move.agent: move.action for move in moves}, facts=facts)

    def _answer(self, task: LocalTask, case: Case, agent: str) -> Reply:
        reply = task.reply_after_talk(case, agent)
        return replace(reply, parsing=self.parsing) if isinstance(reply, Choice) else reply
