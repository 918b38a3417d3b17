"""What an episode looks like: its transcript, and the scenes that a view draws of it. The vocabulary of view authors.

A view turns a transcript into scenes of plain parts (nodes, edges, messages, bars, grids). The pages draw those
parts; a view writes no HTML and no JavaScript.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.api import Case, Facts, Outcome, Protocol, Task
from harness.runtime.prompt_reader import RecordedTurn

if TYPE_CHECKING:
    from harness.tables.cost import Usd
    from harness.transcripts.costs import SeatPrice

__all__ = [
    "Bars",
    "Edge",
    "Finding",
    "Node",
    "RecordedTurn",
    "Scene",
    "SentMessage",
    "Sheet",
    "Transcript",
    "TurnFinding",
    "View",
]


@dataclass(frozen=True, slots=True)
class TurnFinding:
    """What was found out about a turn.

    Attributes:
        words: in a few words, such as "decisive"; "" where it only has facts.
        facts: the same as plain data.
    """

    words: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found out about an episode.

    Attributes:
        name: under which the extension offers it.
        title: what was looked for.
        text: what was found, in a sentence or two.
        turns: number of a turn → what was found out about it.
        shares: agent → its share of what the title says.
        facts: all of it as plain data.
    """

    name: str = ""
    title: str
    text: str
    turns: Mapping[int, TurnFinding] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """An episode with its conversations, read back from the journal.

    Attributes:
        id: `condition/case/repeat`, unique in its run.
        condition, case_id, repeat: the parts of the id.
        labels: what tables group the episode by.
        case: the problem; None if the task no longer makes it.
        agents: the agents in order of play, those of the protocol included.
        roles: agent → its group in the spec's `agents:`; agents without an entry are in "default".
        models: agent → the name of the model that played it; agents without an entry were played by a policy.
        policies: agent → the name of the policy that played it.
        turns: all turns in order.
        outcome: the result; None if the episode failed or is not finished.
        grade: the result of `Task.grade`.
        numbers: metric → number, a pair for a ratio, or None.
        error: why the episode failed.
        finished: whether the journal holds its end.
        findings: what extensions have found out about it since it was played (`findings`).
        problem: why prompts are missing, or may differ from those that were sent; None if nothing has changed.
        seat_prices: agent → what its replies are billed at, of agents that models played.
    """

    id: str
    condition: str
    case_id: str
    repeat: int
    labels: Facts
    case: Case | None
    agents: tuple[str, ...]
    roles: Mapping[str, str]
    models: Mapping[str, str]
    policies: Mapping[str, str]
    turns: tuple[RecordedTurn, ...]
    outcome: Outcome | None = None
    grade: Mapping[str, float | None] = field(default_factory=dict)
    numbers: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    finished: bool = True
    findings: tuple[Finding, ...] = ()
    problem: str | None = None
    seat_prices: Mapping[str, SeatPrice] = field(default_factory=dict, repr=False, compare=False)

    def usd(self, agent: str | None = None) -> Usd | None:
        """What the episode cost, or one agent's part of it; None if no model was asked, or nothing of it is known."""
        from harness.transcripts.costs import of_moves  # what only readers of costs need

        own = (turn.move for turn in self.turns if turn.move is not None and agent in (None, turn.agent))
        return of_moves(own, self.seat_prices)

    @property
    def rounds(self) -> Sequence[Sequence[RecordedTurn]]:
        """The turns, round by round."""
        rounds: list[list[RecordedTurn]] = []
        for turn in self.turns:
            if turn.round == len(rounds):
                rounds.append([])
            rounds[-1].append(turn)
        return rounds

    def conversation(self, agent: str) -> list[tuple[str, str]]:
        """Everything sent to the agent and everything that it replied, as (role, text); several conversations follow
        one another.

        An answer that never came (a failed request) is an empty text of role "assistant".
        """
        messages: list[tuple[str, str]] = []
        for turn in (turn for turn in self.turns if turn.agent == agent):
            messages += turn.prompt
            replies = [call.shown for call in turn.move.calls] if turn.move else []
            for i, reply in enumerate(replies):
                messages.append(("assistant", reply))
                messages += [("user", turn.retries[i])] if i < len(turn.retries) else []
            if turn.move and (len(turn.retries) >= len(replies) or not replies) and agent in self.models:
                messages.append(("assistant", ""))
        return messages


@dataclass(frozen=True, slots=True)
class Node:
    """A thing at a place: an agent, or what agents act on.

    Attributes:
        id: unique in the scene; of an agent its name.
        label: the text beside it; by default its id.
        x, y: its place from 0 to 1, from the top left; None: the page puts all nodes on a ring.
        kind: "agent" (a circle), "thing" (a small square) or "surface" (a large disc behind all others).
        color: index of a color of the page's palette, from 0; None: no color.
        text: its value at the moment, in a few characters: a color's name, a number, a vote.
        marks: words for its state. The page draws "leader", "conflict", "waiting", "active", "eating", "byzantine",
            "right" and "wrong", and writes out all others.
    """

    id: str
    label: str = ""
    x: float | None = None
    y: float | None = None
    kind: str = "agent"
    color: int | None = None
    text: str = ""
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """A line between two nodes; `state` is "", "conflict", "chosen", "held", "wanted" or "muted"."""

    source: str
    target: str
    state: str = ""
    directed: bool = False


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message on its way from one agent to another; `receiver` is "*" for all others."""

    sender: str
    receiver: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """Named shares or weights, such as an agent's belief over answers; `highlight` names the bar that counts."""

    title: str
    values: Mapping[str, float]
    highlight: str | None = None


@dataclass(frozen=True, slots=True)
class Sheet:
    """A small table of texts. The first cell of a row names the row; with `heat` all others are numbers or empty.

    `note` explains it in a line.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    heat: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Scene:
    """The picture after a round.

    Attributes:
        caption: one sentence on what happened.
        nodes, edges, messages, bars, sheets: the parts; any may be empty.
        facts: name → value as text, such as "meals" → "3".

    Parts that do not change should be the same objects in every scene: only changed parts are sent.
    """

    caption: str = ""
    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    messages: tuple[SentMessage, ...] = ()
    bars: tuple[Bars, ...] = ()
    sheets: tuple[Sheet, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


class View(ABC):
    """Draws the episodes of a family of tasks, round by round. Fields are parameters with defaults."""

    @abstractmethod
    def draws(self, task: Task, protocol: Protocol) -> bool:
        """Whether this view is for episodes of `task` under `protocol`."""

    @abstractmethod
    def scenes(self, transcript: Transcript, task: Task) -> Iterable[Scene]:
        """Yield one scene for the start and one after each round: `len(transcript.rounds) + 1`.

        The transcript may be unfinished, and a move's action anything that its reply form allows, or None; `case` is
        None if the task does not make the case any more. If this raises, the page shows the generic picture and says
        so.
        """
