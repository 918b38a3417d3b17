"""Which worker plays which episodes. Knows nothing of Ray, nor of time."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from harness.api import Move
from harness.config.plan import Job, episode_id
from harness.storage import Line

MAX_AHEAD_EPISODES = 256
Moves = dict[tuple[str, int], Move]
"""(agent, index of its turn) → the move recorded there."""


@dataclass
class Assignment:
    """An episode to play, and the moves and lines of inner calls of it that are recorded."""

    job: Job
    moves: Moves
    inner: list[Line] = field(default_factory=list)

    @property
    def id(self) -> str:
        return episode_id(*self.job)


class Scheduler:
    """Assigns episodes to workers, in chunks that shrink with what is left (guided self-scheduling).

    A worker holds as many episodes as it plays at once. One that finishes several between two updates, or all that it
    had, also gets some in advance, so that it rarely waits for the driver. It gets fewer the less is left, so that all
    workers end together.

    Args:
        jobs: the episodes, in plan order; read only as they are assigned.
        moves: id → recorded moves of episodes; those assigned are taken out.
        count: how many episodes there are.
        workers: how many workers there will be.
        width: how many episodes a worker plays at once.
        inner: id → recorded lines of inner calls, as `moves`.

    Attributes:
        remaining: how many episodes are not finished.
        active: worker → the episodes that it is to play.
        paused: worker → the episodes that it plays no further, and whose end does not count yet: a failure is pending
            (`harness.storage.pending_failures`), or the budget is used up.
    """

    def __init__(
        self,
        jobs: Iterator[Job],
        moves: MutableMapping[str, Moves],
        count: int,
        workers: int,
        width: int,
        inner: MutableMapping[str, list[Line]] | None = None,
    ) -> None:
        self.remaining, self.workers, self.width = count, workers, width
        self.active: dict[int, dict[str, Assignment]] = {}
        self.paused: dict[int, dict[str, Assignment]] = {}
        self._jobs, self._moves, self._inner = jobs, moves, {} if inner is None else inner
        self._returned: deque[Assignment] = deque()
        self._ahead: dict[int, int] = {}

    @property
    def done(self) -> bool:
        """Whether there is nothing more to play."""
        return not any(self.active.values()) and not self._peek()

    def join(self, worker: int) -> None:
        """A worker is ready."""
        self.active[worker], self.paused[worker], self._ahead[worker] = {}, {}, 0

    def retire(self) -> None:
        """There will be a worker less."""
        self.workers -= 1

    def take(self, worker: int) -> list[Assignment]:
        """Assign more episodes to a worker; never more than its share of the remaining ones."""
        playing = sum(map(len, self.active.values()))
        unassigned = self.remaining - playing - sum(map(len, self.paused.values()))
        share = math.ceil((unassigned + playing) / self.workers)
        ahead = min(self._ahead[worker], unassigned // (2 * self.workers))
        active = self.active[worker]
        most = min(self.width + ahead, share)
        assignments: list[Assignment] = []
        while len(active) < most and self._peek():
            assignment = self._returned.popleft()
            active[assignment.id] = assignment
            assignments.append(assignment)
        return assignments

    def finish(self, worker: int, names: Iterable[str]) -> set[str]:
        """Episodes that a worker has finished; returns those that it held, so that each counts once."""
        active, paused = self.active[worker], self.paused[worker]
        finished = {name for name in names if active.pop(name, None) or paused.pop(name, None)}
        self.remaining -= len(finished)
        if finished and (len(finished) > 1 or not active):
            self._ahead[worker] = min(MAX_AHEAD_EPISODES, max(self._ahead[worker], 2 * len(finished)))
        return finished

    def pause(self, worker: int, names: Iterable[str]) -> None:
        """Episodes that a worker plays no further. It still holds them; they take no place of others."""
        active, paused = self.active[worker], self.paused[worker]
        paused |= {name: assignment for name in names if (assignment := active.pop(name, None)) is not None}

    def recover(
        self,
        worker: int,
        ended: Container[str],
        moves: Mapping[str, Moves],
        inner: Mapping[str, Sequence[Line]] = MappingProxyType({}),
    ) -> list[str]:
        """A worker is gone: what its journal has as ended is finished, the rest is assigned again with its moves.

        Returns the names of the finished ones.
        """
        assignments = self.active.pop(worker, {}) | self.paused.pop(worker, {})
        finished = [name for name in assignments if name in ended]
        self.remaining -= len(finished)
        for name, assignment in assignments.items():
            if name not in ended:
                assignment.moves |= moves.get(name, {})
                assignment.inner += inner.get(name, ())
                self._returned.append(assignment)
        return finished

    def _peek(self) -> bool:
        """Whether an episode is left to assign; the next one is the first of those returned then."""
        if not self._returned and (job := next(self._jobs, None)) is not None:
            name = episode_id(*job)
            self._returned.append(Assignment(job, self._moves.pop(name, {}), self._inner.pop(name, [])))
        return bool(self._returned)
