"""What a seat sees, written as people write it: boards with coordinates, cards by the names that moves give them.

A renderer is a function of OpenSpiel's text and the number of the seat. It loses nothing:
`tests/extensions/games/test_game_sufficiency.py` compares what seats read with what OpenSpiel tells them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence

Renderer = Callable[[str, int], str]
_COLORS = re.compile(r"\x1b\[[0-9;]*m")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def grid(rows: Sequence[Iterable[str]], down: Sequence[str], across: Sequence[str]) -> str:
    """A board of cells, with a name before each row and the names of the columns below."""
    cells = [[*row] for row in rows]
    width = max(max(map(len, row)) for row in [*cells, across])
    edge = max(map(len, down))
    if width > 1:
        cells, across = [[text.ljust(width) for text in row] for row in cells], [text.ljust(width) for text in across]
    lines = [f"{name:>{edge}} " + " ".join(row).rstrip() for name, row in zip(down, cells, strict=True)]
    return "\n".join([*lines, " " * (edge + 1) + " ".join(across).rstrip()])


def counted(text: str, seat: int) -> str:
    """A board of characters whose rows and columns moves count from 0; lines below it stay as they are."""
    lines = text.split("\n")
    start = int(len(lines[0]) == 1)  # who is to move
    rows = [line.split() if " " in line else [*line] for line in lines[start:]]
    size = len(rows[0])
    many = next((i for i, row in enumerate(rows) if len(row) != size), len(rows))
    board = grid(rows[:many], [*map(str, range(many))], [*map(str, range(size))])
    return "\n".join([*lines[:start], board, *lines[start + many :]]).rstrip("\n")


def amazons(text: str, seat: int) -> str:
    """A board whose rows and columns moves count from 1."""
    rows = text.split("\n")
    return grid(rows, [str(1 + i) for i in range(len(rows))], [str(1 + i) for i in range(len(rows[0]))])


def rhombus(text: str, seat: int) -> str:
    """A rhombus of cells, with the letters of columns above and the numbers of rows before it."""
    rows = text.rstrip().split("\n")
    edge = len(str(len(rows)))
    head = " " * (edge + 1) + " ".join(_LETTERS[: len(rows[0].split())])
    return "\n".join([head, *(f"{i:>{edge}} {row.rstrip()}" for i, row in enumerate(rows, 1))])


def goofspiel(text: str, seat: int) -> str:
    """OpenSpiel's text, with blanks between the point cards that are left: one fewer than cards in a hand."""

    def apart(found: re.Match[str]) -> str:
        digits = found[2]
        hand = re.search(rf"^P{seat} hand: (.*)$", text, re.MULTILINE)
        single = 2 * (len(hand[1].split()) - 1) - len(digits) if hand else -1
        if not 0 <= single <= len(digits):
            return found[0]
        cards = [*digits[:single], *re.findall("..", digits[single:])]
        return f"{found[1]}{' '.join(cards)}"

    return re.sub(r"^(Remaining Point Cards: )(\d+)$", apart, text, flags=re.MULTILINE)


def tries(text: str, seat: int) -> str:
    """A counted board, and under it the cells that the seat has tried, in order."""
    board, below = _split_board(text)
    size = len(board[0])
    cells = [int(cell) for cell in re.findall(r"\d,(\d+)", below)]
    places = " ".join(f"({cell // size},{cell % size})" for cell in cells)
    return f"{counted(chr(10).join(board), seat)}\nYour tries: {places or 'none'}"


def forgotten(text: str, seat: int) -> str:
    """The counted board of a player who is told no more than what it holds."""
    number, _, board = text.partition(" ")
    return f"You are Player-{number[1:]}.\n{counted(board, seat)}"


def forgotten_hexagons(text: str, seat: int) -> str:
    """The same with cells named by column and row."""
    number, _, board = text.partition(" ")
    rows = board.split("\n")
    down = [str(1 + i) for i in range(len(rows))]
    return f"You are Player-{number[1:]}.\n{grid(rows, down, _LETTERS[: len(rows[0])])}"


def latent(text: str, seat: int) -> str:
    """A counted board, and under it the moves that the seat knows, in order."""
    board, below = _split_board(text)
    moves = [f"Player-{who}: ({int(cell) // 3},{int(cell) % 3})" for who, cell in re.findall(r"(\d),(\d+)", below)]
    return f"{counted(chr(10).join(board), seat)}\nMoves that you know: {', '.join(moves) or 'none'}"


def hexagons(text: str, seat: int) -> str:
    """A rhombus of cells named by column and row; under it the tries of both, and the seat's own in order."""
    board, below = _split_board(text)
    size = len(board[0])
    shown = grid(board, [str(1 + i) for i in range(len(board))], _LETTERS[:size])
    number, _, rest = below.partition("\n")
    cells = [int(cell) for cell in re.findall(r"\d,(\d+)", rest)]
    places = " ".join(f"{_LETTERS[cell % size]}{cell // size + 1}" for cell in cells)
    return f"{shown}\nTries of both players: {number or 0}. Your tries: {places or 'none'}"


def _split_board(text: str) -> tuple[list[str], str]:
    lines = text.split("\n")
    many = next((i for i, line in enumerate(lines) if re.search(r"[^.xo]", line)), len(lines))
    return lines[:many], "\n".join(lines[many:])


def boards(text: str, seat: int) -> str:
    """Boards of characters within frames, with rows and columns counted from 0; . is a blank."""

    def board(found: re.Match[str]) -> str:
        rows = [line[1:-1].replace(" ", ".") for line in found[1].split("\n") if line]
        return grid(rows, [*map(str, range(len(rows)))], [*map(str, range(len(rows[0])))])

    text = re.sub(r"\+-+\+\n((?:\|.*\|\n)+)\+-+\+", board, text)
    return text.replace("State of player's ships", "Your ships").replace("Player's shot outcomes", "Your shots")


def columns(text: str, seat: int) -> str:
    """A board whose moves name a column, counted from 0."""
    return text + "\n" + "".join(str(i % 10) for i in range(len(text.partition("\n")[0])))


def oware(text: str, seat: int) -> str:
    """Houses by the letters of actions."""
    mover, stores, seeds = (part.split() for part in text.split("|"))
    half = len(seeds) // 2
    lines = [f"To act: Player-{mover[0]}. Captured: Player-0 {stores[0]}, Player-1 {stores[1]}"]
    for who, letters in enumerate((_LETTERS.upper(), _LETTERS)):
        houses = zip(letters, seeds[who * half : (who + 1) * half], strict=False)
        lines.append(f"Player-{who}'s houses: {', '.join(f'{letter} {count}' for letter, count in houses)}")
    return "\n".join(lines)


def mancala(text: str, seat: int) -> str:
    """The pits with their numbers above and below."""
    upper, stores, lower, *rest = text.split("\n")
    left, right = re.findall(r"\d+", stores)
    rows = ([*range(13, 7, -1)], re.findall(r"\d+", upper), re.findall(r"\d+", lower), [*range(1, 7)])
    names = ("pits", "Player-1", "Player-0", "pits")
    lines = [f"{name:<8} " + " ".join(f"{cell:>2}" for cell in row) for name, row in zip(names, rows, strict=True)]
    return "\n".join([*lines, f"Stores: Player-1 {left} (on the left), Player-0 {right} (on the right)", *rest])


def morris(text: str, seat: int) -> str:
    """The board, and the numbers of the points on which men stand."""
    board, _, rest = text.partition("\n\n")
    points = re.findall(r"[.WB]", board)
    lines = [board]
    for color in "WB":
        taken = [str(i) for i, point in enumerate(points) if point == color]
        lines.append(f"{color} is on points: {', '.join(taken) or 'none'}")
    return "\n".join([*lines, rest])


_STAR = frozenset(" .0123456789")


def star(text: str, seat: int) -> str:
    """The star with the number of each row's first place, and the places of all pegs."""
    lines, places, rest = list[str](), dict[str, list[str]](), list[str]()
    number = 0
    for line in text.split("\n"):
        cells = line.split()
        if not cells or not _STAR.issuperset(line):
            rest.append(line)
            continue
        lines.append(f"{number:>3} {line}".rstrip())
        for place, cell in enumerate(cells, number):
            places.setdefault(cell, []).append(str(place))
        number += len(cells)
    pegs = [f"{peg} is on places: {', '.join(on)}" for peg, on in sorted(places.items()) if peg != "."]
    return "\n".join([*lines, *pegs, *(line for line in rest if line)])


def boxes(text: str, seat: int) -> str:
    """The lines with their rows at the left, and their columns above (v) and below (h)."""
    rows = text.rstrip("\n").split("\n")
    size = len(rows[0]) // 4
    names = [f"{'v' if i % 2 else 'h'},{i // 2}" for i in range(len(rows))]
    edge = max(map(len, names))
    above = " " * edge + "v" + "".join(f"{i:<4}" for i in range(size + 1)).rstrip()
    below = " " * edge + "h  " + "".join(f"{i:<4}" for i in range(size)).rstrip()
    return "\n".join([above, *(f"{name:>{edge}} {row}".rstrip() for name, row in zip(names, rows, strict=True)), below])


def nine_boards(text: str, seat: int) -> str:
    """Nine boards with the rows and columns that each has."""
    rows = text.split("\n")
    many = next((i for i, row in enumerate(rows) if row and not re.fullmatch(r"[.xo ]+", row)), len(rows))
    board = [row for row in rows[:many] if row]
    if len(board) != 9:
        return text
    lines = ["  012 012 012"]
    for i, row in enumerate(board):
        lines += [""] * (i % 3 == 0 and i > 0) + [f"{i % 3} {row}"]
    return "\n".join([*lines, *rows[many:]])


def points(text: str, seat: int) -> str:
    """The board with the numbers of points, from the seat's own side; the digit of a tall pile stays."""
    start, end = text.index("+"), text.rindex("+") + 1
    rows = text[start:end].split("\n")
    upper, lower = range(12, 0, -1), range(13, 25)
    above, below = (upper, lower) if seat == 0 else (lower, upper)
    board = [*_pointed(above), *rows, *_pointed(below)]
    return text[:start] + "\n".join(board) + text[end:]


def _pointed(numbers: Iterable[int]) -> list[str]:
    """Numbers of two digits, one above the other, with the gap of the bar."""
    names = [f"{number:>2}" for number in numbers]
    return [f" {''.join(n[i] for n in names[:6])} {''.join(n[i] for n in names[6:])}".rstrip() for i in (0, 1)]


def chess(text: str, seat: int) -> str:
    """A position in Forsyth-Edwards notation, also as a board; . is a free square, ? one that the seat does not see."""
    rows = [_unpacked(row) for row in text.partition("\n")[0].split(" ")[0].split("[")[0].split("/")][:8]
    return f"You are {'White (capitals)' if seat else 'Black (small letters)'}.\n{_chessboard(rows)}\nFEN: {text}"


def kriegspiel(text: str, seat: int) -> str:
    """The own pieces, and what the umpire said last."""
    position, _, umpire = text.partition("\n")
    castling = [*position.split(), "-", "-"][2]
    board = chess(position, seat).partition("\nFEN")[0]
    move = "White" if " w " in position else "Black"
    return f"{board}\n{move} to move. You may still castle: {castling}\nThe umpire: {umpire}"


def blind_chess(text: str, seat: int) -> str:
    """Reconnaissance blind chess: own pieces and what was sensed; ? is a square that the seat does not see."""
    position, castling, phase, capture, mover, illegal = text.rsplit(" ", 5)
    rows = [_unpacked(row.replace(" ", "."), "?") for row in position.split("/")]
    what = {"s": "sense", "m": "move"}.get(phase, phase)
    lines = [f"You are {'White (capitals)' if seat else 'Black (small letters)'}.", _chessboard(rows)]
    lines.append(f"{'White' if mover == 'w' else 'Black'} is to {what}. You may still castle: {castling}")
    if capture == "c" or illegal == "i":
        lines.append("The last move captured a piece." if capture == "c" else "The last move was not possible.")
    return "\n".join(lines)


def _unpacked(row: str, free: str = ".") -> str:
    row = row.replace("~", "")
    for digit in "123456789":
        row = row.replace(digit, free * int(digit))
    return row


def _chessboard(rows: Sequence[str]) -> str:
    return grid(rows, [str(len(rows) - i) for i in range(len(rows))], _LETTERS[: len(rows[0])])


def shogi(text: str, seat: int) -> str:
    """A position as a board; rows have letters and columns numbers from the right; + is before a promoted piece."""
    rows, mover, hand, number = text.split(" ")
    cells = [re.findall(r"\+?[A-Za-z]|\.", _unpacked(row)) for row in rows.split("/")]
    board = grid(cells, _LETTERS[:9], "987654321")
    moves = "Black (Player-0, capitals)" if mover == "b" else "White (Player-1, small letters)"
    return f"{board}\n{moves} is to move, move {number}. In hand: {'nothing' if hand == '-' else hand}"


_GLYPHS = {0xA: "S", 0xB: "H", 0xC: "D", 0xD: "C"}
_RANKS = "?A23456789TJ?QK"


def skat(text: str, seat: int) -> str:
    """One line a fact, and cards as moves name them."""

    def card(found: re.Match[str]) -> str:
        code = ord(found[0])
        return _GLYPHS[code >> 4 & 0xF] + _RANKS[code & 0xF]

    named = re.sub(r"[\U0001f0a0-\U0001f0de]", card, text).replace("unknown/pass", "pass")
    facts = dict(re.split(r":(?![^(]*\))", part, maxsplit=1) for part in named.split("|"))
    solo = int(facts["SoloPl"])
    bids = ", ".join(f"Player-{i} {bid}" for i, bid in enumerate(facts["Bids"].split()))
    soloist = f"Player-{solo}" if solo >= 0 else "none yet"
    lines = [f"Phase: {facts['Phase']}. Game: {facts['Game']}. Soloist: {soloist}"]
    lines += [f"Bids (pass: or none yet): {bids}", f"Your hand: {facts['Hand'].strip() or 'none'}"]
    lines += [f"Skat: {facts['Skat'].strip()}"] if facts["Skat"].strip() else []
    for key, name in (("PrevTrick", "Last trick"), ("CurrTrick", "This trick")):
        for title, cards in facts.items():
            if title.startswith(key):
                leader = int(re.sub(r"\D", "", title.replace("-1", "99")) or 99)
                by = f", led by Player-{leader}" if leader < 99 else ""
                lines.append(f"{name}{by}: {cards.strip() or 'none'}")
    return "\n".join(lines)


def gin_rummy(text: str, seat: int) -> str:
    """One line a fact; hands as lists of cards."""

    def hand(found: re.Match[str]) -> str:
        cards = " ".join(re.findall(r"[A2-9TJQK][scdh]", found[4]))
        whose = "Your" if int(found[1]) == seat else f"Player-{found[1]}'s"
        worth = f" (deadwood {found[2]})" if found[2] else ""
        return f"{found[3]}{whose} hand{worth}: {cards or ('none' if worth else 'not shown')}"

    form = r"Player(\d):(?: Deadwood=(\d+))?\n((?:\w[^\n]*\n)*)\+-+\+\n((?:\|.*\|\n)*)\+-+\+"
    text = re.sub(form, hand, text).replace("Layed melds", "Melds laid down").replace("Layoffs", "Cards laid off")
    text = re.sub(r"Current player: (\d)", r"To act: Player-\1", text).replace("Prev upcard", "Upcard before")
    text = re.sub(r"(Discard pile: )(\S+)", lambda m: m[1] + " ".join(re.findall("..", m[2])), text)
    return "\n".join(line.rstrip() for line in text.split("\n") if line.strip())


def oh_hell(text: str, seat: int) -> str:
    """Cards as moves name them, and tricks with who played what."""
    facts = dict(re.findall(r"^ *([\w ]+?): *(.*?) *$", text, re.MULTILINE))
    hand = [f"{suit}{rank}" for suit in "CDSH" for rank in facts.get(suit, "")]
    lines = [f"{facts['Num Total Tricks']} tricks in all"]
    if dealt := facts.get("Num Cards Dealt"):  # the end of a game leaves it out
        lines[0] += f"; {dealt} cards dealt or turned up"
    lines.append(f"Turned up: {facts['Trump']}. Dealer: Player-{facts['Dealer']}")
    lines.append(f"Your hand: {' '.join(hand) or 'none'}")
    head, *rows = text.partition("Tricks:\n")[2].partition("\n\n")[0].split("\n")
    who = head.split()
    for number, row in enumerate(filter(str.strip, rows), 1):
        cells = [(who[i // 3], row[i : i + 3].strip()) for i in range(0, len(row.rstrip()), 3)]
        lines.append(f"Trick {number}: " + ", ".join(f"Player-{one} {card}" for one, card in cells if card))
    for key, name in (("Bids", "Bids"), ("Tricks Won", "Tricks won")):
        counts = facts.get(key, "").split()
        shown = (f"Player-{i} {'none yet' if count == '-1' else count}" for i, count in enumerate(counts))
        lines.append(f"{name}: {', '.join(shown)}")
    return "\n".join(lines)


def hanabi(text: str, seat: int) -> str:
    """Hands by their players, cards by the numbers that moves give them, with what their owners know."""
    before, _, rest = text.partition("Hands:\n")
    hands, found, after = rest.rpartition("Deck size")
    blocks = hands.split("-----\n")
    lines = [line.rstrip() for line in before.rstrip("\n").split("\n")]
    for number, block in enumerate(blocks):
        cards = [line for line in block.split("\n") if "||" in line]
        you, moves = " (you)" * (not number), ", to move" * ("Cur player" in block)
        lines.append(f"Player-{(seat + number) % len(blocks)}{you}{moves}:")
        for place, card in enumerate(cards):
            name, hints, color, rank = _HANABI.fullmatch(card).groups()  # type: ignore[union-attr]
            told = "nothing" if hints == "XX" else hints.replace("X", "")
            lines.append(f"  {place}: {name} told {told}, may be {color} {rank}")
    return "\n".join([*lines, *(line.rstrip() for line in (found + after).split("\n"))])


_HANABI = re.compile(r"(\w\w) \|\| (\w\w)\|([A-Z]+)(\d+)")


def bridge(text: str, seat: int) -> str:
    """OpenSpiel's text, but for a slip of the pen."""
    return text.replace("Dedefence tricks won", "Defenders' tricks won").replace("Declarer tricks", "Declarer's tricks")


def nothing(text: str, seat: int) -> str:
    """What the moves say already."""
    return ""


_TAROKS = ["Pagat", "II", "III", "IIII", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII", "XIII", "XIV", "XV", "XVI",
           "XVII", "XVIII", "XIX", "XX", "Mond", "Skis"]  # fmt: skip
_TAROK_RANKS = {"Hearts": "4 3 2 1", "Diamonds": "4 3 2 1", "Spades": "7 8 9 10", "Clubs": "7 8 9 10"}
_TAROK = _TAROKS + [
    f"{rank} of {suit}"
    for suit, low in _TAROK_RANKS.items()
    for rank in [*low.split(), "Jack", "Knight", "Queen", "King"]
]
_CONTRACTS = ["Pass", "Klop", "Three", "Two", "One", "Solo three", "Solo two", "Solo one", "Beggar", "Solo without",
              "Open beggar", "Colour valat without", "Valat without"]  # fmt: skip


def tarok(text: str, seat: int) -> str:
    """Hand, bids, talon and tricks by the names of cards; the hand is what is left of it."""
    parts = [[item for item in part.split(",") if item] for part in text.split(";")]
    hand = [*map(int, parts[0])]
    bids, rest = parts[1] if len(parts) > 1 else [], parts[2:]
    players, highest = 48 // max(1, len(hand)), max(map(int, bids), default=0)
    bidders = _bidders([bid == "0" for bid in bids], players)
    said = (f"Player-{who} {_CONTRACTS[int(bid)]}" for who, bid in zip(bidders, bids, strict=True))
    lines = [f"Bids in order: {', '.join(said) or 'none yet'}"]
    if players == 4 and 2 <= highest <= 4 and rest and rest[0]:
        lines.append(f"Called: {_TAROK[int(rest.pop(0)[0])]}")
    if 2 <= highest <= 7 and rest and rest[0]:
        talon, size = [*map(int, rest.pop(0))], {2: 3, 3: 2, 4: 1, 5: 3, 6: 2, 7: 1}[highest]
        sets = [talon[i : i + size] for i in range(0, 6, size)]
        lines.append("Talon: " + "; ".join(f"set {i + 1}: {_cards(cards)}" for i, cards in enumerate(sets)))
        if rest and rest[0]:
            taken, laid = int(rest.pop(0)[0]), rest.pop(0) if rest else []
            unseen = "d" in laid
            lines.append(f"The declarer took set {taken + 1}, and laid aside "
                         f"{f'{len(laid)} cards' if unseen or not laid else _cards(map(int, laid))}")  # fmt: skip
            declared = not unseen and (bool(laid) or not any(rest))
            hand = [c for c in hand + (sets[taken] if declared else []) if str(c) not in laid]
    tricks = [[*map(int, cards)] for cards in rest if cards]
    leader = [who for who, bid in zip(bidders, bids, strict=True) if bid != "0"][-1] if highest >= 8 else 0
    for number, cards in enumerate(tricks, 1):
        played = [(leader + i) % players for i in range(min(players, len(cards)))]
        shown = ", ".join(f"Player-{who} {_TAROK[card]}" for who, card in zip(played, cards, strict=False))
        gift = "".join(f", and from the talon: {_TAROK[card]}" for card in cards[players:])
        lines.append(f"Trick {number}: {shown}{gift}")
        leader = played[_takes(cards[:players], trumps=highest != 11)]
    gone = {card for cards in tricks for card in cards}
    return "\n".join([f"Your hand: {_cards(c for c in hand if c not in gone)}", *lines])


def _bidders(passes: Sequence[bool], players: int) -> list[int]:
    """Who made each bid: in turn from Player-1 on, without those who have passed."""
    who, out, result = 1, set[int](), list[int]()
    for passed in passes:
        while who % players in out:
            who += 1
        result.append(who % players)
        out |= {who % players} if passed else set()
        who += 1
    return result


def _takes(cards: Sequence[int], trumps: bool) -> int:
    """Which card takes a trick: the highest tarok, or of the suit led; Pagat where Mond and Skis lie too."""
    if trumps and {0, 20, 21} <= {*cards}:
        return cards.index(0)
    suits = [-1 if card < 22 else (card - 22) // 8 for card in cards]
    best = -1 if trumps and -1 in suits else suits[0]
    return max((i for i, suit in enumerate(suits) if suit == best), key=lambda i: cards[i])


def _cards(numbers: Iterable[int]) -> str:
    return ", ".join(_TAROK[number] for number in numbers)


def trails(text: str, seat: int) -> str:
    """A board of colors with the numbers of its squares, and who stands on which."""
    board, _, rest = text.partition("\n\n")
    rows = board.split("\n")
    edge = len(str(len(rows) * len(rows[0]) - 1))
    numbers = itertools.count()
    lines = [" ".join(f"{next(numbers):>{edge}}:{color}" for color in row) for row in rows]
    squares = r"Player-0 on square \1, Player-1 on \2, Player-2 on \3; the goal is \4"
    rest = re.sub(r"Pos: (\d+) (\d+) (\d+) (\d+)", squares, rest)
    rest = re.sub(r"^P(\d) chips", r"Player-\1's chips", rest, flags=re.MULTILINE)
    rest = rest.replace("Player: ", "You are Player-").replace("My chips", "Your chips")
    return "\n".join([*lines, rest])


def negotiation(text: str, seat: int) -> str:
    """What the words of the game mean."""
    text = re.sub(r"Agent \d+ util vec", "What one item of each kind is worth to you", text)
    text = text.replace("Max steps", "Proposals at most").replace("Item pool", "Items of each kind")
    text = re.sub(r"Current player: -\d+\nTurn Type: .*\n?", "", text)  # the game is over
    return re.sub(r"Current player: (\d)", r"To act: Player-\1", text)


_TILES = ("Q", "A1", "A2", "A3", "G1", "G2", "G3", "S1", "S2", "B1", "B2")
_STEPS = {
    ("-", 1): (2, 0),
    ("/", 1): (1, -1),
    ("\\", 1): (1, 1),
    ("-", 0): (-2, 0),
    ("/", 0): (-1, 1),
    ("\\", 0): (-1, -1),
}


Placed = tuple[dict[str, tuple[int, int]], dict[tuple[int, int], tuple[str, ...]]]
"""Tile → where it lies, and where tiles lie → those tiles, from bottom to top."""
_PLACED: dict[str, Placed] = {}
_MAX_PLACED = 2000


def _placed(moves: str) -> Placed:
    """What lies where after these moves; found from the position before, where that is known."""
    if known := _PLACED.get(moves):
        return known
    if not moves:
        return {}, {}
    before, _, last = moves.rpartition(";")
    start, left = _PLACED.get(before), [last]
    if start is None:
        start, left = ({}, {}), moves.split(";")
    at, taken = dict(start[0]), dict(start[1])
    for move in left:
        piece, _, where = move.partition(" ")
        if piece == "pass":
            continue
        place = (0, 0)
        if where:
            after = where[-1] in "-/\\"
            sign, other = (where[-1], where[:-1]) if after else (where[0], where[1:])
            dx, dy = _STEPS.get((sign, int(after)), (0, 0)) if sign in "-/\\" else (0, 0)
            x, y = at[other if sign in "-/\\" else where]
            place = (x + dx, y + dy)
        if piece in at:
            old = at[piece]
            taken[old] = tuple(tile for tile in taken[old] if tile != piece)
            if not taken[old]:
                del taken[old]
        at[piece] = place
        taken[place] = (*taken.get(place, ()), piece)
    if len(_PLACED) >= _MAX_PLACED:
        _PLACED.clear()
    _PLACED[moves] = at, taken
    return at, taken


def hive(text: str, seat: int) -> str:
    """The hexagons with what lies on them, from bottom to top, as rows of a brick wall."""
    kind, _, turn, moves = [*text.split(";", 3), ""][:4]
    at, taken = _placed(moves)
    lines = [f"{kind}, {turn} to move. You are {'black' if seat else 'white'}."]
    left, width = min((x for x, _ in taken), default=0), max([4, *(len("+".join(pile)) for pile in taken.values())]) + 1
    for row in sorted({y for _, y in taken}):
        line, half = "", (width + 1) // 2
        for x, pile in sorted((x, pile) for (x, y), pile in taken.items() if y == row):
            line = line.ljust((x - left) * half) + "+".join(pile)
        lines.append(line)
    lines += [] if taken else ["The board is empty."]
    for color, name in (("w", "White"), ("b", "Black")):
        tiles = [color + tile for tile in (*_TILES, *kind.partition("+")[2]) if color + tile not in at]
        lines.append(f"{name} has still to place: {' '.join(tiles) or 'nothing'}")
    return "\n".join(lines)


RENDERERS: dict[str, Renderer] = {
    "amazons": amazons,
    "antichess": chess,
    "backgammon": points,
    "banqi": counted,
    "battleship": boards,
    "bridge": bridge,
    "chess": chess,
    "chinese_checkers": star,
    "colored_trails": trails,
    "connect_four": columns,
    "crazyhouse": chess,
    "dark_chess": chess,
    "dark_hex": hexagons,
    "dark_hex_ir": forgotten_hexagons,
    "dots_and_boxes": boxes,
    "gin_rummy": gin_rummy,
    "gomoku": counted,
    "goofspiel": goofspiel,
    "hanabi": hanabi,
    "hex": rhombus,
    "hive": hive,
    "kriegspiel": kriegspiel,
    "latent_ttt": latent,
    "mancala": mancala,
    "mnk": counted,
    "negotiation": negotiation,
    "nine_mens_morris": morris,
    "oh_hell": oh_hell,
    "oware": oware,
    "phantom_ttt": tries,
    "phantom_ttt_ir": forgotten,
    "rbc": blind_chess,
    "repeated_game": nothing,
    "shogi": shogi,
    "skat": skat,
    "tarok": tarok,
    "tic_tac_toe": counted,
    "ultimate_tic_tac_toe": nine_boards,
    "xiangqi": counted,
}
"""Game → what makes its texts readable."""


def readable(name: str, text: str, seat: int) -> str:
    """What a seat reads of a game's text; the text itself where nothing needs to be said better."""
    text = _COLORS.sub("", text)
    renderer = RENDERERS.get(name)
    return renderer(text, seat) if renderer and text else text
