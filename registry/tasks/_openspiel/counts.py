"""What a seat may know and would have to count: rounds, turns, points taken, proposals made.

`tests/extensions/games/test_game_sufficiency.py` holds that no line tells more than a seat may know.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .loading import Loaded

Counter = Callable[[Loaded, Any, int], str]
_PROPOSED = re.compile(r"^Player (\d) proposes: (\[[^\]]*\])(?: utters: (\[[^\]]*\]))?", re.MULTILINE)
_POINTS = re.compile(r"^Points \(Solo / Team\): \((\d+) / (\d+)\)", re.MULTILINE)


def skat(loaded: Loaded, state: Any, seat: int) -> str:
    """The points of tricks, which all have seen; those of the cards laid aside come at the end."""
    found = None if state.is_terminal() else _POINTS.search(str(state))
    return f"Points in tricks so far: the soloist {found[1]}, the others {found[2]}." if found else ""


def negotiation(loaded: Loaded, state: Any, seat: int) -> str:
    """All proposals, each with what was said to it."""
    said = [
        f"Player-{who} {proposal}{f' (utterance {words})' if words else ''}"
        for who, proposal, words in _PROPOSED.findall(str(state))
    ]
    return f"Proposals so far: {'; '.join(said) or 'none'}"


def battleship(loaded: Loaded, state: Any, seat: int) -> str:
    """How many shots the seat has made, in which it may have hit a square twice."""
    made = sum(move.player == seat for move in state.full_history())
    ships = loaded.parameters["ship_sizes"].count(";") + 1
    return f"You have made {max(0, made - ships)} of {loaded.parameters['num_shots']} shots."


def repeated(loaded: Loaded, state: Any, seat: int) -> str:
    """The round, and what the rounds before it gave."""
    returns = ", ".join(f"Player-{i} {value:g}" for i, value in enumerate(state.returns()))
    number = state.move_number() + (not state.is_terminal())
    return f"Round {number} of {loaded.parameters['num_repetitions']}. Returns so far: {returns}."


def turns(limit: str, what: str) -> Counter:
    """The number of a turn, or of a joint one, where the game ends after as many as a parameter says."""

    def counted(loaded: Loaded, state: Any, seat: int) -> str:
        number = state.move_number()
        if loaded.chance:
            number = sum(move.player >= 0 for move in state.full_history())
            number //= state.num_players() if loaded.simultaneous else 1
        number += not state.is_terminal()
        return f"{what.capitalize()} {number} of {loaded.parameters[limit]}."

    return counted


ALWAYS: dict[str, Counter] = {
    "battleship": battleship,
    "coin_game": turns("episode_length", "turn"),
    "coop_box_pushing": turns("horizon", "step"),
    "negotiation": negotiation,
    "skat": skat,
}
LONG: dict[str, Counter] = {
    "chinese_checkers": turns("max_moves", "move"),
    "laser_tag": turns("horizon", "step"),
    "markov_soccer": turns("horizon", "step"),
    "repeated_game": repeated,
    "snake": turns("horizon", "step"),
}
"""Games whose moves are all shown, until there are too many."""


def counted(loaded: Loaded, state: Any, seat: int, is_long: bool) -> str:
    """The line of a game, if it has one. `is_long`: whether the first moves are no longer shown."""
    counter = ALWAYS.get(loaded.name) or (LONG.get(loaded.name) if is_long else None)
    return counter(loaded, state, seat) if counter else ""
