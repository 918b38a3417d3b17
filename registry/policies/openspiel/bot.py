"""Any player that OpenSpiel has by name."""

from __future__ import annotations

import random
from dataclasses import field
from typing import Any

from harness.api import PluginError, near, plugin

from ...tasks._openspiel.loading import LoadedGame, package
from ._follower import Follower


@plugin
class Bot(Follower):
    """A bot of OpenSpiel's registry, such as uniform_random or fixed_action_preference, in games that hide nothing.

    Attributes:
        bot: its name there.
        parameters: its parameters, such as {actions: "0:1:2"}.
    """

    bot: str
    parameters: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        pyspiel = package()
        if pyspiel is not None and self.bot not in (names := pyspiel.registered_bots()):
            raise PluginError(f"OpenSpiel has no bot {self.bot!r}", hint=near(self.bot, names), at=("bot",))
        self._bot: Any = None

    def step(self, loaded: LoadedGame, state: Any, seat: int, rng: random.Random) -> int:
        """What the bot does."""
        import pyspiel

        if self._bot is None:
            parameters = dict(self.parameters)
            if self.bot == "uniform_random":
                parameters.setdefault("seed", rng.getrandbits(31))
            self._bot = pyspiel.load_bot(self.bot, loaded.game, seat, parameters)
        return int(self._bot.step(state))
