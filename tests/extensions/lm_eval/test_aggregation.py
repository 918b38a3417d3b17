"""Numbers over all documents, and their standard errors, against the package's own functions."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

from harness.api.errors import PluginError
from harness.config.project import builtin
from harness.extensions.datasets import batch_metric
from harness.extensions.lm_eval import aggregation
from harness.extensions.sandbox import clock

RNG = random.Random(3)
PAIRS = [[RNG.randrange(2), RNG.randrange(2)] for _ in range(57)]
VALUES: dict[str, list[Any]] = {
    "f1": PAIRS,
    "matthews_corrcoef": PAIRS,
    "perplexity": [-RNG.expovariate(1) for _ in range(41)],
    "median": [RNG.random() for _ in range(30)],
    "nanmean": [RNG.random() for _ in range(30)],
    "mean": [RNG.randrange(2) for _ in range(30)],
    "weighted_perplexity": [[-RNG.random(), RNG.randrange(1, 9)] for _ in range(9)],
    "brier_score": [[RNG.randrange(2), [0.25, 0.75]] for _ in range(9)],
    "bleu": [["the cat sat here", "the cat sat there"], ["a b c d", "a b c d"], ["no one came", "someone came by"]],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("iterations", [40, 1003])
def test_value_and_error_are_those_of_the_package(name: str, iterations: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from lm_eval.api.metrics import stderr_for_metric

    if iterations > 100 and name in ("f1", "matthews_corrcoef", "bleu"):
        iterations = 120  # scikit-learn takes a millisecond each
    monkeypatch.setenv("DISABLE_MULTIPROC", "1")
    function = aggregation.registered(name)
    items = [tuple(value) if isinstance(value, list) else value for value in VALUES[name]]
    error = stderr_for_metric(function, min(iterations, 100) if name == "bleu" else iterations)
    ours = aggregation.statistic(function, VALUES[name], name, iterations)
    assert ours.value == pytest.approx(float(function(items)), rel=1e-13) and ours.n == len(items)
    assert ours.stderr == (None if error is None else pytest.approx(float(error(items)), rel=1e-10))


def test_a_mean_needs_no_package() -> None:
    ours, own = aggregation.mean(VALUES["mean"]), aggregation.registered("mean")
    theirs = aggregation.statistic(own, VALUES["mean"], "acc", 100)
    assert ours.value == theirs.value and ours.stderr == pytest.approx(theirs.stderr, rel=1e-14)
    assert aggregation.mean([1.0]).stderr is None


def test_labels_that_are_not_0_and_1_are_left_to_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISABLE_MULTIPROC", "1")
    three = [[RNG.randrange(3), RNG.randrange(3)] for _ in range(20)]
    own = aggregation.registered("matthews_corrcoef")
    ours = aggregation.statistic(own, three, "mcc", 30)
    assert ours.stderr is not None and math.isfinite(ours.stderr)


def test_nothing_is_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISABLE_MULTIPROC", "1")
    aggregation.statistic(aggregation.registered("nanmean"), [0.5, 1.0, 2.0], "x", 10)
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_an_answer_with_which_an_aggregation_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts as an empty one where the package's aggregation takes right answers and answers."""
    monkeypatch.setattr(clock, "SECONDS", 0.5)
    monkeypatch.setattr(aggregation, "BATCH_SECONDS", 0.5)
    monkeypatch.setattr(batch_metric, "BATCH_SECONDS", 0.5)
    metric = builtin().load("metrics", "lm_eval")
    long, right = "mat a on sat cat the " * 400, "the cat sat on a mat " * 100
    found = [
        metric(metric="ter", aggregation="ter", bootstrap_iters=0).aggregate([[right, text], ["a b", "a b"]])
        for text in (long, "")
    ]
    assert found[0] == found[1] and found[0].n == 2
    body = "import re\n\ndef never(items):\n    return len(re.sub('(a+)+$', '', items[0]))\n"
    (tmp_path / "functions.py").write_text(body)
    (tmp_path / "own.yaml").write_text(
        "task: own\ndataset_path: json\noutput_type: generate_until\ndoc_to_text: q\ndoc_to_target: a\n"
        "process_results: !function functions.never\n"
        "metric_list: [{metric: hit, aggregation: !function functions.never, higher_is_better: true}]\n"
    )
    own = metric(metric="hit", task="own", include_path=str(tmp_path))
    assert own.aggregate(["bbb"]).value == 3
    with pytest.raises(PluginError, match="metric 'hit': it does not finish with 1 values"):
        own.aggregate(["a" * 45 + "b"])
