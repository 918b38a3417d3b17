"""Mixture of agents: layers of proposers, each of whom reads the whole layer before; one aggregator reads the last."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Annotated, Literal

from harness.api import Case, Play, Range, Task, Turn, plugin
from harness.authoring.panels import Opinion, Panel, leading
from harness.authoring.traffic import Traffic


@plugin
class MixtureOfAgents(Panel):
    """The panel answers in layers, each reading all replies of the layer before; an aggregator gives the final answer.

    Mixture-of-Agents (Wang et al., 2025). Every turn is a new conversation. Who reads is shown all replies of the layer
    before, its own among them, as a numbered list without names. There is no vote: what the aggregator's reply says is
    the group's answer, and a reply that cannot be read is none. `history` holds the proposers' layers.

    Turns: `answer`, `synthesize` (observation: `references`, `leading`). With `slot: system` the references stand in
    the
    context instead, where `system.j2` shows them.

    Attributes:
        layers: how many there are, the first answers and the aggregator included.
        aggregator: whose the last turn is: an agent of the panel or, by any other name, one more.
        slot: whether instruction and replies stand in the "system" message, or in the "user" turn, for models whose
            chat template knows no system role.
        shuffle: whether the replies of a layer are shown in an order by lot, one for all readers, or in the panel's.
    """

    agents: Annotated[int, Range(ge=1, le=1000)] | None = 3
    layers: Annotated[int, Range(ge=2, le=1000)] = 2
    aggregator: str = "Aggregator"
    slot: Literal["system", "user"] = "system"
    shuffle: bool = False

    roles = ("aggregator",)
    facts = (*Panel.facts, "order", "missing", "novel", "agreed", "agreement")

    def others(self) -> tuple[str, ...]:
        """The aggregator, unless it sits on the panel."""
        return (self.aggregator,)

    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Yields a batch a layer, the last one of a single turn."""
        members = self.members(case)
        moves = yield [self.ask(task, case, agent) for agent in members]
        history = [[self.read(task, case, move) for move in moves]]
        references = [self._references(history[-1], rng)]
        traffic = Traffic(agents)
        while len(history) < self.layers - 1:
            moves = yield [self._turn(task, case, agent, references[-1], traffic) for agent in members]
            history.append([self.read(task, case, move) for move in moves])
            references.append(self._references(history[-1], rng))
        [move] = yield [self._turn(task, case, self.aggregator, references[-1], traffic)]
        final = self.read(task, case, move)
        given = [opinion for opinion in history[-1] if opinion.answer is not None]
        agreed = [opinion.agent for opinion in given if opinion.candidate == final.candidate]
        compared = given and final.answer is not None
        return self.outcome(
            history,
            final.answer,
            exit="aggregator" if final.answer is not None else "aggregator unreadable",
            peer_characters=traffic.characters,
            sent=traffic.sent,
            proposal=final.answer,
            order=[[opinion.agent for opinion in shown] for shown in references],
            missing=[[opinion.agent for opinion in layer if not opinion.text] for layer in history],
            novel=None if not compared else int(not agreed),
            agreed=agreed,
            agreement=None if not compared else len(agreed) / len(given),
        )

    def _references(self, layer: Sequence[Opinion], rng: random.Random) -> list[Opinion]:
        """The replies of a layer in the order in which they are shown; who wrote nothing is left out."""
        written = [opinion for opinion in layer if opinion.text]
        return rng.sample(written, len(written)) if self.shuffle else written

    def _turn(self, task: Task, case: Case, agent: str, references: Sequence[Opinion], traffic: Traffic) -> Turn:
        """A turn that sees a layer; the bare question where that has nothing to show."""
        texts = [opinion.peer_text for opinion in references]
        system = self.slot == "system"
        observation = {"references": [] if system else texts, "leading": leading(references)}
        others = [opinion for opinion in references if opinion.agent != agent]
        for opinion in others:
            traffic.note(opinion.agent, [agent], opinion.text)
        peer_texts = [opinion.text for opinion in others]
        more = {"references": texts} if system and texts else {}
        return self.ask(task, case, agent, "synthesize", observation, peer_texts=peer_texts, fresh=True, more=more)
