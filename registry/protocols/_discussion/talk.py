"""The talk of a discussion: what each agent has heard, what it holds now, and the turns that show it."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from harness.api import Action, Case, Facts, Move, Reply, Task, Turn
from harness.extensions.panels.answer_with_confidence import AnswerWithConfidence
from harness.extensions.panels.panels import Opinion, Panel, leaders, leading
from harness.extensions.panels.peers import peer_text
from harness.extensions.panels.stance import AgreeOrCounter, NamesFlaw
from harness.extensions.panels.traffic import Traffic

from .hearing import Hearing
from .personas import Persona

Style = Literal["free", "step_by_step", "critical", "short", "agree"]
"""How a turn of talk is answered."""
ALONE = ("step_by_step", "short")
"""Styles of an agent that has not heard another one yet."""
Batch = Generator[list[Turn], list[Move], None]


class Message(NamedTuple):
    """What an agent said in a round. `adopted` is the answer to which it agreed, if it did no more than that."""

    round: int
    opinion: Opinion
    text: str
    adopted: str | None


@dataclass(slots=True)
class _Inbox:
    """What an agent has heard.

    `unread`: what none of its turns has shown; `newest`: what its last turn was the first to show; `recent`: with its
    own words, the rounds that a new conversation shows; `latest`: the last answer of another agent; `own`: its last
    words.
    """

    unread: list[Message] = field(default_factory=list)
    newest: list[Message] = field(default_factory=list)
    recent: list[Message] = field(default_factory=list)
    latest: Message | None = None
    own: Message | None = None
    opened: bool = False


class Talk:
    """What was said so far. The work of a turn is proportional to the messages that it shows.

    Args:
        panel: the protocol, which makes turns and reads moves.
        hears: who hears whom.
        visible: how many rounds a turn shows, in a new conversation; None: every message once, in one conversation.
        labels: agent → the name by which others know it; empty: speakers have no names.
        personas: agent → its persona.
        agents: all agents of the episode.
        chair: an agent beside the panel that hears all of it.

    Attributes:
        current: agent → what it holds now, if it has spoken; who spoke last stands last.
        traffic: who read whose texts.
        changes: the fact of that name.
        speeches: the number of contributions.
        idle: whether all have done nothing so far, as `harness plan` lets them.
        more: agent → what it knows of itself beside the task.
    """

    def __init__(
        self,
        panel: Panel,
        task: Task,
        case: Case,
        hears: Hearing,
        visible: int | None,
        labels: Mapping[str, str],
        personas: Mapping[str, Persona],
        agents: Sequence[str],
        chair: str | None,
    ) -> None:
        self._panel, self._task, self._case = panel, task, case
        self._hears, self._visible, self._labels = hears, visible, labels
        self._inboxes = {agent: _Inbox() for agent in (*hears, *([chair] if chair is not None else ()))}
        self._listeners: dict[str, list[str]] = {agent: [] if chair is None else [chair] for agent in hears}
        for listener, speakers in hears.items():
            for speaker in speakers:
                self._listeners[speaker].append(listener)
        self.more = {agent: _more(labels.get(agent), personas.get(agent)) for agent in hears}
        self.current: dict[str, Opinion] = {}
        self.traffic = Traffic(agents)
        self.changes: list[Facts] = []
        self.speeches = 0
        self.idle = True

    @property
    def opinions(self) -> list[Opinion]:
        """What each member holds now, in the panel's order."""
        return [self.current.get(agent) or Opinion(agent, None, None) for agent in self._hears]

    @property
    def candidates(self) -> list[Opinion]:
        """The opinions to decide on. Idle agents differ, so that their ballots count in plans."""
        return [replace(one, candidate=one.agent) for one in self.opinions] if self.idle else self.opinions

    @property
    def last_word(self) -> Action:
        """The current answer of the agent that spoke last among those that have one; None without answers."""
        return next((one.answer for one in reversed(self.current.values()) if one.answer is not None), None)

    def adopted(self, agent: str) -> str | None:
        """The answer to which an agent's last words agree, if they do no more than that."""
        own = self._inboxes[agent].own
        return None if own is None else own.adopted

    def speak(self, number: int, agents: Sequence[str], style: Style, proposer: str | None = None) -> Batch:
        """Yield one batch: these agents speak at once in round `number`, each after what it has heard.

        The proposer's last words are on the table for those that hear it, if they have an answer.
        """
        turns = [self._turn(number, agent, style, proposer) for agent in agents]
        moves = yield turns
        before = dict(self.current)
        for turn, move in zip(turns, moves, strict=True):
            self._take(number, turn, move, before)

    def choose(self, number: int, chair: str, reply: Reply) -> Generator[list[Turn], list[Move], Action]:
        """Yield one turn, `moderate`: the chair reads what was said, with names, and chooses. Returns its action."""
        inbox = self._inboxes[chair]
        messages = self._listen(number, inbox)
        observation = {
            "messages": _shown(messages, chair, {agent: agent for agent in self._hears}),
            "plain": False,
            "restated": self._visible is not None or not inbox.opened,
            "dated": self._dated,
            "speakers": [{"name": agent, "persona": self.more[agent].get("persona")} for agent in self._hears],
            "reminded": False,
        }
        turn = self._ask(chair, "moderate", observation, inbox, {})
        [move] = yield [replace(turn, reply=reply)]
        return move.action

    # --------------------------------------------------------------------------------------- turns

    def _turn(self, number: int, agent: str, style: Style, proposer: str | None) -> Turn:
        """The turn in which an agent speaks: alone, or after what it has heard."""
        inbox, more = self._inboxes[agent], self.more[agent]
        messages = self._listen(number, inbox)
        if not messages and (self._visible is not None or not inbox.opened):
            return self._ask(agent, "answer", {"style": style} if style in ALONE else {}, inbox, more)
        shown = _shown(messages, agent, self._labels)
        own = sum(message["own"] for message in shown)
        adopted = any(message.adopted is not None for message in messages)
        proposal = self._on_table(agent, proposer) if style == "agree" else None
        proposal = proposal if self._is_visible(number, proposal) else None
        held = [self.current[speaker] for speaker in self._hears[agent] if speaker in self.current]
        others = len(shown) > own
        observation = {
            "messages": shown,
            "others": others,
            "own": own > 0,
            "plain": not (own or adopted or self._labels or self._dated),
            "restated": self._visible is not None or not inbox.opened,
            "dated": self._dated,
            "answered": inbox.own is not None or (inbox.opened and self._visible is None),
            "style": "free" if style == "critical" and not others else style,
            "proposal": None if proposal is None else _quoted(proposal.opinion.answer),
            "leading": leading(held),
        }
        turn = self._ask(agent, "talk", observation, inbox, more)
        form = turn.reply
        assert isinstance(form, AnswerWithConfidence)
        if proposal is not None:
            form = replace(form, inner=AgreeOrCounter(form.inner, proposal.opinion.answer))
        elif observation["style"] == "critical":
            form = replace(form, inner=NamesFlaw(form.inner))
        return turn if form is turn.reply else replace(turn, reply=form)

    def _on_table(self, agent: str, proposer: str | None) -> Message | None:
        """The proposer's last words, if the agent hears it and they have an answer; else the last answer it heard."""
        own = self._inboxes[proposer].own if proposer in self._hears[agent] else None
        return own if own is not None and own.opinion.answer is not None else self._inboxes[agent].latest

    def _ask(self, agent: str, name: str, observation: Facts, inbox: _Inbox, more: Facts) -> Turn:
        for message in inbox.newest:
            self.traffic.note(message.opinion.agent, [agent], message.opinion.text)
        fresh, inbox.opened = inbox.opened and self._visible is not None, True
        texts = [message.opinion.text for message in inbox.newest]
        return self._panel.ask(
            self._task, self._case, agent, name, observation, peer_texts=texts, fresh=fresh, more=more
        )

    def _listen(self, number: int, inbox: _Inbox) -> Sequence[Message]:
        """The messages that the next turn shows, oldest first; they count as read."""
        if self._visible is None:
            inbox.newest, inbox.unread = inbox.unread, []
            return inbox.newest
        inbox.newest, inbox.unread = [m for m in inbox.unread if self._is_visible(number, m)], []
        inbox.recent = [m for m in inbox.recent if self._is_visible(number, m)]
        forgotten = inbox.own is not None and not self._is_visible(number, inbox.own)
        return [inbox.own, *inbox.recent] if forgotten and inbox.own is not None else inbox.recent

    def _is_visible(self, number: int, message: Message | None) -> bool:
        if message is None:
            return False
        return self._visible is None or message.round >= number - self._visible

    @property
    def _dated(self) -> bool:
        return self._visible is not None and self._visible > 1

    # --------------------------------------------------------------------------------------- moves

    def _take(self, number: int, turn: Turn, move: Move, held: Mapping[str, Opinion]) -> None:
        """Note a contribution, and bring it to all that hear it. Without a text there is nothing to hear.

        `held`: what each member held when the turn began.
        """
        agent, opinion = move.agent, self._panel.read(self._task, self._case, move)
        inbox, before = self._inboxes[agent], self.current.get(agent)
        if before is not None and before.candidate != opinion.candidate:
            heard = (m.opinion.agent for m in inbox.newest if m.opinion.candidate == opinion.candidate is not None)
            self.changes.append(
                {
                    "round": number,
                    "agent": agent,
                    "before": before.answer,
                    "after": opinion.answer,
                    "heard": list(dict.fromkeys(heard)),
                    "joins": opinion.candidate in leaders([o for o in held.values() if o.agent != agent]),
                }
            )
        self.current.pop(agent, None)
        self.current[agent] = opinion
        self.speeches += 1
        self.idle = self.idle and move.action is None and move.error is None
        if not opinion.text:
            return
        reply = turn.reply
        assert isinstance(reply, AnswerWithConfidence)
        agrees = isinstance(reply.inner, AgreeOrCounter) and reply.inner.agrees(reply.statement(opinion.text))
        message = Message(number, opinion, opinion.peer_text, _quoted(opinion.answer) if agrees else None)
        inbox.own = message
        if self._visible is not None:
            inbox.recent.append(message)
        for listener in self._listeners[agent]:
            other = self._inboxes[listener]
            other.unread.append(message)
            if self._visible is not None:
                other.recent.append(message)
            if opinion.answer is not None:
                other.latest = message


def _shown(messages: Iterable[Message], reader: str, labels: Mapping[str, str]) -> list[Facts]:
    """Messages as templates see them."""
    return [
        {
            "number": place,
            "text": text,
            "label": labels.get(opinion.agent),
            "round": number,
            "own": opinion.agent == reader,
            "adopted": adopted,
        }
        for place, (number, opinion, text, adopted) in enumerate(messages, 1)
    ]


def _more(label: str | None, persona: Persona | None) -> dict[str, Any]:
    """What an agent knows of itself beside the task."""
    seat = {} if label is None else {"seat": label}
    return seat if persona is None else {**seat, "persona": persona}


def in_words(answer: Action) -> str:
    """An answer as an agent wrote it."""
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def _quoted(answer: Action) -> str:
    """An answer as other agents see it: within a line, or on lines of its own if it has several of them."""
    words = in_words(answer)
    return peer_text(words, block=len(words.splitlines()) > 1)
