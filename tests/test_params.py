"""Plugin parameters: dataclass fields as JSON Schema, mistakes in words."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import jsonschema
import pytest

from harness import api, params
from harness.api import Range, plugin


@plugin
class Many:
    """Fields of every sort."""

    count: Annotated[int, Range(ge=1, lt=10)]
    rate: Annotated[float, Range(gt=0, le=1)] = 0.5
    name: str | None = None
    kind: Literal["red", "green"] = "red"
    on: bool = False
    sizes: list[int] | None = None
    more: dict[str, Any] | None = None
    rounds: Literal["paper"] | int = "paper"
    channel: api.Channel | None = None
    channels: list[api.Channel] | None = None
    by_name: dict[str, Annotated[api.Policy, "who"]] | None = None
    span: tuple[int, float] | None = None
    names: tuple[str, ...] = ()
    tags: frozenset[str] | None = None
    function: Callable[[str], str] | None = None


GOOD: dict[str, Any] = {"count": 3}


def test_the_schema_is_valid_and_knows_defaults_and_what_is_required() -> None:
    shape = params.schema(Many)
    jsonschema.Draft202012Validator.check_schema(shape)
    assert shape["required"] == ["count"]
    assert shape["properties"]["kind"] == {"enum": ["red", "green"], "default": "red"}
    assert params.references(Many) == {"channel": "channels", "channels": "channels", "by_name": "policies"}
    assert params.containers(Many) == {"span": tuple, "names": tuple, "tags": frozenset}


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"rate": 1},
        {"name": None},
        {"sizes": [1, 2]},
        {"more": {"x": [1]}},
        {"rounds": 3},
        {"span": [1, 2.5]},
        {"names": ["a", "b"]},
        {"channels": ["neighbours", {"use": "neighbours"}]},
        {"channel": "neighbours"},
        {"channel": {"use": "neighbours", "loss": 0.5}},
    ],
)
def test_good_values(value: dict[str, Any]) -> None:
    assert not list(params.problems({**GOOD, **value}, params.schema(Many)))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"count": 0}, "'count' must be ≥ 1, found 0"),
        ({"count": 10}, "'count' must be < 10, found 10"),
        ({"count": 2.5}, "'count' must be an integer, found the number 2.5"),
        ({"count": 3.0}, "'count' must be an integer, found the number 3.0"),
        ({"count": True}, "'count' must be an integer, found the truth value True"),
        ({"count": "3"}, "'count' must be an integer, found text '3'"),
        ({"rate": 0}, "'rate' must be > 0, found 0"),
        ({"rate": 1.1}, "'rate' must be ≤ 1, found 1.1"),
        ({"kind": "gren"}, "'kind' is 'gren'. Did you mean green?"),
        ({"on": "yes"}, "'on' must be true or false, found text 'yes'"),
        ({"name": [1]}, "'name' must be text or empty, found a list [1]"),
        ({"sizes": [1, "x"]}, "entry 1 of 'sizes' must be an integer, found text 'x'"),
        ({"rounds": "papers"}, "'rounds' must be paper or an integer, found text 'papers'. Did you mean paper?"),
        ({"rounds": True}, "'rounds' must be paper or an integer, found the truth value True"),
        ({"span": [1]}, "'span' must have at least 2 entries, found 1"),
        ({"span": [1.5, 1]}, "entry 0 of 'span' must be an integer"),
        ({"channels": [3]}, "entry 0 of 'channels' must be text or a mapping"),
        ({"cuont": 1}, "unknown key 'cuont'. Did you mean count?"),
        ({"channel": {"loss": 1}}, "lacks 'use'"),
        ({"more": 3}, "'more' must be a mapping or empty, found the number 3"),
    ],
)
def test_mistakes(value: dict[str, Any], says: str) -> None:
    found = [what for _, what in params.problems({**GOOD, **value}, params.schema(Many))]
    assert any(says in what for what in found), found


def test_a_missing_parameter() -> None:
    assert [what for _, what in params.problems({}, params.schema(Many))] == ["this lacks 'count'"]
