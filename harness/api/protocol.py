"""The interfaces of protocols and channels: who acts when, and what passes between agents."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Generator, Hashable, Mapping, Sequence
from typing import Any, ClassVar

from .episode import Case, Move, Outcome, Turn
from .reply import Facts
from .task import Task


class OpenChannel(ABC):
    """A channel within one episode. `observation` is pure; only `commit` changes its state."""

    @abstractmethod
    def observation(self, agent: str) -> Facts:
        """What the agent sees now. Calling it twice gives the same result."""

    @abstractmethod
    def commit(self, moves: Sequence[Move]) -> None:
        """Deliver everything that was sent in a batch."""


class Channel(ABC):
    """Carries what agents send to the agents that observe it."""

    @property
    def opens(self) -> type[OpenChannel]:
        """The class that `open` returns. A protocol plays on channels of one kind (`Protocol.needs_channel`)."""
        return OpenChannel

    @abstractmethod
    def open(self, case: Case, rng: random.Random) -> OpenChannel:
        """Return a fresh channel for one episode. `rng` is its only source of randomness."""


# A protocol's game: yields a batch of turns, receives one move per turn in the same order, returns the outcome.
Play = Generator[list[Turn], list[Move], Outcome]


class Protocol(ABC):
    """Decides who acts when and what each agent observes.

    It does no I/O and holds no engine; its state lives in local variables of `play`.
    """

    needs: ClassVar[type[Task]] = Task  # the kind of task that it can play
    needs_channel: ClassVar[type[OpenChannel]] = OpenChannel  # the class that its channels must open
    facts: ClassVar[tuple[str, ...]] = ()  # the names it puts into `Outcome.facts`; metrics may need them
    longer_in_dispute: ClassVar[bool] = False  # whether episodes last longest if all answers differ

    def facts_with(self, task: Task) -> tuple[str, ...]:
        """`facts`, and those of the task if the class that the protocol needs has some (`SteppedTask`)."""
        added: tuple[str, ...] = getattr(task, "facts", ()) if hasattr(self.needs, "facts") else ()
        return (*self.facts, *added)

    @classmethod
    def prepare(cls, plan: Any) -> Mapping[str, str]:
        """Read what protocols of this class need for a `harness.config.plan.Plan`, such as calibrated parameters.

        Returns:
            name of a file → SHA-256 of its content; the run records them.

        Raises:
            UserError: something is missing, or does not fit the plan.
        """
        return {}

    @property
    def agent_groups(self) -> tuple[str, ...]:
        """The groups of the spec's `agents:` that its parameters name. A spec without one of them is refused."""
        return ()

    def possible_agents(self, case: Case) -> tuple[str, ...]:
        """The agents: those of the case, unless the protocol has its own (a panel, a coordinator)."""
        return case.agents

    @abstractmethod
    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Drive one episode. If every agent plays `reply.noop`, the episode must last as long as it ever can."""

    def misfit(self, task: Task) -> str | None:
        """Why it cannot play a task of the kind that it needs, for the spec's author; None if it can."""
        return None

    def shape(self, task: Task, case: Case) -> Hashable | None:
        """The value that alone determines the course of an episode in which every agent plays `reply.noop`.

        `harness plan` plays one episode for all cases of the same shape: the same agents get the same turns, apart from
        their contexts and the first observations. None, the default: it plays every case.
        """
        return None
