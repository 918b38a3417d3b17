"""Stepped games: a task that gives a world, and the world's rules as frozen states. Played by protocols that need
"world", such as `registry/protocols/steps.py`."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from harness.api import Action, Case, Facts, Protocol, Reply, Task


class World(ABC):
    """One state of a game. Frozen: `step` gives the next state and changes nothing, so states can be kept,
    compared, and made again from recorded actions."""

    @abstractmethod
    def view(self, seat: str) -> Facts:
        """What the seat sees of this state: JSON values, and only what it may know."""

    @abstractmethod
    def reply(self, seat: str) -> Reply | None:
        """How the seat can act now; None if it is not asked. A form that a seat may fail to meet has an idle action."""

    @abstractmethod
    def step(self, actions: Mapping[str, Action], rng: random.Random) -> World:
        """The state after these seats, and nobody else, acted at once. `rng` is the only chance there is.

        Total: any action that `reply` allows, and None for a seat that did nothing.
        """

    @abstractmethod
    def facts(self) -> Facts:
        """What to know of the game in the end, under the names that its task declares in `facts`."""

    @property
    def over(self) -> bool:
        """Whether the game has come to its end."""
        return False

    @property
    def deadlock(self) -> bool:
        """Whether nobody can get on, whatever a single seat does but giving up what it holds."""
        return False

    def freed(self) -> World:
        """The state after somebody from outside has broken the deadlock; only asked for where there can be one."""
        raise NotImplementedError(f"{type(self).__name__} says nothing of how a deadlock is broken")

    def backoff(self, seat: str) -> Action:
        """What the seat can be made to do if it has been waiting for too long; None while it is not waiting."""
        return None


class SteppedTask(Task):
    """A task whose cases are played step by step in a world.

    Class attribute `facts`: the names that its worlds' `facts` give; metrics may need them.
    """

    facts: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def world(self, case: Case, rng: random.Random) -> World:
        """The first state. Draws from `rng` are the same for every play of an episode."""

    def reply(self, case: Case, seat: str) -> Reply:
        """How the seat can act in the first state. Raises `LookupError` if it is not asked then."""
        reply = self.world(case, random.Random(0)).reply(seat)
        if reply is None:
            raise LookupError(f"{seat!r} has no turn in the first state")
        return reply


def facts_of(protocol: Protocol, task: Task) -> tuple[str, ...]:
    """The names of an episode's facts: the protocol's and, where it steps the task's world, those of the world."""
    if isinstance(task, SteppedTask) and issubclass(protocol.needs, SteppedTask):
        return (*protocol.facts, *task.facts)
    return protocol.facts
