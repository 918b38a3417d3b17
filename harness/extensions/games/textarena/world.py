"""Positions of a game of TextArena as worlds that protocols step."""

from __future__ import annotations

import random
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol as Interface

from harness.api import Action, Facts, Reply
from harness.extensions.games.worlds import World
from harness.replies import FreeText

from .live import Position

_BLANKS = re.compile(r"(\s{50})\s+")
"""Environments read actions with regular expressions whose time grows with the cube of the blanks in a row."""


class TextGame(Interface):
    """What is carried over from one position to the next."""

    def start(self) -> Position:
        """The first position."""
        ...

    def after(self, position: Position, action: str) -> Position:
        """The position after an action of the player whose turn it is."""
        ...


class ExampleGame:
    """A stand-in that needs no package: each player acts once, and all end with nothing."""

    def __init__(self, players: int) -> None:
        self.players = players

    def start(self) -> Position:
        """The first player is to act."""
        text = "You are Player 0. Say something, or vote.\nValid targets: [0], [1]"
        news = {"from": "GAME", "text": text, "kind": "PROMPT"}
        return Position(None, 0, 0, f"\n[GAME] {text}", (news,), None, (0,) * self.players)

    def after(self, position: Position, action: str) -> Position:
        """The next player is to act, or the game is over."""
        player = position.player + 1
        over = player == self.players
        rewards = dict.fromkeys(range(self.players), 0.0) if over else None
        at = position.player if over else player
        return replace(position, before=(position, action), turns=position.turns + 1, player=at, rewards=rewards)


class TextWorld(World):
    """A state of a game: its position, and who plays which player.

    Args:
        game: plays on; shared by all states of an episode.
        position: this state.
        agents: their names, in the order of the players.
        max_chars: longer actions are cut to their last characters. Of blanks in a row the first 50 stay.
        form: what of a reply is the action.
    """

    def __init__(
        self, game: TextGame, position: Position, agents: Sequence[str], max_chars: int, form: FreeText | None = None
    ) -> None:
        self.game, self.position, self.agents, self.max_chars = game, position, agents, max_chars
        self.form = form or FreeText()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextWorld) and self.position == other.position

    __hash__ = None  # type: ignore[assignment]

    def observation(self, agent: str) -> Facts:
        """`text`, all that the environment shows, and `news`, the messages that are new; both empty out of turn.

        At the end `state`: what the agent was shown since its last turn.
        """
        if self.over:
            return {"text": "", "news": [], "state": self.position.unread.get(self.agents.index(agent), "")}
        if agent != self.agents[self.position.player]:
            return {"text": "", "news": []}
        return {"text": self.position.text, "news": list(self.position.news)}

    def reply(self, agent: str) -> Reply | None:
        """Any text, in the agent's turn."""
        return None if self.over or agent != self.agents[self.position.player] else self.form

    def step(self, actions: Mapping[str, Action], rng: random.Random) -> TextWorld:
        """The state after the agent's text; an agent that did nothing has sent an empty one."""
        action = actions.get(self.agents[self.position.player])
        text = _BLANKS.sub(r"\1", action[-self.max_chars :]) if isinstance(action, str) else ""
        return TextWorld(self.game, self.game.after(self.position, text), self.agents, self.max_chars, self.form)

    @property
    def over(self) -> bool:
        """Whether the environment says so."""
        return self.position.rewards is not None

    def facts(self) -> Facts:
        at = self.position
        words = [len(text.split()) for text in at.actions()]
        return {
            "returns": None if at.rewards is None else {self.agents[i]: reward for i, reward in at.rewards.items()},
            "invalid": dict(zip(self.agents, at.invalid, strict=True)),
            "secret_roles": {self.agents[i]: role for i, role in at.roles.items()},
            "reason": at.reason,
            "finished": float(at.rewards is not None),
            "words_per_turn": statistics.fmean(words) if words else None,
        }
