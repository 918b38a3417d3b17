"""Plugin parameters: dataclass fields as JSON Schema, mistakes in words."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import api
from harness.api import Range, plugin
from harness.api.errors import PluginError, UserError
from harness.config import resolve, spec
from harness.config.project import Project, find
from harness.plugins import parameters


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
    shape = parameters.json_schema(Many)
    jsonschema.Draft202012Validator.check_schema(shape)
    assert shape["required"] == ["count"]
    assert shape["properties"]["kind"] == {"enum": ["red", "green"], "default": "red"}


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
        {"channels": ["neighbors", {"use": "neighbors"}]},
        {"channel": "neighbors"},
        {"channel": {"use": "neighbors", "loss": 0.5}},
    ],
)
def test_good_values(value: dict[str, Any]) -> None:
    assert not list(parameters.faults(Many, {**GOOD, **value}))


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
        (
            {"name": 4},
            """'name' must be text or empty, found the number 4. In quotes it is text: "4", in a shell '"4"'""",
        ),
        ({"name": True}, """found the truth value True. In quotes it is text: "true","""),
        ({"names": None}, "'names' must be a list, found nothing"),
        ({"sizes": [1, "x"]}, "entry 1 of 'sizes' must be an integer, found text 'x'"),
        ({"rounds": "papers"}, "'rounds' must be paper or an integer, found text 'papers'. Did you mean paper?"),
        ({"rounds": True}, "'rounds' must be paper or an integer, found the truth value True"),
        ({"span": [1]}, "'span' must have at least 2 entries, found 1"),
        ({"rounds": "pqrs"}, "'rounds' must be paper or an integer, found text 'pqrs'."),
        ({"span": [1.5, 1]}, "entry 0 of 'span' must be an integer"),
        ({"channels": [3]}, "entry 0 of 'channels' must be text or a mapping"),
        ({"cuont": 1}, "unknown key 'cuont'. Did you mean count?"),
        ({"channel": {"loss": 1}}, "missing required key 'use'"),
        ({"more": 3}, "'more' must be a mapping or empty, found the number 3"),
    ],
)
def test_mistakes(value: dict[str, Any], says: str) -> None:
    results = [what for _, what in parameters.faults(Many, {**GOOD, **value})]
    assert any(says in what for what in results), results
    assert all("None found" not in what and "  " not in what for what in results)


def test_a_missing_parameter() -> None:
    assert [what for _, what in parameters.faults(Many, {})] == ["missing required key 'count'"]


# ------------------------------------------------------------------------------- what YAML's values become

TOY = Path(__file__).parents[2] / "toy"
FIELDS: list[tuple[str, Any, Any]] = [
    ("list[set[str]]", [["a", "b"], []], [{"a", "b"}, set()]),
    ("list[tuple[str, int]]", [["a", 1], ["b", 2]], [("a", 1), ("b", 2)]),
    ("tuple[tuple[int, ...], ...] | None", [[1], [2, 3]], ((1,), (2, 3))),
    ("dict[str, frozenset[str]]", {"a": ["x", "x"]}, {"a": frozenset("x")}),
    ("dict[int, list[tuple[int, int]]]", {4: [[1, 2]]}, {4: [(1, 2)]}),
    ("set[tuple[str, int]]", [["a", 1]], {("a", 1)}),
    ("Annotated[list[Annotated[tuple[float, float], 'x']], 'y']", [[0, 1.5]], [(0, 1.5)]),
    ("str | set[str]", "a", "a"),
    ("str | set[str]", ["a"], {"a"}),
    ("dict[str, int] | list[tuple[str, int]]", [["a", 1]], [("a", 1)]),
    ("dict[str, int] | list[tuple[str, int]]", {"a": 1}, {"a": 1}),
    ("Sequence[Sequence[int]]", [[1]], [[1]]),
    ("AbstractSet[str]", ["a"], frozenset("a")),
    ("dict[Literal['x', 'y'], tuple[()]]", {"x": []}, {"x": ()}),
    ("set", ["a", 1], {"a", 1}),
    ("tuple", [1, [2]], (1, [2])),
    ("list[dict[str, Any]]", [{"a": [1]}], [{"a": [1]}]),
]
PLUGIN = """from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Annotated, Any, Literal
from harness import api
from harness.api import Metric, plugin


@plugin
class Many(Metric):
    '''Fields of a sort.'''

    field: {hint}

    def measure(self, episode: Any) -> float:
        return 0.0
"""


def mine(folder: Path, hint: str, text: str = PLUGIN) -> Project:
    """A project whose metric `many` has one parameter of this type."""
    for name, body in {"harness.yaml": f"parents: [{TOY}]\n", "metrics/many.py": text.replace("{hint}", hint)}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(body)
    return find(folder)


def metric(project: Project, value: Any) -> Any:
    body = {"name": "s", "task": "pick", "protocol": "rounds", "prompts": "toy/base", "metrics": [
        {"use": "many", "field": value, "name": "many"}]}  # fmt: skip
    return resolve.metrics(spec.parse(body, project), project)["many"]


@pytest.mark.parametrize(("hint", "value", "expected"), FIELDS, ids=[hint[:28] for hint, _, _ in FIELDS])
def test_a_parameter_is_what_its_annotation_says(tmp_path: Path, hint: str, value: Any, expected: Any) -> None:
    field = metric(mine(tmp_path, hint), value).field
    assert field == expected and repr(type(field)) == repr(type(expected))
    if isinstance(expected, list):
        assert [type(item) for item in field] == [type(item) for item in expected]


def test_plugins_within_containers_are_built(tmp_path: Path) -> None:
    project = mine(tmp_path, "list[tuple[str, api.Metric | None]]")
    [(name, one), (_, none)] = metric(project, [["a", {"use": "agreed"}], ["b", None]]).field
    assert (name, type(one).__name__, none) == ("a", "Agreed", None)
    with pytest.raises(PluginError, match=r"there is no metric 'agred'\n  Did you mean agreed"):
        metric(project, [["a", "agred"]])


@pytest.mark.parametrize(
    ("hint", "why"),
    [
        ("list[set[list[int]]]", "no YAML can write its parameter 'field', list[set[list[int]]]"),
        ("dict[float, int]", "'field', dict[float, int]\n  Keys are text or whole numbers"),
        ("dict[tuple[int, int], str]", "'field', dict[tuple[int, int], str]"),
        ("list[type]", "'field', list[type]"),
        ("list[Nowhere]", "the types of its parameters cannot be read: name 'Nowhere' is not defined"),
    ],
)
def test_what_yaml_cannot_write_is_refused_at_load(tmp_path: Path, hint: str, why: str) -> None:
    text = PLUGIN if "Nowhere" not in hint else "from __future__ import annotations\n" + PLUGIN
    with pytest.raises(PluginError) as caught:
        mine(tmp_path, hint, text).load("metrics", "many")
    assert "metric 'many'" in str(caught.value) and why in str(caught.value)


@pytest.mark.parametrize(
    ("hint", "value", "says"),
    [
        ("set[str]", [["a"]], "entry 0 of 'field' must be text, found a list ['a']"),
        ("set", [["a"]], "entry 0 of 'field' must be text or a number or true or false or empty, found a list"),
        ("dict[int, str]", {"x": "a"}, "'field' has no key 'x'. It must be a whole number."),
        ("dict[Literal['red'], str]", {"rde": "a"}, "'field' has no key 'rde'. Did you mean red?"),
        ("list[tuple[str, int]]", [["a"]], "entry 0 of 'field' must have at least 2 entries, found 1"),
        ("set[dict[str, int]] | None = None", [{}], "'field' is set[dict[str, int]] | None, which YAML cannot write"),
        ("list[type] | None = None", ["x"], "'field' is list[type] | None, which YAML cannot write"),
    ],
)
def test_mistakes_within_containers(tmp_path: Path, hint: str, value: Any, says: str) -> None:
    with pytest.raises(UserError) as caught:
        metric(mine(tmp_path, hint), value)
    assert says in str(caught.value)


LEAVES = st.sampled_from([(int, st.integers()), (str, st.text()), (bool, st.booleans())])


def deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def of(pair: Any) -> Any:
        hint, values = pair
        return st.sampled_from([
            (list[hint], st.lists(values, max_size=3)),  # type: ignore[valid-type]
            (tuple[hint, ...], st.lists(values, max_size=3).map(tuple)),  # type: ignore[valid-type]
            (tuple[hint, str], st.tuples(values, st.text())),  # type: ignore[valid-type]
            (dict[str, hint], st.dictionaries(st.text(), values, max_size=3)),  # type: ignore[valid-type]
            (hint | None, st.none() | values),
        ])  # fmt: skip

    return inner.flatmap(of)


def plain(value: Any) -> Any:
    """As YAML has it."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


@given(st.data())
def test_building_undoes_what_yaml_does_to_a_value(data: st.DataObject) -> None:
    hint, values = data.draw(st.recursive(LEAVES, deeper, max_leaves=4))
    value = data.draw(values)
    assert parameters.build(hint, plain(value), lambda *_: None) == value
