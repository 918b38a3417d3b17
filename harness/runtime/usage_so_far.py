"""What an episode that is not finished has used. Of finished ones the scores say it (`harness.runtime.scoring`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from harness.api import Move
from harness.engines.usage import billed
from harness.storage import Line, completion_of
from harness.storage.inner_calls import INNER


def usage_so_far(moves: Iterable[Move], inner: Iterable[Line], meta: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """`EpisodeScore.usage` of an episode that is not finished, as far as its journal says it: replies count as those of
    the run's model. Inner calls count one by one, so that those of an open turn do too.

    Args:
        moves: those that it has, unfinished ones too.
        inner: the lines of its inner calls.
        meta: the run's record.
    """
    behind: dict[str, str] = {one["engine"]: one["model"] for one in (meta.get("inner") or {}).values()}
    usage: dict[str, Counter[str]] = {}
    for line in inner:
        if line["k"] == INNER:
            name = str(line["model"])
            counts = usage.setdefault(behind.get(name, name), Counter())
            counts.update({"inner_calls": 1, **(billed(completion_of(line["call"])) if "call" in line else {})})
    for move in moves:
        for call in move.calls if move.inner_calls is None else ():
            usage.setdefault(meta["model"], Counter()).update(billed(call, "model" in meta.get("in_batches", ())))
    return {model: {kind: count for kind, count in counts.items() if count} for model, counts in usage.items()}
