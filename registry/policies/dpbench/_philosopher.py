"""The base of the scripted philosophers: the form of an action, and taking forks in a fixed order."""

from __future__ import annotations

import random
import re
from abc import abstractmethod

from harness.api import Action, Facts, PluginError, Policy, Turn
from harness.replies.action_with_message import ActionWithMessage, MessageLine

from ...tasks.dpbench._table import GRAB_LEFT, GRAB_RIGHT, WAIT

LEFT, RIGHT = SIDES = ("left", "right")
GRAB = {LEFT: GRAB_LEFT, RIGHT: GRAB_RIGHT}


class Philosopher(Policy):
    """Chooses an action and optionally a message, in the form that the turn asks for."""

    @abstractmethod
    def act(self, turn: Turn, rng: random.Random) -> str:
        """Return one of the four actions."""

    def say(self, turn: Turn) -> str | None:
        """Return the message to both neighbors, or None. Called once in each turn, before `act`."""
        return None

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """Return a message, an action, or both, depending on the turn.

        Raises:
            PluginError: if the turn is not one of DPBench's.
        """
        if "left_available" not in turn.observation or "left" not in turn.context:
            keys = ", ".join((*turn.context, *turn.observation))
            problem = f"{type(self).__name__} plays the dining philosophers; this turn has no forks, but {keys}"
            raise PluginError(problem, hint="Use it with the task dpbench/dining_table.")
        message = self.say(turn)
        if isinstance(turn.reply, MessageLine):
            return message
        act = self.act(turn, rng)
        return {"act": act, "message": message} if isinstance(turn.reply, ActionWithMessage) else act


def number(name: str) -> int:
    """Return the number of a philosopher: 3 for P3.

    Raises:
        PluginError: for a name without a number.
    """
    match = re.fullmatch(r"\D*([0-9]{1,9})", name)
    if match is None:
        raise PluginError(f"a philosopher's name ends in its number, as in P0; {name!r} does not")
    return int(match[1])


def missing(observation: Facts) -> list[str]:
    """Return the sides on which the philosopher holds no fork."""
    return [side for side in SIDES if not observation[f"holds_{side}"]]


def in_order(observation: Facts, first: str) -> str:
    """Take the fork on the side `first`, then the other one, each as soon as it is free; never release one."""
    sides = sorted(missing(observation), key=lambda side: side != first)
    if observation["state"] == "EATING" or not sides or not observation[f"{sides[0]}_available"]:
        return WAIT
    return GRAB[sides[0]]


def lower_first(turn: Turn) -> str:
    """Return the side of the fork with the lower number: the left one, except for the last philosopher."""
    return RIGHT if number(turn.context["name"]) == turn.context["philosophers"] - 1 else LEFT
