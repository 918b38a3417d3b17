"""Hive's hexagons and what lies on them: a renderer of `readable`."""

from __future__ import annotations

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
