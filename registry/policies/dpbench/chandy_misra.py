"""Right of way passed on by messages (Chandy & Misra, The Drinking Philosophers Problem, 1984)."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.api import Facts, Turn, plugin
from harness.replies.action_with_message import ActionWithMessage, MessageLine

from ...tasks.dpbench._table import RELEASE, WAIT
from ._philosopher import GRAB, LEFT, RIGHT, SIDES, Philosopher, in_order, lower_first, missing, number

MESSAGE = re.compile(r"left: (mine|yours|please) ([0-9]{1,9}); right: (mine|yours|please) ([0-9]{1,9})")
MAX_MESSAGE_CHARS = len("left: please 999999999; right: please 999999999")
MAX_SILENT_TURNS = 5
"""Turns for which a neighbor that has sent messages may be silent (a message lost, or a forced release)."""


@dataclass
class RightOfWay:
    """One philosopher's view of the right of way for one fork.

    Messages describe a state, not an event, so a lost, late or repeated message does no harm. They carry the number of
    handovers, which only the side with the right of way increases.

    Attributes:
        starts_here: whether this side has the right of way at the start.
        handovers: how often the right of way has changed sides, as far as this side knows.
        dirty: whether the fork has been used since the right of way came to this side. A dirty fork's right of way is
            handed over on request. True at the start.
        requested: whether the neighbor asks for it now.
        silent_turns: turns since the neighbor's last message in this language.
        patience: how many such turns are normal: 1 until the first message, because none can arrive in the first turn.
    """

    starts_here: bool
    handovers: int = 0
    dirty: bool = True
    requested: bool = False
    silent_turns: int = 0
    patience: int = 1

    @property
    def unresponsive(self) -> bool:
        """Whether the neighbor does not speak this language, so that waiting for it is pointless."""
        return self.silent_turns > self.patience

    @property
    def mine(self) -> bool:
        """Whether this side has the right of way."""
        return self.starts_here == (self.handovers % 2 == 0)

    def update(self, word: str, handovers: int) -> None:
        """Process the neighbor's word for this fork."""
        self.silent_turns, self.patience = 0, MAX_SILENT_TURNS
        if not self.mine and handovers == self.handovers + 1:
            self.handovers, self.dirty = handovers, False
        self.requested = self.mine and word == "please" and handovers == self.handovers

    def hand_over(self) -> None:
        """Hand the right of way over to the neighbor."""
        self.handovers, self.requested = self.handovers + 1, False


@plugin
class ChandyMisra(Philosopher):
    """Takes forks only with the right of way for both, which it requests by messages: no deadlock, all eat in turn.

    A message has a word for each fork, "left: please 2; right: mine 1": `mine`, `please` (it is yours, and I am
    hungry), `yours` (and I am not hungry), and the number of handovers. A fork is dirty after a meal; its right of way
    is then handed over on request. A clean fork is kept until the next meal. At the start all forks are dirty and the
    right of way belongs to the neighbor with an even number, of two even ones to the lower: so there is no cycle, and
    half of the philosophers can eat at once. (If the lower number always had it, one could eat at a time.)

    In sequential order the channel needs `lifetime: latest`, or most messages are never seen. If a neighbor sends
    anything else (a model does), this philosopher needs no permission from it, and releases its fork while that
    neighbor holds the other one. Without talk, or with `max_chars` below 47, it follows `resource_ordering`.
    """

    _ways: dict[str, RightOfWay] = field(init=False, default_factory=dict, repr=False)

    def say(self, turn: Turn) -> str | None:
        """Process both neighbors' messages, hand over what is due, and send both the state."""
        if not _can_talk(turn):
            return None
        if not self._ways:
            self._ways = {side: RightOfWay(_starts_with_right(turn.context, side)) for side in SIDES}
        for side, other in ((LEFT, RIGHT), (RIGHT, LEFT)):  # my left fork is my left neighbor's right one
            words = _words(turn.observation["inbox"], turn.context[side])
            self._ways[side].silent_turns += 1
            if words is not None:
                self._ways[side].update(*words[other])
        eating = turn.observation["state"] == "EATING"
        for way in self._ways.values():
            way.dirty = way.dirty or eating
            if way.mine and way.dirty and way.requested and (eating or len(missing(turn.observation)) == 2):
                way.hand_over()
        return "; ".join(f"{side}: {_word(way, eating)} {way.handovers}" for side, way in self._ways.items())

    def act(self, turn: Turn, rng: random.Random) -> str:
        """Take forks with the right of way for both; otherwise release or wait."""
        if not _can_talk(turn):
            return in_order(turn.observation, lower_first(turn))
        needed = missing(turn.observation)
        free = [side for side in needed if turn.observation[f"{side}_available"]]
        permitted = all(way.mine or way.unresponsive for way in self._ways.values())
        blocked = any(self._ways[side].unresponsive for side in needed if side not in free)
        if not needed:
            return WAIT
        if blocked or not permitted:
            return RELEASE if len(needed) == 1 else WAIT
        return GRAB[free[0]] if free else WAIT


def _can_talk(turn: Turn) -> bool:
    line = turn.reply.line if isinstance(turn.reply, ActionWithMessage) else turn.reply
    return isinstance(line, MessageLine) and (line.max_chars is None or line.max_chars >= MAX_MESSAGE_CHARS)


def _starts_with_right(context: Facts, side: str) -> bool:
    """Return whether this philosopher has the right of way for the fork on `side` at the start."""
    own, neighbor = number(context["name"]), number(context[side])
    return (own % 2, own) < (neighbor % 2, neighbor)


def _word(way: RightOfWay, eating: bool) -> str:
    if way.mine:
        return "mine"
    return "yours" if eating else "please"


def _words(inbox: Mapping[str, object], neighbor: str) -> dict[str, tuple[str, int]] | None:
    """Return side → (word, handovers) of the neighbor's message; None if it sent anything else, or nothing."""
    text = inbox.get(neighbor)
    match = MESSAGE.fullmatch(text) if isinstance(text, str) else None
    return match and {LEFT: (match[1], int(match[2])), RIGHT: (match[3], int(match[4]))}
