"""Discussion: agents answer, hear one another as the spec says, answer again, and decide as the spec says."""

from __future__ import annotations

import random
from collections.abc import Generator, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal

from harness.api import Case, Move, Play, PluginError, Range, Task, Turn, plugin
from harness.extensions.panels.answer_with_confidence import Style as Stated
from harness.extensions.panels.panels import Panel, Ties

from ._discussion.decisions import Decision, decide, is_consensus, settled
from ._discussion.hearing import Hears, check, hearing
from ._discussion.order import Order, play_round
from ._discussion.personas import Persona, Personas, Roster, drawn, listed, proposed
from ._discussion.talk import Style, Talk


@plugin
class Discussion(Panel):
    """Agents draft answers, talk in rounds, and decide; every choice is a parameter.

    A contribution always has the agent's current answer. Turns: `answer` (an agent that has heard no other one),
    `talk` (observation: `messages`, each with `number`, `text`, `label`, `round`, `own`, `adopted`; whether there are
    `others` among them and the agent's `own`; `plain`: whether they are texts alone; `restated`, `dated`, `answered`;
    `style`, `proposal`, `leading`), `moderate`, `recruit`, and those of the decision.

    Facts beside those of every panel: `rounds` (of talk), `decided_at` (the round after which the decision stood, 0 is
    that of the drafts; None without an answer), `changes` (round, agent, before, after, `heard`: the agents whose new
    messages had the answer `after`, and `joins`: whether `after` was the most frequent answer of the other members, or
    one of several), `personas` (agent → name and text), `votes`, `tied`, `speeches` (the number of contributions).
    `history` begins with the drafts, without them with the first round.

    Attributes:
        drafts: who answers alone before the talk: "all", the first agent ("one"), or "none".
        topology: who hears whom. "all"; "ring": the two neighbors in the panel's order; "star" or "report": the first
            agent hears all others, and they hear it alone; "chain": each hears the one before it; "relay": so does the
            first, which hears the last; "tree": a binary tree from the first agent, parents and children; "pairs": the
            first and the second, the third and the fourth, …; pairs [[a, b], …] that hear each other; listener → its
            speakers; or {random: GENERATOR, parameters: {…}}: every episode draws a graph of networkx, and neighbors
            hear each other.
        visible: "all": each agent keeps one conversation, in which every message stands once; a number k: every turn
            is a new conversation with the messages of the last k rounds, the agent's own among them.
        identity: whether messages are "anonymous" or "named".
        order: "simultaneous"; one after another in the panel's order ("round_robin") or in a "random" one that each
            round draws; a "moderator" chooses each next speaker; or the first agent proposes and the others agree or
            amend ("proposer"). A round has as many contributions as the panel has agents.
        personas: "none"; "experts": one call of the recruiter proposes them for the question; "traits": the Big Five,
            high or low by lot; or a list of texts and {name, text} for the first agents of the panel.
        style: how a turn of talk is answered: "free", "step_by_step", "critical" (it must name a flaw), "short", or
            "agree": AGREE with the last answer that it heard, or DISAGREE and another one.
        max_rounds: the largest number of rounds of talk, after the drafts.
        decision: how the group comes to its answer. By consensus, as soon as so many of all members hold the same
            answer after a round: "unanimity", "majority" (more than half), "supermajority" (two thirds), "hybrid"
            (unanimity in the first rounds, then a majority). After the talk without further turns: "plurality" (the
            most frequent answer), "last_word" (that of the last speaker that has one). By ballots on the members'
            answers, a turn each: "vote" (one choice), "approval" (any number), "borda" and "instant_runoff" (rankings),
            "points" (10 to give away). By a "judge", who reads what each member wrote last and writes the answer.
        otherwise: what counts without consensus, or without an answer of the judge: the "plurality", or "none".
        unanimous_rounds: the rounds of talk after which "hybrid" demands unanimity.
        votes: whether members fill ballots at once ("secret"), or one after another and see those before ("public").
        ties: which of several leading answers wins: the "first" in the panel's order, a "random" one, or "none";
            "again": they talk another round and decide once more, while max_rounds allows it, then the first; also
            where no answer leads.
        vote_after: the round after which decisions without consensus are made; None: after max_rounds.
        moderator, recruiter, judge: the names of these agents, which are not on the panel.
    """

    agents: Annotated[int, Range(ge=1, le=1000)] | None = 3
    confidence: Stated = "none"
    drafts: Literal["all", "one", "none"] = "all"
    topology: Hears = "all"
    visible: Literal["all"] | Annotated[int, Range(ge=1, le=1000)] = "all"
    identity: Literal["anonymous", "named"] = "anonymous"
    order: Order = "simultaneous"
    personas: Personas = "none"
    style: Style = "free"
    decision: Decision = "plurality"
    otherwise: Literal["plurality", "none"] = "plurality"
    unanimous_rounds: Annotated[int, Range(ge=0, le=1000)] = 2
    votes: Literal["secret", "public"] = "secret"
    ties: Ties | Literal["again"] = "first"
    max_rounds: Annotated[int, Range(ge=0, le=1000)] = 3
    vote_after: Annotated[int, Range(ge=0, le=1000)] | None = None
    moderator: str = "Moderator"
    recruiter: str = "Recruiter"
    judge: str = "Judge"

    roles = ("moderator", "recruiter", "judge")
    facts = (*Panel.facts, "rounds", "decided_at", "changes", "personas", "votes", "tied", "speeches")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.drafts == "none" and self._due == 0:
            hint = "Let them talk for a round, or set drafts: all for a plain vote."
            at = "max_rounds" if self.vote_after is None else "vote_after"
            raise PluginError("no drafts and no rounds: no agent is asked", hint=hint, at=(at,))
        if self.vote_after is not None and self.vote_after > self.max_rounds:
            message = f"vote_after: {self.vote_after} is more than max_rounds: {self.max_rounds}"
            raise PluginError(message, hint="No decision is made after more rounds than there are.", at=("vote_after",))
        if self.vote_after is not None and is_consensus(self.decision):
            hint = "Leave vote_after out: a consensus is looked for after every round."
            raise PluginError(f"vote_after does not go with decision: {self.decision}", hint=hint, at=("vote_after",))
        if self.ties == "again" and self._due == self.max_rounds:
            hint = "Set vote_after, the round of the first decision, to less than max_rounds."
            if is_consensus(self.decision):
                hint = "Leave it out: without a consensus they talk again anyway, while max_rounds allows it."
            raise PluginError("ties: again leaves no round to talk again in", hint=hint, at=("ties",))

    def shape(self, task: Task, case: Case) -> Hashable:
        """The panel: where no agent answers, no question changes who speaks when."""
        return self.members(case)

    def others(self) -> tuple[str, ...]:
        """The agents beside the panel that its choices need."""
        needed = {"moderator": self.order == "moderator", "recruiter": self.personas == "experts"}
        needed["judge"] = self.decision == "judge"
        return tuple(getattr(self, role) for role, is_needed in needed.items() if is_needed)

    def members(self, case: Case) -> tuple[str, ...]:
        """The panel. Raises `PluginError` if a parameter does not fit it."""
        members = super().members(case)
        for role in self.roles:
            name = getattr(self, role)
            if name in members and name in self.others():
                hint = f"Give the {role} a name of its own."
                raise PluginError(f"{role} {name!r} is a member of the panel", hint=hint, at=(role,))
        check(self.topology, members)
        if isinstance(self.personas, list):
            listed(self.personas, members)
        return members

    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Yield the drafts, the rounds, and the turns of the decision."""
        members = self.members(case)
        personas = yield from self._personas(task, case, members, rng)
        chair = self.moderator if self.order == "moderator" else None
        visible = None if self.visible == "all" else self.visible
        labels = self._labels(members, personas)
        talk = Talk(self, task, case, hearing(self.topology, members, rng), visible, labels, personas, agents, chair)
        history, number, verdict = [], 0, None
        if self.drafts != "none":
            yield from talk.speak(0, members if self.drafts == "all" else members[:1], self.style)
            history.append(talk.opinions)
            verdict = settled(self, 0, talk.opinions)
        due = self._due
        while verdict is None:
            if number < due:
                number += 1
                yield from play_round(self.order, talk, number, members, self.style, self.moderator, rng)
                history.append(talk.opinions)
                verdict = settled(self, number, talk.opinions)
                continue
            verdict = yield from decide(self, self, task, case, talk, rng)
            undecided = verdict.tied or verdict.answer is None
            if undecided and self.ties == "again" and number < self.max_rounds:
                due, verdict = number + 1, None
        return self.outcome(
            history,
            verdict.answer,
            exit=verdict.exit,
            proposal=verdict.proposal,
            peer_characters=talk.traffic.characters,
            sent=talk.traffic.sent,
            rounds=number,
            decided_at=None if verdict.answer is None else number,
            changes=talk.changes,
            personas=personas,
            votes=verdict.votes,
            tied=verdict.tied,
            speeches=talk.speeches,
        )

    @property
    def _due(self) -> int:
        """The round after which there is a decision, with or without consensus."""
        return self.max_rounds if self.vote_after is None else self.vote_after

    def _personas(
        self, task: Task, case: Case, members: Sequence[str], rng: random.Random
    ) -> Generator[list[Turn], list[Move], Mapping[str, Persona]]:
        """Return agent → persona. One call of the recruiter proposes experts; where it fails, there are none."""
        if isinstance(self.personas, list):
            return listed(self.personas, members)
        if self.personas == "traits":
            return drawn(members, rng)
        if self.personas == "none":
            return {}
        observation = {"count": len(members), "reminded": False}
        turn = self.ask(task, case, self.recruiter, "recruit", observation)
        [move] = yield [replace(turn, reply=Roster(len(members)))]
        return proposed(move.action, members)

    def _labels(self, members: Sequence[str], personas: Mapping[str, Persona]) -> dict[str, str]:
        """Agent → the name by which others know it, where speakers are named."""
        if self.identity == "anonymous":
            return {}
        names = {agent: personas[agent]["name"] for agent in members if agent in personas}
        return {agent: f"{agent} ({names[agent]})" if agent in names else agent for agent in members}
