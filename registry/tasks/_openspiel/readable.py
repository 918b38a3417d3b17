"""What a seat sees, written as people write it: boards with coordinates, cards by the names that moves give them.

A renderer is a function of OpenSpiel's text and the number of the seat. It loses nothing:
`tests/extensions/games/test_game_sufficiency.py` compares what seats read with what OpenSpiel tells them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from . import boards, cards
from .hive import hive

Renderer = Callable[[str, int], str]
_COLORS = re.compile(r"\x1b\[[0-9;]*m")


def nothing(text: str, seat: int) -> str:
    """What the moves say already."""
    return ""


def negotiation(text: str, seat: int) -> str:
    """What the words of the game mean."""
    text = re.sub(r"Agent \d+ util vec", "What one item of each kind is worth to you", text)
    text = text.replace("Max steps", "Proposals at most").replace("Item pool", "Items of each kind")
    text = re.sub(r"Current player: -\d+\nTurn Type: .*\n?", "", text)  # the game is over
    return re.sub(r"Current player: (\d)", r"To act: Player-\1", text)


RENDERERS: dict[str, Renderer] = {
    "amazons": boards.amazons,
    "antichess": boards.chess,
    "backgammon": boards.points,
    "banqi": boards.counted,
    "battleship": boards.boards,
    "bridge": cards.bridge,
    "chess": boards.chess,
    "chinese_checkers": boards.star,
    "colored_trails": boards.trails,
    "connect_four": boards.columns,
    "crazyhouse": boards.chess,
    "dark_chess": boards.chess,
    "dark_hex": boards.hexagons,
    "dark_hex_ir": boards.forgotten_hexagons,
    "dots_and_boxes": boards.boxes,
    "gin_rummy": cards.gin_rummy,
    "gomoku": boards.counted,
    "goofspiel": cards.goofspiel,
    "hanabi": cards.hanabi,
    "hex": boards.rhombus,
    "hive": hive,
    "kriegspiel": boards.kriegspiel,
    "latent_ttt": boards.latent,
    "mancala": boards.mancala,
    "mnk": boards.counted,
    "negotiation": negotiation,
    "nine_mens_morris": boards.morris,
    "oh_hell": cards.oh_hell,
    "oware": boards.oware,
    "phantom_ttt": boards.tries,
    "phantom_ttt_ir": boards.forgotten,
    "rbc": boards.blind_chess,
    "repeated_game": nothing,
    "shogi": boards.shogi,
    "skat": cards.skat,
    "tarok": cards.tarok,
    "tic_tac_toe": boards.counted,
    "ultimate_tic_tac_toe": boards.nine_boards,
    "xiangqi": boards.counted,
}
"""Game → what makes its texts readable."""


def readable(name: str, text: str, seat: int) -> str:
    """What a seat reads of a game's text; the text itself where nothing needs to be said better."""
    text = _COLORS.sub("", text)
    renderer = RENDERERS.get(name)
    return renderer(text, seat) if renderer and text else text
