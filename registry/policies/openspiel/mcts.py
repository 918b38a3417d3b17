"""OpenSpiel's own Monte Carlo tree search (Kocsis & Szepesvári, 2006, with solved subtrees)."""

from __future__ import annotations

import random
from typing import Annotated, Any

from harness.api import Range, plugin

from ...tasks._openspiel.loading import LoadedGame
from ._follower import Follower


@plugin
class MCTS(Follower):
    """Searches the game's tree with random rollouts, again in each turn: a ceiling for games that hide nothing.

    It plays sequential games for any number of players, with and without chance. Games with hidden information and
    simultaneous ones are refused: the search would have to know what a player cannot. The same seed gives the same
    moves.

    Attributes:
        simulations: how many playouts a turn.
        exploration: the constant c of UCT, in units of the game's returns.
        rollouts: random games at each new leaf, whose mean counts.
    """

    simulations: Annotated[int, Range(ge=1, le=10_000_000)] = 200
    exploration: Annotated[float, Range(ge=0)] = 2.0
    rollouts: Annotated[int, Range(ge=1, le=10_000)] = 1

    def unplayable(self, loaded: LoadedGame) -> str | None:
        """Simultaneous games."""
        return f"{loaded.name} is simultaneous, and this search is for one at a time" if loaded.simultaneous else None

    def step(self, loaded: LoadedGame, state: Any, seat: int, rng: random.Random) -> int:
        """The action that the search visited most."""
        import pyspiel

        seed = rng.getrandbits(31)
        evaluator = pyspiel.RandomRolloutEvaluator(self.rollouts, seed)
        bot = pyspiel.MCTSBot(loaded.game, evaluator, self.exploration, self.simulations, 256, True, seed, False)
        return int(bot.step(state))
