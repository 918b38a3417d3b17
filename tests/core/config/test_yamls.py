"""YAML: safe, bounded, with places."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api.errors import KEY, DataError, SpecError
from harness.config import yamls


def bomb() -> str:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    return "\n".join(rows)


@pytest.mark.parametrize("text", ["a:\n\tb: 1", "a:\n  b: 1\n\tc: 2", "a:\n \tb: 1\n \tc: 2", "a:\n\t- 1\n\t- 2"])
def test_a_tab_is_answered_with_use_spaces(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        yamls.parse(text, "f.yaml")
    assert "Use spaces" in caught.value.hint


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("text", "says", "line"),
    [
        ("a: 1\na: 2", "duplicate key 'a', first at f.yaml:1:1", "f.yaml:2:1"),
        ("a: [1,", "broken YAML", "f.yaml:1:7"),
        ("a:\n  b: !function utils.f", "tag !function is not allowed", "f.yaml:2:6"),
        ("a: !!python/object/apply:os.system [ls]", "is not allowed", "f.yaml:1:4"),
        ("k: {<<: {a: 1}}", "use extends", "f.yaml:1:5"),
        ("{[1]: 2}", "a key must be a plain word", "f.yaml:1:2"),
        ("a: &a [*a]", "nested deeper", "f.yaml:1:4"),
        ("a: 1\nb: " + "[" * 5000, "nested deeper", "f.yaml:2:"),
        ("[" * 60 + "]" * 60, "nested deeper", "f.yaml:1:"),
        (bomb(), "expands to more than", "f.yaml:"),
        ("a: 1\nb: \x00", "'\\x00' may not stand here", "f.yaml:2:4"),
        ("a: b: c", 'Put a text with ": " in it in quotes', "f.yaml:1:5"),
        (f"a: 1\nb: {'9' * 5000}", "a number of 5,000 characters", "f.yaml:2:4"),
        ("a: [1, .nan]", "not a number", "f.yaml:1:8"),
        ("4: a\n'4': b", "duplicate key '4'", "f.yaml:2:1"),
        ("--- 1\n--- 2", "broken YAML", "f.yaml:2:1"),
    ],
)
def test_refusals_say_where_and_what(text: str, says: str, line: str) -> None:
    with pytest.raises(SpecError) as caught:
        yamls.parse(text, "f.yaml")
    assert says in str(caught.value)
    assert str(caught.value).startswith(line)


def test_plain_data_and_places() -> None:
    document = yamls.parse("a:\n  - 1e-3\n  - {b: x}\nd: 2020-01-01\ne:\nf: &f [1]\ng: *f\n", "f.yaml")
    assert document.data == {"a": [0.001, {"b": "x"}], "d": "2020-01-01", "e": None, "f": [1], "g": [1]}
    assert str(document.place("a", 1, "b", KEY)) == "f.yaml:3:6"
    assert str(document.place("a", 1, "b")) == "f.yaml:3:9"
    assert str(document.place("a", 1, "b", "not there")) == "f.yaml:3:9"
    assert str(document.place("nowhere")) == "f.yaml:1:1"


SAYS: list[tuple[str, object]] = [
    ("010", 10), ("08", 8), ("-010", -10), ("+7", 7), ("0o10", 8), ("0x1F", 31), ("0b11", 3), ("1_000", 1000),
    ("12:30", "12:30"), ("1:30:00", "1:30:00"), ("1:30.5", "1:30.5"), ("2020-01-01", "2020-01-01"), ("=", "="),
    (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0), ("1.5E-3", 0.0015), ("1_0.5", 10.5), ("-.inf", float("-inf")),
    *((word, word) for word in ("yes", "Yes", "NO", "on", "off", "y", "n", "tRUE", "nULL", "0o8", "0xg", "1e", "_1")),
    ("true", True), ("False", False), ("~", None), ("Null", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), SAYS)
def test_plain_words_are_those_of_yaml_1_2(text: str, value: object) -> None:
    """YAML 1.1, which PyYAML reads, has 010 for eight, 12:30 for 750 and `no` for false."""
    read = yamls.parse(f"a: [{text}]", "f").data["a"][0]
    assert (type(read), read) == (type(value), value)
    assert yamls.parse(f"#\t\na: {text}", "f").data["a"] == read  # PyYAML's own parser


@given(st.sampled_from([text for text, value in SAYS if isinstance(value, str)]) | st.text("0123456789_.:+-ebox"))
def test_a_text_that_is_dumped_is_one_for_readers_of_yaml_1_1_too(text: str) -> None:
    import yaml

    assert yaml.safe_load(yamls.dump({"a": text})) == {"a": text}


def test_keys_are_the_text_they_were_written_as() -> None:
    """JSON has text keys only, and so has everything that is written down of a run."""
    data = yamls.parse("4: a\nyes: b\n~: c\n2020-99-99: 2020-99-99\n1e-3: d", "f").data
    assert data == {"4": "a", "yes": "b", "~": "c", "2020-99-99": "2020-99-99", "1e-3": "d"}


KEYS = st.sampled_from(["a", "4", "1e-3", "yes", "~", "2020-01-01"])
TEXTS = st.text(st.characters(exclude_categories=["C"]))
INTEGERS = st.integers(-yamls.MAX_INT, yamls.MAX_INT)
PLAIN = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner),
    max_leaves=8,
)  # fmt: skip


@given(
    PLAIN
    | st.sampled_from(["1e-3", "1_0", "1:30", "no", "null", "2020-01-01", "=", "<<", "0x1f", "010", "0o7", "YES", "08"])
)
def test_what_is_dumped_is_read_back(value: object) -> None:
    assert yamls.parse(yamls.dump({"a": value}), "f").data == {"a": value}


YAML_LIKE = st.lists(st.sampled_from([*"ab1~:-[]{}&*|>'\"%@`#,? \n\\\r\x85\u2028é", "\n  ", "- ", ": ", "? "])).map(
    "".join
)


@given(YAML_LIKE | st.sampled_from([">#", "a: |-#", "!", "- !", "a\tb"]))
def test_the_fast_parser_and_the_other_agree(text: str) -> None:
    """A tab anywhere, here in a comment, has the other read the whole text."""
    read: list[object] = []
    for whole in (text, "#\t\n" + text):
        try:
            read.append(yamls.parse(whole, "f").data)
        except SpecError:
            read.append(SpecError)
    assert read[0] == read[1]


def test_too_large() -> None:
    with pytest.raises(SpecError, match="larger than"):
        yamls.parse("x" * (yamls.MAX_BYTES + 1), "f.yaml")


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read"):
        yamls.read(tmp_path / "none.yaml")
    with pytest.raises(DataError, match="cannot read"):
        yamls.read(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"a: \xff")
    with pytest.raises(SpecError, match="not UTF-8"):
        yamls.read(tmp_path / "latin.yaml")


@given(st.text())
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        yamls.parse(text, "f")
    except SpecError as error:
        assert str(error).startswith("f")


json_like = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(st.characters(categories=["L", "N"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(categories=["L"]), min_size=1), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(json_like)
def test_json_is_read_as_json(value: object) -> None:
    import json

    assert yamls.parse(json.dumps(value, ensure_ascii=False), "f").data == value


def test_an_expression_inside_braces_is_said_to_need_quotes() -> None:
    with pytest.raises(SpecError, match=r"f:1:21: broken YAML.*\n.*in quotes"):
        yamls.parse("rule: {holds: answer[agent] == 1}", "f")
