"""The interface of policies, which play in place of a model."""

from __future__ import annotations

import copy
import random
from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import ClassVar

from .episode import Case, Turn
from .reply import Action
from .task import Task


class Policy(ABC):
    """A scripted agent.

    Every agent of every episode gets a new instance, so a policy may keep state in attributes
    (`field(init=False)`).

    A policy that simulates agents of a given skill has to know the right answer. It sets `uses_ground_truth`; then
    the harness calls `inform` with the case, target included, right after it creates the policy, and marks every score,
    table and run record. No other player ever sees a case's `target`.
    """

    uses_ground_truth: ClassVar[bool] = False

    def inform(self, agent: str, case: Case, seed: int) -> None:
        """Receive the case, before the first `choose`. Called only if `uses_ground_truth`, and not by checks of
        plugins.

        Args:
            agent: the agent that this policy plays.
            case: the question, with its right answer.
            seed: the same for all agents and all conditions that play this case in this repeat.
        """

    def check(self, agents: Collection[str]) -> None:
        """Check parameters that name agents, before any episode; called only if `uses_ground_truth`.

        `agents`: the agents that such a policy plays, in all conditions. Raises `PluginError` for a parameter that
        names no agent.
        """

    @abstractmethod
    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """Return a legal action, from `turn.context`, `turn.observation`, `turn.reply` and `rng` alone."""

    def misfit(self, task: Task) -> str | None:
        """Why it cannot play this task, for the spec's author; None if it can."""
        return None


class PolicyWrapper(Policy):
    """Plays as another policy does, but for what `instead` changes.

    Attributes:
        of: the other policy (from `wrap`).
    """

    of: Policy

    def wrap(self, of: Policy) -> None:
        """Take a copy of the other policy, before anything else: each agent has its own."""
        self.of, self._turns = copy.deepcopy(of), 0
        self.__dict__["uses_ground_truth"] = self.of.uses_ground_truth

    def inform(self, agent: str, case: Case, seed: int) -> None:
        """Pass the case on."""
        self.of.inform(agent, case, seed)

    def check(self, agents: Collection[str]) -> None:
        """As the other policy does."""
        self.of.check(agents)

    def misfit(self, task: Task) -> str | None:
        """As the other policy says."""
        return self.of.misfit(task)

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """Return the other policy's action, or what `instead` puts in its place."""
        action, now = self.of.choose(turn, rng), self._turns
        self._turns += 1
        return self.instead(turn, action, now)

    @abstractmethod
    def instead(self, turn: Turn, action: Action, now: int) -> Action:
        """Return a legal action. `action`: the other policy's; `now`: how many turns the agent has had before."""


class InformedPolicy(Policy):
    """Knows the right answer, to simulate agents of a declared skill; scores, tables and run records are marked.

    `label` describes the simulation in a few words, for tables; "" adds nothing. Where `inform` was not called, as in
    checks of plugins, it must do nothing.
    """

    uses_ground_truth: ClassVar[bool] = True
    label: str = ""

    @abstractmethod
    def inform(self, agent: str, case: Case, seed: int) -> None:
        """As `Policy.inform`; called again when a second run of the case begins."""
