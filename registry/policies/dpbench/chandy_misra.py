"""Right of way that travels by messages (Chandy & Misra, The Drinking Philosophers Problem, 1984)."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.api import Facts, Turn, plugin
from harness.replies import ActionWithMessage, MessageLine

from ...tasks.dpbench._table import RELEASE, WAIT
from ._philosopher import GRAB, LEFT, RIGHT, SIDES, Philosopher, in_order, lower_first, missing, number

HEARD = re.compile(r"left: (mine|yours|please) ([0-9]{1,9}); right: (mine|yours|please) ([0-9]{1,9})")
LONGEST = len("left: please 999999999; right: please 999999999")
PATIENCE = 5
"""Turns for which a neighbor that has been heard may be silent (its message lost, or itself made to give up)."""


@dataclass
class Way:
    """One philosopher's side of the right of way for one fork.

    Messages say how matters stand rather than what has just happened, so that a message lost, late or read twice
    does no harm: they bear the number of times that the right of way has changed hands, and only the side that has
    it counts on.

    Attributes:
        starts: whether the right of way is this side's at the start.
        passed: how often it has changed hands, as far as is known here.
        dirty: the fork has been used since the right of way came here: any agent that asks gets it. True at the start.
        asked: the neighbor asks for it now.
        unheard: for how many turns the neighbor has not been heard in this language.
        patience: for how many it may be so; 1 until it is first heard, as in the first turn none may have spoken.
    """

    starts: bool
    passed: int = 0
    dirty: bool = True
    asked: bool = False
    unheard: int = 0
    patience: int = 1

    @property
    def stranger(self) -> bool:
        """Whether the neighbor does not speak this language: none can wait for its leave."""
        return self.unheard > self.patience

    @property
    def mine(self) -> bool:
        """Whether the right of way is on this side."""
        return self.starts == (self.passed % 2 == 0)

    def hear(self, word: str, passed: int) -> None:
        """Take in the neighbor's word for this fork."""
        self.unheard, self.patience = 0, PATIENCE
        if not self.mine and passed == self.passed + 1:
            self.passed, self.dirty = passed, False
        self.asked = self.mine and word == "please" and passed == self.passed

    def give(self) -> None:
        """Hand the right of way to the neighbor."""
        self.passed, self.asked = self.passed + 1, False


@plugin
class ChandyMisra(Philosopher):
    """Asks its neighbors for the right of way, and takes forks only with that for both: no deadlock, all eat in turn.

    Each message has a word for each fork, "left: please 2; right: mine 1": `mine`, `please` (it is yours, and I am
    hungry), `yours` (I am not), and how often the right of way has changed hands. A fork that has been eaten with is
    dirty, and whoever asks for it is given way; a clean one is kept until the next meal. At the start all are dirty
    and the right of way is the even number's, of two even ones the lower's, which is no circle and lets half of the
    table eat at once (by the lower number everywhere, one would eat at a time).

    In sequential order the channel needs `lifetime: latest`, or most messages are never seen. A neighbor that says
    anything else (a model) is a stranger: no leave is asked of it, and a fork is laid down when it has the other one.
    Without talk, or with `max_chars` below 47, all follow `resource_ordering`.
    """

    _ways: dict[str, Way] = field(init=False, default_factory=dict, repr=False)

    def say(self, turn: Turn) -> str | None:
        """Hear both neighbors, give way where it is due, and tell both."""
        if not _talks(turn):
            return None
        if not self._ways:
            self._ways = {side: Way(_starts(turn.context, side)) for side in SIDES}
        for side, other in ((LEFT, RIGHT), (RIGHT, LEFT)):  # my left fork is my left neighbor's right one
            heard = _words(turn.observation["inbox"], turn.context[side])
            self._ways[side].unheard += 1
            if heard is not None:
                self._ways[side].hear(*heard[other])
        eating = turn.observation["state"] == "EATING"
        for way in self._ways.values():
            way.dirty = way.dirty or eating
            if way.mine and way.dirty and way.asked and (eating or len(missing(turn.observation)) == 2):
                way.give()
        return "; ".join(f"{side}: {_word(way, eating)} {way.passed}" for side, way in self._ways.items())

    def act(self, turn: Turn, rng: random.Random) -> str:
        """Take the forks with the right of way for both, else none."""
        if not _talks(turn):
            return in_order(turn.observation, lower_first(turn))
        wanted = missing(turn.observation)
        free = [side for side in wanted if turn.observation[f"{side}_available"]]
        leave = all(way.mine or way.stranger for way in self._ways.values())
        blocked = any(self._ways[side].stranger for side in wanted if side not in free)
        if not wanted:
            return WAIT
        if blocked or not leave:
            return RELEASE if len(wanted) == 1 else WAIT
        return GRAB[free[0]] if free else WAIT


def _talks(turn: Turn) -> bool:
    line = turn.reply.line if isinstance(turn.reply, ActionWithMessage) else turn.reply
    return isinstance(line, MessageLine) and (line.max_chars is None or line.max_chars >= LONGEST)


def _starts(context: Facts, side: str) -> bool:
    """Whether the right of way for the fork on `side` is this philosopher's at the start."""
    own, neighbor = number(context["name"]), number(context[side])
    return (own % 2, own) < (neighbor % 2, neighbor)


def _word(way: Way, eating: bool) -> str:
    if way.mine:
        return "mine"
    return "yours" if eating else "please"


def _words(inbox: Mapping[str, object], neighbor: str) -> dict[str, tuple[str, int]] | None:
    """Side → word and number, as the neighbor says them; None if it says anything else, or nothing."""
    text = inbox.get(neighbor)
    found = HEARD.fullmatch(text) if isinstance(text, str) else None
    return found and {LEFT: (found[1], int(found[2])), RIGHT: (found[3], int(found[4]))}
