"""A floor for text games."""

from __future__ import annotations

import random

from harness.api import Action, Policy, Turn, plugin
from harness.extensions.games.textarena import listed
from harness.replies import FreeText
from harness.replies.action_with_message import ActionWithMessage


@plugin
class RandomMove(Policy):
    """Plays one of the moves in brackets that the game has listed last (`Valid targets: [0], [3]`), each equally often.

    Its return is a floor for games that list their moves. In others most of its moves are invalid: `moves` names some.

    Attributes:
        moves: the moves, for a game that lists none: `["[Cooperate]", "[Defect]"]`.
        otherwise: what it says where the game has listed nothing since its last turn, as in a discussion; by default
            it plays one of the moves before.
    """

    moves: list[str] | None = None
    otherwise: str | None = None

    def __post_init__(self) -> None:
        self._listed = self.moves or []

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """Return a move, without a message beside it; nothing in turns of another kind."""
        if isinstance(turn.reply, ActionWithMessage):
            return {"act": self._move(turn, rng), "message": None}
        return self._move(turn, rng) if isinstance(turn.reply, FreeText) else turn.reply.noop

    def _move(self, turn: Turn, rng: random.Random) -> str:
        fresh = listed(turn.observation["news"])
        if self.moves is None and fresh:
            self._listed = fresh
        if not fresh and self.otherwise is not None:
            return self.otherwise
        return rng.choice(self._listed) if self._listed else "I have nothing to say."
