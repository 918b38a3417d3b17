"""What all protocols share in which several agents answer one question: the agents, their turns, and the outcome."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from harness.api import Action, Case, Facts, Move, Outcome, Protocol, Range, Task, Turn
from harness.authoring.peers import peer_text
from harness.authoring.questions import QuestionTask
from harness.authoring.votes import ballot, candidate
from harness.errors import PluginError
from harness.replies import Considered, considered
from harness.replies.considered import Style
from harness.replies.reading import read

FACTS: tuple[str, ...] = ("history", "unanimous_at", "exit", "proposal", "crossed", "sent")
"""What every panel protocol records.

`history`: rounds of answers, each in the panel's order, None where there was none that could be read.
`unanimous_at`: the first round, from 0, in which all gave the same answer; None if there was none.
`exit`: in a word how the group came to its answer, or why it has none.
`proposal`: what a coordinator or aggregator answered, whatever became of it; None if there was none.
`crossed`: characters of other agents' texts that agents were shown.
`sent`: writer → reader → [texts, characters], each text once a reader (`harness.authoring.traffic`); characters are
None where the reader was shown something composed of what several wrote.
"""


@dataclass(frozen=True, slots=True)
class Opinion:
    """An agent's answer (DarkForest, Section 3.2: the observation o_i = (a_i, z_i, c_i, v_i, q_i)).

    Attributes:
        seat: the agent.
        answer: a_i; None if the reply was unreadable (v_i = 0).
        candidate: z_i, one text for all equal answers; None without an answer.
        confidence: c_i, from 0 to 1; None if none was stated.
        malformed: q_i, whether the reply was readable but not well-formed.
        text: the reply as written; for a policy, which writes none, its answer; "" if there is neither.
    """

    seat: str
    answer: Action
    candidate: str | None
    confidence: float | None = None
    malformed: bool = False
    text: str = ""

    @property
    def peer_text(self) -> str:
        """The reply as other seats are shown it, on lines of its own."""
        return peer_text(self.text, block=True)


@dataclass(kw_only=True)
class Panel(Protocol):
    """A protocol in which several agents answer one question.

    Attributes:
        agents: the size of the panel (Agent-0, Agent-1, …), for cases of one agent; None: the agents of the case.
        confidence: whether members state a confidence: not at all, in a last line ("line"), or in one JSON object with
            reasoning, answer and confidence ("json").
        repairs: how often an unreadable answer is asked for again.

    Class attributes:
        roles: the parameters that name an agent of `others`; none of them may be empty.
    """

    agents: Annotated[int, Range(ge=1, le=1000)] | None = None
    confidence: Style = "none"
    repairs: Annotated[int, Range(ge=0)] = 0

    needs = QuestionTask
    facts = FACTS
    roles: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for role in self.roles:
            name = getattr(self, role)
            if name is not None and not name.strip():
                hint = f"Name one, or leave {role} out."
                raise PluginError(f"{role} is empty: no seat has that name", hint=hint, at=(role,))

    def others(self) -> tuple[str, ...]:
        """The names of agents that the protocol needs besides the panel. Members of the panel are not added."""
        return ()

    def members(self, case: Case) -> tuple[str, ...]:
        """The panel, in order."""
        if self.agents is None:
            return case.seats
        if len(case.seats) > 1:
            message = f"agents: {self.agents}, but {case.id!r} has {len(case.seats)} seats of its own"
            raise PluginError(
                message, hint="Leave agents out, or take a task whose questions have one.", at=("agents",)
            )
        return tuple(f"Agent-{i}" for i in range(self.agents))

    def seats(self, case: Case) -> tuple[str, ...]:
        """The panel and the other agents that the protocol needs."""
        return tuple(dict.fromkeys((*self.members(case), *self.others())))

    def ask(
        self,
        task: Task,
        case: Case,
        seat: str,
        name: str = "answer",
        view: Facts | None = None,
        *,
        crossing: Sequence[str] = (),
        fresh: bool = False,
        more: Facts | None = None,
    ) -> Turn:
        """A turn in which an agent answers the question. `more` joins the context, which starts a conversation."""
        own = seat if seat in case.seats else case.seats[0]
        brief = {**task.brief(case, own), "confidence": self.confidence, **(more or {})}
        reply = Considered(ballot(task, case, own), self.confidence)
        return Turn(seat, name, view or {}, reply, brief, self.repairs, fresh, tuple(crossing))

    def read(self, task: Task, case: Case, move: Move) -> Opinion:
        """Read the move of such a turn."""
        answer, confidence, malformed = considered(move.action)
        found = candidate(task, case, answer)
        if found is None:
            return Opinion(move.seat, None, None, text=move.text or "")
        text = move.text if move.text is not None else _in_words(answer, confidence)
        return Opinion(move.seat, answer, found, confidence, malformed, text)

    def candidate(self, task: Task, case: Case, text: str) -> str | None:
        """The answer that the task's own reply form finds in a text, as `Opinion.candidate`; None if it finds none."""
        return candidate(task, case, read(ballot(task, case, case.seats[0]), text).action)

    def outcome(
        self,
        history: Sequence[Sequence[Opinion]],
        group: Action,
        *,
        exit: str,
        crossed: int = 0,
        sent: Mapping[str, Any] | None = None,
        proposal: Action = None,
        **facts: Any,
    ) -> Outcome:
        """The outcome of an episode. The agents' own answers are those of the last round.

        `sent` is `Traffic.sent`. A panel whose members see nothing of one another has none.
        """
        told = {
            "history": [[opinion.answer for opinion in opinions] for opinions in history],
            "unanimous_at": next((i for i, opinions in enumerate(history) if unanimous(opinions)), None),
            "exit": exit,
            "proposal": proposal,
            "crossed": crossed,
            "sent": {} if sent is None else sent,
        }
        last = history[-1] if history else ()
        return Outcome({opinion.seat: opinion.answer for opinion in last}, group, {**told, **facts})


def unanimous(opinions: Sequence[Opinion]) -> bool:
    """Whether all gave an answer, and the same one."""
    return len({opinion.candidate for opinion in opinions}) == 1 and opinions[0].candidate is not None


def leading(opinions: Sequence[Opinion]) -> Action:
    """The most frequent answer, the first one of several; None if there is none."""
    counts = Counter(opinion.candidate for opinion in opinions if opinion.candidate is not None)
    if not counts:
        return None
    most = max(counts.values())
    return next(o.answer for o in opinions if o.candidate is not None and counts[o.candidate] == most)


def _in_words(answer: Action, confidence: float | None) -> str:
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    return text if confidence is None else f"{text}\nConfidence: {confidence:g}"


def shown(opinions: Sequence[Opinion]) -> list[Mapping[str, Any]]:
    """Opinions as templates get them: text, answer and confidence, without names."""
    return [{"text": o.peer_text, "answer": o.answer, "confidence": o.confidence} for o in opinions]
