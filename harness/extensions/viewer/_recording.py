"""An episode as its journal has it: read in whatever process needs it."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from harness.api import Move
from harness.api.errors import DataError
from harness.extensions.viewer.run_index import lines_at
from harness.storage import Line, move_of


@dataclass(frozen=True)
class Recording:
    """Where an episode is in the journals of its run.

    Attributes:
        folder: the run's folder.
        stamp: what changes when the run's record or spec does, or a plugin or a prompt of the project.
        episode: the episode's id.
        journals, places, ending, inner: as in `harness.extensions.viewer.run_index.IndexedEpisode`.
        scores: its labels, numbers and error: `harness score` may have measured again since it ended.
    """

    folder: Path
    stamp: str
    episode: str
    journals: Mapping[int, str]
    places: array[int]
    ending: int | None
    inner: str
    scores: Mapping[str, Any]

    @property
    def state(self) -> tuple[object, ...]:
        """What changes when there is more of the episode, or it was measured again."""
        scores = repr(sorted(self.scores.items()))
        return self.folder, self.stamp, self.episode, len(self.places), self.ending, scores

    def read(self) -> tuple[list[list[Move]], Line | None, str | None]:
        """(moves in the order of the protocol, end, what is missing). Raises `DataError`."""
        lines = list(lines_at(self.folder, self.journals, self.places))
        ends = list(lines_at(self.folder, self.journals, [] if self.ending is None else [self.ending]))
        end = {**ends[0], **self.scores} if ends else None
        try:
            batches, problem = _batches(lines, end)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"the journal's lines of {self.episode!r:.200} are not as they should be: {error}"
            raise DataError(message) from None
        return batches, end, problem

    def inner_lines(self, agent: str, index: int) -> list[Line]:
        """The lines about what an agent's program asked its model in a turn. Raises `DataError`."""
        places = json.loads(self.inner).get(agent, {}).get(str(index), [])
        return list(lines_at(self.folder, self.journals, places))


def _batches(lines: Sequence[Line], end: Line | None) -> tuple[list[list[Move]], str | None]:
    """(the moves in the order of the protocol, what is missing), as `harness.storage.finished_episodes.batches` orders
    them.

    Raises `KeyError`, `TypeError`, `ValueError` or `AttributeError` for lines of a strange shape.
    """
    moves: dict[int, dict[int, Line]] = {}
    for line in lines:
        moves.setdefault(line["b"], {})[line["p"]] = line
    ordered = [[moves[b][p] for p in sorted(moves[b])] for b in sorted(moves)]
    turns: Counter[str] = Counter()
    is_whole = True
    for line in chain.from_iterable(ordered):
        is_whole = is_whole and line["i"] == turns[line["s"]]
        turns[line["s"]] += 1
    count, of = turns.total(), (end or {}).get("moves", 0)
    problem = None if is_whole else f"some of its moves are not in the journal: {_MISSING}"
    if count < of:
        problem = f"{count} of its {of} moves are in the journal: {_MISSING}"
    return [[move_of(line) for line in batch] for batch in ordered], problem


_MISSING = "lines are gone or damaged, and without them no prompts can be shown"
