"""Metrics of all answers batch_metric: BLEU, F1 and others by lm-eval's names, and those of the package `evaluate`."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api.errors import PluginError
from harness.engines.mock import Mock
from tests.extensions.datasets.documents_kit import BUILTIN, cases, graded, jsonl, offline, task_of

WORDS = ["the", "cat", "sat", "on", "a", "mat", "with", "two", "small", "black", "hats", "one", "dog"]


def corpus(of: str, **more: Any) -> Any:
    return BUILTIN.load("metrics", "corpus")(of=of, **more)


def texts(seed: int, count: int = 12) -> list[list[Any]]:
    """Records of one answer, with one right answer each."""
    rng = random.Random(seed)

    def text() -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(3, 9)))

    return [[[text(), [text()]]] for _ in range(count)]


@pytest.mark.parametrize("of", ["bleu", "chrf", "chrf++", "ter"])
def test_overlaps_of_texts_are_lm_evals(of: str) -> None:
    from lm_eval.api.registry import get_aggregation

    records = texts(7)
    pairs = [(right[0], answer) for [[answer, right]] in records]
    assert corpus(of, bootstrap=0).aggregate(records).value == get_aggregation(of)(pairs)


@pytest.mark.slow
def test_f1_and_mcc_are_lm_evals() -> None:
    from lm_eval.api.registry import get_aggregation

    rng = random.Random(3)
    golds, answers = ([rng.randint(0, 1) for _ in range(40)] for _ in range(2))
    records = [[[str(answer), [str(gold)]]] for gold, answer in zip(golds, answers, strict=True)]
    pairs = list(zip(golds, answers, strict=True))
    assert corpus("f1").aggregate(records).value == pytest.approx(get_aggregation("f1")(pairs), abs=1e-12)
    assert corpus("mcc").aggregate(records).value == pytest.approx(
        get_aggregation("matthews_corrcoef")(pairs), abs=1e-12
    )


def test_several_right_answers_and_missing_ones() -> None:
    records = [[["a cat sat there", ["the dog ran away", "a cat sat there"]]], [["", ["two hats on the mat"]]]]
    assert 0 < (corpus("bleu").aggregate(records).value or 0) < 100
    labels = [[["yes", ["no", "yes"]]], [["", ["no"]]], [["no", ["no"]]]]
    assert corpus("macro_f1").aggregate(labels).value == pytest.approx((1 + 2 / 3) / 2)
    assert corpus("f1", positive="no").aggregate(labels).value == pytest.approx(2 / 3)


def test_the_error_is_the_deviation_of_episodes_drawn_anew() -> None:
    records = texts(5, 30)
    first, again = (corpus("chrf", bootstrap=50).aggregate(records) for _ in range(2))
    assert first == again
    assert first.stderr is not None
    assert 0.2 < first.stderr < 5
    assert (corpus("chrf", bootstrap=0).aggregate(records).stderr, first.n) == (None, 30)
    assert corpus("chrf").aggregate(records[:1]).stderr is None


def test_a_run_has_one_number_for_a_table_and_its_groups(tmp_path: Path) -> None:
    rows = [{"q": f"Say {i}.", "a": "the cat sat on a mat", "kind": "ab"[i % 2]} for i in range(4)]
    file = jsonl(tmp_path / "test.jsonl", rows)
    spec = tmp_path / "bleu.yaml"
    spec.write_text(
        f"""name: bleu
task: {{use: dataset_qa, data_files: {file}, doc_to_text: q, doc_to_target: a, labels: {{kind: kind}}}}
protocol: single
prompts: qa/standard
metrics: [{{use: corpus, of: bleu, name: bleu}}]
tables: [{{title: T, rows: kind, metrics: bleu, uncertainty: sem, groups: [{{title: both, of: [a, b]}}]}}]
""",
        encoding="utf-8",
    )
    run = harness.evaluate(str(spec), Mock(text="the cat sat on a hat"), output_path=tmp_path / "run")
    [row] = run.rows
    assert row["value"] == pytest.approx(75.98, abs=0.01)
    [table] = run.tables
    assert [cells.names for cells in table.rows] == [("a",), ("b",), ("both",)]
    assert [line.cells[0].value for line in table.rows] == pytest.approx([row["value"]] * 3)


def test_pairs_are_what_each_filter_finds(tmp_path: Path) -> None:
    task = task_of(
        data_files=str(jsonl(tmp_path / "test.jsonl", [{"q": "1 + 1?", "a": "2"}])),
        doc_to_text="q",
        doc_to_target="a",
        filter_list=[
            {"name": "all", "filter": [{"function": "remove_whitespace"}]},
            {"name": "number", "filter": [{"function": "regex", "regex_pattern": r"(\d+)"}]},
        ],
    )
    assert "pairs,all" not in graded(task, cases(task)[0], "it is 2 ")  # right answers stand in no journal unasked
    task.wanted = task.optional_grades
    grade = graded(task, cases(task)[0], "it is 2 ", "two")
    assert grade["pairs"] == grade["pairs,all"] == [["it is 2", ["2"]], ["two", ["2"]]]
    assert grade["pairs,number"] == [["2", ["2"]], ["", ["2"]]]
    assert corpus("f1", filter="number").needs == ("pairs,number",)


SCRIPT = '''
import datasets
import evaluate

class Longest(evaluate.Metric):
    """How many characters the longest answer has beyond its reference."""

    def _info(self):
        features = datasets.Features({"predictions": datasets.Value("string"), "references": datasets.Value("string")})
        return evaluate.MetricInfo(description="", citation="", inputs_description="", features=features)

    def _compute(self, predictions, references, plus=0):
        longest = max(len(p) - len(r) for p, r in zip(predictions, references))
        return {"count": len(predictions), "longest": longest + plus}
'''


@pytest.mark.slow
def test_metrics_of_the_package_evaluate(tmp_path: Path) -> None:
    """In a process of its own that may not ask the hub."""
    (tmp_path / "longest").mkdir()
    (tmp_path / "longest" / "longest.py").write_text(SCRIPT)
    code = f"""
from harness.plugins import approvals
from tests.extensions.datasets.documents_kit import BUILTIN, cases, graded, task_of
leave = approvals.allowing()
leave.__enter__()
load = BUILTIN.load("metrics", "evaluate")
records = [[["abc", ["a", "b"]]], [["abcde", ["ab"]], ["", ["x"]]]]
for more in ({{}}, {{"result": "count"}}, {{"kwargs": {{"plus": 0.5}}, "bootstrap": 20}}):
    print(load(metric="longest", path={str(tmp_path / "longest")!r}, **more).aggregate(records))
def problem(make):
    try: make()
    except Exception as error: print(type(error).__name__, str(error).replace("\\n", " "))
problem(lambda: load(metric="longest", path={str(tmp_path / "longest")!r}, result="best").aggregate(records))
problem(lambda: load(metric="longest", path={str(tmp_path / "longest")!r}, kwargs={{"times": 2}}).aggregate(records))
problem(lambda: load(metric="longest", path="nowhere"))
problem(lambda: load(metric="rouge"))
problem(lambda: task_of(doc_to_text="q", doc_to_target="a", metric_list=[{{"metric": "rouge", "hf_evaluate": True}}]))
entry = {{"metric": "longest", "hf_evaluate": True, "path": {str(tmp_path / "longest")!r}, "higher_is_better": True}}
open({str(tmp_path / "x.jsonl")!r}, "w").write('{{"q": "?", "a": "ab"}}')
task = task_of(data_files={str(tmp_path / "x.jsonl")!r}, doc_to_text="q", doc_to_target="a", metric_list=[entry])
print(graded(task, cases(task)[0], "abcd")["longest"])
"""
    done = offline(code, tmp_path)
    lines = done.stdout.strip().split("\n")
    assert lines[:2] == ["Statistic(value=3.0, stderr=None, n=2)", "Statistic(value=3.0, stderr=None, n=2)"], (
        done.stderr
    )
    assert lines[2].startswith("Statistic(value=3.5, stderr=0.")
    assert lines[3] == 'PluginError the metric longest gives no number best but {"count": 3, "longest": 3}'
    assert lines[4].startswith("PluginError the metric longest fails: TypeError")
    assert lines[5].startswith("SetupError the metric longest cannot be loaded from nowhere: there is no such file or")
    for line in lines[6:8]:
        assert line.startswith("SetupError this machine has no script of the metric rouge")
        assert "evaluate-metric/rouge and set path: FOLDER" in line
    assert lines[8:] == ["2.0"]


ENDLESS = """
import datasets
import evaluate

class Same(evaluate.Metric):
    def _info(self):
        features = datasets.Features({"predictions": datasets.Value("string"), "references": datasets.Value("string")})
        return evaluate.MetricInfo(description="", citation="", inputs_description="", features=features)

    def _compute(self, predictions, references):
        import re
        read = [re.sub("(a+)+$", "", text) for text in predictions]
        return {"same": sum(a == b for a, b in zip(read, references)) / len(read)}
"""


@pytest.mark.slow
def test_an_answer_with_which_a_metric_never_ends_counts_as_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "same").mkdir()
    (tmp_path / "same" / "same.py").write_text(ENDLESS)
    (tmp_path / "x.jsonl").write_text('{"q": "?", "a": "ab"}')
    code = f"""
from harness.plugins import approvals
from harness.extensions.datasets import batch_metric
from harness.extensions.sandbox import clock
from tests.extensions.datasets.documents_kit import BUILTIN, cases, graded, task_of
leave = approvals.allowing()
leave.__enter__()
clock.SECONDS, batch_metric.MANY = 0.3, 0.6
endless, path = "a" * 45 + "b", {str(tmp_path / "same")!r}
metric = BUILTIN.load("metrics", "evaluate")(metric="same", path=path, bootstrap=5)
records = [[["x", ["x"]]], [[endless, ["x"]], ["y", ["y"]]], [[endless + "b", [""]]]]
print(metric.aggregate(records).value)
entry = {{"metric": "same", "hf_evaluate": True, "path": path}}
task = task_of(data_files={str(tmp_path / "x.jsonl")!r}, doc_to_text="q", doc_to_target="a", metric_list=[entry])
print(graded(task, cases(task)[0], endless)["same"], graded(task, cases(task)[0], "ab")["same"])
ter = BUILTIN.load("metrics", "corpus")(of="ter", bootstrap=0)
long, right = "mat a on sat cat the " * 400, "the cat sat on a mat " * 100
values = [ter.aggregate([[[text, [right]]], [["a b", ["a b"]]]]).value for text in (long, "")]
print(values[0] == values[1])
"""
    done = offline(code, tmp_path)
    assert done.stdout.split() == ["0.75", "0.0", "1.0", "True"], done.stderr


def test_a_metric_named_pairs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="the name 'pairs' of a metric is taken"):
        task_of(doc_to_text="q", doc_to_target="a", metric_list=[{"metric": "exact_match", "name": "pairs"}])
