"""Social choice against definitions that count in the plainest way."""

import itertools
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from harness.extensions.panels import elections

COUNT = st.integers(1, 5)


@st.composite
def rankings(draw: st.DrawFn) -> tuple[list[list[int]], int]:
    count = draw(COUNT)
    orders = [list(order) for n in range(count + 1) for order in itertools.permutations(range(count), n)]
    return draw(st.lists(st.sampled_from(orders), max_size=7)), count


@given(rankings())
def test_plurality_counts_first_places_and_approval_all_places(drawn: tuple[list[list[int]], int]) -> None:
    ballots, count = drawn
    firsts = [ballot[0] for ballot in ballots if ballot]
    assert elections.plurality(firsts, count) == [firsts.count(one) for one in range(count)]
    assert elections.approval(ballots, count) == [sum(one in ballot for ballot in ballots) for one in range(count)]


@given(rankings())
def test_borda_is_how_many_others_a_candidate_beats(drawn: tuple[list[list[int]], int]) -> None:
    """A point for every candidate below, half a point for each that is as little ranked."""
    ballots, count = drawn

    def beats(ballot: list[int], one: int, other: int) -> Fraction:
        places = [ballot.index(c) if c in ballot else count for c in (one, other)]
        return Fraction(1, 2) if places[0] == places[1] else Fraction(places[0] < places[1])

    wanted = [
        sum(beats(ballot, one, other) for ballot in ballots for other in range(count) if other != one)
        for one in range(count)
    ]
    assert elections.borda(ballots, count) == wanted


@given(rankings())
def test_instant_runoff_eliminates_by_the_letter(drawn: tuple[list[list[int]], int]) -> None:
    ballots, count = drawn

    def survivors(alive: list[int]) -> list[int]:
        heads = [next((one for one in ballot if one in alive), None) for ballot in ballots]
        fewest = min(heads.count(one) for one in alive)
        rest = [one for one in alive if heads.count(one) > fewest]
        return survivors(rest) if rest else alive

    assert elections.winners(elections.instant_runoff(ballots, count)) == survivors(list(range(count)))


@given(rankings())
def test_a_majority_of_first_places_wins_the_runoff(drawn: tuple[list[list[int]], int]) -> None:
    ballots, count = drawn
    firsts = [ballot[0] for ballot in ballots if ballot]
    for one in range(count):
        if 2 * firsts.count(one) > len(ballots):
            assert elections.winners(elections.instant_runoff(ballots, count)) == [one]


@given(rankings(), st.randoms(use_true_random=False))
def test_no_rule_knows_the_names_of_candidates(drawn: tuple[list[list[int]], int], rng: object) -> None:
    ballots, count = drawn
    order = list(range(count))
    rng.shuffle(order)  # type: ignore[attr-defined]
    renamed = [[order[one] for one in ballot] for ballot in ballots]
    for rule in (elections.approval, elections.borda, elections.instant_runoff):
        scores, others = rule(ballots, count), rule(renamed, count)
        assert [others[order[one]] for one in range(count)] == scores


def test_points_are_added_and_without_ballots_all_are_tied() -> None:
    assert elections.cumulative([{0: 6, 2: 4}, {2: 1}], 3) == [6, 0, 5]
    for rule in (elections.plurality, elections.approval, elections.borda, elections.instant_runoff):
        assert elections.winners(rule([], 3)) == [0, 1, 2]
    assert elections.winners([]) == []
