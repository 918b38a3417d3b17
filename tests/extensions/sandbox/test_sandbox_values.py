"""What crosses the fence: the same values on both sides, and nothing worse than a refusal of nonsense."""

import contextlib
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.extensions.sandbox._values import GoneError, Opaque, TooLongError, decode, encode, receive, send

HASHABLE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
    | st.complex_numbers(allow_nan=False) | st.fractions() | st.decimals(allow_nan=False),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
VALUES = st.recursive(
    HASHABLE,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(HASHABLE, inner, max_size=3) | st.tuples(inner)
    | st.sets(HASHABLE, max_size=3),
    max_leaves=20,
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["int", "set", "dict", "range", "bytes", "fraction", "decimal", "x"]), inner)
    ),
    max_leaves=10,
)


@given(VALUES)
def test_values_cross_a_pipe_as_they_are(value: object) -> None:
    reading, writing = os.pipe()
    try:
        send(writing, encode(value, strict=True), 60_000)
        result = decode(receive(reading, 60_000))
    finally:
        os.close(reading)
        os.close(writing)
    assert result == value and type(result) is type(value)


@given(JSON)
def test_nonsense_is_refused_in_few_ways(data: object) -> None:
    with contextlib.suppress(ValueError, TypeError, KeyError, ArithmeticError):
        decode(data)


def test_what_is_no_plain_data_is_named_or_refused() -> None:
    result = decode(encode([object()]))
    assert isinstance(result[0], Opaque) and repr(result[0]) == "<object object>" and result != [object()]
    with pytest.raises(TypeError, match="not plain data"):
        encode([object()], strict=True)


@pytest.mark.parametrize("frame", [b"", b"\0\0", b"\0\0\0\x05ab", b"\0\0\0\x02{]", b"\0\0\0\x01\xff"])
def test_a_broken_frame_is_the_end(frame: bytes) -> None:
    reading, writing = os.pipe()
    os.write(writing, frame)
    os.close(writing)
    with pytest.raises(GoneError):
        receive(reading, 100)
    os.close(reading)


def test_long_frames_are_not_sent_and_not_read() -> None:
    reading, writing = os.pipe()
    with pytest.raises(TooLongError):
        send(writing, "x" * 100, 50)
    os.write(writing, b"\xff\xff\xff\xff")
    with pytest.raises(TooLongError):
        receive(reading, 50)
    os.close(reading)
    os.close(writing)
