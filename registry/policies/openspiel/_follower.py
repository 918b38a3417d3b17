"""What policies share that OpenSpiel's own players stand behind: they follow the game by its history."""

from __future__ import annotations

import random
from abc import abstractmethod
from typing import Any

from harness.api import Action, Policy, Task, Turn
from harness.replies.action_with_message import ActionWithMessage

from ...tasks._openspiel.loading import LoadedGame, load, package
from ...tasks._openspiel.state import choices, move_of
from ...tasks.openspiel import OpenSpiel


class Follower(Policy):
    """Chooses by OpenSpiel's state of the game, which it plays along from the observed `history`.

    Only games that hide nothing have a history that every agent may know.
    """

    _state: Any = None
    _known = 0

    @abstractmethod
    def step(self, loaded: LoadedGame, state: Any, seat: int, rng: random.Random) -> int:
        """The number of the action in this state."""

    def unplayable(self, loaded: LoadedGame) -> str | None:
        """Why it cannot play a game that hides nothing; None if it can."""
        return None

    def misfit(self, task: Task) -> str | None:
        """Only OpenSpiel's games that hide nothing."""
        if not isinstance(task, OpenSpiel):
            return "it plays games of the task openspiel"
        if package() is None:
            return None  # what the game is like is unknown, and nothing plays
        loaded = task.loaded
        if not loaded.public:
            return f"{loaded.name} hides something, and it would need the whole state; `random` plays every game"
        return self.unplayable(loaded)

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """One of the legal actions."""
        loaded, history = load(turn.context["game"]), turn.observation["history"]
        if self._state is None:
            self._state, self._known = loaded.game.new_initial_state(), 0
        while self._known < len(history):
            self._follow(history)
        reply = turn.reply.act if isinstance(turn.reply, ActionWithMessage) else turn.reply
        if not reply.options:
            return reply.noop if reply is turn.reply else turn.reply.noop
        seat = turn.context["number"]
        numbers, number = choices(loaded, self._state, seat)[0], self.step(loaded, self._state, seat, rng)
        if number not in numbers:  # backgammon: another number of the same moves
            same = move_of(self._state, seat, number)
            number = next(other for other in numbers if move_of(self._state, seat, other) == same)
        action = reply.options[numbers.index(number)]
        return action if reply is turn.reply else {"act": action, "message": None}

    def _follow(self, history: list[int]) -> None:
        if self._state.is_simultaneous_node():
            end = self._known + self._state.num_players()
            self._state.apply_actions(history[self._known : end])
        else:
            end = self._known + 1
            self._state.apply_action(history[self._known])
        self._known = end
