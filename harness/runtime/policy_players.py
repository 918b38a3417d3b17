"""Policies that play agents."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from harness.api import Facts, Move, Policy, Turn, derive_seed


def starts_over(turn: Turn, context: Facts | None) -> bool:
    """Whether the turn starts another run for an agent whose last turn had `context` (None: it had none yet)."""
    return turn.fresh and context is not None and turn.context != context


class PolicyPlayer:
    """A policy that plays an agent. Its seed determines all that it does, so recalling is choosing again.

    A turn that opens a new thread with another context is a new start: the policy then remembers nothing either.

    Args:
        make_policy: gives the policy as it is at the start.
        seed: every turn's chance derives from it.
    """

    def __init__(self, make_policy: Callable[[], Policy], seed: int) -> None:
        self.make_policy, self.seed, self.turns = make_policy, seed, 0
        self.policy = make_policy()
        self.context: Facts | None = None

    def decide(self, turn: Turn) -> Move:
        """The policy's move. Raises `ValueError` if the reply's form does not allow it."""
        turn = replace(turn, reply=turn.reply.without_tools)
        if starts_over(turn, self.context):
            self.policy = self.make_policy()
        self.context = turn.context
        rng = random.Random(derive_seed(self.seed, self.turns))
        self.turns += 1
        action = self.policy.choose(turn, rng)
        if action != turn.reply.noop and not turn.reply.allows(action):
            options = turn.reply.options
            why = f"turn {turn.name!r} does not allow" if options is None else f"is none of {options!r:.2000}"
            raise ValueError(f"{type(self.policy).__name__} chose {action!r:.200}, which {why}")
        return Move(turn.agent, turn.name, action)

    def recall(self, turn: Turn, move: Move) -> None:
        """Bring the policy's memory to where it was after `move`."""
        self.decide(turn)
