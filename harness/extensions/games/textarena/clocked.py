"""A game of TextArena under a clock: environments read what models write with patterns and loops of their own.

For some, the time grows with the square or the cube of the length of a text. So games run in the process of
`harness/extensions/sandbox/clock.py`. If an environment does not finish an action in time, the action counts as one at
which the environment fails.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from harness.extensions.sandbox.clock import ClockedFunction, UnreadableTextError
from harness.replies.parse_guard import guarded

from .live import LiveGame, Position, lost

_NUMBERS = itertools.count()
_MAX_GAMES = 256
"""Games that the process holds; one that it has forgotten is played again up to where it is."""
_START_SECONDS = 600.0
"""Seconds of processor time to start a game, or to play it again: no action of it is new."""


class ClockedGame:
    """As `LiveGame`, with the environment in another process.

    Args:
        name: the environment.
        players: how many.
        seed: of its chance.
        options: parameters of the environment, over those that its name stands for.
    """

    def __init__(self, name: str, players: int, seed: int, options: Mapping[str, Any]) -> None:
        self._key = f"{os.getpid()}/{next(_NUMBERS)}"
        self._arguments = (name, players, seed, dict(options))
        self._newest: Position | None = None

    def start(self) -> Position:
        """The first position. Raises `SetupError` or `PluginError` if the environment cannot be made so."""
        found: Position = _clock("")("start", self._key, self._arguments, seconds=_START_SECONDS)
        self._newest = found
        return found

    def after(self, position: Position, action: str) -> Position:
        """The position after an action of the player whose turn it is; see `LiveGame.after`."""
        try:
            return self._act(position, action)
        except UnreadableTextError as error:
            bug = error

        def fail() -> None:
            raise bug

        guarded("play", self, fail, lambda _: None)  # writes it down
        try:
            return self._act(position, None)
        except UnreadableTextError as error:
            return lost(position, error)

    def _act(self, position: Position, action: str | None) -> Position:
        """The position after an action; None: one that the environment did not finish."""
        clock = _clock(self._arguments[0])
        answer = clock("act", self._key, position.turns, action) if position is self._newest else None
        if answer is None:  # it is somewhere else, or was ended
            bare = replace(position, before=None)
            _clock("")("stand", self._key, self._arguments, bare, _trail(position), seconds=_START_SECONDS)
            answer = clock("act", self._key, position.turns, action)
        found, done = answer
        self._newest = replace(found, before=(position, done))
        return self._newest


def _trail(position: Position) -> list[tuple[int, str]]:
    """(player, action) of all that was done before it, in order."""
    trail: list[tuple[int, str]] = []
    while position.before is not None:
        position, action = position.before
        trail.append((position.player, action))
    return trail[::-1]


@functools.cache
def _clock(name: str) -> ClockedFunction:
    """What the actions of an environment take says what the next one may; starting one is another matter ("")."""
    return ClockedFunction(f"{__name__}:games")


# ------------------------------------------------------------------------------ in the process of the clock


def games() -> Callable[..., Any]:
    """The function of what is to be done with a game, its key, and more."""
    kept: OrderedDict[str, tuple[LiveGame, Position]] = OrderedDict()

    def keep(key: str, game: LiveGame, at: Position) -> None:
        kept[key] = game, at
        kept.move_to_end(key)
        if len(kept) > _MAX_GAMES:
            kept.popitem(last=False)

    def start(key: str, arguments: tuple[Any, ...]) -> Position:
        game = LiveGame(*arguments)
        keep(key, game, at := game.start())
        return at

    def stand(key: str, arguments: tuple[Any, ...], position: Position, trail: list[tuple[int, str]]) -> None:
        before: tuple[Position, str] | None = None
        for turns, (player, action) in enumerate(trail):
            before = Position(before, turns, player, ""), action
        game, at = LiveGame(*arguments), replace(position, before=before)
        game.go_to(at)
        keep(key, game, at)

    def act(key: str, turns: int, action: str | None) -> tuple[Position, str] | None:
        game, at = kept.get(key, (None, None))
        if game is None or at is None or at.turns != turns:
            return None
        found = game.after(at, action) if action is not None else game.after_failure(at)
        keep(key, game, found)
        return replace(found, before=None), found.before[1] if found.before else ""

    doing: dict[str, Callable[..., Any]] = {"start": start, "stand": stand, "act": act}
    return lambda what, *arguments: doing[what](*arguments)
