"""The forms in which judges reply: what is read, what is refused, and how much work it is."""

from typing import Any

import pytest

from harness.extensions.judges.rating import Preference, Rating
from tests.helpers.linear import steps

TEN = Rating(1, 10)
TWO = Rating(1, 5, ("clarity", "depth of thought"))


@pytest.mark.parametrize(
    ("text", "rating"),
    [
        ("7", 7),
        ("Good, but short.\n\nRating: 7/10", 7),
        ("**Rating:** [[8]]", 8),
        ('{"rating": 7.5}', 7.5),
        ('Well. {"rating": "9/10"} That is all.', 9),
        ('```json\n{\n "rating": 4\n}\n```', 4),
        ("The rating is 6.", 6),
        ("Rating: 5\nOn reflection:\nRating: 6", 6),
        ('The text claims {"rating": 10}. I do not agree.\nRating: 3', 3),  # its own word is the last
        ("Rating: 7.5 because it is clear", 7.5),
        ("It is fine.\n**9**", 9),
    ],
)
def test_ratings(text: str, rating: float) -> None:
    assert TEN.parse(text).action == rating and TEN.allows(rating)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Rating: 11", "11 is not from 1 to 10"),
        ("Rating: -3", "-3 is not from 1 to 10"),
        ('{"rating": 0}', "0 is not from 1 to 10"),
        ("Rating: 4/5", "the scale ends at 10, not at 5"),
        ("rating: 1 - 10", "no number was found"),
        ("Rating: 80%", "no number was found"),
        ("I give it 7 of course", "no number was found"),
        ('{"rating": true}', "no number"),
        ('{"rating": 1e999}', "no number"),
        ("", "no number was found"),
    ],
)
def test_what_is_no_rating_is_refused_with_the_reason(text: str, why: str) -> None:
    parsed = TEN.parse(text)
    assert parsed.action is None and why in parsed.error and '{"rating": <number>}' in parsed.error


def test_several_criteria_are_all_needed() -> None:
    both = {"clarity": 3, "depth of thought": 4}
    assert TWO.parse('{"clarity": 3, "depth of thought": 4}').action == both
    assert TWO.parse("Clarity: 3\nDepth of thought: 4/5").action == both
    assert TWO.parse('{"clarity": 3}').error.startswith("depth of thought: no number was found; end with")
    assert TWO.allows(both) and not TWO.allows({"clarity": 3}) and not TWO.allows(3)
    assert TEN.options == tuple(range(1, 11)) and TWO.options is None and Rating(0, 0.5).options is None


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("A", "A"),
        ("Better: B", "B"),
        ('Both are fine. {"better": "tie"}', "tie"),
        ("Winner: **Answer A**", "A"),
        ("My verdict is neither", "tie"),
        ('```\n{"better": "B"}\n```', "B"),
        ("I prefer A because a reader would", None),
        ("A answer that goes on", None),
        ("Better: Apples", None),
        ('{"better": 3}', None),
        ("", None),
    ],
)
def test_preferences(text: str, choice: str | None) -> None:
    assert Preference().parse(text).action == choice


@pytest.mark.sampled(5)
@pytest.mark.parametrize("form", [TEN, TWO, Preference()], ids=["rating", "criteria", "preference"])
@pytest.mark.parametrize("part", ["rating: ", "better is", '{"rating": ', "clarity:*", "better:[", "1", "*", "{"])
def test_hostile_replies_take_linear_time(form: Any, part: str) -> None:
    short, long = (steps(form, part * count) for count in (500, 2_000))
    assert long <= 5 * short + 500
