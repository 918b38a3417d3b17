"""What runs by default of tests with many parameters, and how many examples property tests draw."""

from itertools import product
from types import SimpleNamespace
from typing import Any

import hypothesis
import pytest

from tests.helpers.samples import FEWEST, LONG, QUICK, covering, examples, spread


def grid(**choices: list[Any]) -> list[Any]:
    """Stand-ins for what pytest makes tests of with these parameters."""
    made: list[Any] = []
    for places in product(*(range(len(values)) for values in choices.values())):
        indices = dict(zip(choices, places, strict=True))
        params = {name: choices[name][at] for name, at in indices.items()}
        made.append(SimpleNamespace(params=params, indices=indices))
    return made


def test_each_value_of_each_parameter_is_kept() -> None:
    whole = grid(order=["one", "other"], agents=[2, 3, 5, 7], task=[{"a": 1}, {"b": 2}, {"c": 3}])
    kept = covering(whole)
    assert len(kept) < len(whole) / 2
    for name, count in (("order", 2), ("agents", 4), ("task", 3)):
        assert len({call.indices[name] for call in kept}) == count


def test_pairs_that_are_listed_are_covered_name_by_name() -> None:
    listed = [(policy, task) for policy in "abc" for task in "xyz"]
    whole: list[Any] = [
        SimpleNamespace(params={"policy": policy, "task": task}, indices={"policy": at, "task": at})
        for at, (policy, task) in enumerate(listed)
    ]
    kept = [tuple(call.params.values()) for call in covering(whole)]
    assert kept == [("a", "x"), ("b", "y"), ("c", "z")]


def test_so_many_are_spread_over_all() -> None:
    whole = grid(number=[*range(100)])
    assert [call.params["number"] for call in spread(whole, 4)] == [0, 25, 50, 75]
    assert spread(whole[:2], 5) == whole[:2]


@pytest.mark.parametrize(
    ("profile", "wanted", "gives"),
    [("long", 300, 300), ("long", 6, 6), ("quick", 300, 3 * QUICK), ("quick", LONG, QUICK), ("quick", 6, FEWEST)],
)
def test_examples_follow_the_profile(profile: str, wanted: int, gives: int) -> None:
    assert examples(wanted, hypothesis.settings.get_profile(profile)) == gives
