"""YAML that cannot be read: the error names the task's file, and no file that does not exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import main


def test_unreadable_yaml_is_no_fault_of_a_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """PyYAML's compiled reader names its source by a relative path, which once looked like a file beside the task."""
    monkeypatch.chdir(tmp_path)
    Path("deep.yaml").write_text("task: deep\nx: " + "[" * 200)
    Path("spec.yaml").write_text("name: s\ntask: {use: lm_eval, task: deep.yaml}\nprotocol: single\n")
    assert main(["validate", "spec.yaml"]) == 2
    out, err = capsys.readouterr()
    assert "deep.yaml" in out + err and "ParserError" in out + err
    assert "_yaml.pyx" not in out + err and "its function fails" not in out + err


TASK = """
task: hits
dataset_path: json
dataset_kwargs: {data_files: {test: hits.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "{{q}}"
doc_to_target: "{{a}}"
"""
SPEC = "name: s\ntask: {use: lm_eval, task: hits.yaml}\nprotocol: single\n"


@pytest.fixture
def hits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("hits.jsonl").write_text('{"q": "one", "a": "1"}\n')
    Path("spec.yaml").write_text(SPEC)
    return tmp_path


def test_an_unknown_metric_is_named_before_anything_is_asked(hits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("hits.yaml").write_text(
        TASK + "metric_list: [{metric: exact_mtch, aggregation: mean, higher_is_better: true}]"
    )
    assert main(["validate", "spec.yaml"]) == 2
    out, err = capsys.readouterr()
    assert "metric_list names 'exact_mtch'" in out + err and "Did you mean exact_match" in out + err


@pytest.mark.slow
def test_a_metric_of_the_hub_that_is_not_here(hits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Replies in text are graded by its script; lm-eval says so when all of them have been generated."""
    Path("hits.yaml").write_text(TASK + "metric_list: [{metric: f1, hf_evaluate: true, higher_is_better: true}]")
    assert main(["validate", "spec.yaml"]) == 2
    out, err = capsys.readouterr()
    assert "takes 'f1' from the package evaluate, whose script is not on this machine" in out + err
    assert "Did you mean f1" not in out + err


def test_values_that_no_metric_takes_have_a_mean(
    hits: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    body = "def graded(doc, results):\n    return {'other': 0.25, 'said': results, 'of' + '_doc': 1.5}\n"
    Path("utils.py").write_text(body)
    Path("hits.yaml").write_text(
        TASK
        + "process_results: !function utils.graded\n"
        + "metric_list: [{metric: hit, aggregation: mean, higher_is_better: true}]"
    )
    main(["eval", "--spec", "spec.yaml", "--model", "mock", "--model_args", "text=x", "--output_path", "r", "--quiet"])
    out, _ = capsys.readouterr()
    assert "0.2500" in out and "other,none" in out and "failed" not in out
    assert "hit,none" not in out and "said" not in out
    # A name that code computes is in no table, and the warning says how to see it.
    assert "{use: grade, of: 'of_doc,none', optional: true}" in caplog.text


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("test_split: test", "test_split: dev"), "test_split: the data set has no split 'dev'\n    Available: test"),
        (("test_split: test", "test_splt: test"), "hits.yaml:5:1: a task of lm-eval has no key 'test_splt'"),
        (("{{q}}", "{{quest.x}}"), "'quest' is undefined"),
        (("{{q}}", "{{q"), "TemplateSyntaxError"),
        (("hits.jsonl", "hit.jsonl"), "Look for a slip in the file's name"),
    ],
)
def test_validate_looks_at_the_first_document_of_local_data(
    hits: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str], says: str
) -> None:
    """lm-eval's own `validate` reads the YAML; a slip in it, or in the data, would else show when a run begins."""
    metric = "metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]"
    Path("hits.yaml").write_text(TASK + metric)
    assert main(["validate", "spec.yaml"]) == 0
    Path("hits.yaml").write_text((TASK + metric).replace(*change))
    assert main(["validate", "spec.yaml"]) == 2
    out, err = capsys.readouterr()
    assert says in out + err


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            ("metric_list", "filter_list: [{name: x, filter: [{function: regexx}]}]\nmetric_list"),
            "KeyError: Unknown filter 'regexx'. Did you mean: regex",
        ),
        (("aggregation: mean", "aggregation: meen"), "hits.yaml:1:1: task 'hits': lm-eval has no aggregation 'meen'"),
        (
            ("aggregation: mean", "aggregation: !function utils.broken"),
            "utils.py:2:1: LmEval.aggregate fails: metric 'exact_match': broken fails: ZeroDivisionError",
        ),
    ],
)
def test_a_mistake_is_shown_where_the_author_made_it(
    hits: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str], says: str
) -> None:
    Path("utils.py").write_text("def broken(items):\n    return 1 / 0\n")
    whole = TASK + "metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]\n"
    Path("hits.yaml").write_text(whole.replace(*change))
    assert main(["eval", "--spec", "spec.yaml", "--model", "mock", "--output_path", "r", "--quiet"]) != 0
    out, err = capsys.readouterr()
    assert says in out + err and "\\n" not in out + err and "Traceback" not in out + err
