"""Stepped games: a task that sets up a world, and worlds as frozen states. Protocols such as `steps` play them."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from harness.api import Action, Case, Facts, Reply, Task


class World(ABC):
    """One state of a game. It is frozen: `step` returns the next state and changes nothing, so states can be kept,
    compared and rebuilt from recorded actions.
    """

    @abstractmethod
    def observation(self, agent: str) -> Facts:
        """The agent's observation of this state: JSON values, and only what it may know."""

    @abstractmethod
    def reply(self, agent: str) -> Reply | None:
        """The form of the agent's action now; None if it has no turn. A form that agents may fail to meet needs a
        no-op.
        """

    @abstractmethod
    def step(self, actions: Mapping[str, Action], rng: random.Random) -> World:
        """The state after these agents, and no others, have acted simultaneously.

        It is total: it accepts any action that `reply` allows, and None for an agent that did nothing. `rng` is its
        only source of randomness.
        """

    @abstractmethod
    def facts(self) -> Facts:
        """Return the facts of the game at its end, under the names that its task declares in `facts`."""

    @property
    def over(self) -> bool:
        """Whether the game has ended."""
        return False

    @property
    def deadlock(self) -> bool:
        """Whether no agent can continue, whatever a single agent does, other than giving up what it holds."""
        return False

    def break_deadlock(self) -> World:
        """Return the state after the deadlock was broken from outside. Called only in a deadlock."""
        raise NotImplementedError(f"{type(self).__name__} does not define break_deadlock")

    def backoff(self, agent: str) -> Action:
        """The action to which the agent can be forced after waiting too long; None while it is not waiting."""
        return None


class SteppedTask(Task):
    """A task whose cases are played step by step in a world.

    The class attribute `facts` holds the names that its worlds' `facts` return; metrics may need them.
    """

    facts: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def world(self, case: Case, rng: random.Random) -> World:
        """The first state. Draws from `rng` are the same whenever the episode is played."""

    def secrets(self, case: Case) -> Facts:
        """None: a target is part of the random set-up, and agents may know it."""
        return {}

    def reply(self, case: Case, agent: str) -> Reply:
        """The form of the agent's action in the first state. Raises `LookupError` if it has no turn then."""
        reply = self.world(case, random.Random(0)).reply(agent)
        if reply is None:
            raise LookupError(f"{agent!r} has no turn in the first state")
        return reply
