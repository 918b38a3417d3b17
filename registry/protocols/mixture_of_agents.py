"""Mixture of agents: layers of proposers that read the previous layer, and one aggregator that reads the last."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Annotated, Literal

from harness.api import Case, Play, Range, Task, Turn, plugin
from harness.extensions.panels.answer_with_confidence import Style
from harness.extensions.panels.panels import Opinion, Panel, leading
from harness.extensions.panels.peers import peer_text
from harness.extensions.panels.traffic import Traffic


@plugin
class MixtureOfAgents(Panel):
    """The panel answers in layers; each layer reads all replies of the previous one. An aggregator answers last.

    Mixture-of-Agents (Wang et al., 2025). Every turn is a new conversation. A reader sees all replies of the previous
    layer, its own included, as a numbered list without names. There is no vote: the aggregator's answer is the group's,
    and without a readable one there is none. The fact `history` has the proposers' layers.

    Turns: `answer`, `synthesize` (observation: `references`, `leading`). With `slot: system` the references are in the
    context instead, where `system.j2` shows them.

    Attributes:
        layers: the number of layers, including the first answers and the aggregator.
        aggregator: the agent with the last turn: a member of the panel or, by any other name, an additional agent.
        slot: whether instruction and replies are in the "system" message, or in the "user" turn, for models whose chat
            template has no system role.
        shuffle: show the replies of a layer in random order, the same for all readers, instead of the panel's.
    """

    agents: Annotated[int, Range(ge=1, le=1000)] | None = 3
    confidence: Style = "none"
    layers: Annotated[int, Range(ge=2, le=1000)] = 2
    aggregator: str = "Aggregator"
    slot: Literal["system", "user"] = "system"
    shuffle: bool = False

    roles = ("aggregator",)
    facts = (*Panel.facts, "order", "missing", "novel", "agreed", "agreement")

    def others(self) -> tuple[str, ...]:
        """The aggregator, which may also be a member of the panel."""
        return (self.aggregator,)

    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Yield one batch per layer; the last one has a single turn."""
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
        answers = [opinion for opinion in history[-1] if opinion.answer is not None]
        agreed = [opinion.agent for opinion in answers if opinion.candidate == final.candidate]
        compared = answers and final.answer is not None
        return self.outcome(
            history,
            final.answer,
            exit="aggregator" if final.answer is not None else "aggregator unreadable",
            peer_characters=traffic.characters,
            sent=traffic.sent,
            proposal=final.answer,
            order=[[opinion.agent for opinion in layer] for layer in references],
            missing=[[opinion.agent for opinion in layer if not opinion.text] for layer in history],
            novel=None if not compared else int(not agreed),
            agreed=agreed,
            agreement=None if not compared else len(agreed) / len(answers),
        )

    def _references(self, layer: Sequence[Opinion], rng: random.Random) -> list[Opinion]:
        """Return the replies of a layer, without empty ones, in the order in which readers see them."""
        replies = [opinion for opinion in layer if opinion.text]
        return rng.sample(replies, len(replies)) if self.shuffle else replies

    def _turn(self, task: Task, case: Case, agent: str, references: Sequence[Opinion], traffic: Traffic) -> Turn:
        """A turn that shows a layer, or the bare question if the layer is empty."""
        texts = [peer_text(opinion.text) for opinion in references]
        system = self.slot == "system"
        observation = {"references": [] if system else texts, "leading": leading(references)}
        others = [opinion for opinion in references if opinion.agent != agent]
        for opinion in others:
            traffic.note(opinion.agent, [agent], opinion.text)
        peer_texts = [opinion.text for opinion in others]
        more = {"references": texts} if system and texts else {}
        return self.ask(task, case, agent, "synthesize", observation, peer_texts=peer_texts, fresh=True, more=more)
