"""Synchronous message passing between neighbors (AgentsNet, Section 4 and Algorithm 1)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from harness.api import Case, Channel, Outcome, Play, Range, Reply, Task, Turn, plugin
from harness.authoring.networks import NeighborChannel, NetworkTask
from harness.authoring.traffic import Traffic
from harness.authoring.two_pass import TwoPassProtocol
from harness.errors import PluginError
from harness.replies import Choice, Messages, Parsing


@plugin
class LocalRounds(TwoPassProtocol):
    """In each of T rounds all agents write to their neighbors at once; then each gives its answer.

    T counts the messages that an agent can send to one neighbor. The first are written from the system prompt
    alone, the last are shown with the final question, so an agent is asked T + 1 times. Turns: `start` (round 1),
    `talk` (rounds 2 … T), `answer`. Every view has what the channel shows (`inbox`, `silent`), `round` (from 1),
    `rounds_left` (this one included), `last_round`, `neighbors`, `options` (of the answer) and `chain_of_thought`.

    Attributes:
        channel: how messages travel: neighbors.
        rounds: T, or "paper" for the task's own budget.
        repairs: how often an unreadable reply is asked for again; then it is silence, or no answer.
        chain_of_thought: whether every turn asks the model to think step by step first.
        parsing: how replies are read; "reference" is AgentsNet's own code, quirks included.
        max_chars: cut messages to this length; None for no limit.
    """

    channel: Channel
    rounds: Literal["paper"] | int = "paper"
    repairs: Annotated[int, Range(ge=0)] = 1
    chain_of_thought: bool = True
    parsing: Parsing = "tolerant"
    max_chars: Annotated[int, Range(ge=1)] | None = None

    needs = NetworkTask
    needs_channel = NeighborChannel
    facts = ("rounds", "messages", "characters", "sent", "dropped", *TwoPassProtocol.facts)

    def __post_init__(self) -> None:
        if self.rounds != "paper" and self.rounds < 0:
            raise PluginError(f"rounds must be 0 or more, found {self.rounds}")

    def one_pass(self, task: Task, case: Case, seats: Sequence[str], rng: random.Random) -> Play:
        """Yields T batches of messages and one of answers; every batch has one turn for every seat."""
        channel = self.channel.open(case, rng)
        assert isinstance(task, NetworkTask)
        total = task.rounds(case) if self.rounds == "paper" else self.rounds
        neighbors = case.topology or {}
        briefs = {seat: {**task.brief(case, seat), "rounds": total} for seat in seats}
        letters = {seat: Messages(neighbors[seat], self.max_chars, self.parsing, task.agent_names) for seat in seats}
        answers = {seat: self._answer(task, case, seat) for seat in seats}
        traffic, messages, dropped = Traffic(seats), 0, 0

        def turn(seat: str, name: str, left: int, reply: Reply) -> Turn:
            view = {
                **channel.view(seat),
                "round": total - left + 1,
                "rounds_left": left,
                "last_round": left == 1,
                "neighbors": neighbors[seat],
                "options": reply.options,
                "chain_of_thought": self.chain_of_thought,
            }
            return Turn(seat, name, view, reply, briefs[seat], self.repairs)

        for t in range(total):
            moves = yield [turn(seat, "talk" if t else "start", total - t, letters[seat]) for seat in seats]
            channel.commit(moves)
            for move in moves:
                for receiver, text in (move.action or {}).items():
                    traffic.note(move.seat, [receiver], text)
                    messages += 1
            dropped += sum(letters[move.seat].dropped(move.text) for move in moves if move.text is not None)

        moves = yield [turn(seat, "answer", 0, answers[seat]) for seat in seats]
        facts = {"rounds": total, "messages": messages, "characters": traffic.characters, "sent": traffic.sent}
        facts["dropped"] = dropped
        return Outcome(answers={move.seat: move.action for move in moves}, facts=facts)

    def _answer(self, task: Task, case: Case, seat: str) -> Reply:
        reply = task.reply(case, seat)
        return replace(reply, parsing=self.parsing) if isinstance(reply, Choice) else reply
