"""Hands, bids and tricks, with the names that moves give cards: renderers of `readable`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


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
            given = "none" if hints == "XX" else hints.replace("X", "")
            lines.append(f"  {place}: {name}, hints: {given}, may be {color} {rank}")
    return "\n".join([*lines, *(line.rstrip() for line in (found + after).split("\n"))])


_HANABI = re.compile(r"(\w\w) \|\| (\w\w)\|([A-Z]+)(\d+)")


def bridge(text: str, seat: int) -> str:
    """OpenSpiel's text, but for a slip of the pen."""
    return text.replace("Dedefence tricks won", "Defenders' tricks won").replace("Declarer tricks", "Declarer's tricks")


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
