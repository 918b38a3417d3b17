"""Debate: agents answer, read the others' last replies, answer again, and vote."""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal

from harness.api import Case, Move, Play, PluginError, Range, Task, Turn, plugin
from harness.extensions.panels.answer_with_confidence import Style
from harness.extensions.panels.panels import Opinion, Panel, Ties, candidate, leading, majority
from harness.extensions.panels.peers import peer_text
from harness.extensions.panels.traffic import Traffic
from harness.replies import FreeText


@plugin
class Debate(Panel):
    """All agents answer, then read the others' last replies and answer again; a vote over the last answers decides.

    Multiagent debate (Du et al., 2024), played synchronously: agents always see replies of the previous round. Each
    agent keeps its own conversation, which shows the others without names, in the panel's order. An agent that has
    nothing to read (alone on its panel, or all others failed) is asked to check its own answer.

    Turns: `answer`, `debate` (observation: `replies` of the others, `digest`, `restate`, `leading`), `digest`
    (`replies`).

    Attributes:
        rounds: how often every agent answers, the first answer included.
        summarize: whether a separate agent condenses the replies into a digest that agents see in their place: one
            digest of all replies a round ("shared"), or one of the others' replies for each reader ("per_reader").
        summarizer: the name of that agent, which must not be on the panel. Where it fails, agents see nothing.
        restate: whether each round restates the question.
        stop: "unanimous": stop once all have given the same answer.
        ties: which of several leading answers wins. Unreadable answers have no vote.
    """

    agents: Annotated[int, Range(ge=1, le=1000)] | None = 3
    confidence: Style = "none"
    rounds: Annotated[int, Range(ge=1, le=1000)] = 2
    summarize: Literal["none", "shared", "per_reader"] = "none"
    summarizer: str = "Summarizer"
    restate: bool = False
    stop: Literal["none", "unanimous"] = "none"
    ties: Ties = "first"

    roles = ("summarizer",)
    facts = (*Panel.facts, "votes", "tied", "adopted")

    def others(self) -> tuple[str, ...]:
        """The agent that writes digests, if there are any."""
        return () if self.summarize == "none" else (self.summarizer,)

    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Yield one batch per round, and before each but the first those of the digests."""
        members = self.members(case)
        if self.summarize != "none" and self.summarizer in members:
            message = f"summarizer {self.summarizer!r} is a member of the panel"
            raise PluginError(message, hint="Give the summarizer a name of its own.", at=("summarizer",))
        moves = yield [self.ask(task, case, agent) for agent in members]
        history = [[self.read(task, case, move) for move in moves]]
        traffic, adopted = Traffic(agents), 0
        while len(history) < self.rounds and not (self.stop == "unanimous" and self.unanimous(history[-1])):
            previous = history[-1]
            digests = yield from self._digests(task, case, previous, traffic)
            turns = [
                self._turn(task, case, opinion, previous, digests.get(opinion.agent), traffic) for opinion in previous
            ]
            moves = yield turns
            history.append([self.read(task, case, move) for move in moves])
            for turn, old, new in zip(turns, previous, history[-1], strict=True):
                leader = turn.observation["leading"]
                adopted += leader is not None and candidate(task, case, leader) == new.candidate != old.candidate
        count = majority(task, case, [opinion.answer for opinion in history[-1]], ties=self.ties, rng=rng)
        agreed = len(history) < self.rounds
        return self.outcome(
            history,
            count.answer,
            exit="unanimous" if agreed else count.exit,
            peer_characters=traffic.characters,
            sent=traffic.sent,
            votes=count.weights,
            tied=count.tied,
            adopted=adopted,
        )

    def _turn(
        self, task: Task, case: Case, own: Opinion, previous: Sequence[Opinion], digest: str | None, traffic: Traffic
    ) -> Turn:
        """The turn in which an agent answers again, in its own conversation."""
        others = _others(previous, own)
        whole = self.summarize == "none"
        texts = [other.text for other in others] if whole else []
        leader = leading(others) if whole or digest else None
        replies = [other.peer_text for other in others] if whole else []
        observation = {
            "replies": replies,
            "digest": peer_text(digest, block=True) if digest else digest,
            "restate": self.restate,
            "leading": leader,
        }
        peer_texts = texts if whole else [digest] if digest else []
        writers = [other.agent for other in others] if whole else [self.summarizer]
        for writer, text in zip(writers, peer_texts, strict=False):
            traffic.note(writer, [own.agent], text)
        return self.ask(task, case, own.agent, "debate", observation, peer_texts=peer_texts)

    def _digests(
        self, task: Task, case: Case, previous: Sequence[Opinion], traffic: Traffic
    ) -> Generator[list[Turn], list[Move], Mapping[str, str | None]]:
        """Return reader → digest. One agent writes them all, one after another, each in a new conversation."""
        if self.summarize == "none":
            return {}
        digests: dict[str, str | None] = {}
        for reader in previous[:1] if self.summarize == "shared" else previous:
            sources = [o for o in (previous if self.summarize == "shared" else _others(previous, reader)) if o.text]
            texts, observation = [o.text for o in sources], {"replies": [o.peer_text for o in sources]}
            for opinion in sources:
                traffic.note(opinion.agent, [self.summarizer], opinion.text)
            turn = self.ask(task, case, self.summarizer, "digest", observation, peer_texts=texts, fresh=True)
            [move] = yield [replace(turn, reply=FreeText())]
            digests[reader.agent] = move.action if isinstance(move.action, str) else None
        if self.summarize == "shared":
            digests = dict.fromkeys((o.agent for o in previous), digests[previous[0].agent])
        return digests


def _others(opinions: Sequence[Opinion], reader: Opinion) -> list[Opinion]:
    """Return the replies that a reader sees: those of all others that wrote one."""
    return [opinion for opinion in opinions if opinion.agent != reader.agent and opinion.text]
