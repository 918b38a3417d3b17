"""Every built-in metric on episodes small enough to count by hand."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.api import Completion, CorpusMetric, Episode, Metric, Move, Outcome, RatioMetric, Statistic
from harness.api.errors import PluginError
from harness.config.project import builtin
from harness.extensions.yaml_tasks.conformance import check_metric
from harness.tables import EpisodeScore, TableSpec, build

METRICS = Path(__file__).parents[3] / "metrics"


def load(name: str, **fields: Any) -> Metric:
    """The metric of that name with those parameters."""
    package = "_metrics_under_test"
    if package not in sys.modules:
        spec = importlib.util.spec_from_loader(package, None, is_package=True)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        module.__path__ = [str(METRICS)]
        sys.modules[package] = module
    values = vars(importlib.import_module(f"{package}.{name}")).values()
    (cls,) = (c for c in values if isinstance(c, type) and "__harness_plugin__" in vars(c))
    metric = cls(**fields)
    assert isinstance(metric, Metric)
    return metric


def episode(*moves: Move, outcome: Outcome | None = None, **more: Any) -> Episode:
    batches: Sequence[Sequence[Move]] = [moves[:1], moves[1:]]
    return Episode("c/1/0", "c", "1", 0, {}, {}, batches, outcome, **more)


def call(i: int | None = None, o: int | None = None, *, seconds: float | None = None, **more: Any) -> Completion:
    return Completion("text", input_tokens=i, output_tokens=o, latency=seconds, **more)


MIXED = episode(
    Move(
        "a",
        "talk",
        {"b": "hi"},
        calls=(call(10, 2, seconds=1.0, cost=0.25), call(14, 3, seconds=2.0, reasoning_tokens=1)),
    ),
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
        ("reported_cost", {}, 0.25, None),
        ("calls", {}, 6, 0),
        ("parse_retries", {}, 3, 0),
        ("parse_failures", {}, 1, 0),
        ("engine_errors", {}, 2, 0),
        ("latency", {}, 3.0, None),
        ("latency", {"kind": "total"}, 9.0, None),
        ("latency", {"unit": "milliseconds"}, 3000.0, None),
        ("latency", {"kind": "total", "unit": "milliseconds"}, 9000.0, None),
    ],
)
def test_what_is_counted_from_moves(name: str, fields: dict[str, Any], mixed: float, policies: float | None) -> None:
    metric = load(name, **fields)
    assert metric.measure(MIXED) == mixed
    assert metric.measure(POLICIES) == policies
    assert metric.needs == ()


def test_tokens_are_the_total_unless_said_otherwise() -> None:
    assert load("tokens").measure(MIXED) == load("tokens", kind="total").measure(MIXED)


@pytest.mark.parametrize("name", ["calls", "tokens", "reported_cost"])
def test_totals_of_a_run_are_sums_without_a_standard_error(name: str) -> None:
    per_episode, over_run = load(name), load(name, over="run")
    assert over_run.measure(MIXED) == per_episode.measure(MIXED)
    assert per_episode.aggregate([40.0, 60.0]) == Statistic(50.0, 10.0, 2)  # √200 / √2
    assert over_run.aggregate([40.0, 60.0]) == Statistic(100.0, None, 2)
    assert over_run.aggregate([7.0]) == Statistic(7.0, None, 1)
    assert over_run.aggregate([]) == Statistic(None, None, 0)
    assert check_metric(over_run) == []


def test_a_total_is_of_the_cells_episodes_and_mean_of_conditions_averages_totals() -> None:
    metrics = {"calls": load("calls", over="run")}
    numbers: dict[str, list[float | None]] = {"a": [10.0, 20.0], "b": [50.0], "c": [None]}
    scores = [
        EpisodeScore(f"{c}/{i}/0", c, {"model": "m", "condition": c}, {"calls": x})
        for c, item in numbers.items()
        for i, x in enumerate(item)
    ]

    def shown(**entry: str) -> list[tuple[float | None, int | None]]:
        spec = TableSpec.parse({"title": "T", "rows": "model", "columns": "condition", "metrics": "calls", **entry})
        return [(cell.value, cell.n) for cell in build(spec, scores, metrics).rows[0].cells]

    totals = [(30.0, 2), (50.0, 1), (None, 0)]
    assert shown(aggregate="pooled", overall="pooled") == [*totals, (80.0, 3)]
    assert shown(overall="mean_of_conditions") == [*totals, (40.0, 3)]


@pytest.mark.parametrize("name", ["solved", "score"])
def test_grades_are_read_not_judged(name: str) -> None:
    metric = load(name)
    assert metric.needs == (name,)
    assert metric.measure(episode(grade={name: 0.25, "other": 1.0})) == 0.25
    assert metric.measure(episode(grade={name: None})) is None
    assert metric.measure(episode(error="boom")) is None


@pytest.mark.parametrize("name", ["messages", "rounds"])
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
    cls = builtin().load("metrics", file.stem)
    assert 10 < len((cls.__doc__ or "").splitlines()[0]) <= 110
    if issubclass(cls, CorpusMetric):  # its records are its own
        return
    metric = load(file.stem, **({"of": "peer_characters"} if file.stem == "fact" else {}))
    assert metric.aggregate([(1.0, 2.0), (0.0, 1.0)] if isinstance(metric, RatioMetric) else [1.0, 0.0]).n == 2


def test_any_fact_and_any_grade_can_be_had_by_name() -> None:
    of_facts, of_grades = load("fact", of="peer_characters"), load("grade", of="program")
    assert (of_facts.needs, of_grades.needs) == (("peer_characters",), ("program",))
    report = episode(outcome=Outcome(facts={"peer_characters": 7, "trusted": True}), grade={"program": 0.5})
    assert (of_facts.measure(report), of_grades.measure(report)) == (7.0, 0.5)
    assert load("fact", of="trusted").measure(report) == 1.0
    assert of_facts.measure(episode()) is None and of_grades.measure(episode()) is None


@pytest.mark.parametrize("name", ["fact", "grade"])
def test_what_only_some_conditions_have_is_missing_in_the_others(name: str) -> None:
    metric = load(name, of="program", optional=True)
    assert metric.needs == ()
    assert metric.measure(episode(outcome=Outcome(), grade={"score": 1.0})) is None
    assert metric.measure(episode(outcome=Outcome(facts={"program": 1}), grade={"program": 1.0})) == 1.0


@pytest.mark.parametrize("name", ["fact", "grade"])
def test_a_grade_and_a_fact_may_have_bounds(name: str) -> None:
    def of(number: float) -> Episode:
        return episode(outcome=Outcome(facts={"crossed": number}), grade={"crossed": number})

    share = load(name, of="crossed", bounds=(0, 1))
    assert share.bounds == (0, 1) and share.measure(of(0.5)) == 0.5
    with pytest.raises(ValueError, match=rf"{name} 'crossed' is 2.0, which is not between 0 and 1"):
        share.measure(of(2))
    with pytest.raises(PluginError, match="no number lies between 1 and 0"):
        load(name, of="crossed", bounds=(1, 0))
