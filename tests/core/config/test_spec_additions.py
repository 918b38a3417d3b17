"""`metrics+:` and `tables+:` in specs that extend others, and in `--set`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from harness.api.errors import SpecError, UserError
from harness.config import resolve, spec
from harness.config.editor_schema import spec_schema
from harness.config.project import builtin
from harness.config.schema import metric_name
from tests.helpers.commands import invoke

BUILTIN = builtin()
BASE = spec.load("dpbench_quick", BUILTIN)
LENGTH = {"use": "latency", "kind": "total", "name": "length"}
TABLE = {"title": "More", "rows": "condition", "metrics": ["length", "calls"]}


def extended(**keys: Any) -> spec.Spec:
    return spec.parse({"extends": "dpbench_quick", "name": "more", **keys}, BUILTIN)


def names(loaded: spec.Spec) -> list[str]:
    return [metric_name(entry) for entry in loaded.get("metrics")]


def titles(loaded: spec.Spec) -> list[str]:
    return [table["title"] for table in loaded.tables]


@pytest.mark.parametrize("how", ["file", "option"])
def test_additions_keep_the_rest(how: str) -> None:
    if how == "file":
        loaded = extended(**{"metrics+": [LENGTH, "rounds"], "tables+": [TABLE]})
    else:
        options = [f"metrics+={yaml.safe_dump([LENGTH], default_flow_style=True)}", "metrics+=rounds"]
        options += [f"tables+={yaml.safe_dump(TABLE, default_flow_style=True)}"]
        loaded = spec.load("dpbench_quick", BUILTIN, options)
    assert names(loaded) == [*names(BASE), "length", "rounds"]
    assert titles(loaded) == [*titles(BASE), "More"]
    assert loaded.data["headline"] == BASE.data["headline"] and not {"metrics+", "tables+"} & loaded.data.keys()
    assert set(resolve.metrics(loaded, BUILTIN)) >= {"length", *names(BASE)}


def test_an_entry_of_the_same_name_takes_its_place() -> None:
    other = {"use": "calls", "over": "case", "name": "calls"}
    loaded = extended(**{"metrics+": [other], "tables+": [{**TABLE, "title": titles(BASE)[0], "metrics": "calls"}]})
    assert names(loaded) == names(BASE) and other in loaded.get("metrics")
    assert titles(loaded) == titles(BASE) and loaded.tables[0]["metrics"] == "calls"


def test_additions_add_up_over_several_specs(tmp_path: Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text("extends: dpbench_quick\nname: first\nmetrics+: [rounds]\n")
    second.write_text(f"extends: {first}\nname: second\nmetrics+:\n  - {{use: grade, name: odd}}\n  - nixda\n")
    loaded = spec.load(str(second), BUILTIN)
    assert names(loaded) == [*names(BASE), "rounds", "odd", "nixda"]
    count = len(names(BASE))
    place = loaded.place("metrics", count + 2)
    assert (place.file, place.line, place.column) == (str(second), 5, 5)
    assert loaded.place("metrics", count).file == str(first)
    assert loaded.place("metrics", 0).file == BASE.place("metrics", 0).file
    with pytest.raises(UserError, match=r"second.yaml:5:5: there is no metric 'nixda'"):
        resolve.metrics(loaded, BUILTIN)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"metrics+": ["calls"], "metrics": ["calls"]},
            "'metrics' replaces the list that 'metrics+' adds to; give one",
        ),
        ({"metrics+": [7]}, "must be text or a mapping"),
        ({"tables+": ["x"]}, "must be a mapping"),
        ({"metrics+": {"name": "x"}}, "'use'"),
        ({"headline+": {}}, "only lists may be added to, and 'headline' is no list"),
    ],
)
def test_mistakes_are_explained(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        resolve.metrics(extended(**keys), BUILTIN)
    assert message in str(caught.value)


def test_there_must_be_a_list_to_add_to() -> None:
    alone = {"name": "a", "task": "arithmetic", "protocol": "vote", "metrics+": ["calls"]}
    with pytest.raises(
        SpecError, match="'metrics\\+' adds to the metrics of the spec that is extended: there are none"
    ):
        spec.parse(alone, BUILTIN)
    with pytest.raises(SpecError, match="there are none here"):
        spec.parse({**alone, "metrics+": None}, BUILTIN)


def test_who_replaces_metrics_hears_of_adding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "few.yaml"
    file.write_text("extends: dpbench_quick\nname: few\nmetrics: [calls]\n")
    for command in (["validate", str(file)], ["eval", "--spec", str(file), "--output_path", str(tmp_path / "run")]):
        code, out, err = invoke(capsys, *command)
        assert code == 2 and (out + err).count("`metrics+:` adds to it") == 1


def test_editors_know_the_keys() -> None:
    schema = spec_schema(BUILTIN)
    check = jsonschema.Draft202012Validator(schema)
    good = {"extends": "dpbench_quick", "name": "x", "metrics+": ["calls", LENGTH], "tables+": [TABLE]}
    assert not [*check.iter_errors(good)]
    assert [*check.iter_errors({**good, "metrics+": [{"kind": "total"}]})]
    assert [*check.iter_errors({**good, "tables+": [{"rows": 7}]})]
    deep = {**good, "tables+": [{"title": "T", "metrics+": ["calls"]}], "headline": {"also_show+": ["calls"]}}
    assert not [*check.iter_errors({**deep, "matrix": {"condition+": [{"name": "x"}]}})]
    assert [*check.iter_errors({**good, "headline": {"also_shwo+": ["calls"]}})]
    assert [*check.iter_errors({**good, "tables": [{"title": "T", "metrics+": ["calls"]}]})], "nothing to add to"


WHOLE = spec.load("dpbench", BUILTIN)


@pytest.mark.parametrize("how", ["file", "option"])
def test_every_inherited_list_can_be_added_to(how: str) -> None:
    """At any depth, and in a table that keeps its other columns; swept values still inherit from those of the base."""
    first, swept, headline = WHOLE.tables[0], WHOLE.get("matrix")["condition"], WHOLE.get("headline")
    like = {"name": "other", "inherits": swept[1]["name"]}
    if how == "file":
        table = {"title": first["title"], "metrics+": ["length"], "digits": 4}
        more = {"matrix": {"condition+": [like]}, "headline": {"also_show+": ["length"]}}
        own = {"extends": "dpbench", "name": "n", "metrics+": [LENGTH], "tables+": [table], **more}
        loaded = spec.parse(own, BUILTIN)
    else:
        entry, value = (yaml.safe_dump(one, default_flow_style=True) for one in (LENGTH, like))
        options = [f"metrics+={entry}", "tables.0.metrics+=length", "tables.0.digits=4", f"matrix.condition+={value}"]
        loaded = spec.load("dpbench", BUILTIN, [*options, "headline.also_show+=[length]"])
    assert loaded.tables[0] == {**first, "metrics": [*first["metrics"], "length"], "digits": 4}
    assert loaded.tables[1:] == WHOLE.tables[1:]
    assert loaded.get("matrix")["condition"] == [*swept, {**swept[1], "name": "other"}]
    assert loaded.get("headline") == {**headline, "also_show": [*headline["also_show"], "length"]}


def test_a_text_that_stands_for_a_list_can_be_added_to() -> None:
    loaded = spec.load("agentsnet", BUILTIN, ["tables.0.metrics+=score"])
    assert loaded.tables[0]["metrics"] == ["solved", "score"]


def test_what_is_no_inherited_list_cannot_be_added_to(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("extends: dpbench_quick\nname: s\ntables+:\n  - {title: Not there, rows: model, metrics+: [a]}\n")
    with pytest.raises(SpecError, match=r"s.yaml:4:.*'metrics\+' adds to the metrics of an entry of tables"):
        spec.load(str(file), BUILTIN)
    with pytest.raises(SpecError, match=r"'rounds\+'"):
        resolve.plan(extended(protocol={"rounds+": [3]}), BUILTIN)
    with pytest.raises(SpecError, match=r"digits\+"):
        spec.load("dpbench_quick", BUILTIN, ["tables.0.digits+=1"])


@pytest.mark.parametrize("key", ["description", "prompts", "task", "headline"])
def test_only_lists_can_be_added_to(tmp_path: Path, key: str) -> None:
    (tmp_path / "s.yaml").write_text(f"extends: agentsnet_quick\nname: s\n{key}+: more\n")
    problem = f"'{key}\\+': only lists may be added to, and '{key}' is no list"
    with pytest.raises(SpecError, match=rf"s\.yaml:3:1: {problem}"):
        spec.load(str(tmp_path / "s.yaml"), BUILTIN)
    with pytest.raises(SpecError, match=rf"--set {key}\+=x: {problem}"):
        spec.load("agentsnet_quick", BUILTIN, [f"{key}+=x"])


@pytest.mark.parametrize("base", ["agentsnet_quick", "bare"])
@pytest.mark.parametrize(("key", "below"), [("headline", "also_show"), ("matrix", "speed")])
def test_a_list_that_is_not_there_cannot_be_added_to(tmp_path: Path, base: str, key: str, below: str) -> None:
    (tmp_path / "bare.yaml").write_text("name: bare\ntask: arithmetic\nprotocol: single\n")
    where = base if base != "bare" else tmp_path / "bare.yaml"
    (tmp_path / "s.yaml").write_text(f"extends: {where}\nname: s\n{key}: {{{below}+: [calls]}}\n")
    with pytest.raises(SpecError, match=rf"s\.yaml:3:.*: there is no list '{below}' to add to: write `{below}:`"):
        spec.load(str(tmp_path / "s.yaml"), BUILTIN)
    with pytest.raises(SpecError, match=rf"--set .*: there is no list '{below}' to add to: write `{below}:`"):
        spec.load(str(where), BUILTIN, [f"{key}.{below}+=[calls]"])


def test_names_may_end_in_a_plus() -> None:
    loaded = extended(
        models={"command-r": "mock", "command-r+": "mock"}, prices={"command-r+": {"input": 1, "output": 2}}
    )
    assert [*loaded.get("models")] == ["command-r", "command-r+"] and [*loaded.get("prices")] == ["command-r+"]
    more = spec.load("arithmetic", BUILTIN, ["prices.c={input: 1, output: 1}", "prices.c+={input: 2, output: 2}"])
    assert [*more.get("prices")] == ["c", "c+"]
