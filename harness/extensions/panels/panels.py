"""Panels: protocols in which several agents answer one question. Turns, votes, and recorded facts."""

from __future__ import annotations

import functools
import json
import math
import random
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

from harness.api import Action, Case, Facts, Move, Outcome, Parsed, Protocol, Range, Task, Turn
from harness.api.errors import PluginError
from harness.extensions.panels.peers import peer_text
from harness.extensions.panels.questions import QuestionTask
from harness.replies import WrappedReply, act_of, says_nothing, without_thinking
from harness.replies.parse_guard import guarded, read

from .answer_with_confidence import AnswerWithConfidence, Style, split_confidence

UNREAD = "nothing is written where log-likelihoods count, so no reply is asked for again; leave parse_retries out"
"""Why `parse_retries` does not fit a task that scores options."""
Confidence = Style | Literal["likelihood"]
"""How a panel knows how sure its members are: how they state it, or by the log-likelihoods of the options."""
Believed = Mapping[str, Mapping[str, float]]
"""Agent → candidate → its probability among the options of the question."""

FACTS: tuple[str, ...] = ("history", "agreement", "unanimous_at", "exit", "proposal", "peer_characters", "sent")
"""The facts of every panel protocol.

`history`: rounds of answers, each in the panel's order, None if there was none that could be read.
`agreement`: for each round, which share of the pairs of members gave equal answers; None for a panel of one.
`unanimous_at`: the first round, from 0, in which all gave the same answer; None if there was none.
`exit`: how the group came to its answer, or why it has none, in a word or two.
`proposal`: the answer of a coordinator or aggregator, before any guardrail; None if there was none.
`peer_characters`: characters of other agents' texts that agents saw.
`sent`: writer → reader → [texts, characters], each text once a reader (`panels.traffic`); characters are
None for a text composed of several agents' replies.
"""


@dataclass(frozen=True, slots=True)
class Opinion:
    """An agent's answer (DarkForest, Section 3.2: the observation o_i = (a_i, z_i, c_i, v_i, q_i)).

    Attributes:
        agent: the agent.
        answer: a_i; None if the reply was unreadable (v_i = 0).
        candidate: z_i, one text for all equal answers; None without an answer.
        confidence: c_i, from 0 to 1; None if none was stated.
        malformed: q_i, whether the reply was readable but not well-formed.
        text: the reply as written, without its thinking, which other agents never see; for a policy, which writes none,
            its answer; "" if there is neither.
    """

    agent: str
    answer: Action
    candidate: str | None
    confidence: float | None = None
    malformed: bool = False
    text: str = ""

    @property
    def peer_text(self) -> str:
        """The reply as other agents see it, on lines of its own."""
        return peer_text(self.text, block=True)


@dataclass(kw_only=True)
class Panel(Protocol):
    """A protocol in which several agents answer one question.

    Attributes:
        agents: the size of the panel (Agent-0, Agent-1, …), for cases of one agent; None: the agents of the case.
        confidence: whether members state a confidence: not at all, in a last line ("line"), or in one JSON object with
            reasoning, answer and confidence ("json"). "likelihood", in panels that weigh confidence: nothing is stated;
            the confidence is the probability of the member's answer among the options of the question (`likelihoods`).
        parse_retries: how often an unreadable reply is asked for again; a critique, a digest or a piece of work is
            unreadable if nothing is left of it without its thinking.

    Class attributes:
        roles: the parameters that name an agent of `others`; none of them may be empty.
        reads_text: whether agents read what others answer.
    """

    agents: Annotated[int, Range(ge=1, le=1000)] | None = None
    confidence: Confidence = "none"
    parse_retries: Annotated[int, Range(ge=0)] = 0

    needs = QuestionTask
    facts = FACTS
    roles: ClassVar[tuple[str, ...]] = ()
    reads_text: ClassVar[bool] = True
    longer_in_dispute = True

    def __post_init__(self) -> None:
        for role in self.roles:
            name = getattr(self, role)
            if name is not None and not name.strip():
                hint = f"Name one, or leave {role} out."
                raise PluginError(f"{role} is empty: no agent has that name", hint=hint, at=(role,))

    def misfit(self, task: Task) -> str | None:
        """Panels need answers in text if members read or state them, and options if log-likelihoods give confidence."""
        if isinstance(task, QuestionTask) and not task.writes_text:
            if self.reads_text:
                return "its agents read what others answer, and this task scores options: nothing is written"
            if self.confidence != "none":
                return f"no one states a confidence ({self.confidence}) where nothing is written; leave confidence out"
            if self.parse_retries:
                return UNREAD
        if self.confidence in ("line", "json") and isinstance(task, QuestionTask) and task.beside:
            return "it says beside answers what its `reply:` says: `confidence: {number: [0, 1]}` there, none here"
        if self.confidence == "likelihood" and not self._options(task, task.example()):
            return "confidence: likelihood needs questions with options; answers of this task are free. Use line"
        return None

    def others(self) -> tuple[str, ...]:
        """The names of agents that the protocol needs besides the panel. Members of the panel are not added."""
        return ()

    def members(self, case: Case) -> tuple[str, ...]:
        """The panel, in order."""
        if self.agents is None:
            return case.agents
        if len(case.agents) > 1:
            message = f"agents: {self.agents}, but {case.id!r} has {len(case.agents)} agents of its own"
            raise PluginError(
                message, hint="Leave agents out, or use a task with one agent per question.", at=("agents",)
            )
        return tuple(f"Agent-{i}" for i in range(self.agents))

    def possible_agents(self, case: Case) -> tuple[str, ...]:
        """The panel and the other agents that the protocol needs."""
        return tuple(dict.fromkeys((*self.members(case), *self.others())))

    def ask(
        self,
        task: Task,
        case: Case,
        agent: str,
        name: str = "answer",
        observation: Facts | None = None,
        *,
        peer_texts: Sequence[str] = (),
        fresh: bool = False,
        more: Facts | None = None,
    ) -> Turn:
        """A turn in which an agent answers the question. `more` joins the context, which starts a conversation."""
        own = agent if agent in case.agents else case.agents[0]
        style: Style = "none" if self.confidence == "likelihood" else self.confidence
        context = {**task.context(case, own), "confidence": style, **(more or {})}
        reply = AnswerWithConfidence(ballot(task, case, own), style)
        return Turn(agent, name, observation or {}, reply, context, self.parse_retries, fresh, tuple(peer_texts))

    def read(self, task: Task, case: Case, move: Move) -> Opinion:
        """Read the move of such a turn."""
        answer, confidence, malformed = split_confidence(move.action)
        key = candidate(task, case, answer)
        if key is None:
            return Opinion(move.agent, None, None, text=said_in(move.text or ""))
        text = said_in(move.text) if move.text is not None else _in_words(answer, confidence)
        return Opinion(move.agent, answer, key, confidence, malformed, text)

    def likelihoods(self, task: Task, case: Case, agents: Iterable[str]) -> Generator[list[Turn], list[Move], Believed]:
        """Return how likely the options of the question are to agents; {} if there is nothing to ask.

        With `confidence: likelihood` this yields one batch: turns `confidence`, each in a new conversation, with the
        answer's context and the observation `options`. The agent writes nothing. The log-likelihoods of the options'
        letters (or labels) as its whole reply, made to sum to 1, are their probabilities. An agent whose turn fails is
        missing in the result.
        """
        options = self._options(task, case) if self.confidence == "likelihood" else ()
        if not options:
            return {}
        from harness.engines.likelihoods import Continuation, Likelihoods  # what only such panels need

        reply = Likelihoods(tuple(Continuation(str(option)) for option in options))
        seen = {"options": [str(option) for option in options]}
        turns = [self.ask(task, case, agent, "confidence", seen, fresh=True) for agent in agents]
        moves = yield [replace(turn, reply=reply, parse_retries=0) for turn in turns]
        return self.believed(task, case, moves)

    @staticmethod
    def believed(task: Task, case: Case, moves: Iterable[Move]) -> Believed:
        """Read the moves of such turns, rounded to four decimals."""
        from harness.engines.likelihoods import shares

        keys = [candidate(task, case, option) for option in Panel._options(task, case)]
        found = {move.agent: shares(move.action) for move in moves}
        return {
            agent: {key: round(share, 4) for key, share in zip(keys, each, strict=True) if key is not None}
            for agent, each in found.items()
            if each is not None and len(each) == len(keys)
        }

    @staticmethod
    def _options(task: Task, case: Case) -> Sequence[Action]:
        return task.reply(case, case.agents[0]).options or ()

    @staticmethod
    def sure(opinions: Iterable[Opinion], believed: Believed) -> list[Opinion]:
        """The opinions, with the probabilities of their answers as confidence where there are any."""
        return [
            replace(o, confidence=believed[o.agent].get(o.candidate)) if o.candidate and o.agent in believed else o
            for o in opinions
        ]

    def candidate(self, task: Task, case: Case, text: str) -> str | None:
        """Return the answer that the task's reply form reads from a text, as `Opinion.candidate`; None without one."""
        return candidate(task, case, read(ballot(task, case, case.agents[0]), text).action)

    @staticmethod
    def unanimous(opinions: Sequence[Opinion]) -> bool:
        """Whether all gave an answer, and the same one."""
        return len({opinion.candidate for opinion in opinions}) == 1 and opinions[0].candidate is not None

    def outcome(
        self,
        history: Sequence[Sequence[Opinion]],
        group: Action,
        *,
        exit: str,
        peer_characters: int = 0,
        sent: Mapping[str, Any] | None = None,
        proposal: Action = None,
        **facts: Any,
    ) -> Outcome:
        """The outcome of an episode. The agents' own answers are those of the last round.

        `sent` is `Traffic.sent`. A panel whose members see nothing of one another has none.
        """
        common = {
            "history": [[opinion.answer for opinion in opinions] for opinions in history],
            "agreement": [agreement(opinions) for opinions in history],
            "unanimous_at": next((i for i, opinions in enumerate(history) if self.unanimous(opinions)), None),
            "exit": exit,
            "proposal": proposal,
            "peer_characters": peer_characters,
            "sent": {} if sent is None else sent,
        }
        last = history[-1] if history else ()
        return Outcome({opinion.agent: opinion.answer for opinion in last}, group, {**common, **facts})


def said_in(text: str) -> str:
    """A reply as other agents may see it: without its thinking, in any dialect; as it was written if it has none."""
    said = without_thinking(text)
    return text if said == text else said.strip()


def agreement(opinions: Sequence[Opinion]) -> float | None:
    """Return the share of pairs with equal answers, rounded to six decimals; None if there is no pair.

    A missing answer equals no answer, not even another missing one.
    """
    pairs = math.comb(len(opinions), 2)
    counts = Counter(opinion.candidate for opinion in opinions if opinion.candidate is not None)
    return round(sum(math.comb(count, 2) for count in counts.values()) / pairs, 6) if pairs else None


def leading(opinions: Sequence[Opinion]) -> Action:
    """Return the most frequent answer, the first of several; None if there is none."""
    first = next(iter(leaders(opinions)), None)
    return next((o.answer for o in opinions if o.candidate is not None and o.candidate == first), None)


def leaders(opinions: Sequence[Opinion]) -> list[str]:
    """Return the most frequent answers (`Opinion.candidate`), in order of first appearance."""
    counts = Counter(opinion.candidate for opinion in opinions if opinion.candidate is not None)
    most = max(counts.values(), default=0)
    return [candidate for candidate, count in counts.items() if count == most]


def _in_words(answer: Action, confidence: float | None) -> str:
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    return text if confidence is None else f"{text}\nConfidence: {confidence:g}"


# ------------------------------------------------------------------------------------------- votes

Ties = Literal["first", "random", "none"]
"""Which of several leading answers wins: the first, a random one, or none."""


@dataclass(frozen=True, slots=True)
class Count:
    """The result of a vote.

    Attributes:
        answer: the winner, as most of its votes write it (the first of several such ways); None if there is none.
        weights: canonical answer → its weight, in order of first appearance.
        tied: whether several answers led.
    """

    answer: Action
    weights: dict[str, float]
    tied: bool

    @property
    def exit(self) -> str:
        """One word for how the vote arrived at its answer, or why it has none."""
        if not self.weights:
            return "no candidate"
        return "tie" if self.tied else "vote" if self.answer is not None else "no weight"


def candidate(task: Task, case: Case, action: Action) -> str | None:
    """One text for all equal answers: the task's `canonical`.

    None if there is no answer: an empty reply, nothing left in the text (an empty box, a program of one comment), or a
    bug while it is computed. This decides what counts as an answer for votes, panels and replies alike.
    """
    return guarded("canonical", task, lambda: _compared(task, case, action), lambda bug: None)


def _compared(task: Task, case: Case, action: Action) -> str | None:
    action = act_of(action)
    if action is None or (isinstance(action, str) and says_nothing(action)):
        return None
    text = str(task.canonical(case, action))
    return None if says_nothing(text) else text


@dataclass(frozen=True, slots=True)
class Ballot(WrappedReply):
    """A task's form of answer, in which text that `candidate` does not accept as an answer is unreadable.

    Attributes:
        compared: action → its text for comparisons; None if that is empty.
        keeps: whether what was read counts although it is not an answer (`QuestionTask.grades_raw_replies`).
    """

    compared: Callable[[Action], str | None] = field(compare=False, repr=False)
    keeps: bool = False

    def parse(self, text: str) -> Parsed:
        """Parse with the inner form; an empty answer is an error."""
        parsed = self.inner.parse(text)
        if parsed.error is None and parsed.action is not None and self.compared(parsed.action) is None:
            kept = parsed.action if self.keeps else None
            return Parsed(error=f"the answer is empty: {parsed.action!r:.80}", fallback_action=kept)
        return parsed


def ballot(task: Task, case: Case, agent: str) -> Ballot:
    """Return the form in which an agent answers the question of a case."""
    keeps = isinstance(task, QuestionTask) and task.grades_raw_replies
    return Ballot(task.reply(case, agent), functools.partial(_compared, task, case), keeps)


def majority(
    task: Task,
    case: Case,
    answers: Sequence[Action],
    weights: Sequence[float] | None = None,
    ties: Ties = "first",
    rng: random.Random | None = None,
) -> Count:
    """Count votes: the answer with the largest weight wins. An empty answer (`candidate`) has no vote."""
    totals: dict[str, float] = {}
    spellings: dict[str, dict[str, float]] = {}
    action_of: dict[str, Action] = {}
    for action, weight in zip(answers, weights or [1.0] * len(answers), strict=True):
        key = candidate(task, case, action)
        if key is not None:
            totals[key] = totals.get(key, 0.0) + weight
            spelling = repr(action)
            spellings.setdefault(key, {})[spelling] = spellings.get(key, {}).get(spelling, 0.0) + weight
            action_of.setdefault(spelling, action)
    largest = max(totals.values(), default=0.0)
    leaders = [key for key, weight in totals.items() if math.isclose(weight, largest) and largest > 0]
    tied = len(leaders) > 1
    if not leaders or (tied and ties == "none"):
        return Count(None, totals, tied)
    winner = rng.choice(leaders) if tied and ties == "random" and rng is not None else leaders[0]
    spelling = max(spellings[winner], key=lambda spelling: spellings[winner][spelling])
    return Count(action_of[spelling], totals, tied)
