"""Helpers of views: where agents stand, values in a few characters, and what a transcript says at a glance."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from harness.api import Action, Move, Task
from harness.api.printable import cut
from harness.transcripts.view_api import Edge, Node, RecordedTurn, SentMessage, Transcript

Positions = Mapping[str, tuple[float, float]]
"""Name → (x, y), each from 0 to 1, from the top left."""
_STRESS = 40  # agents up to which places are drawn by Kamada and Kawai's method: beyond, it takes seconds
_FEW_STEPS_AGENTS, _RING_AGENTS = 300, 2000  # agents beyond which places are drawn in fewer steps, or all on a ring
_MAX_MESSAGES = 600
_VALUE = 12
_MESSAGE = 280
_FAILED = {"parse": "unread", "limit": "limit reached", "unanswered": "not answered yet"}


def brief(value: Any, limit: int = 60) -> str:
    """A JSON value as one line of at most `limit` characters; "" for None."""
    if value is None:
        return ""
    value = f"{value:.4g}" if isinstance(value, float) else value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text[: 4 * limit].split())
    return cut(text, limit)


def count(number: int, noun: str, plural: str = "") -> str:
    """A number and its noun.

    >>> count(1, "message"), count(1200, "message")
    ('1 message', '1,200 messages')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def ring(names: Sequence[str], radius: float = 0.42, turn: float = 0.0) -> Positions:
    """Places on a circle, clockwise from the top; `turn` shifts them, in steps from one to the next.

    A single one is in the middle.
    """
    radius = radius if len(names) > 1 else 0.0
    angles = [2 * math.pi * (i + turn) / max(len(names), 1) for i in range(len(names))]
    return {
        name: (0.5 + radius * math.sin(angle), 0.5 - radius * math.cos(angle))
        for name, angle in zip(names, angles, strict=True)
    }


def places(transcript: Transcript) -> Positions:
    """Where the agents stand: those of a network so that neighbors are near, all others on a ring."""
    topology = transcript.case.topology if transcript.case is not None else None
    if topology is None or not any(topology.values()) or set(topology) != set(transcript.agents):
        return ring(transcript.agents)
    if len(topology) > _RING_AGENTS:  # the time and memory of a drawing grow with the square, and nothing would be seen
        return ring(transcript.agents)
    return _layout(tuple((agent, tuple(neighbors)) for agent, neighbors in topology.items()))


@functools.lru_cache(maxsize=64)
def _layout(topology: tuple[tuple[str, tuple[str, ...]], ...]) -> Positions:
    import networkx as nx

    graph = nx.from_dict_of_lists(dict(topology))
    size = len(graph)
    if size <= _STRESS and nx.is_connected(graph):
        drawn = nx.kamada_kawai_layout(graph)
    else:
        steps = 100 if size <= _FEW_STEPS_AGENTS else 15
        drawn = nx.spring_layout(graph, seed=1, iterations=steps, k=1.6 / math.sqrt(size))
    across = [float(x) for x, _ in drawn.values()], [float(y) for _, y in drawn.values()]
    (left, width), (top, height) = ((min(values), max(values) - min(values) or 1.0) for values in across)
    return {
        name: (0.05 + 0.9 * (float(x) - left) / width, 0.05 + 0.9 * (float(y) - top) / height)
        for name, (x, y) in drawn.items()
    }


def agents_at(
    where: Positions,
    *,
    texts: Mapping[str, Any] | None = None,
    marks: Mapping[str, Sequence[str]] | None = None,
    colors: Mapping[str, int | None] | None = None,
) -> tuple[Node, ...]:
    """A node for every agent.

    Args:
        where: agent → its place, as in `places` or `ring`.
        texts: agent → its value at the moment, cut to 12 characters.
        marks: agent → words for its state, as in `Node`.
        colors: agent → index of its color.
    """
    texts, marks, colors = texts or {}, marks or {}, colors or {}
    return tuple(
        Node(
            agent,
            x=x,
            y=y,
            color=colors.get(agent),
            text=brief(texts.get(agent), _VALUE),
            marks=tuple(marks.get(agent, ())),
        )
        for agent, (x, y) in where.items()
    )


def agents_acting(where: Positions, turns: Sequence[RecordedTurn], texts: Mapping[str, Any]) -> tuple[Node, ...]:
    """A node for every agent, with marks: "active" for those that have these turns, "wrong" where one has failed."""
    marks: dict[str, list[str]] = {}
    for turn in turns:
        failed = turn.move is not None and turn.move.error is not None
        marks[turn.agent] = ["active", "wrong"] if failed else ["active"]
    return agents_at(where, texts=texts, marks=marks)


def edges_of(transcript: Transcript) -> tuple[Edge, ...]:
    """The edges of the case's network, each once; none where all agents reach one another."""
    topology = (transcript.case.topology if transcript.case is not None else None) or {}
    pairs = {tuple(sorted((one, other))) for one, others in topology.items() for other in others}
    return tuple(Edge(one, other) for one, other in sorted(pairs))


def messages(turns: Sequence[RecordedTurn], agents: Sequence[str]) -> tuple[SentMessage, ...]:
    """The messages in the actions of a round: {receiver: text}, or {"message": text} to all neighbors."""
    names, sent_messages = set(agents), list[SentMessage]()
    for turn in turns:
        action = turn.move.action if turn.move is not None else None
        if not isinstance(action, Mapping):
            continue
        if isinstance(said := action.get("message"), str) and said:
            sent_messages.append(SentMessage(turn.agent, "*", brief(said, _MESSAGE)))
        sent_messages += [
            SentMessage(turn.agent, receiver, brief(text, _MESSAGE))
            for receiver, text in action.items()
            if receiver in names and isinstance(text, str) and text
        ]
    return tuple(sent_messages[:_MAX_MESSAGES])


def why_nothing(move: Move) -> str:
    """Why a move has no action, in a word or two."""
    if move.error_kind is None:
        return "nothing"
    return _FAILED.get(move.error_kind, f"failed ({brief(move.error_kind, 40)})")


def answer_of(action: Action) -> Action:
    """The answer in an action, which may have a confidence beside it."""
    return action["answer"] if isinstance(action, Mapping) and "answer" in action else action


def verdict(transcript: Transcript) -> str:
    """How a finished episode ended, in a few words; "" for one that is not finished."""
    if transcript.error is not None:
        return f"The episode failed: {brief(transcript.error, 200)}"
    if not transcript.finished:
        return ""
    for name in ("solved", "success", "score"):
        value = transcript.grade.get(name)
        if isinstance(value, int | float):  # a score of a declared world may be a mapping
            return "Solved." if value >= 1 else "Not solved." if value <= 0 else f"Partly solved ({name} {value:.3g})."
    return "The episode is over."


def is_right(task: Task, transcript: Transcript, answer: Action) -> bool | None:
    """Whether this would be right as the group's answer; None if only a program or a slow comparison can say."""
    from harness.api import Outcome

    case = transcript.case
    if case is None or answer is None or task.grading != "quick" or not task.grades:
        return None
    facts = {"history": [[answer]]}
    graded = task.grade(case, Outcome({case.agents[0]: answer}, answer, facts)).get(task.grades[0])
    return None if graded is None else graded >= 1
