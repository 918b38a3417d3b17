"""ReConcile's discussion: who gave the same answer, what a stated confidence weighs, whose examples are shown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from harness.authoring.panels import Opinion
from harness.authoring.peers import peer_text
from harness.errors import PluginError, near

FIELDS = ("question", "rationale", "answer")


def tenths(confidence: float) -> int:
    """What a confidence weighs in the vote, in tenths (ReConcile's recalibration f): whole numbers, so that no tie is
    decided by rounding.

    >>> [tenths(p) for p in (1, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0)]
    [10, 8, 8, 5, 5, 3, 1, 1]
    """
    if confidence >= 1:
        return 10
    return 8 if confidence >= 0.9 else 5 if confidence >= 0.8 else 3 if confidence > 0.6 else 1


def grouped(opinions: Sequence[Opinion], keep: int | None) -> tuple[list[list[Opinion]], list[list[Opinion]]]:
    """Those who gave the same answer together, (shown, dropped): the largest groups first, equally large ones in the
    order in which they first appear; answers that cannot be read are in neither."""
    groups: dict[str, list[Opinion]] = {}
    for opinion in opinions:
        if opinion.candidate is not None:
            groups.setdefault(opinion.candidate, []).append(opinion)
    ordered = sorted(groups.values(), key=len, reverse=True)
    return ordered[:keep], ordered[len(ordered) if keep is None else keep :]


def as_text(group: Sequence[Opinion]) -> dict[str, Any]:
    """A group as templates get it: the answer in the words of its first member, and every member's reply."""
    answer = group[0].answer
    return {
        "answer": peer_text(answer) if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False),
        "count": len(group),
        "members": [{"text": o.peer_text, "answer": o.answer, "confidence": o.confidence} for o in group],
    }


def check_demonstrations(demonstrations: Sequence[Mapping[str, Any]]) -> None:
    """Refuse what is no example: question, rationale and answer, and perhaps the agent whose it is."""
    for i, given in enumerate(demonstrations):
        at = ("demonstrations", i)
        for key in given:
            if key not in (*FIELDS, "agent"):
                hint = near(str(key), [*FIELDS, "agent"])
                raise PluginError(f"a demonstration has no {key!r}", hint=hint, at=at)
        for key in FIELDS:
            if key not in given:
                raise PluginError(f"a demonstration lacks its {key}", at=at)


def demonstrated(demonstrations: Sequence[Mapping[str, Any]], agent: str) -> list[dict[str, str]]:
    """The examples that an agent is shown: all but its own."""
    return [{key: str(one[key]) for key in FIELDS} for one in demonstrations if one.get("agent") != agent]
