"""What stands in for a game where OpenSpiel is not installed: prompts can be rendered and checked without it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from harness.api import Action, Facts
from harness.extensions.games.legal import LegalAction
from harness.extensions.games.worlds import World


class AnyAction(LegalAction):
    """A legal action whose real names are unknown: every text may be one."""

    __slots__ = ()

    def allows(self, action: Action) -> bool:
        """Whether it is a text."""
        return isinstance(action, str)


class ExampleState(World):
    """All agents act twice, at the same time; nothing they do matters."""

    def __init__(self, agents: tuple[str, ...], moves: tuple[Facts, ...] = ()) -> None:
        self.agents, self.moves = agents, moves

    def observation(self, agent: str) -> Facts:
        """The facts that a game's observation has."""
        moves: list[Any] = list(self.moves)
        legal = ["first", "second"]
        return {"state": "…", "legal": legal, "legal_count": 2, "moves": moves, "recent": ["…"], "history": []}

    def reply(self, agent: str) -> LegalAction | None:
        """Any text."""
        return None if self.over else AnyAction(("first", "second"))

    def step(self, actions: Mapping[str, Action], rng: random.Random) -> ExampleState:
        """One step nearer to the end."""
        move = {agent: str(actions.get(agent) or "first") for agent in self.agents}
        return ExampleState(self.agents, (*self.moves, move))

    def facts(self) -> Facts:
        """Returns of 0."""
        return {"returns": dict.fromkeys(self.agents, 0.0), "invalid": dict.fromkeys(self.agents, 0)}

    @property
    def over(self) -> bool:
        """After two steps."""
        return len(self.moves) >= 2
