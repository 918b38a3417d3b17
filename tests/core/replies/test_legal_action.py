"""`LegalAction`: names of any kind, read where one alone is meant."""

import pytest

from harness.extensions.games.legal import LegalAction
from harness.replies.action_with_message import ActionWithMessage, MessageLine

CHESS = LegalAction(("Nf3", "bxc3", "Bxc3", "Qh5+", "O-O", "O-O-O", "e4", "e8=Q", "e8=N", "Nbd2"))
OFFERS = LegalAction(tuple(f"Proposal: [{a}, {b}]" for a in range(6) for b in range(6)))
HANABI = LegalAction(("(Play 0)", "(Play 1)", "(Reveal player +1 color G)", "(Reveal player +1 rank 1)"))
PITS = LegalAction(("1", "2", "3", "4"))
DICE = LegalAction(("Reroll dice: 0", "Reroll dice: 0,1", "Keep all"))
MOVES = LegalAction(("24/23*", "24/23* 24/20"))
SUITS = LegalAction(("♦2", "♦10", "♦J"))
BIDS = LegalAction(("Pass", "Open beggar", "Solo two"))
MOVES_BY_SQUARES = LegalAction(("Nc6", "e5"), also=(("b8-c6", "Nc6"), ("e7-e5", "e5")))
TILES = LegalAction(("wQ wG1\\", "wQ -wG1", "wQ /bG3", "wB1 wQ"))
MANY = LegalAction(tuple(f"{i} - a{i}b{j}" for i in range(50) for j in range(60)))


@pytest.mark.parametrize(
    ("form", "text", "action"),
    [
        (CHESS, "ACTION: Nf3", "Nf3"),
        (CHESS, "**Action:** `bxc3`", "bxc3"),
        (CHESS, "ACTION: Bxc3", "Bxc3"),
        (CHESS, "I take ACTION: e4 because it is sound. It wins.", "e4"),
        (CHESS, "ACTION: O-O-O", "O-O-O"),
        (CHESS, "ACTION: qh5", "Qh5+"),
        (CHESS, "ACTION: a9\nNo.\nACTION: e8=N", "e8=N"),
        (CHESS, '{"action": "e4"}', "e4"),
        (CHESS, "Nbd2", "Nbd2"),
        (CHESS, "ACTION: 12... Nf3", "Nf3"),
        (CHESS, "ACTION: 1.e4", "e4"),
        (CHESS, "ACTION: I play Nf3.", "Nf3"),
        (CHESS, "ACTION: Nf3 (not e4)", "Nf3"),
        (CHESS, "ACTION: Nf3 instead of e4", "Nf3"),
        (CHESS, "ACTION: Nf3. e4 would be risky", "Nf3"),
        (CHESS, "ACTION: Nf3, 2 points up", "Nf3"),
        (CHESS, "ACTION: Nf3, e4 would be risky", "Nf3"),
        (CHESS, "ACTION: e4 is not the only move", "e4"),
        (CHESS, "ACTION: e4 is my move.", "e4"),
        (CHESS, "ACTION: e4 is better than Nf3", "e4"),
        (CHESS, "ACTION: e4 and hope", "e4"),
        (CHESS, "ACTION: e4. If they take, Nf3", "e4"),
        (CHESS, "ACTION: e4. Could be better.", "e4"),
        (CHESS, "ACTION: e4, no doubt", "e4"),
        (CHESS, "ACTION: e4 (no threats)", "e4"),
        (MOVES_BY_SQUARES, "ACTION: e5 or e7-e5", "e5"),
        (PITS, "ACTION: <3>", "3"),
        (HANABI, "ACTION: play 1, and not 0", "(Play 1)"),
        (PITS, "ACTION: 3 (5 seeds)", "3"),
        (PITS, "ACTION: 3 (pit 3)", "3"),
        (LegalAction(("x0", "x1", "x2")), "ACTION: 2", "x2"),
        (OFFERS, "ACTION: [1,2]", "Proposal: [1, 2]"),
        (OFFERS, "ACTION: proposal (3; 4)", "Proposal: [3, 4]"),
        (HANABI, "ACTION: play 1", "(Play 1)"),
        (HANABI, "ACTION: Reveal player 1 color g", "(Reveal player +1 color G)"),
        (LegalAction(("B a1", "B b1")), "ACTION: b1", "B b1"),
        (LegalAction(("Bid: -1", "Bid: 1")), "ACTION: -1", "Bid: -1"),
        (LegalAction(("a", "A", "b")), "ACTION: A", "A"),
        (SUITS, "ACTION: 2", "♦2"),
        (SUITS, "ACTION: ♦ j", "♦J"),
        (TILES, "ACTION: `wQ wG1\\`", "wQ wG1\\"),
        (TILES, "ACTION: WB1 WQ", "wB1 wQ"),
        (MANY, "ACTION: 49 - a49b59 " + "x " * 20_000, "49 - a49b59"),
    ],
)
def test_a_name_is_read_in_any_dress(form: LegalAction, text: str, action: str) -> None:
    assert form.parse(text).action == action


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (CHESS, "ACTION: e4 or Nf3"),
        (SUITS, "ACTION: ♠2"),  # of another suit
        (SUITS, "ACTION: 10♣"),
        (BIDS, "ACTION: Beggar"),  # another contract
        (BIDS, "ACTION: two"),
        (MOVES_BY_SQUARES, "ACTION: c6"),  # a pawn's move
        (TILES, "ACTION: wQ wG1/"),  # at another side
        (TILES, "ACTION: wQ bG3"),  # on top of it
        (CHESS, "ACTION: e4 and then Nf3"),
        (CHESS, "ACTION: Ke2"),
        (CHESS, "ACTION: e4 Nf3"),
        (CHESS, "ACTION: e4 Nf3 O-O"),
        (CHESS, "ACTION: e4, Nf3, O-O, Nbd2, e8=Q"),
        (CHESS, "ACTION: 2"),  # Nbd2 ends so, but 2 is no word of it
        (CHESS, "ACTION: e4 | Nf3"),
        (CHESS, "ACTION: e4 followed by Nf3"),
        (CHESS, "ACTION: e4 is a blunder, Nf3 is better"),
        (CHESS, "ACTION: e4 loses, so Nf3"),
        (CHESS, "ACTION: not e4"),
        (CHESS, "ACTION: e4 was their move"),
        (CHESS, "ACTION: e4 is too slow"),
        (CHESS, "ACTION: e4 is blocked"),
        (CHESS, "ACTION: e4 isn't possible"),
        (CHESS, "ACTION: e4 would lose"),
        (CHESS, "ACTION: e4?? no"),
        (CHESS, "ACTION: e4, no, wait"),
        (CHESS, "ACTION: e4 - no"),
        (CHESS, "ACTION: e4 if it is legal"),
        (CHESS, "ACTION: e4 or resign"),
        (LegalAction(("Bxc4", "e4")), "ACTION: bxc4"),  # the pawn's capture, which is not legal
        (LegalAction(("Bxc4", "e4")), "ACTION: 7. bxc4"),
        (HANABI, "ACTION: play 0 or 1"),
        (HANABI, "ACTION: Reveal player +1 color G and rank 1"),
        (TILES, "ACTION: wQ wG1\\ or wQ -wG1"),
        (LegalAction(("bQ bP/", "bQ bP-")), "ACTION: bQ bP/ or bQ bP-"),
        (PITS, "ACTION: 3+"),
        (PITS, "ACTION: <3"),
        (PITS, "ACTION: ~3"),
        (PITS, "ACTION: >= 3"),
        (PITS, "ACTION: 3 (or 4)"),
        (PITS, "ACTION: 1 (0-based: 0)"),
        (PITS, "ACTION: 3.5"),
        (PITS, "ACTION: 3 4"),
        (DICE, "ACTION: Reroll dice: 0, 1, 2"),
        (DICE, "ACTION: Reroll dice: 0, 5"),
        (MOVES, "ACTION: 24/23* 13/8"),  # the second move is none, and the first alone is another action
        (OFFERS, "ACTION: [1, 2, 0]"),
        (CHESS, "ACTION: BXC3"),  # the pawn's capture or the bishop's
        (CHESS, "e4, Nf3 and castling are all good."),
        (CHESS, ""),
        (OFFERS, "ACTION: 1"),
        (HANABI, "ACTION: (Discard 0)"),
        (HANABI, "ACTION: Reveal"),
    ],
)
def test_what_is_no_name_or_could_be_several_is_refused(form: LegalAction, text: str) -> None:
    parsed = form.parse(text)
    assert parsed.action is None and parsed.error is not None


@pytest.mark.slow
def test_a_complaint_says_what_was_found_and_lists_a_bounded_number_of_names() -> None:
    error = MANY.parse("ACTION: z\x1b[31m9").error
    assert error is not None and error.startswith("'z [31m9' is no legal action; ") and "(3000 in all)" in error
    assert len(error) < 500
    assert str(CHESS.parse("Ke2").error).startswith("'Ke2' is no legal action; ")
    assert str(CHESS.parse("I resign.\nIt is lost.").error).startswith("no legal action was found after 'ACTION:'; ")
    assert MANY.constraint() is None and CHESS.constraint() is not None


def test_a_message_goes_beside_an_action() -> None:
    form = ActionWithMessage(CHESS, MessageLine())
    assert form.parse("MESSAGE: I attack e4 ACTION: Nf3").action == {"act": "Nf3", "message": "I attack e4"}
