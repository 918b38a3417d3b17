"""What a seat may know and would have to count: rounds, turns, points taken, proposals made.

`tests/extensions/games/test_game_sufficiency.py` holds that no line tells more than a seat may know.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .loading import LoadedGame

Counter = Callable[[LoadedGame, Any, int], str]
_PROPOSED = re.compile(r"^Player (\d) proposes: (\[[^\]]*\])(?: utters: (\[[^\]]*\]))?", re.MULTILINE)
_POINTS = re.compile(r"^Points \(Solo / Team\): \((\d+) / (\d+)\)", re.MULTILINE)


def skat(loaded: LoadedGame, state: Any, seat: int) -> str:
    """The points of tricks, which all have seen; those of the cards laid aside come at the end."""
    found = None if state.is_terminal() else _POINTS.search(str(state))
    return f"Points in tricks so far: the soloist {found[1]}, the others {found[2]}." if found else ""


def negotiation(loaded: LoadedGame, state: Any, seat: int) -> str:
    """All proposals, each with what was said to it."""
    said = [
        f"Player-{who} {proposal}{f' (utterance {words})' if words else ''}"
        for who, proposal, words in _PROPOSED.findall(str(state))
    ]
    return f"Proposals so far: {'; '.join(said) or 'none'}"


def battleship(loaded: LoadedGame, state: Any, seat: int) -> str:
    """How many shots the seat has made, in which it may have hit a square twice."""
    made = sum(move.player == seat for move in state.full_history())
    ships = loaded.parameters["ship_sizes"].count(";") + 1
    return f"You have made {max(0, made - ships)} of {loaded.parameters['num_shots']} shots."


def repeated(loaded: LoadedGame, state: Any, seat: int) -> str:
    """The round, and what the rounds before it gave."""
    returns = ", ".join(f"Player-{i} {value:g}" for i, value in enumerate(state.returns()))
    number = state.move_number() + (not state.is_terminal())
    return f"Round {number} of {loaded.parameters['num_repetitions']}. Returns so far: {returns}."


def ludo(loaded: LoadedGame, state: Any, seat: int) -> str:
    """The numbers of the fields with pieces: each player's from its own start, and from the reader's."""
    rows, apart = state.observation_string(seat).split("\n"), 10
    if loaded.players == 2 and loaded.parameters["twoPlayersOpposite"]:
        apart = 20
    lines = []
    for player in range(loaded.players):
        start, piece = player * apart, str(player + 1)
        fields = [i for i in range(40) if _at(rows, *_TRACK[(start + i) % 40]) == piece]
        seen = [str(i) if player == seat else f"{i} (your {(start + i - seat * apart) % 40})" for i in fields]
        row, column, down, right = _GOALS[start // 10]
        goals = [_at(rows, row + i * down, column + i * right) == piece for i in range(4)]
        seen += [f"{i} (goal)" for i, taken in enumerate(goals, 40) if taken]
        where = f"on fields {', '.join(seen)}" if seen else "on no field"
        lines.append(f"{'You' if player == seat else f'Player-{player}'} ({piece}): {where}; {4 - len(seen)} outside")
    return "\n".join(lines)


def _at(rows: list[str], row: int, column: int) -> str:
    return rows[row][2 * column]


_LEGS = ((0, 1, 4), (-1, 0, 4), (0, 1, 2), (1, 0, 4), (0, 1, 4), (1, 0, 2),
         (0, -1, 4), (1, 0, 4), (0, -1, 2), (-1, 0, 4), (0, -1, 4), (-1, 0, 1))  # fmt: skip
_STEPS = [(down, right) for down, right, steps in _LEGS for _ in range(steps)]
_TRACK = [(4 + sum(d for d, _ in _STEPS[:i]), sum(r for _, r in _STEPS[:i])) for i in range(40)]
"""Row and column of each field of ludo, from the start of Player-0 on."""
_GOALS = ((5, 1, 0, 1), (1, 5, 1, 0), (5, 9, 0, -1), (9, 5, -1, 0))
"""First goal field of each corner, and the way to the next."""


def turns(limit: str, what: str) -> Counter:
    """The number of a turn, or of a joint one, where the game ends after as many as a parameter says."""

    def counted(loaded: LoadedGame, state: Any, seat: int) -> str:
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
    "maedn": ludo,
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


def counted(loaded: LoadedGame, state: Any, seat: int, is_long: bool) -> str:
    """The line of a game, if it has one. `is_long`: whether the first moves are no longer shown."""
    counter = ALWAYS.get(loaded.name) or (LONG.get(loaded.name) if is_long else None)
    return counter(loaded, state, seat) if counter else ""
