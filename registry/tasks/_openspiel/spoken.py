"""What people write for moves, besides the names that OpenSpiel has for them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Others = Callable[[Any, int, Sequence[int], Sequence[str]], Iterator[tuple[str, str]]]
_SUITS = {"S": "spades", "H": "hearts", "D": "diamonds", "C": "clubs"}
_RANKS = {"A": "ace", "K": "king", "Q": "queen", "J": "jack", "T": "10"}
_CARD = re.compile(r"(Play )?(?:([SHDC])([2-9TJQKA])|([2-9TJQKA])([SHDCshdc]))")
_SIGNS = {"♠": "spades", "♥": "hearts", "♦": "diamonds", "♣": "clubs"}
_BRIDGE = re.compile(r"([♠♥♦♣])(10|[2-9JQKA])|([1-7])([♠♥♦♣])")
_HANABI = re.compile(r"\((?:(Play|Discard) (\d)|Reveal player \+(\d) (?:color (\w)|rank (\d)))\)")
_HANABI_COLORS = {"R": "red", "Y": "yellow", "G": "green", "W": "white", "B": "blue"}


def chess(state: Any, seat: int, actions: Sequence[int], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The square from and the square to, as chess programs write it: e2e4, e7e8q."""
    import pyspiel

    board = state.board()
    for action, name in zip(actions, names, strict=True):
        move = pyspiel.chess.action_to_move(action, board).to_lan()
        yield move, name
        yield f"{move[:2]}-{move[2:]}", name


def columns(state: Any, seat: int, actions: Sequence[int], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """A column by its number."""
    for name in names:
        yield f"column {name[1:]}", name


def cards(state: Any, seat: int, actions: Sequence[int], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Cards in words, and with rank and suit the other way round."""
    for name in names:
        if card := _CARD.fullmatch(name):
            suit, rank = (card[2] or card[5]).upper(), card[3] or card[4]
            words = _RANKS.get(rank, rank)
            for written in (suit + rank, rank + suit, f"{words} of {_SUITS[suit]}", f"the {words} of {_SUITS[suit]}"):
                if written != name:
                    yield written, name
            if rank == "T":
                yield from ((f"{suit}10", name), (f"10{suit}", name), (f"ten of {_SUITS[suit]}", name))


def skat(state: Any, seat: int, actions: Sequence[int], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Cards; a game by its suit alone, or as one declares it."""
    yield from cards(state, seat, actions, names)
    if "null" in names:
        signs = {suit: sign for sign, suit in _SIGNS.items()}
        for name in (name for name in names if name != "pass"):
            yield from ((f"declare {name}", name), (f"a {name} game", name), (f"game in {name}", name))
            if name in signs:
                yield from ((signs[name], name), (name.removesuffix("s"), name))


def trails(state: Any, seat: int, actions: Sequence[int], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Whose offer the responder takes, or none; a proposer may pass."""
    for name in names:
        if name.startswith("Deal: "):
            for who in (f"{word}{name[-1]}" for word in ("proposer ", "player ", "Player-")):
                yield from ((one, name) for one in (who, f"trade with {who}", f"deal with {who}", f"accept {who}"))
        elif name in ("No Deal!", "Pass trade."):
            others = ("no trade", "no deal", "reject both") if name == "No Deal!" else ("no trade", "pass")
            yield from ((one, name) for one in others)


def bids(state: Any, seat: int, actions: Sequence[int], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Cards, and bids that say what they count."""
    yield from cards(state, seat, actions, names)
    for name in names:
        if name.isdecimal():
            yield from ((f"bid {name}", name), (f"{name} trick{'s' * (name != '1')}", name))


def bridge(state: Any, seat: int, actions: Sequence[int], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Cards and bids with letters and words for suits, and cards with their rank before the suit."""
    for name in names:
        if not (found := _BRIDGE.fullmatch(name)):
            continue
        sign = found[1] or found[4]
        suit = _SIGNS[sign]
        if found[3]:
            yield from ((f"{found[3]}{suit[0]}", name), (f"{found[3]} {suit}", name), (f"{found[3]} {suit[:-1]}", name))
            continue
        rank = found[2]
        words = _RANKS.get(rank, rank)
        yield from ((f"{rank}{sign}", name), (f"{rank}{suit[0]}", name), (f"{suit[0]}{rank}", name))
        yield from ((f"{words} of {suit}", name), (f"the {words} of {suit}", name))


def gin_rummy(state: Any, seat: int, actions: Sequence[int], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Draws and discards in words."""
    yield from cards(state, seat, actions, names)
    for name in names:
        if name in ("Draw stock", "Draw upcard"):
            yield f"draw from the {name[5:]}", name
            yield f"draw the {name[5:]}", name
        elif _CARD.fullmatch(name):
            yield f"discard {name}", name


def hanabi(state: Any, seat: int, actions: Sequence[int], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Cards by their places, and hints to a player by its name."""
    players = state.get_game().num_players()
    for name in names:
        if not (move := _HANABI.fullmatch(name)):
            continue
        if move[1]:
            yield f"{move[1]} card {move[2]}", name
            continue
        value, target = move[4] or move[5], f"Player-{(seat + int(move[3])) % players}"
        kind = "color" if move[4] else "rank"
        yield from ((f"reveal {who} {kind} {value}", name) for who in (target, target.replace("-", " ")))
        for what in (f"{kind} {value}", _HANABI_COLORS.get(value, f"{value}s")):
            yield from ((f"{verb} {what} to {target}", name) for verb in ("reveal", "hint"))
            yield from ((f"{verb} {target} {what}", name) for verb in ("tell", "hint"))


_OTHERS: dict[str, Others] = {
    "bridge": bridge,
    "chess": chess,
    "colored_trails": trails,
    "connect_four": columns,
    "crazy_eights": cards,
    "euchre": cards,
    "gin_rummy": gin_rummy,
    "hanabi": hanabi,
    "hearts": cards,
    "oh_hell": bids,
    "skat": skat,
    "spades": bids,
}


class Spoken(Sequence[tuple[str, str]]):
    """(what people write, the name of the action) of a seat's legal actions, without what is a name itself.

    They are written out where they are read: most turns are of players that write names, or of policies.
    """

    def __init__(self, others: Others, state: Any, seat: int, actions: Sequence[int], names: Sequence[str]) -> None:
        self._arguments = (others, state, seat, actions, names)

    @functools.cached_property
    def _pairs(self) -> tuple[tuple[str, str], ...]:
        others, state, seat, actions, names = self._arguments
        taken = {name.casefold() for name in names}
        return tuple(pair for pair in others(state, seat, actions, names) if pair[0].casefold() not in taken)

    def __getitem__(self, index: Any) -> Any:
        return self._pairs[index]

    def __len__(self) -> int:
        return len(self._pairs)

    def __eq__(self, other: object) -> bool:
        return self._pairs == (other._pairs if isinstance(other, Spoken) else other)

    def __hash__(self) -> int:
        return hash(self._pairs)

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self._pairs,)


def variants(game: str, names: Sequence[str]) -> tuple[str, ...]:
    """Words that people put behind names of actions, for others that OpenSpiel does not have: hand games in skat.

    Cards may well come from the hand.
    """
    bid = game == "skat" and "null" in names
    return ("hand", "ouvert", "ouverte", "open", "schneider", "schwarz") if bid else ()


def also(game: str, state: Any, seat: int, actions: Sequence[int], names: Sequence[str]) -> Sequence[tuple[str, str]]:
    """What people write for a seat's legal actions in this state, which nothing may change: `Spoken`."""
    others = _OTHERS.get(game)
    return Spoken(others, state, seat, actions, names) if others is not None else ()
