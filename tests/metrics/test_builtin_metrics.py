"""Every built-in metric on episodes small enough to count by hand."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.api import Completion, Episode, Metric, Move, Outcome, Statistic
from harness.errors import PluginError

METRICS = Path(__file__).parents[2] / "metrics"


def load(name: str, **fields: Any) -> Metric:
    """The metric of that name with those parameters."""
    package = "_metrics_under_test"
    if package not in sys.modules:
        spec = importlib.util.spec_from_loader(package, None, is_package=True)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        module.__path__ = [str(METRICS)]
        sys.modules[package] = module
    found = vars(importlib.import_module(f"{package}.{name}")).values()
    (cls,) = (c for c in found if isinstance(c, type) and "__harness_plugin__" in vars(c))
    metric = cls(**fields)
    assert isinstance(metric, Metric)
    return metric


def episode(*moves: Move, outcome: Outcome | None = None, **more: Any) -> Episode:
    batches: Sequence[Sequence[Move]] = [moves[:1], moves[1:]]
    return Episode("c/1/0", "c", "1", 0, {}, {}, batches, outcome, **more)


def call(i: int | None = None, o: int | None = None, *, seconds: float | None = None, **more: int) -> Completion:
    return Completion("text", input_tokens=i, output_tokens=o, latency=seconds, **more)


MIXED = episode(
    Move("a", "talk", {"b": "hi"}, calls=(call(10, 2, seconds=1.0), call(14, 3, seconds=2.0, reasoning_tokens=1))),
    Move("b", "talk", error="no JSON", error_kind="parse", calls=(call(7), call(), call(9, 4, cached_tokens=5))),
    Move("c", "talk", error="too long", error_kind="context_length"),
    Move("d", "talk", error="500", error_kind="request", calls=(call(seconds=6.0),)),
)
POLICIES = episode(Move("a", "talk", {}), Move("b", "answer", "Yes"))


@pytest.mark.parametrize(
    ("name", "fields", "mixed", "policies"),
    [
        ("tokens", {"kind": "input"}, 40, None),
        ("tokens", {"kind": "output"}, 9, None),
        ("tokens", {"kind": "total"}, 42, None),  # the call with only one count has no total
        ("tokens", {"kind": "reasoning"}, 1, None),
        ("tokens", {"kind": "cached"}, 5, None),
        ("calls", {}, 6, 0),
        ("reasks", {}, 3, 0),
        ("parse_failures", {}, 1, 0),
        ("engine_errors", {}, 2, 0),
        ("latency", {}, 3.0, None),
        ("latency", {"kind": "total"}, 9.0, None),
    ],
)
def test_what_is_counted_from_moves(name: str, fields: dict[str, Any], mixed: float, policies: float | None) -> None:
    metric = load(name, **fields)
    assert metric.measure(MIXED) == mixed
    assert metric.measure(POLICIES) == policies
    assert metric.needs == ()


def test_tokens_are_the_total_unless_said_otherwise() -> None:
    assert load("tokens").measure(MIXED) == load("tokens", kind="total").measure(MIXED)


@pytest.mark.parametrize("name", ["solved", "score"])
def test_grades_are_read_not_judged(name: str) -> None:
    metric = load(name)
    assert metric.needs == (name,)
    assert metric.measure(episode(grade={name: 0.25, "other": 1.0})) == 0.25
    assert metric.measure(episode(grade={name: None})) is None
    assert metric.measure(episode(error="boom")) is None


@pytest.mark.parametrize("name", ["messages", "rounds", "timesteps"])
def test_facts_come_from_the_protocol(name: str) -> None:
    metric = load(name)
    assert metric.needs == (name,)
    assert metric.measure(episode(outcome=Outcome(facts={name: 12}))) == 12.0
    assert metric.measure(episode(outcome=Outcome())) is None
    assert metric.measure(episode()) is None


def test_a_fact_that_is_no_number_is_named() -> None:
    with pytest.raises(PluginError, match=r"fact 'rounds' is \['3'\], not a number"):
        load("rounds").measure(episode(outcome=Outcome(facts={"rounds": ["3"]})))


@pytest.mark.parametrize(
    "file", sorted(p for p in METRICS.glob("*.py") if not p.name.startswith("_")), ids=lambda p: p.stem
)
def test_every_metric_says_in_a_line_what_it_is(file: Path) -> None:
    doc = type(load(file.stem)).__doc__ or ""
    assert 10 < len(doc.splitlines()[0]) <= 110
    assert load(file.stem).aggregate([1.0, 0.0]).n == 2


def test_totals_over_a_run_have_no_error() -> None:
    for name in ("calls", "tokens"):
        assert load(name, over="run").aggregate([3.0, 4.0]) == Statistic(7.0, None, 2)
        assert load(name, over="run").aggregate([]) == Statistic(None, None, 0)
        assert load(name).aggregate([3.0, 4.0]).value == 3.5


def test_latency_in_milliseconds() -> None:
    assert load("latency", unit="milliseconds").measure(MIXED) == 3000.0
    assert load("latency", unit="milliseconds", kind="total").measure(MIXED) == 9000.0
