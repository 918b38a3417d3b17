"""One vocabulary for generation words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api.errors import SetupError
from harness.engines.sampling import SYNONYMS, WORDS, normalize


def test_words_of_other_tools_mean_the_same() -> None:
    assert normalize({"max_gen_toks": 64, "until": ["\n"], "temperature": 0.7}) == {
        "max_tokens": 64,
        "stop": ["\n"],
        "temperature": 0.7,
    }
    assert normalize({"max_new_tokens": 64}) == normalize({"max_tokens": 64})
    assert normalize({"stop": "x"}) == {"stop": ["x"]}


@pytest.mark.parametrize(
    ("given_words", "temperature"),
    [
        ({"do_sample": False}, 0.0),
        ({"do_sample": False, "temperature": 0.7}, 0.0),
        ({"do_sample": True, "temperature": 0.7}, 0.7),
        ({"do_sample": True}, None),
    ],
)
def test_do_sample_false_is_temperature_zero(given_words: dict[str, Any], temperature: float | None) -> None:
    assert normalize(given_words).get("temperature") == temperature


def test_none_is_as_if_not_said() -> None:
    assert normalize({"stop": None, "top_k": None}) == {}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"temprature": 1}, "unknown word 'temprature'.*\n.*temperature"),
        ({"max_gen_tok": 1}, "max_gen_toks"),
        ({"seed": 1}, "unknown word 'seed'.*\n.*--seed"),
        ({"n": 2}, "repeats"),
        ({"temperature": -1}, "at least 0, not -1"),
        ({"top_p": 0}, "above 0 and at most 1, not 0"),
        ({"top_p": 1.5}, "at most 1, not 1.5"),
        ({"temperature": "hot"}, "must be a number, not 'hot'"),
        ({"temperature": float("nan")}, "finite, not nan"),
        ({"max_tokens": True}, "must be a whole number, not True"),
        ({"max_tokens": 1.5}, "must be a whole number, not 1.5"),
        ({"max_tokens": float("inf")}, "must be finite, not inf"),
        ({"temperature": float("inf")}, "must be finite, not inf"),
        ({"repetition_penalty": float("inf")}, "must be finite"),
        ({"max_tokens": 0}, "at least 1, not 0"),
        ({"until": [""]}, "until must be a string or a list of strings"),
        ({"stop": 3}, "stop must be"),
        ({"do_sample": "no"}, "do_sample must be true or false"),
        ({"max_tokens": 8, "max_gen_toks": 9}, "'max_tokens' and 'max_gen_toks' mean the same"),
    ],
)
def test_mistakes_are_named(words: dict[str, Any], message: str) -> None:
    with pytest.raises(SetupError, match=message):
        normalize(words)


def test_a_whole_float_is_a_whole_number() -> None:
    assert normalize({"max_tokens": 64.0, "top_k": -1}) == {"max_tokens": 64, "top_k": -1}


@given(
    st.dictionaries(
        st.sampled_from(sorted(WORDS | set(SYNONYMS) | {"do_sample"})) | st.text(max_size=8),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.lists(st.text(max_size=3)),
        max_size=4,
    )
)
def test_it_gives_known_words_or_a_users_error_and_is_idempotent(words: dict[str, Any]) -> None:
    try:
        result = normalize(words)
    except SetupError:
        return
    assert set(result) <= WORDS
    assert normalize(result) == result
