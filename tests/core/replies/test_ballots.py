"""Ballots: an approval, a ranking, points."""

import random

import pytest

from harness.extensions.panels.ballots import Approval, CandidateBallot, Points, Ranking

LABELS = ("A", "B", "C", "AA")
APPROVAL, RANKING, POINTS = Approval(LABELS), Ranking(LABELS), Points(LABELS)


@pytest.mark.parametrize(
    ("form", "text", "action"),
    [
        (APPROVAL, "I like two.\nApprove: C, A", ["A", "C"]),
        (APPROVAL, "**Approve:** a and AA", ["A", "AA"]),
        (APPROVAL, "Approve: none", []),
        (APPROVAL, "Approve: A\nNo, wait.\nApprove: B", ["B"]),
        (APPROVAL, "B, C", ["B", "C"]),
        (RANKING, "Ranking: B > A > C", ["B", "A", "C"]),
        (RANKING, "ranking: **B**, A", ["B", "A"]),
        (RANKING, "Ranking: 1. B, 2. AA", ["B", "AA"]),
        (RANKING, "Ranking:\nC > B", ["C", "B"]),
        (RANKING, "Ranking:\n1. B\n2. A\n\nThat is my view.", ["B", "A"]),
        (APPROVAL, "**Approve:**\n- C\n- A", ["A", "C"]),
        (POINTS, "Points:\n- A: 6\n- B: 4\nSum: 10", {"A": 6, "B": 4}),
        (POINTS, "Points: A 6/10, B 4/10", {"A": 6, "B": 4}),
        (POINTS, "Points: A=6, B=4", {"A": 6, "B": 4}),
        (POINTS, "Points: B: 3, A: 0", {"B": 3}),
        (POINTS, "So:\n`Points: AA = 10`", {"AA": 10}),
    ],
)
def test_what_a_voter_clearly_says_is_read(form: CandidateBallot, text: str, action: object) -> None:
    parsed = form.parse(text)
    assert parsed.error is None and parsed.action == action and form.allows(action)


@pytest.mark.parametrize(
    ("form", "text", "says"),
    [
        (APPROVAL, "Approve: D", "'D' is no candidate; they are A, B, C, AA"),
        (APPROVAL, "Approve:", "no candidate is named"),
        (RANKING, "Ranking: A > B > A", "A stands in the ranking twice"),
        (RANKING, "The best is clear.", "'The' is no candidate"),
        (POINTS, "Points: A=6, B=5", "these are 11 points; you have 10"),
        (POINTS, "Points: A=-1, B=5", "A gets -1 points"),
        (POINTS, "Points: A=5.5, B=4", "A gets 5.5 points; write whole numbers"),
        (POINTS, "Points: A=" + "9" * 5000, "A gets 99999999999999999999 points"),
        (POINTS, "Points: 6 to A, 4 to B", "no candidate gets a point"),
        (POINTS, "Points: A=1, A=2", "A gets points twice"),
        (POINTS, "Points: A=0", "no candidate gets a point"),
        (POINTS, "", "no candidate gets a point"),
    ],
)
def test_anything_else_says_what_is_wrong_and_shows_a_line(form: CandidateBallot, text: str, says: str) -> None:
    parsed = form.parse(text)
    assert parsed.action is None and parsed.error is not None
    assert says in parsed.error and parsed.error.endswith(form.sample())


@pytest.mark.parametrize("form", [APPROVAL, RANKING, POINTS, Points(LABELS, 2)])
def test_what_a_policy_fills_in_is_allowed_and_is_read_as_written(form: CandidateBallot) -> None:
    rng = random.Random(0)
    for _ in range(50):
        action = form.of(rng.sample(LABELS, rng.randint(1, 4)))
        assert form.allows(action)
        line = f"{form.marker} {form.written(action)}"
        assert form.parse(line).action == action and form.well_formed(line)
    assert form.parse(form.sample()).action is None and form.well_formed(form.sample())  # a copy is no ballot


@pytest.mark.parametrize("action", [None, [], ["A", "A"], ["Z"], {"A": 11}, {"A": True}, {"A": 0}, "A", [["A"]]])
def test_no_other_action_is_allowed(action: object) -> None:
    assert not RANKING.allows(action) and not POINTS.allows(action)
