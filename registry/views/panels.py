"""How panels are drawn: vote, debate, discussion, ReConcile, self-refinement, mixtures and graphs, DarkForest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from harness.api import Action, Case, Protocol, Task, plugin
from harness.engines.likelihoods import shares
from harness.extensions.panels.answer_with_confidence import split_confidence
from harness.extensions.panels.panels import Panel, candidate
from harness.extensions.panels.questions import QuestionTask
from harness.extensions.panels.traffic import EVERY_OTHER
from harness.extensions.viewer.scenes import brief, count, ring, verdict
from harness.transcripts.view_api import (
    Bars,
    Edge,
    Node,
    RecordedTurn,
    Scene,
    SentMessage,
    Sheet,
    Transcript,
    View,
)

from ..protocols.team import Team
from ._answers import Answers

_SHOWN = ("replies", "messages", "digest", "groups", "references", "others", "evidence")
"""What an agent sees of others, in its observation or its context."""
_WITHOUT_ANSWER = (
    "digest", "difficulty", "pick", "judge", "feedback", "recruit", "moderate", "vote", "approve", "rank", "points",
)  # fmt: skip
_TALK = ("talk", "moderate")
"""Turns of a round in which agents speak one after another: they share a column."""
_EDGES = 400


@plugin
class Panels(View):
    """Answers round by round in clusters of equal ones, who read whom, confidence, votes or belief, and the verdict."""

    def draws(self, task: Task, protocol: Protocol) -> bool:
        """Protocols that ask agents a question; teams have a view of their own."""
        return issubclass(protocol.needs, QuestionTask) and not isinstance(protocol, Team)

    def scenes(self, transcript: Transcript, task: Task) -> Iterator[Scene]:
        """The panel on a ring, its answers in the colors of their clusters."""
        assert transcript.case is not None
        panel = _Panel(transcript, task, transcript.case)
        question = task.question_of(transcript.case).text if isinstance(task, QuestionTask) else transcript.case_id
        yield panel.scene(brief(question, 400), ())
        rounds = transcript.rounds
        for number, turns in enumerate(rounds):
            sent_messages = panel.take(turns)
            last = number == len(rounds) - 1 and transcript.finished
            yield panel.scene(panel.caption(turns, last), sent_messages, turns, last)


class _Panel:
    """What the panel has answered so far."""

    def __init__(self, transcript: Transcript, task: Task, case: Case) -> None:
        self.transcript, self.task, self.case, self.agents = transcript, task, case, transcript.agents
        self.where = ring(self.agents)
        self.answers: dict[str, Action] = {}
        self.stated: dict[str, float | None] = {}
        self.compared = Answers(transcript, task)
        self.rows: dict[str, tuple[str, ...]] = {agent: (agent,) for agent in self.agents}
        self.names: list[str] = []
        self.evidence: tuple[Sheet, ...] = ()
        self.personas: dict[str, tuple[str, ...]] = {}
        outcome = transcript.outcome
        self.sent: Mapping[str, Any] | None = outcome.facts.get("sent") if outcome is not None else None

    def take(self, turns: Sequence[RecordedTurn]) -> tuple[SentMessage, ...]:
        """Note a round of turns; returns who read whose text."""
        writers = [agent for agent in self.agents if agent in self.answers]
        pairs = (
            (writer, turn.agent)
            for turn in turns
            if self._sees(turn)
            for writer in writers
            if writer != turn.agent and (turn.name not in _TALK or self._hears(turn.agent, writer))
        )
        sent_messages = [SentMessage(one, other, brief(self.answers[one], 80)) for one, other in islice(pairs, _EDGES)]
        cells = dict.fromkeys(self.agents, "")
        for turn in turns:
            if isinstance(persona := (turn.context or {}).get("persona"), Mapping):
                name, text = (persona.get(key) for key in ("name", "text"))
                self.personas[turn.agent] = (turn.agent, brief(name, 60), brief(text, 400))
            if isinstance(text := (turn.observation or {}).get("evidence"), str) and text:
                lines = tuple((line,) for line in text.splitlines()[:60] if line.strip())
                self.evidence = (Sheet(f"What {turn.agent} saw of the panel", ("",), lines),)
            action = turn.move.action if turn.move is not None else None
            if turn.name in _WITHOUT_ANSWER:
                cells[turn.agent] = brief(action, 30)
                continue
            if turn.name == "confidence":  # the options' probabilities, behind an answer
                believed = Panel.believed(self.task, self.case, [turn.move] if turn.move is not None else [])
                share = believed.get(turn.agent, {}).get(self.compared.key(self.answers.get(turn.agent)) or "")
                self.stated[turn.agent] = share
                cells[turn.agent] = "" if share is None else f"{share:g}"
                continue
            answer, confidence, _ = split_confidence(action)
            if (scored := shares(answer)) is not None:  # the likeliest option is the answer
                answer, confidence = candidate(self.task, self.case, answer), round(max(scored), 4)
            self.answers[turn.agent], self.stated[turn.agent] = answer, confidence
            key = self.compared.key(answer)
            mark = {True: " ✓", False: " ✗", None: ""}[self.compared.right(answer)]
            beside = "" if confidence is None else f" ({confidence:g})"
            cells[turn.agent] = f"{brief(answer, 40)}{beside}{mark}" if key is not None else "no answer"
        self._column(turns, cells)
        return tuple(sent_messages)

    def _column(self, turns: Sequence[RecordedTurn], cells: Mapping[str, str]) -> None:
        """Put a round's cells into a column of their own, or of the talk that goes on."""
        name, before = turns[0].name, self.names[-1] if self.names else ""
        if name in _TALK and before == _TALK[0] and not any(self.rows[turn.agent][-1] for turn in turns):
            self.rows |= {turn.agent: (*self.rows[turn.agent][:-1], cells[turn.agent]) for turn in turns}
            return
        self.rows = {agent: (*row, cells[agent]) for agent, row in self.rows.items()}
        self.names.append(_TALK[0] if name in _TALK else name)

    def _hears(self, reader: str, writer: str) -> bool:
        """Whether the reader has seen a text of the writer; where the episode continues, that is not known yet."""
        return self.sent is None or reader in self.sent.get(writer, ()) or EVERY_OTHER in self.sent.get(writer, ())

    def caption(self, turns: Sequence[RecordedTurn], last: bool) -> str:
        """What happened, in a sentence or two."""
        who = turns[0].agent if len(turns) == 1 else count(len(turns), "agent")
        held = len({self.compared.key(answer) for answer in self.answers.values()} - {None})
        agreed = {0: "No answer yet.", 1: "All answers so far are equal."}
        said = (
            f"{turns[0].name.capitalize().replace('_', ' ')}: {who}. {agreed.get(held, f'{held} different answers.')}"
        )
        outcome = self.transcript.outcome
        if not last or outcome is None:
            return f"{said} {verdict(self.transcript)}".strip() if last else said
        if "exit" in outcome.facts:
            answer = candidate(self.task, self.case, outcome.group) if shares(outcome.group) else outcome.group
            group = f"answers {brief(answer)}" if answer is not None else "has no answer"
            said += f" The group {group} ({outcome.facts['exit']})."
        return f"{said} {verdict(self.transcript)}"

    def scene(
        self,
        caption: str,
        sent_messages: tuple[SentMessage, ...],
        turns: Sequence[RecordedTurn] = (),
        last: bool = False,
    ) -> Scene:
        """The picture now."""
        acting, nodes = {turn.agent for turn in turns}, []
        for agent in self.agents:
            answer = self.answers.get(agent)
            key, right = self.compared.key(answer), self.compared.right(answer)
            marks = [
                *(["active"] if agent in acting else []),
                *([] if right is None else ["right" if right else "wrong"]),
            ]
            color = self.compared.colors.get(key) if key is not None else None
            x, y = self.where[agent]
            persona = self.personas.get(agent, ("", ""))[1]
            label = f"{agent}: {brief(persona, 28)}" if persona else ""
            nodes.append(Node(agent, label, x=x, y=y, color=color, text=brief(answer, 10), marks=tuple(marks)))
        sheets = (Sheet("Answers", ("", *self.names), tuple(self.rows.values())),) if self.names else ()
        facts = self.transcript.outcome.facts if last and self.transcript.outcome is not None else {}
        return Scene(
            caption, tuple(nodes), self._graph(facts), sent_messages, tuple(self._bars(facts)),
            (*sheets, *self._personas(), *self._scores(facts), *self.evidence), self._said(facts, last),
        )  # fmt: skip

    def _bars(self, facts: Any) -> Iterator[Bars]:
        if counts := self.compared.counts(self.answers.values()):
            yield Bars("Agents by answer", counts, self._top(counts))
        if stated := {agent: share for agent, share in self.stated.items() if share is not None}:
            yield Bars("Confidence", stated)
        belief: dict[str, float] = {}
        for cluster in facts.get("clusters") or ():
            answers = [self.answers.get(agent) for agent in cluster["agents"]]
            belief[brief(answers[0] if answers else "", 40)] = cluster["posterior"]
        if belief:
            yield Bars("Belief (posterior)", belief, max(belief, key=lambda name: belief[name]))
        if votes := facts.get("votes"):
            shown = {self.compared.words.get(key, brief(key, 40)): weight for key, weight in votes.items()}
            yield Bars("Votes", shown, self._top(shown))

    def _graph(self, facts: Any) -> tuple[Edge, ...]:
        """Edges of a graph of agents."""
        agents = [agent for agent in self.agents if agent in self.answers]
        edges = [edge for edge in facts.get("edges") or () if max(edge["from"], edge["to"]) < len(agents)]
        return tuple(Edge(agents[edge["from"]], agents[edge["to"]], "chosen", True) for edge in edges)

    def _scores(self, facts: Any) -> Iterator[Sheet]:
        """The matrix in which agents score one another."""
        scores = facts.get("scores") or ()
        if scores:
            columns = ("", *(f"to {i + 1}" for i in range(len(scores))))
            cells = ((f"by {i + 1}", *("" if n is None else f"{n:g}" for n in row)) for i, row in enumerate(scores))
            yield Sheet("Scores", columns, tuple(cells), True)

    def _personas(self) -> Iterator[Sheet]:
        """Who is who, as far as agents have been asked."""
        if self.personas:
            rows = tuple(self.personas[agent] for agent in self.agents if agent in self.personas)
            yield Sheet("Personas", ("", "persona", "what the agent read of it"), rows)

    def _said(self, facts: Any, last: bool) -> dict[str, str]:
        names = (
            "exit", "top", "posterior", "margin", "uncertain", "trusted", "overridden", "tied", "unanimous_at",
            "rounds", "decided_at",
        )  # fmt: skip
        grades = self.transcript.grade if last else {}
        return {
            **{
                "ended by" if name == "exit" else name: brief(facts[name], 40)
                for name in names
                if facts.get(name) not in (None, "")
            },
            **{name: f"{grades[name]:g}" for name in ("score", "lost", "gained") if grades.get(name) is not None},
        }

    def _sees(self, turn: RecordedTurn) -> bool:
        seen = {**(turn.context or {}), **(turn.observation or {})}
        return any(seen.get(name) for name in _SHOWN)

    @staticmethod
    def _top(counts: dict[str, float]) -> str:
        return max(counts, key=lambda name: counts[name])
