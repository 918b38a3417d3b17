"""How teams are drawn: seats in the order in which they first act, messages along edges, and what each seat wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.api import Action, Facts, Protocol, Task, plugin
from harness.extensions.panels.answer_with_confidence import split_confidence
from harness.extensions.panels.questions import QuestionTask
from harness.extensions.viewer.scenes import Positions, agents_at, brief, count, ring, verdict
from harness.transcripts.view_api import (
    Bars,
    Edge,
    RecordedTurn,
    Scene,
    SentMessage,
    Sheet,
    Transcript,
    View,
)

from ..protocols.team import Team
from ._answers import Answers

_COLUMNS = 10
"""The most levels that are drawn as columns; seats of a longer team stand on a ring."""
_ROWS = 16
_MAX_MESSAGES = 400
_MAX_LAST_LINE_CHARS = 24
"""Characters of a last line, such as a signal, that stands beside its seat."""
_VERBS = {"work": "writes", "deliver": "answers", "rate": "rates"}
_PLURALS = {"work": "write", "deliver": "answer", "rate": "rate"}


@plugin
class Teams(View):
    """Seats level by level, who reads whose message, answers in colors, and the last message of each seat."""

    def draws(self, task: Task, protocol: Protocol) -> bool:
        """Teams of roles."""
        return isinstance(protocol, Team)

    def scenes(self, transcript: Transcript, task: Task) -> Iterator[Scene]:
        """The team, and one scene for each batch of turns."""
        assert transcript.case is not None
        team = _Team(transcript, task)
        question = task.question_of(transcript.case).text if isinstance(task, QuestionTask) else transcript.case_id
        yield team.scene(brief(question, 400), (), ())
        rounds = transcript.rounds
        for number, turns in enumerate(rounds):
            sent_messages = [message for turn in turns for message in _read(turn)]
            team.take(turns)
            last = number == len(rounds) - 1 and transcript.finished
            yield team.scene(
                team.caption(turns, len(sent_messages), last), turns, tuple(sent_messages[:_MAX_MESSAGES]), last
            )


class _Team:
    """What the seats have written so far."""

    def __init__(self, transcript: Transcript, task: Task) -> None:
        self.transcript, self.task = transcript, task
        self.where = _places(transcript)
        self.edges = _edges(transcript)
        self.written: dict[str, str] = {}
        self.answers: dict[str, Action] = {}
        self.texts: dict[str, str] = {}
        self.compared = Answers(transcript, task)

    def take(self, turns: Sequence[RecordedTurn]) -> None:
        """Note a batch of turns."""
        for turn in turns:
            move = turn.move
            if move is None or turn.name == "rate":
                continue
            said = move.text if move.text is not None else brief(move.action)
            if move.error_kind not in (None, "parse"):
                said = f"({move.error_kind})"
            self.written[turn.agent] = said
            if turn.name == "deliver":
                answer = split_confidence(move.action)[0]
                if self.compared.key(answer) is not None:
                    self.answers[turn.agent], self.texts[turn.agent] = answer, brief(answer)
            elif lines := said.strip().splitlines():
                self.texts[turn.agent] = lines[-1] if len(lines[-1]) <= _MAX_LAST_LINE_CHARS else ""

    def caption(self, turns: Sequence[RecordedTurn], read: int, last: bool) -> str:
        """What happened, in a sentence or two."""
        name = turns[0].name
        alone = len(turns) == 1
        who = turns[0].agent if alone else count(len(turns), "seat")
        said = f"{who} {(_VERBS if alone else _PLURALS).get(name, name)}"
        said += f" after {count(read, 'message')}." if read else "."
        outcome = self.transcript.outcome
        if last and outcome is not None:
            group = f"answers {brief(outcome.group)}" if outcome.group is not None else "has no answer"
            ended = outcome.facts.get("exit", "rounds")
            said += f" The team {group}." if ended == "rounds" else f" The team {group} ({ended})."
        return f"{said} {verdict(self.transcript)}".strip() if last else said

    def scene(
        self, caption: str, turns: Sequence[RecordedTurn], sent_messages: tuple[SentMessage, ...], last: bool = False
    ) -> Scene:
        """The picture now."""
        outcome = self.transcript.outcome
        facts = outcome.facts if last and outcome is not None else {}
        pruned = facts.get("pruned") or {}
        marks: dict[str, list[str]] = {agent: [] for agent in self.where}
        for turn in turns:
            marks[turn.agent].append("active")
        for agent, answer in self.answers.items():
            if (right := self.compared.right(answer)) is not None:
                marks[agent].append("right" if right else "wrong")
        for agent in pruned.get("ratings", {}):
            if agent not in pruned["kept"]:
                marks[agent].append("left out")
        colors = {agent: self.compared.color(answer) for agent, answer in self.answers.items()}
        rows = tuple((agent, brief(text, 240)) for agent, text in self.written.items())
        sheets = (Sheet("Last messages", ("", "wrote"), rows),) if rows else ()
        shown = {
            name: brief(facts[name], 40) for name in ("exit", "rounds", "tied") if facts.get(name) not in (None, "")
        }
        nodes = agents_at(self.where, texts=self.texts, marks=marks, colors=colors)
        return Scene(caption, nodes, self.edges, sent_messages, tuple(self._bars(facts)), sheets, shown)

    def _bars(self, facts: Facts) -> Iterator[Bars]:
        if counts := self.compared.counts(self.answers.values()):
            yield Bars("Seats by answer", counts, max(counts, key=lambda name: counts[name]))
        if ratings := (facts.get("pruned") or {}).get("ratings"):
            yield Bars("Mean rating", {agent: rating or 0.0 for agent, rating in ratings.items()})


def _read(turn: RecordedTurn) -> Iterator[SentMessage]:
    """The messages that a turn shows."""
    messages = (turn.observation or {}).get("messages")
    for message in messages if isinstance(messages, list) else ():
        yield SentMessage(message["name"], turn.agent, brief(message["text"], 280))


def _edges(transcript: Transcript) -> tuple[Edge, ...]:
    """Who has read whom, in the whole episode."""
    pairs = {(message.sender, message.receiver) for turn in transcript.turns for message in _read(turn)}
    return tuple(Edge(one, other, directed=True) for one, other in sorted(pairs))


def _places(transcript: Transcript) -> Positions:
    """Seats in columns, from left to right in the order in which they first act."""
    first: dict[str, int] = {}
    for turn in transcript.turns:
        first.setdefault(turn.agent, turn.round)
    columns = [[agent for agent in first if first[agent] == number] for number in sorted({*first.values()})]
    rest = [agent for agent in transcript.agents if agent not in first]
    columns += [rest] if rest else []
    if not 1 < len(columns) <= _COLUMNS or max(map(len, columns)) > _ROWS:
        return ring(transcript.agents)
    return {
        agent: (0.1 + 0.8 * x / (len(columns) - 1), (y + 1) / (len(column) + 1))
        for x, column in enumerate(columns)
        for y, agent in enumerate(column)
    }
