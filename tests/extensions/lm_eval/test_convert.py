"""`harness convert lm_eval`: specs that ask and grade as the package does, and what they cannot say, line by line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import harness
from harness.config import project, resolve, spec
from harness.engines.mock import Mock
from harness.extensions.lm_eval.convert import convert
from tests.extensions.lm_eval.package_kit import DATA, Oracle, evaluated, played_by
from tests.helpers.commands import invoke

FIRST_N: dict[str, Any] = {"fewshot_config": {"sampler": "first_n"}}


def local(kind: str, folder: Path, **more: Any) -> Path:
    """A task of the tests' own with other keys, and its rows as files, as a reader would save them."""
    file = folder / f"{kind}.yaml"
    text = (DATA / f"{kind}.yaml").read_text("utf-8").replace("include: _local.yaml\n", "")
    keys = {"training_split": "train", "test_split": "test", "fewshot_split": "train", **more}
    taken = {key: value for key, value in keys.items() if f"\n{key}:" not in text}
    file.write_text(f"{text}{yaml.safe_dump(taken)}", encoding="utf-8")
    return file


def rows_of(name: str, folder: Path) -> dict[str, str]:
    rows: dict[str, list[str]] = {}
    for line in (DATA / f"{name}.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        rows.setdefault(row.pop("split"), []).append(json.dumps(row))
    for split, lines in rows.items():
        (folder / f"{name}_{split}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return {split: str(folder / f"{name}_{split}.jsonl") for split in rows}


KINDS: list[tuple[str, str, dict[str, Any], list[str]]] = [
    ("multiple_choice", "questions", {"num_fewshot": 2, **FIRST_N}, ["acc"]),
    ("cloze", "endings", {}, ["acc", "acc_norm"]),
    ("chat", "questions", {"num_fewshot": 1, **FIRST_N}, ["acc", "acc_norm"]),
    ("cloze", "endings", {"target_delimiter": "\n", "num_fewshot": 1, **FIRST_N}, ["acc", "acc_norm"]),
    ("two_filters", "vowels", {"num_fewshot": 1, **FIRST_N}, ["exact_match,first-vowel", "exact_match,last-vowel"]),
    ("multiturn", "vowels", FIRST_N, ["exact_match"]),
    ("majority", "vowels", {}, ["exact_match,first", "exact_match,maj@5", "exact_match,maj@3"]),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("kind", "data", "more", "metrics"), KINDS, ids=[f"{kind}-{len(more)}" for kind, _, more, _ in KINDS]
)
def test_a_converted_task_asks_and_grades_as_the_package_does(
    kind: str, data: str, more: Mapping[str, Any], metrics: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISABLE_MULTIPROC", "1")
    theirs, ours = Oracle(), Oracle()
    file = local(kind, tmp_path, **more)
    options = {"num_fewshot": more.get("num_fewshot")} if "num_fewshot" in more else {}
    package = evaluated([{**yaml.safe_load(file.read_text("utf-8")), **_data()}], theirs, **options)
    converted = dict(convert(str(file)).spec)
    converted["task"] = {k: v for k, v in converted["task"].items() if k != "dataset_kwargs"}
    converted["task"]["data_files"] = rows_of(data, tmp_path)
    run = played_by(spec.parse(converted, project.builtin()), ours, tmp_path / "run")
    assert ours.asked == theirs.asked
    numbers = {row["metric"]: row["value"] for row in run.rows}
    expected = package["results"][f"local_{kind}"]
    for metric in metrics:
        key = metric if "," in metric else next(k for k in expected if k.startswith(f"{metric},"))
        assert numbers[metric] == expected[key], metric


def test_a_converted_group_has_the_packages_numbers_and_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what the notes ask for: the rows as files, and `process_docs` as a template."""
    monkeypatch.setenv("DISABLE_MULTIPROC", "1")
    theirs, ours = Oracle(), Oracle()
    package = evaluated(["local_group"], theirs)
    converted = dict(convert("local_group", [DATA]).spec)
    converted["metrics"] = [{**metric, "bounds": [0, 1]} for metric in converted["metrics"]]
    for member in converted["matrix"]["subtask"]:
        topic = member["name"].rpartition("_")[2]
        member["task"].pop("dataset_kwargs")
        member["task"] |= {"data_files": rows_of("questions", tmp_path)}
        member["task"] |= {"process_docs": {"where": f"{{{{topic == '{topic}'}}}}"}}
    run = played_by(spec.parse(converted, project.builtin()), ours, tmp_path / "run")
    assert ours.asked == theirs.asked
    [table] = run.tables
    cells = {row.names[0]: dict(zip(("acc", "acc_norm"), row.cells, strict=True)) for row in table.rows}
    for name, title, metric in [
        ("local_group_animals", "local_group_animals", "acc_norm"),
        ("local_group::local_group_nature", "local_group_nature", "acc"),
        ("local_group", "local_group", "acc"),
        ("local_group", "local_group (equal)", "acc_norm"),
    ]:
        expected = package["results"].get(name) or package["results"][name.rpartition(":")[2]]
        assert cells[title][metric].value == pytest.approx(expected[f"{metric},none"], rel=1e-12), title
        assert cells[title][metric].stderr == pytest.approx(expected[f"{metric}_stderr,none"], rel=1e-9), title


def problem(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code, _, err = invoke(capsys, "convert", "lm_eval", *arguments)
    return code, err


def notes(kind: str) -> list[str]:
    return [f"{Path(n.place.file).name}:{n.place.line} {n.key} ({n.kind}) {n.text}" for n in convert(kind).notes]


def test_what_a_spec_cannot_say_is_said_line_by_line() -> None:
    found = notes(str(DATA / "functions.yaml"))
    assert found[:2] == [
        "_local.yaml:1 custom_dataset (left out) !function data.splits is Python. Write the rows to a file and set "
        "data_files",
        "functions.yaml:4 process_docs (left out) !function utils.keep_long is Python. Write it as "
        "{where: TEMPLATE, set: {COLUMN: TEMPLATE}}, or save the rows that it makes",
    ]
    assert [line.split(" ")[:2] for line in found[2:]] == [
        ["functions.yaml:6", "doc_to_text"],
        ["functions.yaml:7", "doc_to_target"],
        ["functions.yaml:8", "process_results"],
        ["functions.yaml:10", "num_fewshot"],
        ["functions.yaml:11", "metric_list"],
    ]
    assert "{use: lm_eval, task: local_functions} plays the task as it is" in found[4]
    assert any("a data set's task has no loglikelihood_rolling" in line for line in notes(str(DATA / "rolling.yaml")))
    assert any("acc_bytes of log-likelihoods does not exist" in line for line in notes(str(DATA / "cloze.yaml")))
    assert any("' -> ' ends the question" in line for line in notes(str(DATA / "delimiter.yaml")))


def test_the_command_writes_a_spec_that_validates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = {
        "task": "sums",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(tmp_path / "test.jsonl")}},
        "test_split": "test",
        "doc_to_text": "{{q}}\nA:",
        "doc_to_target": "a",
        "metric_list": [{"metric": "bleu", "aggregation": "bleu"}, {"metric": "exact_match", "ignore_case": True}],
        "filter_list": [{"name": "none", "filter": [{"function": "remove_whitespace"}, {"function": "take_first"}]}],
    }
    (tmp_path / "test.jsonl").write_text('{"q": "1 + 1?", "a": "two and no more of them"}\n', encoding="utf-8")
    file, out = tmp_path / "sums.yaml", tmp_path / "spec.yaml"
    file.write_text(yaml.safe_dump(keys), encoding="utf-8")
    assert invoke(capsys, "convert", "lm_eval", str(file), "-o", str(out)) == (0, f"written: {out}\n", "")
    text = out.read_text("utf-8")
    assert text.startswith("# Converted from lm-eval's")
    assert '  until:\n  - "\\n\\n"\n' in text
    assert invoke(capsys, "validate", str(out))[0] == 0
    run = harness.evaluate(str(out), Mock(text=" Two and no more of them "), output_path=tmp_path / "run")
    numbers = {row["metric"]: row["value"] for row in run.rows}
    assert numbers == {"exact_match": 1.0, "bleu": pytest.approx(75.98, abs=0.01)}
    code, err = problem(capsys, str(file), "-o", str(out))
    assert code == 2
    assert "spec.yaml: File exists" in err


def test_a_task_that_cannot_be_played_yet_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    code, err = problem(capsys, str(DATA / "functions.yaml"))
    assert code == 1
    assert err.splitlines()[-1].endswith(
        "the spec cannot be played yet: task 'dataset_qa': missing required key 'doc_to_text'"
    )


def test_a_group_becomes_a_matrix_with_the_groups_rows() -> None:
    converted = convert("local_group", [DATA])
    data = converted.spec
    assert [member["name"] for member in data["matrix"]["subtask"]] == [
        "local_group_animals",
        "local_group_rivers",
        "local_group_numbers",
    ]
    nature = ["local_group_animals", "local_group_rivers"]
    every = [*nature, "local_group_numbers"]
    assert data["tables"][0]["groups"] == [
        {"title": "local_group_nature", "of": nature, "weight": "equal", "cells": ["acc"]},
        {"title": "local_group", "of": every, "weight": "size", "cells": ["acc"]},
        {"title": "local_group (equal)", "of": every, "weight": "equal", "cells": ["acc_norm"]},
    ]
    plan = resolve.plan(spec.parse(dict(data), project.builtin()), project.builtin(), Mock())
    assert len(plan.conditions) == 3
    assert len([note for note in converted.notes if note.key == "custom_dataset"]) == 1
    tag = convert("local_topics", [DATA]).spec
    assert len(tag["matrix"]["subtask"]) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n", "a task's YAML is a mapping of keys"),
        ("include: x.yaml\ntask: a\n", "the file includes itself"),
        ("include: nothing.yaml\n", "the file cannot be read: No such file"),
        ("task: !python/object:os.system x\n", "not YAML as lm-eval reads it"),
        ("group: g\ntask: []\n", "g has no task in YAML"),
        ("a: [\n", "not YAML as lm-eval reads it"),
        ("a: &a\n  b: [1]\n  c: *a\n", "recursive"),
        (
            "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9) if i else 1}]\n" for i in range(9)),
            "more than 50,000 values",
        ),
    ],
)
def test_bad_files_are_named(text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.yaml").write_text(text, encoding="utf-8")
    code, err = problem(capsys, str(tmp_path / "x.yaml"))
    assert code == 2
    assert message in err


def _data() -> dict[str, Any]:
    import importlib.util

    found = importlib.util.spec_from_file_location("lm_eval_test_data", DATA / "data.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return {"custom_dataset": module.splits}
