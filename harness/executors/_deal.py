"""Which worker holds which episodes: small hands, a fair share at the end, and nothing lost with a worker.

Knows nothing of Ray, and of time only that something has changed.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass

from harness.api import Move
from harness.config.plan import episode_id
from harness.runtime.runner import Job

MOST_AHEAD = 256
Moves = dict[tuple[str, int], Move]


@dataclass
class Hand:
    """An episode to play, and what is recorded of its moves."""

    job: Job
    moves: Moves

    @property
    def id(self) -> str:
        return episode_id(*self.job)


class Deal:
    """Deals out episodes. A worker holds as many as it can play at once and a few more, so that it never waits.

    Args:
        jobs: the episodes, in plan order; asked for only as they are dealt.
        moves: id → recorded moves of episodes; those dealt are taken out.
        left: how many episodes there are.
        workers: how many workers there will be.
        width: how many episodes a worker plays at once.
    """

    def __init__(
        self, jobs: Iterator[Job], moves: MutableMapping[str, Moves], left: int, workers: int, width: int
    ) -> None:
        self.left, self.workers, self.width = left, workers, width
        self.held: dict[int, dict[str, Hand]] = {}
        self.doubted: dict[int, dict[str, Hand]] = {}
        self.over = asyncio.Event()
        self.changed = asyncio.Event()
        self._jobs, self._moves = jobs, moves
        self._back: deque[Hand] = deque()
        self._ahead: dict[int, int] = {}
        self._look()

    def join(self, worker: int) -> None:
        """A worker is ready."""
        self.held[worker], self.doubted[worker] = {}, {}
        self._ahead[worker] = 1

    def take(self, worker: int) -> list[Hand]:
        """What a worker is to hold from now on besides what it has: up to its width and a few ahead, and never more
        than its share of what is left, so that all come to their end together."""
        share = math.ceil((self.left - sum(map(len, self.doubted.values()))) / max(1, self.workers))
        most = min(self.width + self._ahead[worker], share) - len(self.held[worker])
        hands: list[Hand] = []
        while len(hands) < most and (hand := self._next()) is not None:
            hands.append(hand)
            self.held[worker][hand.id] = hand
        return hands

    def finish(self, worker: int, names: Iterable[str]) -> list[str]:
        """Episodes that a worker tells finished; returns those that it was holding, each once.

        Who finishes many between two questions is given more ahead.
        """
        held, doubted = self.held[worker], self.doubted[worker]
        mine = [name for name in names if held.pop(name, None) or doubted.pop(name, None)]
        self.left -= len(mine)
        self._ahead[worker] = min(MOST_AHEAD, max(self._ahead[worker], 2 * len(mine)))
        self._look()
        return mine

    def doubt(self, worker: int, names: Iterable[str]) -> None:
        """Episodes that a worker has played, with failures that are still pending (`harness.storage.pending`).

        It holds them without playing them: they keep it from nothing else, and nobody waits for them at the end.
        """
        held = self.held[worker]
        self.doubted[worker] |= {name: hand for name in names if (hand := held.pop(name, None)) is not None}
        self._look()

    def missing(self, worker: int) -> None:
        """A worker is gone: what was doubted there has to be looked for in its journal, or to be played again."""
        if worker in self.held:
            self.held[worker] |= self.doubted[worker]
            self.doubted[worker] = {}

    def settle(self, worker: int, ended: Container[str], moves: Mapping[str, Moves]) -> list[str]:
        """A worker is gone: what its journal has as ended is finished, the rest is dealt again with its moves.

        Returns the names of the finished ones.
        """
        hands = self.held.pop(worker) | self.doubted.pop(worker)
        finished = [name for name in hands if name in ended]
        self.left -= len(finished)
        for name, hand in hands.items():
            if name not in ended:
                hand.moves |= moves.get(name, {})
                self._back.append(hand)
        self._look()
        self._ring()
        return finished

    def retire(self) -> None:
        """There will be a worker less."""
        self.workers -= 1
        self._ring()

    def give_back(self, worker: int, names: Iterable[str]) -> None:
        """Episodes that a worker has not begun with are free again."""
        hands = self.held.get(worker, {})
        self._back += [hand for name in names if (hand := hands.pop(name, None)) is not None]
        self._ring()

    def victim(self, thief: int, alive: Container[int]) -> tuple[int, int] | None:
        """Who has most that it has not begun with, and how many the thief may have; None if it need not steal."""
        free = self.width - len(self.held[thief])
        if free <= 0 or self._peek():
            return None
        waiting = {w: len(h) - self.width for w, h in self.held.items() if w in alive and len(h) > self.width}
        if not waiting:
            return None
        worker = max(waiting, key=lambda w: waiting[w])
        return worker, min(free, math.ceil(waiting[worker] / 2))

    def _peek(self) -> bool:
        if not self._back and (job := next(self._jobs, None)) is not None:
            self._back.append(Hand(job, self._moves.pop(episode_id(*job), {})))
        return bool(self._back)

    def _next(self) -> Hand | None:
        return self._back.popleft() if self._peek() else None

    def _look(self) -> None:
        """Whether there is nothing more to play."""
        if not any(self.held.values()) and not self._peek():
            self.over.set()

    def _ring(self) -> None:
        """Wake those who wait for more; who waits from now on waits for the next time."""
        self.changed.set()
        self.changed = asyncio.Event()
