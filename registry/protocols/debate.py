"""Debate: all agents answer, read the others' last replies, and answer again; then votes are counted."""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal

from harness.api import Case, Move, Play, Range, Task, Turn, plugin
from harness.authoring.panels import Opinion, Panel, Ties, candidate, leading, majority, unanimous
from harness.authoring.peers import peer_text
from harness.authoring.traffic import Traffic
from harness.errors import PluginError
from harness.replies import FreeText


@plugin
class Debate(Panel):
    """All agents answer, then read the others' last replies and answer again; a vote over the last answers decides.

    Multiagent debate (Du et al., 2024), played synchronously: what is shown is always of the round before. Each agent
    keeps its own conversation, in which others are shown without names, in the panel's order, itself left out. An agent
    to whom nothing can be shown (alone on its panel, or all others failed) is asked to check its own answer.

    Turns: `answer`, `debate` (observation: `replies` of the others, `digest`, `restate`, `leading`), `digest`
    (`replies`).

    Attributes:
        rounds: how often every agent answers, the first answer included.
        summarise: whether an agent of its own condenses the replies, and its digest is shown in their place: once a
        round
            for all ("shared": of all replies) or once a reader ("per_reader": of the others').
        summariser: the name of that agent; it is none of the panel's. Where it fails, nothing is shown.
        restate: whether each round restates the question.
        stop: "unanimous": no further round once all have given the same answer.
        ties: which of several leading answers wins. Answers that cannot be read have no vote.
    """

    agents: Annotated[int, Range(ge=1, le=1000)] | None = 3
    rounds: Annotated[int, Range(ge=1, le=1000)] = 2
    summarise: Literal["none", "shared", "per_reader"] = "none"
    summariser: str = "Summariser"
    restate: bool = False
    stop: Literal["none", "unanimous"] = "none"
    ties: Ties = "first"

    roles = ("summariser",)
    facts = (*Panel.facts, "votes", "tied", "adopted")

    def others(self) -> tuple[str, ...]:
        """The agent that writes digests, if there are any."""
        return () if self.summarise == "none" else (self.summariser,)

    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Yields a batch a round, and those of the digests before each but the first."""
        members = self.members(case)
        if self.summarise != "none" and self.summariser in members:
            message = f"summariser {self.summariser!r} sits on the panel, whose conversations are kept"
            raise PluginError(message, hint="Give it an agent of its own.", at=("summariser",))
        moves = yield [self.ask(task, case, agent) for agent in members]
        history = [[self.read(task, case, move) for move in moves]]
        traffic, adopted = Traffic(agents), 0
        while len(history) < self.rounds and not (self.stop == "unanimous" and unanimous(history[-1])):
            before = history[-1]
            digests = yield from self._digests(task, case, before, traffic)
            turns = [self._turn(task, case, opinion, before, digests.get(opinion.agent), traffic) for opinion in before]
            moves = yield turns
            history.append([self.read(task, case, move) for move in moves])
            for turn, old, new in zip(turns, before, history[-1], strict=True):
                heard = turn.observation["leading"]
                adopted += heard is not None and candidate(task, case, heard) == new.candidate != old.candidate
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
        self, task: Task, case: Case, own: Opinion, before: Sequence[Opinion], digest: str | None, traffic: Traffic
    ) -> Turn:
        """The turn in which an agent answers again, in its own conversation."""
        others = _others(before, own)
        whole = self.summarise == "none"
        texts = [other.text for other in others] if whole else []
        heard = leading(others) if whole or digest else None
        shown = [other.peer_text for other in others] if whole else []
        observation = {
            "replies": shown,
            "digest": peer_text(digest, block=True) if digest else digest,
            "restate": self.restate,
            "leading": heard,
        }
        peer_texts = texts if whole else [digest] if digest else []
        writers = [other.agent for other in others] if whole else [self.summariser]
        for writer, text in zip(writers, peer_texts, strict=False):
            traffic.note(writer, [own.agent], text)
        return self.ask(task, case, own.agent, "debate", observation, peer_texts=peer_texts)

    def _digests(
        self, task: Task, case: Case, before: Sequence[Opinion], traffic: Traffic
    ) -> Generator[list[Turn], list[Move], Mapping[str, str | None]]:
        """Reader → digest. One agent writes them all, one after another, each in a new conversation."""
        if self.summarise == "none":
            return {}
        digests: dict[str, str | None] = {}
        for reader in before[:1] if self.summarise == "shared" else before:
            read = [o for o in (before if self.summarise == "shared" else _others(before, reader)) if o.text]
            texts, observation = [o.text for o in read], {"replies": [o.peer_text for o in read]}
            for opinion in read:
                traffic.note(opinion.agent, [self.summariser], opinion.text)
            asked = self.ask(task, case, self.summariser, "digest", observation, peer_texts=texts, fresh=True)
            [move] = yield [replace(asked, reply=FreeText(), parse_retries=0)]
            digests[reader.agent] = move.action if isinstance(move.action, str) else None
        if self.summarise == "shared":
            digests = dict.fromkeys((o.agent for o in before), digests[before[0].agent])
        return digests


def _others(opinions: Sequence[Opinion], reader: Opinion) -> list[Opinion]:
    """What a reader sees: the replies of all others that wrote one."""
    return [opinion for opinion in opinions if opinion.agent != reader.agent and opinion.text]
