"""Specs: extends, --set, matrix, and mistakes with their places."""

import textwrap
from pathlib import Path

import pytest

from harness import spec
from harness.errors import SpecError
from harness.project import find

TOY = find(Path(__file__).parent / "toy")
GOOD = "name: s\ntask: pick\nprotocol: rounds\nprompts: toy/base\nmetrics: [agreed]\n"


def load(tmp_path: Path, text: str, *sets: str) -> spec.Spec:
    file = tmp_path / "s.yaml"
    file.write_text(textwrap.dedent(text))
    return spec.load(str(file), TOY, sets)


def test_extends_merges_mappings_and_replaces_the_rest(tmp_path: Path) -> None:
    child = load(
        tmp_path, "extends: toy\nname: child\nprotocol: {rounds: 5}\nmatrix: {seats: [4]}\ntask: {letters: abc}\n"
    )
    assert child.data["protocol"] == {"use": "rounds", "rounds": 5}
    assert child.data["task"] == {"use": "pick", "seats": "${seats}", "letters": "abc"}
    assert [v.id for v in child.variants()] == ["seats=4"]
    assert str(child.place("protocol", "rounds")).endswith("s.yaml:3:20")
    assert str(child.place("metrics")).endswith("toy.yaml:11:10")


def test_another_plugin_does_not_inherit_parameters(tmp_path: Path) -> None:
    child = load(tmp_path, "extends: toy\nname: child\nbaseline: {use: illegal}\n")
    assert child.data["baseline"] == {"use": "illegal"}


def test_null_removes_an_inherited_key(tmp_path: Path) -> None:
    assert "baseline" not in load(tmp_path, "extends: toy\nname: child\nbaseline:\n").data


def test_lm_eval_words(tmp_path: Path) -> None:
    child = load(tmp_path, "include: toy\nname: child\nmetric_list: [reasks]\n")
    assert child.data["metrics"] == ["reasks"]
    with pytest.raises(SpecError, match="another word for"):
        load(tmp_path, "include: toy\nextends: toy\n")


def test_set_wins_over_the_file(tmp_path: Path) -> None:
    loaded = load(tmp_path, GOOD, "task.seats=5", "matrix={}", "generation_kwargs={temperature: 0}")
    assert loaded.data["task"] == {"use": "pick", "seats": 5}
    assert loaded.data["generation_kwargs"] == {"temperature": 0}
    assert str(loaded.place("task", "seats")) == "--set task.seats=5"


def test_matrix_is_a_product_with_typed_and_woven_values(tmp_path: Path) -> None:
    text = GOOD.replace("task: pick", "task: {use: '${kind}', seats: '${n.seats}', letters: 'a${tail}'}")
    loaded = load(
        tmp_path, text + "matrix: {kind: [pick], n: [{name: few, seats: 2}, {name: many, seats: 9}], tail: [b, bc]}\n"
    )
    variants = loaded.variants()
    assert [v.id for v in variants] == [f"kind=pick,n={n},tail={t}" for n in ("few", "many") for t in ("b", "bc")]
    assert variants[3].data["task"] == {"use": "pick", "seats": 9, "letters": "abc"}
    assert variants[3].labels == {"kind": "pick", "n": "many", "tail": "bc"}


@pytest.mark.parametrize(
    ("change", "says", "place"),
    [
        (("name: s", "nome: s"), "unknown key 'nome'. Did you mean name?", "s.yaml:1:1"),
        (("metrics: [agreed]", "metrics: []"), "should be non-empty", "s.yaml:5:10"),
        (("metrics: [agreed]", "metrics: agreed"), "'metrics' must be a list, found text 'agreed'", "s.yaml:5:10"),
        (("name: s", "name: ../x"), "does not match", "s.yaml:1:7"),
        (("name: s", "name: s\nrepeats: 0"), "'repeats' must be ≥ 1, found 0", "s.yaml:2:10"),
        (("name: s", "name: s\nrepeats: x"), "'repeats' must be an integer, found text 'x'", "s.yaml:2:10"),
        (("task: pick\n", ""), "lacks 'task'", "s.yaml:1:1"),
        (("task: pick", "task: {uses: pick}"), "lacks 'use'", "s.yaml:2:7"),
        (("task: pick", "task: '${x}'"), "${x} is not in the matrix", "s.yaml:2:7"),
        (("name: s", "name: s\nmatrix: {x: [1]}"), "'x' is never used", "s.yaml:2:10"),
        (("task: pick", "task: '${model}'\nmatrix: {model: [pick]}"), "is a column of result rows", "s.yaml:3:10"),
        (("task: pick", "task: '${x.y}'\nmatrix: {x: [{name: a, z: 1}]}"), "has no 'y'", "s.yaml:2:7"),
        (("task: pick", "task: '${x}'\nmatrix: {x: [[1]]}"), "scalar or a mapping with a name", "s.yaml:3:14"),
        (("name: s", "name: s\nextends: nowhere"), "there is no spec 'nowhere'", "s.yaml:2:10"),
        (("name: s", "name: s\nextends: s.yaml"), "extends itself", "s.yaml:2:10"),
        (("name: s", "name: s\nextends: [a]"), "names one spec", "s.yaml:2:10"),
        (("name: s", "name: s\ntables: [{title: t}]"), "lacks 'rows', 'cell'", "s.yaml:2:10"),
        (
            ("name: s", "name: s\nseats: {other: {shares: 1}}"),
            "unknown key 'shares'. Did you mean share",
            "s.yaml:2:17",
        ),
    ],
)
def test_mistakes_say_where_and_what(tmp_path: Path, change: tuple[str, str], says: str, place: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(tmp_path, GOOD.replace(*change))
    assert says in str(caught.value)
    assert place in str(caught.value)


@pytest.mark.parametrize("assignment", ["task", "=1", "task..seats=1", "metrics.x=1", "task.seats=[", "nope.x=1"])
def test_bad_set(tmp_path: Path, assignment: str) -> None:
    with pytest.raises(SpecError, match="--set"):
        load(tmp_path, GOOD, assignment)


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        load(tmp_path, GOOD.replace("name: s", "nome: s") + "repeats: 0\n")
    assert "3 problems" in str(caught.value)  # nome, lacks name, repeats


def test_digest_ignores_presentation_and_sees_the_rest(tmp_path: Path) -> None:
    plain = load(tmp_path, GOOD).digest()
    assert load(tmp_path, GOOD + "description: x\ngeneration_kwargs: {temperature: 0}\n").digest() == plain
    assert load(tmp_path, GOOD + "seed: 1\n").digest() != plain


def test_from_python() -> None:
    made = spec.parse({"extends": "toy", "name": "x", "protocol": {"rounds": 1}}, TOY)
    assert made.data["protocol"] == {"use": "rounds", "rounds": 1}
    with pytest.raises(SpecError, match="unknown key"):
        spec.parse({"extends": "toy", "nam": "x"}, TOY)
