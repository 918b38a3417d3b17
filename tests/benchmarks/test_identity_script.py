"""benchmarks/identity.py sees numbers of tables, and not what they are called or what stands below them."""

from __future__ import annotations

from typing import Any

import identity
from hypothesis import given
from hypothesis import strategies as st

NUMBERS = st.integers(-9, 9) | st.floats(-9, 9)
TABLES = st.recursive(
    NUMBERS, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner), max_leaves=12
)


def with_texts(data: Any) -> Any:
    """The same data with a text more in every list and object."""
    if isinstance(data, dict):
        return {**{name: with_texts(value) for name, value in data.items()}, "a note": "3 of 5 cells"}
    return [*map(with_texts, data), "a note"] if isinstance(data, list) else data


@given(TABLES)
def test_texts_are_no_figures(table: Any) -> None:
    assert identity.figures(with_texts({"table": [table]})) == identity.figures({"table": [table]})


@given(st.lists(NUMBERS, min_size=1, max_size=5), st.data())
def test_another_number_or_order_is_another_figure(numbers: list[float], data: st.DataObject) -> None:
    other = [*numbers]
    other[data.draw(st.integers(0, len(numbers) - 1))] = 17
    assert identity.figures({"rows": other}) != identity.figures({"rows": numbers})
    assert identity.figures({"rows": [*numbers, 17]}) != identity.figures({"rows": [17, *numbers]})
