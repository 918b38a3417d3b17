"""One episode of a finished run, from Python: `Run.episode`."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.api import Engine
from harness.api.errors import BudgetSpentError, DataError, near
from harness.config.building import Reference
from harness.evaluation.run import Run
from harness.extensions.replay.again import replayed
from harness.extensions.replay.parent import Parent, ParentTurn
from harness.runtime.options import Options
from harness.tables import EpisodeScore

from .blame import blamed
from .verdict import BlameVerdict


@dataclass(frozen=True)
class RunEpisode:
    """An episode of a finished run.

    Attributes:
        run: the run.
        score: its numbers and labels.
    """

    run: Run
    score: EpisodeScore

    @property
    def id(self) -> str:
        """`condition/case/repeat`."""
        return self.score.id

    @functools.cached_property
    def turns(self) -> Sequence[ParentTurn]:
        """Its turns in order, each with its `number`, `round`, `turn` and `move`. Raises `DataError` as `replay`."""
        parent = Parent.open(self.run.folder, self.run.project)
        parent.read([self.id])
        return parent.played(self.id)

    def replay(
        self,
        *,
        change: Mapping[int, str] | None = None,
        drop: Sequence[int | tuple[int, str]] = (),
        swap: Mapping[str, Reference] | None = None,
        since: int | None = None,
        sample: int | None = None,
        model: Engine | None = None,
        options: Options | None = None,
    ) -> Run:
        """The episode with one thing changed, as a run of its own. Arguments and errors as in `replayed`."""
        return replayed(
            self.run,
            self.id,
            change=change,
            drop=drop,
            swap=swap,
            since=since,
            sample=sample,
            model=model,
            options=options,
        )

    def blame(self, by: Reference | None = None, **more: Any) -> BlameVerdict:
        """Which moves and agents made it fail. Arguments and errors as in `blamed`, apart from the choice of episodes.

        Raises `BudgetSpentError` if `max_calls` is reached before that is known.
        """
        found = blamed(self.run, by, episodes=[self.id], **more).verdicts
        if not found:
            raise BudgetSpentError("max_calls", more["max_calls"])
        return found[0]


def episode_of(run: Run, episode: str) -> RunEpisode:
    """`Run.episode`. Raises `DataError` if the run has none of this id."""
    for score in run.scores:
        if score.id == episode:
            return RunEpisode(run, score)
    names = [score.id for score in run.scores]
    raise DataError(f"{run.folder} has no episode {episode!r:.200}", hint=near(episode, names))
