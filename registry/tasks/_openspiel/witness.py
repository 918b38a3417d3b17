"""What a seat observes between its turns, in games with hidden information: what a player could see, nothing else.

`tests/extensions/games/test_game_sufficiency.py` plays all games and compares these observations with OpenSpiel's
information states: nothing leaks, and nothing is lost.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .readable import readable

_HINTED = re.compile(r"\(?Reveal player \+(\d+) (color|rank) (\w+)\)?")
_CARD = re.compile(r"\(?(Play|Discard) (\d+)\)?")


class Played(NamedTuple):
    """What happened between two states in which agents decide, as one seat may observe it.

    Attributes:
        game: its short name.
        agents: the agents, in the order of seats.
        seat: the seat that observes.
        before: OpenSpiel's text of the state before, for this seat, whether the seat saw it or not.
        after: the same of the new state.
        moves: seat → the name of its action; empty at the start of the game, before which there is no text.
        waits: whether the seat has no turn in the new state, and so does not see its text.
    """

    game: str
    agents: Sequence[str]
    seat: int
    before: str
    after: str
    moves: Mapping[int, str]
    waits: bool


Witness = Callable[[Played], list[str]]


@dataclass(frozen=True, slots=True)
class ObservedLines:
    """The lines that a seat has observed, and how many of them since its last turn."""

    lines: tuple[str, ...] = ()
    since: int = 0

    def turn(self) -> ObservedLines:
        """The same after a turn of the seat."""
        return ObservedLines(self.lines, 0)

    def add(self, lines: Sequence[str], keep: int) -> ObservedLines:
        """With more lines; keeps those since the last turn, and `keep` in all if there are fewer."""
        since = self.since + len(lines)
        most = max(keep, since)
        return ObservedLines((*self.lines, *lines)[-most:] if most else (), since)

    def last(self, least: int) -> list[str]:
        """The lines since the last turn; more of them if these are fewer than `least`."""
        most = max(least, self.since)
        return list(self.lines[-most:]) if most else []


def views(played: Played) -> list[str]:
    """What a waiting seat sees at the start and after moves, if it is new. The moves themselves are hidden."""
    if not played.waits or played.after == played.before:
        return []
    who = "your move" if played.seat in played.moves else "a move of " + ", ".join(_names(played))
    when = f"After {who}" if played.moves else "At the start"
    return [f"{when} you saw:\n{readable(played.game, played.after, played.seat)}"]


def moves(played: Played) -> list[str]:
    """All moves by name."""
    return [f"{who}: {move}" for who, move in zip(_names(played), played.moves.values(), strict=True)]


def battleship(played: Played) -> list[str]:
    """Shots by name; where others place their ships is hidden."""
    return [
        f"{who}: {move if 'ally' not in move or played.seat in played.moves else 'places a ship'}"
        for who, move in zip(_names(played), played.moves.values(), strict=True)
    ]


def skat(played: Played) -> list[str]:
    """Bids and cards by name; the cards that the soloist lays aside are hidden."""
    aside = "Phase:discarding" in played.before and played.seat not in played.moves
    return [f"{who}: lays a card aside" for who in _names(played)] if aside else moves(played)


def kriegspiel(played: Played) -> list[str]:
    """The umpire's answer to each try; the tries of the other player are hidden."""
    says = played.after.partition("\n")[2].strip()
    return [
        f"{played.agents[seat]}: {move if seat == played.seat else 'a try'}; umpire: {says}"
        for seat, move in played.moves.items()
    ]


def hanabi(played: Played) -> list[str]:
    """Moves with what came of them: the card and whether it fits, the card drawn, the cards that a hint is about."""
    if not played.moves:
        return []
    [(mover, move)] = played.moves.items()
    who, players = played.agents[mover], len(played.agents)
    before, after = _hands(played.before), _hands(played.after)
    if hint := _HINTED.fullmatch(move):
        target = (mover + int(hint[1])) % players
        place = 0 if hint[2] == "color" else 1
        hand = after[(target - played.seat) % players]
        about = [str(i) for i, card in enumerate(hand) if card.partition("|| ")[2][place : place + 1] == hint[3]]
        return [f"{who}: tells {played.agents[target]} that {hint[2]} {hint[3]} is on cards {', '.join(about)}"]
    if not (acted := _CARD.fullmatch(move)):
        return moves(played)
    own = (mover - played.seat) % players
    card = before[own][int(acted[2])][:2] if own else _gone(played, acted[1])
    lost = _value(played.before, "Life tokens") != _value(played.after, "Life tokens")
    what = "discards" if acted[1] == "Discard" else "plays, which fails," if lost else "plays, which fits,"
    drawn = f", and draws {after[own][-1][:2]}" if own and len(after[own]) == len(before[own]) else ""
    return [f"{who}: {what} card {acted[2]}: {card}{drawn}"]


def gin_rummy(played: Played) -> list[str]:
    """Moves by name, with the card that was taken up where the seat knows it."""
    lines = []
    for who, move in zip(_names(played), played.moves.values(), strict=True):
        card = move
        if move == "Draw upcard":
            card = f"draws the upcard {_value(played.before, 'Stock size').rpartition(' ')[2]}"
        elif move == "Draw stock":
            new = {*_own(played.after)} - {*_own(played.before)} if played.seat in played.moves else set()
            card = f"draws {' '.join(sorted(new)) or 'a card'} from the stock"
        elif len(move) == 2:
            card = f"lays off {move}" if "Phase: Layoff" in played.before else f"discards {move}"
        lines.append(f"{who}: {card}")
    return lines


def _own(text: str) -> list[str]:
    """The cards of the hand that is shown; of both once the hand is over."""
    return re.findall(r"[A2-9TJQK][scdh]", "".join(line for line in text.split("\n") if line.startswith("|")))


def crazy_eights(played: Played) -> list[str]:
    """All moves by name, and the first card of all."""
    first = next((line for line in played.after.split("\n") if line.startswith("Previous card")), "")
    return moves(played) if played.moves else [first.replace("Previous", "First")]


def go_fish(played: Played) -> list[str]:
    """Questions by name, and the seat's own cards if they change while it waits."""
    cards = next((line for line in played.after.split("\n") if line.startswith("Your cards")), "")
    return moves(played) + ([cards] if played.waits and cards not in played.before else [])


def _gone(played: Played, how: str) -> str:
    """The own card that a move showed: the firework that grew, or the new last discard."""
    before, after = (_value(text, "Fireworks").split() for text in (played.before, played.after))
    grown = [new for old, new in zip(before, after, strict=False) if old != new]
    discards = _value(played.after, "Discards").split()
    return grown[0] if how == "Play" and grown else discards[-1] if discards else "unknown"


def _value(text: str, key: str) -> str:
    found = re.search(rf"^{key}: ?(.*)$", text, re.MULTILINE)
    return found[1] if found else ""


@functools.lru_cache(maxsize=2000)
def _hands(text: str) -> list[list[str]]:
    blocks = text.partition("Hands:")[2].partition("Deck size")[0].split("-----")
    return [[line for line in block.split("\n") if "||" in line] for block in blocks]


def _names(played: Played) -> list[str]:
    return [played.agents[seat] for seat in played.moves]


WITNESSES: dict[str, Witness] = {
    "battleship": battleship,
    "crazy_eights": crazy_eights,
    "dou_dizhu": moves,
    "gin_rummy": gin_rummy,
    "go_fish": go_fish,
    "hanabi": hanabi,
    "kriegspiel": kriegspiel,
    "negotiation": moves,
    "skat": skat,
    "spades": moves,
}
"""Game → the function that says what a seat observes; `views` serves all other games."""


def witness(name: str) -> Witness:
    """The function that says what a seat of this game observes while others act."""
    return WITNESSES.get(name, views)
