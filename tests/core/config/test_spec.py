"""Specs: extends, --set, matrix, and mistakes with their places."""

import contextlib
import re
import textwrap
import traceback
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api.errors import SpecError, UserError
from harness.cli import main
from harness.config import resolve, spec
from harness.config.project import builtin, find
from harness.config.proposals import complete
from harness.engines.mock import Mock
from harness.report import render
from tests.helpers.commands import invoke
from tests.helpers.toy import TOY

GOOD = "name: s\ntask: pick\nprotocol: rounds\nprompts: toy/base\nmetrics: [agreed]\n"


def load(tmp_path: Path, text: str, *overrides: str) -> spec.Spec:
    file = tmp_path / "s.yaml"
    file.write_text(textwrap.dedent(text))
    return spec.load(str(file), TOY, overrides)


def test_extends_merges_mappings_and_replaces_the_rest(tmp_path: Path) -> None:
    child = load(
        tmp_path, "extends: toy\nname: child\nprotocol: {rounds: 5}\nmatrix: {agents: [4]}\ntask: {letters: abc}\n"
    )
    assert child.data["protocol"] == {"use": "rounds", "rounds": 5}
    assert child.data["task"] == {"use": "pick", "agents": "${agents}", "letters": "abc"}
    assert [v.id for v in child.variants()] == ["agents=4"]
    assert str(child.place("protocol", "rounds")).endswith("s.yaml:3:20")
    assert str(child.place("metrics")).endswith("toy.yaml:11:10")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("tables:\n  - {title: Mine, rows: model}", "s.yaml:4:5"),
        ("tables:\n  - {title: Mine, rows: model, metrics: agreed}\n  - {title: Two, rows: model}", "s.yaml:5:5"),
        ("tables+:\n  - {title: Mine, rows: model}", "s.yaml:4:5"),
        ("tables:\n  - title: Mine", "s.yaml:4:5"),
        ("metrics: [{use: agreed, nam: x}]", "s.yaml:3:"),
    ],
)
def test_a_mistake_of_the_child_is_placed_in_the_child(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, place: str
) -> None:
    """Also where the spec that it extends has something at the same position of a list that is replaced."""
    (tmp_path / "s.yaml").write_text(f"extends: toy\nname: child\n{text}\n")
    with contextlib.chdir(TOY.root):
        code, _, err = invoke(capsys, "validate", str(tmp_path / "s.yaml"))
    assert code == 2 and place in err and "toy.yaml" not in err


def test_another_plugin_does_not_inherit_parameters(tmp_path: Path) -> None:
    child = load(tmp_path, "extends: toy\nname: child\nbaseline: {use: illegal}\n")
    assert child.data["baseline"] == {"use": "illegal"}


def test_null_removes_an_inherited_key(tmp_path: Path) -> None:
    assert "baseline" not in load(tmp_path, "extends: toy\nname: child\nbaseline:\n").data


def test_lm_eval_words(tmp_path: Path) -> None:
    child = load(tmp_path, "include: toy\nname: child\nmetric_list: [parse_retries]\n")
    assert child.data["metrics"] == ["parse_retries"]
    with pytest.raises(SpecError, match="another word for"):
        load(tmp_path, "include: toy\nextends: toy\n")


def test_set_wins_over_the_file(tmp_path: Path) -> None:
    loaded = load(tmp_path, GOOD, "task.agents=5", "matrix={}", "generation_kwargs={temperature: 0}")
    assert loaded.data["task"] == {"use": "pick", "agents": 5}
    assert loaded.data["generation_kwargs"] == {"temperature": 0}
    assert str(loaded.place("task", "agents")) == "--set task.agents=5"


def test_matrix_is_a_product_with_typed_and_woven_values(tmp_path: Path) -> None:
    text = GOOD.replace("task: pick", "task: {use: '${kind}', agents: '${n.agents}', letters: 'a${tail}'}")
    loaded = load(
        tmp_path, text + "matrix: {kind: [pick], n: [{name: few, agents: 2}, {name: many, agents: 9}], tail: [b, bc]}\n"
    )
    variants = loaded.variants()
    assert [v.id for v in variants] == [f"kind=pick,n={n},tail={t}" for n in ("few", "many") for t in ("b", "bc")]
    assert variants[3].data["task"] == {"use": "pick", "agents": 9, "letters": "abc"}
    assert variants[3].labels == {"kind": "pick", "n": "many", "tail": "bc"}


def test_a_swept_value_may_have_those_before_it_in_it(tmp_path: Path) -> None:
    task = "{name: '${kind}-2', use: '${kind.use}', agents: [2, '${kind}']}"
    matrix = f"matrix: {{kind: [{{name: p, use: pick}}], task: [{task}]}}"
    [variant] = load(
        tmp_path, GOOD.replace("task: pick", "task: {use: '${task.use}', x: '${task.agents}'}") + matrix
    ).variants()
    assert variant.id == "kind=p,task=p-2"
    assert variant.data["task"] == {"use": "pick", "x": [2, "p"]}


@pytest.mark.parametrize(
    ("change", "says", "place"),
    [
        (
            ("task: pick", "task: '${x}'\nmatrix: {x: ['${y}'], y: [1]}"),
            "does not stand before this one in the matrix",
            "s.yaml:3:14",
        ),
        (
            ("task: pick", "task: '${x}'\nmatrix: {x: ['${x}']}"),
            "does not stand before this one in the matrix",
            "s.yaml:3:14",
        ),
        (("task: pick", "task: '${x}'\nmatrix: {x: ['${z}']}"), "${z} is not in the matrix", "s.yaml:3:14"),
        (("name: s", "nome: s"), "unknown key 'nome'. Did you mean name?", "s.yaml:1:1"),
        (("metrics: [agreed]", "metrics: []"), "'metrics' must not be empty", "s.yaml:5:10"),
        (("metrics: [agreed]", "metrics: agreed"), "'metrics' must be a list, found text 'agreed'", "s.yaml:5:10"),
        (("name: s", "name: ../x"), "'name' is '../x'; it must be ASCII letters, digits", "s.yaml:1:7"),
        (("name: s", 'name: "s\\n"'), "'name' is 's\\n'; it must be ASCII letters, digits", "s.yaml:1:7"),
        (("name: s", "name: s\nrepeats: 2.0"), "'repeats' must be an integer, found the number 2.0", "s.yaml:2:10"),
        (("name: s", "name: s\nrepeats: 0"), "'repeats' must be ≥ 1, found 0", "s.yaml:2:10"),
        (("name: s", "name: s\nrepeats: x"), "'repeats' must be an integer, found text 'x'", "s.yaml:2:10"),
        (("task: pick\n", ""), "missing required key 'task'\n  `harness list tasks` lists tasks.", "s.yaml:1:1"),
        (("task: pick", "task: {uses: pick}"), "missing required key 'use'", "s.yaml:2:7"),
        (("task: pick", "task: '${x}'"), "${x} is not in the matrix", "s.yaml:2:7"),
        (("name: s", "name: s\nmatrix: {x: [1]}"), "'x' is never used", "s.yaml:2:10"),
        (
            ("task: pick", "task: {use: pick, letters: ab}\nmatrix: {letters: [ab, cd]}"),
            "task.letters is fixed here, so that matrix variable 'letters' is never used",
            "s.yaml:2:28",
        ),
        (("task: pick", "task: '${model}'\nmatrix: {model: [pick]}"), "is a column of result rows", "s.yaml:3:10"),
        (("task: pick", "task: '${x.y}'\nmatrix: {x: [{name: a, z: 1}]}"), "has no 'y'", "s.yaml:2:7"),
        (
            ("task: pick", "task: '${x}${y}'\nmatrix: {x: ['${y}'], y: [1]}"),
            "does not stand before this one",
            "s.yaml:3:14",
        ),
        (("task: pick", "task: '${x}'\nmatrix: {x: ['${x}']}"), "does not stand before this one", "s.yaml:3:14"),
        (("task: pick", "task: '${x}'\nmatrix: {x: ['${z}']}"), "${z} is not in the matrix", "s.yaml:3:14"),
        (
            ("task: pick", "task: '${y.u}'\nmatrix: {x: [{name: a}], y: [{name: b, u: '${x.v}'}]}"),
            "has no 'v'",
            "s.yaml:3:43",
        ),
        (("task: pick", "task: '${x}'\nmatrix: {x: [[1]]}"), "scalar or a mapping with a name", "s.yaml:3:14"),
        (("task: pick", "task: '${x}'\nmatrix: {x: [{name: [1]}]}"), "scalar or a mapping with a name", "s.yaml:3:14"),
        (("task: pick", "task: '${x}'\nmatrix: {x: [{name: }]}"), "scalar or a mapping with a name", "s.yaml:3:14"),
        (("task: pick", "task: '${x}'\nmatrix: {x: [a, b, a]}"), "takes the value 'a' twice", "s.yaml:3:20"),
        (("task: pick", "task: '${x}'\nmatrix: {x: [4, '4']}"), "takes the value '4' twice", "s.yaml:3:17"),
        (("name: s", "name: s\nmatrix: {a-b: [1]}"), "cannot be inserted as ${…}", "s.yaml:2:10"),
        (("name: s", "name: s\nmatrix: {1: [1]}"), "cannot be inserted as ${…}", "s.yaml:2:10"),
        (("name: s", "name: s\nextends: nowhere"), "there is no spec 'nowhere'", "s.yaml:2:10"),
        (("name: s", "name: s\nextends: s.yaml"), "extends itself", "s.yaml:2:10"),
        (("name: s", "name: s\nextends: [a]"), "names one spec", "s.yaml:2:10"),
        (
            ("name: s", "name: s\nagents: {other: {shares: 1}}"),
            "unknown key 'shares'. Did you mean share",
            "s.yaml:2:18",
        ),
    ],
)
def test_mistakes_say_where_and_what(tmp_path: Path, change: tuple[str, str], says: str, place: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(tmp_path, GOOD.replace(*change))
    assert says in str(caught.value)
    assert place in str(caught.value)


def test_a_name_picks_the_mapping_that_the_base_sweeps(tmp_path: Path) -> None:
    text = GOOD.replace("task: pick", "task: {use: pick, agents: '${n.agents}'}")
    base = text + "matrix: {n: [{name: few, agents: 2}, {name: 9, agents: 9}, {name: many, agents: 20}]}\n"
    for assignment in ("matrix.n=[many, 9]", "matrix={n: [many, 9]}"):
        loaded = load(tmp_path, base, assignment)
        assert [(v.id, v.data["task"]["agents"]) for v in loaded.variants()] == [("n=many", 20), ("n=9", 9)]
    (tmp_path / "base.yaml").write_text(base)
    child = load(tmp_path, "extends: base.yaml\nname: child\nmatrix: {n: [few, {name: four, agents: 4}]}\n")
    assert [(v.id, v.data["task"]["agents"]) for v in child.variants()] == [("n=few", 2), ("n=four", 4)]
    with pytest.raises(SpecError, match="n: no value is called 'fwe'\n  Did you mean few"):
        load(tmp_path, base, "matrix.n=[fwe]")


def test_a_swept_mapping_can_be_like_another(tmp_path: Path) -> None:
    text = GOOD.replace("task: pick", "task: {use: pick, agents: '${n.agents}', letters: '${n.letters}'}")
    matrix = (
        "matrix: {n: [{name: a, agents: 2, letters: ab}, {name: b, inherits: a, agents: 9}, {name: c, inherits: b}]}\n"
    )
    results = [
        (v.id, v.data["task"]["agents"], v.data["task"]["letters"]) for v in load(tmp_path, text + matrix).variants()
    ]
    assert results == [("n=a", 2, "ab"), ("n=b", 9, "ab"), ("n=c", 9, "ab")]
    with pytest.raises(SpecError, match="no value before this one is called 'c'") as error:
        load(tmp_path, text + matrix.replace("inherits: a", "inherits: c"))
    assert "s.yaml:6:" in str(error.value) and "Available: a" in str(error.value)


def test_a_swept_mapping_can_be_like_one_of_the_base(tmp_path: Path) -> None:
    """One value changed a little, without writing the others out again."""
    text = GOOD.replace("task: pick", "task: {use: pick, agents: '${n.agents}', letters: '${n.letters}'}")
    base = text + "matrix: {n: [{name: a, agents: 2, letters: ab}, {name: b, agents: 3, letters: abc}]}\n"
    (tmp_path / "base.yaml").write_text(base)
    child = load(
        tmp_path,
        "extends: base.yaml\nname: child\nmatrix: {n: [{inherits: b, agents: 7}, a, {name: c, inherits: a}]}\n",
    )
    results = [(v.id, v.data["task"]["agents"], v.data["task"]["letters"]) for v in child.variants()]
    assert results == [("n=b", 7, "abc"), ("n=a", 2, "ab"), ("n=c", 2, "ab")]
    changed = load(tmp_path, base, "matrix.n=[{inherits: a, letters: xyz}]")
    assert [v.data["task"] for v in changed.variants()] == [{"use": "pick", "agents": 2, "letters": "xyz"}]
    with pytest.raises(SpecError, match="no value before this one is called 'd'\n  Available: a, b"):
        load(tmp_path, base, "matrix.n=[{inherits: d}]")


def test_mappings_within_a_swept_mapping_merge_and_nothing_is_a_value(tmp_path: Path) -> None:
    matrix = """
        matrix:
          n:
            - {name: a, task: {use: pick, agents: 2, letters: ab}, hint: x}
            - {name: b, inherits: a, task: {agents: 3}, hint: null}
            - {name: c, inherits: b, task: {use: other, agents: 4}}
        """
    loaded = load(
        tmp_path, GOOD.replace("task: pick", "task: '${n.task}'\ndescription: '${n.hint}'") + textwrap.dedent(matrix)
    )
    tasks = [v.data["task"] for v in loaded.variants()]
    assert tasks[1] == {"use": "pick", "agents": 3, "letters": "ab"} and tasks[2] == {"use": "other", "agents": 4}
    assert [value["hint"] for value in loaded.data["matrix"]["n"]] == ["x", None, None]


def test_a_swept_value_may_use_the_variables_before_it(tmp_path: Path) -> None:
    """What changes together can depend on what else is swept, with its type."""
    matrix = """
        matrix:
          n: [{name: few, agents: 2}, {name: many, agents: 9}]
          how:
            - {name: short, task: {use: pick, agents: "${n.agents}"}}
            - {name: "${n} long", task: {use: pick, letters: "a${n}"}}
        """
    loaded = load(tmp_path, GOOD.replace("task: pick", "task: '${how.task}'") + textwrap.dedent(matrix))
    assert [(v.id, v.data["task"]) for v in loaded.variants()] == [
        ("n=few,how=short", {"use": "pick", "agents": 2}),
        ("n=few,how=few long", {"use": "pick", "letters": "afew"}),
        ("n=many,how=short", {"use": "pick", "agents": 9}),
        ("n=many,how=many long", {"use": "pick", "letters": "amany"}),
    ]


def test_a_variable_that_only_other_swept_values_use_is_used(tmp_path: Path) -> None:
    text = GOOD.replace("task: pick", "task: {use: pick, agents: '${how.agents}'}")
    loaded = load(tmp_path, text + "matrix: {n: [2, 3], how: [{name: x, agents: '${n}'}]}\n")
    assert [v.data["task"]["agents"] for v in loaded.variants()] == [2, 3]


def test_what_is_set_is_reported_by_its_own_place(tmp_path: Path) -> None:
    """Not by the line of what stood there before."""
    loaded = load(tmp_path, GOOD.replace("task: pick", "task: {use: pick, agents: 2}"), "task={use: pick, agents: 3}")
    assert str(loaded.place("task", "agents")) == "--set task={use: pick, agents: 3}"


def test_set_knows_lm_evals_words_and_mappings_the_spec_has_not_yet(tmp_path: Path) -> None:
    loaded = load(
        tmp_path, GOOD, "metric_list=[parse_retries]", "generation_kwargs.temperature=0", "agents.o={count: 1}"
    )
    assert loaded.data["metrics"] == ["parse_retries"]
    assert loaded.data["generation_kwargs"] == {"temperature": 0} and loaded.data["agents"] == {"o": {"count": 1}}


def test_extends_looks_beside_the_spec_first(tmp_path: Path) -> None:
    """What a spec extends must not depend on where one stands."""
    for folder, rounds in (("here", 1), ("there", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "base.yaml").write_text(GOOD.replace("protocol: rounds", f"protocol: {{use: r{rounds}}}"))
    (tmp_path / "there" / "s.yaml").write_text("extends: base.yaml\nname: s\n")
    with contextlib.chdir(tmp_path / "here"):
        assert spec.load("../there/s.yaml", TOY).data["protocol"] == {"use": "r2"}


def test_a_chain_of_specs_ends(tmp_path: Path) -> None:
    for i in range(1200):
        (tmp_path / f"s{i}.yaml").write_text(f"extends: s{i + 1}.yaml\n")
    with pytest.raises(SpecError, match="extends more than 40"):
        spec.load(str(tmp_path / "s0.yaml"), TOY)


def test_a_name_too_long_for_a_file_is_a_name_that_is_not_there() -> None:
    with pytest.raises(SpecError, match="there is no spec 'aaa"):
        spec.load("a" * 5000, TOY)


@pytest.mark.parametrize(
    "assignment",
    ["extends=toy", "include=toy", "task", "=1", "task..agents=1", "metrics.x=1", "task.agents=[", "nope.x=1"],
)
def test_bad_set(tmp_path: Path, assignment: str) -> None:
    with pytest.raises(SpecError, match="--set"):
        load(tmp_path, GOOD, assignment)


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        load(tmp_path, GOOD.replace("name: s", "nome: s") + "repeats: 0\n")
    assert "3 problems" in str(caught.value)  # nome, no name, repeats


def test_a_default_said_in_so_many_words_is_the_same_benchmark(tmp_path: Path) -> None:
    plugin = load(tmp_path, GOOD + "seed: 0\nrepeats: 1\n")
    assert plugin.digest() == load(tmp_path, GOOD).digest() and plugin.data == load(tmp_path, GOOD).data


def test_digest_ignores_presentation_and_sees_the_rest(tmp_path: Path) -> None:
    plain = load(tmp_path, GOOD).digest()
    assert load(tmp_path, GOOD + "description: x\ngeneration_kwargs: {temperature: 0}\n").digest() == plain
    assert load(tmp_path, GOOD + "seed: 1\n").digest() != plain


def test_digest_sees_the_order_of_what_is_carried_out_in_order() -> None:
    def digest(protocol: dict[str, object], **more: object) -> str:
        body = {"name": "t", "task": "pick", "protocol": protocol, "prompts": "toy/base", "metrics": ["agreed"]}
        return spec.parse({**body, **more}, TOY).digest()

    solver, checker = {"brief": "Solve."}, {"brief": "Check."}
    first = digest({"use": "rounds", "roles": {"solver": solver, "checker": checker}}, repeats=2, seed=1)
    assert first != digest({"use": "rounds", "roles": {"checker": checker, "solver": solver}}, repeats=2, seed=1)
    assert first == digest({"roles": {"solver": solver, "checker": checker}, "use": "rounds"}, seed=1, repeats=2)
    swept = {"matrix": {"a": [1], "b": [2]}}, {"matrix": {"b": [2], "a": [1]}}
    ones = [digest({"use": "rounds", "roles": ["${a}", "${b}"]}, **matrix) for matrix in swept]
    assert ones[0] == ones[1]


def test_from_python() -> None:
    parsed = spec.parse({"extends": "toy", "name": "x", "protocol": {"rounds": 1}}, TOY)
    assert parsed.data["protocol"] == {"use": "rounds", "rounds": 1}
    changed = spec.parse({"extends": "toy", "name": "x"}, TOY, ["protocol.rounds=1"], seed=3, limit=None)
    assert changed.data["protocol"]["rounds"] == 1 and changed.data["seed"] == 3 and "limit" not in changed.data
    with pytest.raises(SpecError, match="unknown key"):
        spec.parse({"extends": "toy", "nam": "x"}, TOY)
    with pytest.raises(SpecError, match="plain data: Object of type object"):
        spec.parse({"extends": "toy", "name": object()}, TOY)


def test_a_spec_without_tables_prints_its_metrics(tmp_path: Path) -> None:
    body = GOOD.replace("task: pick", 'task: {use: pick, agents: "${agents}"}').replace(
        "[agreed]", "[agreed, parse_retries]"
    )
    text = body + "baseline: coin\nmatrix: {agents: [2, 3]}\n"
    (tmp_path / "s.yaml").write_text(text)
    [table] = harness.evaluate(str(tmp_path / "s.yaml"), project=TOY, output_path=tmp_path / "r").tables
    header, *rows = [line.split("|")[1:-1] for line in render(table, "markdown").splitlines() if line.startswith("|")]
    assert [cell.strip() for cell in header] == ["model", "agents", "agreed", "parse_retries"]
    assert [[cell.strip() for cell in row[:2]] for row in rows[1:]] == [["coin", "2"], ["coin", "3"]]
    assert load(tmp_path, text + "tables: []\n").data["tables"] == []


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_file_says_what_a_spec_needs(tmp_path: Path, text: str) -> None:
    with pytest.raises(SpecError, match=r"s\.yaml:1:1: the file is empty; a spec needs name, task, protocol$"):
        load(tmp_path, text)


def test_a_run_whose_baseline_uses_no_variable_of_the_spec_is_read_back(tmp_path: Path) -> None:
    """Where the panel's seat was swept, it does not matter to a policy that plays instead; tables still have it."""
    table = "tables: [{title: t, rows: x, metrics: agreed}]\n"
    written = tmp_path / "spec.yaml"
    for swept, is_of_run in (("x", False), ("x", True), ("y", True)):
        written.write_text(GOOD + table + f"matrix: {{{swept}: [1, 2]}}\n")
        if is_of_run:
            (tmp_path / "run.json").write_text("{}")
        if swept == "x" and is_of_run:
            assert len(spec.load(str(written), TOY).variants()) == 2
            continue
        with pytest.raises(SpecError, match=f"matrix variable '{swept}' is never used"):
            spec.load(str(written), TOY)
    with pytest.raises(SpecError, match="matrix variable 'x' is never used"):
        load(tmp_path, GOOD + table + "matrix: {x: [1, 2]}\n")  # a file of the user's beside a run


def test_two_dollars_write_one(tmp_path: Path) -> None:
    text = GOOD.replace(
        "task: pick", "task: {use: pick, letters: '$${x} $$${y} ${agents}$${agents}', agents: '${agents}'}"
    )
    [variant] = load(tmp_path, text + "matrix: {agents: [2]}\n").variants()
    assert variant.data["task"]["letters"] == "${x} $${y} 2${agents}"
    assert (
        load(tmp_path, GOOD.replace("task: pick", "task: {use: pick, letters: '$${x}'}"))
        .variants()[0]
        .data["task"]["letters"]
        == "${x}"
    )
    with pytest.raises(SpecError, match="matrix variable 'agents' is never used"):
        load(
            tmp_path, GOOD.replace("task: pick", "task: {use: pick, letters: '$${agents}'}") + "matrix: {agents: [2]}\n"
        )


def test_set_reaches_into_lists(tmp_path: Path) -> None:
    child = load(
        tmp_path, "extends: toy\nname: c\n", "tables.0.digits=3", "metrics.1=agreed", "metrics.0=parse_retries"
    )
    assert child.data["tables"][0]["digits"] == 3 and child.data["tables"][0]["title"] == "Agreement"
    assert child.data["metrics"] == ["parse_retries", "agreed"]
    assert str(child.place("tables", 0, "digits")) == "--set tables.0.digits=3"
    for path, says in {
        "tables.1.digits": "'tables' has 1 entries, numbered from 0: there is no '1'",
        "tables.x.digits": "there is no 'x'", "tables.-1.digits": "there is no '-1'",
        "tables.0.title.x": "not a mapping",
        "metrics.5": "'metrics' has 2 entries", "tables.²": "there is no '²'",
    }.items():  # fmt: skip
        with pytest.raises(SpecError, match=says):
            load(tmp_path, "extends: toy\nname: c\n", f"{path}=1")


@pytest.mark.parametrize("key", ["models: {a: {use: mock, text: '${n}'}}", "metrics: [{use: agreed, name: 'a${n}'}]"])
def test_what_is_one_for_all_conditions_takes_no_swept_value(tmp_path: Path, key: str) -> None:
    """It was inserted nowhere: the text "${n}" itself reached the plugin."""
    text = GOOD.replace("task: pick", "task: {use: pick, agents: '${n}'}") + "matrix: {n: [2]}\n"
    with pytest.raises(
        SpecError, match=r"s\.yaml:\d+:\d+: .* is the same for all conditions: \$\{n\} cannot stand in it"
    ):
        load(tmp_path, "\n".join(line for line in text.splitlines() if line[:7] != key[:7]) + f"\n{key}\n")


def completed(data: dict[str, Any]) -> spec.Spec:
    return complete(spec.parse(data, find()), find())


def test_a_headline_is_taken_over_as_far_as_its_metrics_are_there() -> None:
    base = complete(spec.load("dpbench", find()), find())
    beside = ["dpbench/deadlock_rate", "dpbench/throughput", "dpbench/fairness", "parse_failures"]
    assert base.data["headline"]["also_show"] == beside
    body = {"extends": "dpbench", "name": "mine"}
    fewer = completed({**body, "metrics": ["dpbench/success", "parse_failures"]})
    assert fewer.data["headline"] == {**base.data["headline"], "also_show": ["parse_failures"]}
    other = completed({**body, "metrics": ["messages"], "tables": []})
    assert "headline" not in other.data
    own = completed({**body, "headline": {"title": "Stuck"}})
    assert own.data["headline"]["title"] == "Stuck"
    assert own.data["headline"]["metric"] == "dpbench/success"
    assert len({made.digest() for made in (base, own)}) == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("headline", "problems"),
    [
        ("{metric: solvd}", ["s.yaml:3:12: headline: metrics: unknown metric 'solvd'. Did you mean solved?"]),
        (
            "{where: {problm: coloring}}",
            ["s.yaml:3:12: headline: where: unknown label 'problm'. Did you mean problem?"],
        ),
        ("{floor: randm}", ["s.yaml:3:12: there is no policy 'randm'", "Did you mean random"]),
        ("{better: up}", ["s.yaml:3:12: 'better' is 'up'. Available: higher, lower."]),
        ("{metric: score, where: {problem: coloring}}", []),
    ],
)
def test_validate_checks_a_specs_own_headline(
    headline: str, problems: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(f"extends: agentsnet_quick\nname: mine\nheadline: {headline}\n")
    assert main(["validate", str(file)]) == (2 if problems else 0)
    err = capsys.readouterr().err
    for problem in problems:
        assert problem in re.sub(r"s.yaml:3:\d+: ", "s.yaml:3:12: ", err)


def test_metrics_set_by_an_option_leave_the_headline_out() -> None:
    other = spec.load("agentsnet_quick", find(), ["metrics=[messages]", "tables=[]"])
    assert "headline" not in complete(other, find()).data
    kept = spec.load("agentsnet_quick", find(), ["headline.metric=score"])
    assert kept.data["headline"]["metric"] == "score"


def test_tables_take_over_the_specs_clusters() -> None:
    mine = spec.parse(
        {"extends": "dpbench", "name": "mine", "tables": [{"title": "T", "rows": "model", "metrics": "messages"}]},
        find(),
    )
    assert [table["cluster"] for table in mine.tables] == ["episode"]
    own = spec.parse({"extends": "mas_bench", "name": "mine", "cluster": None}, find())
    assert not any("cluster" in table for table in own.tables)
    assert own.digest() == spec.load("mas_bench", find()).digest()


PYTHON = {"name": "x", "task": "pick", "protocol": "rounds", "prompts": "toy/base", "metrics": ["agreed"]}


@pytest.mark.parametrize(
    "change, place",
    [
        ({"wrong": 1}, "the spec's wrong"),
        ({"task": {"use": "pikc"}}, "the spec's task.use"),
        ({"task": "pikc"}, "the spec's task"),
        ({"metrics": ["agreed", {"use": "nothing"}]}, "the spec's metrics[1].use"),
        ({"tables": [{"title": "T", "row": "model"}]}, "the spec's tables[0]"),
        ({"matrix": {"size": [1, 1]}, "seed": "${size}"}, "the spec"),
        ({"seed": 2**70}, "the spec"),
        ({"agents": {"o": {"count": 1, "share": 0.5}}}, "the spec's agents.o"),
    ],
    ids=lambda value: value.removeprefix("the spec's ") if isinstance(value, str) else "",
)
def test_a_mistake_from_python_has_its_keys_once(change: dict[str, Any], place: str) -> None:
    """Python has no line that a person could look at; and its traceback says nothing twice."""
    with pytest.raises(UserError) as caught:
        resolve.plan(spec.parse({**PYTHON, **change}, TOY), TOY, Mock())
    assert str(caught.value).startswith(place) and "<dict>" not in str(caught.value)
    shown = "".join(traceback.format_exception(caught.value))
    assert shown.count(caught.value.message) == 1


def test_a_mapping_may_have_numbers_without_end() -> None:
    """As bounds of a metric: `.inf` in YAML, `float("inf")` in Python."""
    loaded = spec.load("darkforest_quick", builtin()).data
    data = {**loaded, "description": "Infinity: 'a' word\nand é"}
    assert any(metric.get("bounds") == [0, float("inf")] for metric in loaded["metrics"] if isinstance(metric, dict))
    assert spec.parse(data, builtin()).data == data
