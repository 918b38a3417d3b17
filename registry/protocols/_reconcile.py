"""ReConcile's discussion: groups of equal answers, weights of stated confidences, and demonstrations."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from harness.api import PluginError, near
from harness.extensions.panels.panels import Opinion
from harness.extensions.panels.peers import peer_text

FIELDS = ("question", "rationale", "answer")


def tenths(confidence: float) -> int:
    """Return the weight of a confidence in the vote, in tenths (ReConcile's recalibration f).

    Integers, so that rounding decides no tie.

    >>> [tenths(p) for p in (1, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0)]
    [10, 8, 8, 5, 5, 3, 1, 1]
    """
    if confidence >= 1:
        return 10
    return 8 if confidence >= 0.9 else 5 if confidence >= 0.8 else 3 if confidence > 0.6 else 1


def group_answers(opinions: Sequence[Opinion], limit: int | None) -> tuple[list[list[Opinion]], list[list[Opinion]]]:
    """Return (the `limit` largest groups of equal answers, the other groups), larger groups first.

    Equally large groups keep the order of their first answers. Unreadable answers are in no group.
    """
    groups: dict[str, list[Opinion]] = {}
    for opinion in opinions:
        if opinion.candidate is not None:
            groups.setdefault(opinion.candidate, []).append(opinion)
    ordered = sorted(groups.values(), key=len, reverse=True)
    return ordered[:limit], ordered[len(ordered) if limit is None else limit :]


def as_text(group: Sequence[Opinion]) -> dict[str, Any]:
    """Return a group as template variables: the answer as its first member wrote it, and every member's reply."""
    answer = group[0].answer
    return {
        "answer": peer_text(answer) if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False),
        "count": len(group),
        "members": [{"text": o.peer_text, "answer": o.answer, "confidence": o.confidence} for o in group],
    }


def check_demonstrations(demonstrations: Sequence[Mapping[str, Any]]) -> None:
    """Raise `PluginError` unless each has a question, a rationale, an answer, and optionally an agent."""
    for i, example in enumerate(demonstrations):
        at = ("demonstrations", i)
        for key in example:
            if key not in (*FIELDS, "agent"):
                hint = near(str(key), [*FIELDS, "agent"])
                raise PluginError(f"a demonstration has no {key!r}", hint=hint, at=at)
        for key in FIELDS:
            if key not in example:
                raise PluginError(f"a demonstration is missing its {key}", at=at)


def examples_for(demonstrations: Sequence[Mapping[str, Any]], agent: str) -> list[dict[str, str]]:
    """Return the examples that an agent sees: all but its own."""
    return [{key: str(example[key]) for key in FIELDS} for example in demonstrations if example.get("agent") != agent]
