"""Boards, with coordinates as moves name them: renderers of `readable`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

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


def tries(text: str, seat: int) -> str:
    """A counted board, and under it the cells that the seat has tried, in order."""
    board, below = _split_board(text)
    size = len(board[0])
    cells = [int(cell) for cell in re.findall(r"\d,(\d+)", below)]
    places = " ".join(f"({cell // size},{cell % size})" for cell in cells)
    return f"{counted(chr(10).join(board), seat)}\nYour tries: {places or 'none'}"


def forgotten(text: str, seat: int) -> str:
    """The counted board of a player who sees no more than what it holds."""
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
