"""A group that shares a history is one observation: nothing counts its agents, or repeats, as independent."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import evaluate
from harness.api import CorpusMetric, Episode, Metric, RatioMetric, Statistic
from harness.api.errors import PluginError
from harness.runtime.runner import BudgetReachedError
from harness.tables import CorpusRecord, EpisodeScore, TableSpec, build, stats
from harness.tables.scores import cluster_of
from tests.helpers.journals import as_killed, sealed


class OfAgents(CorpusMetric):
    """Each agent's number, as if agents of one episode were independent."""

    def measure(self, episode: Episode) -> Any:
        return None

    def aggregate(self, numbers: Sequence[Any]) -> Statistic:
        agents = [x for record in numbers for x in record]
        return Statistic(statistics.fmean(agents), statistics.stdev(agents) / len(agents) ** 0.5, len(agents))


class Shares(RatioMetric):
    """The share of agents that agree, of all agents of all episodes."""

    bounds = (0, 1)

    def parts(self, episode: Episode) -> tuple[float, float] | None:
        return None


class Number(Metric):
    bounds = (0, 1)

    def measure(self, episode: Episode) -> float | None:
        return None


TABLE = {"title": "T", "rows": "model", "metrics": "x", "aggregate": "pooled", "uncertainty": "interval"}


def test_a_number_a_agent_is_refused() -> None:
    scores = [EpisodeScore(f"c/{i}/0", "c", {"model": "m"}, {"x": CorpusRecord([0.0, 1.0, i])}) for i in range(4)]
    with pytest.raises(PluginError, match="counts 12 observations in 4 episodes") as error:
        build(TableSpec.parse(TABLE), scores, {"x": OfAgents()})
    assert "share its history: they are one observation" in str(error.value.hint)


@given(st.lists(st.integers(0, 5), min_size=4, max_size=10), st.sampled_from([10, 1000]))
def test_more_agents_add_no_certainty(agreeing: list[int], factor: int) -> None:
    """Of five agents k agree; of 50 in the same societies 10 k."""

    def cell(times: int) -> tuple[float | None, float | None, int | None]:
        scores = [
            EpisodeScore(f"c/{i}/0", "c", {"model": "m"}, {"x": (float(k * times), 5.0 * times)})
            for i, k in enumerate(agreeing)
        ]
        found = build(TableSpec.parse(TABLE), scores, {"x": Shares()}).rows[0].cells[0]
        return found.low, found.high, found.n

    assert cell(1) == pytest.approx(cell(factor))


@given(st.lists(st.integers(0, 1), min_size=4, max_size=10), st.integers(2, 6))
def test_more_repeats_with_the_same_numbers_add_no_certainty(solved: list[int], repeats: int) -> None:
    def cell(times: int) -> tuple[float | None, float | None]:
        scores = [
            EpisodeScore(f"c/{i}/{k}", "c", {"model": "m"}, {"x": float(x)})
            for i, x in enumerate(solved)
            for k in range(times)
        ]
        found = build(TableSpec.parse(TABLE), scores, {"x": Number()}).rows[0].cells[0]
        return found.low, found.high

    (low, high), (again_low, again_high) = cell(1), cell(repeats)
    if 0 < sum(solved) < len(solved):
        assert again_high - again_low >= 0.9 * (high - low)
    else:
        assert (again_low, again_high) == pytest.approx((low, high))


def test_a_case_in_several_conditions_is_one_observation(tmp_path: Path) -> None:
    spec = {"extends": "arithmetic_votes", "baseline": "calculator", "matrix": {"terms": [2, 4]}}
    run = evaluate(spec, overrides=["task.size=6", "limit=6", "repeats=2"], output_path=tmp_path)
    number = run.headline.cell(run.scores)
    assert (number.n, number.value) == (48, 1)
    assert (number.low, number.high) == stats.wilson(12, 12), "six sums of two terms, six of four"
    assert any(
        "treat episodes of a case, in whatever condition, as one" in x for x in run.headline.filled(run.scores).notes
    )
    by_weights = run.headline.by("weights", columns=("terms",))
    cells = [cell for row in build(by_weights, run.scores, run.metrics).rows for cell in row.cells]
    assert [(cell.n, cell.low, cell.high) for cell in cells] == [(12, *(stats.wilson(6, 6) or ()))] * 4
    assert any("treat repeats of a case as one" in note for note in build(by_weights, run.scores, run.metrics).notes)
    older = [replace(score, problem="") for score in run.scores]
    again = run.headline.cell(older)
    assert (again.low, again.high) == stats.wilson(24, 24), "such a file does not say which cases are the same"


def test_a_resumed_older_run_has_one_observation_a_case(tmp_path: Path) -> None:
    spec = {
        "name": "sums",
        "task": {"use": "arithmetic", "size": 6, "terms": 2},
        "matrix": {"panel": [1, 2]},
        "protocol": {"use": "vote", "agents": "${panel}"},
        "prompts": "panels/standard",
        "metrics": ["score"],
    }
    with pytest.raises(BudgetReachedError):
        evaluate(spec, "mock", output_path=tmp_path, max_calls=8, max_concurrency=1)
    journal = tmp_path / "journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert sum("problem" in line for line in lines) >= 6
    journal.write_bytes(sealed(*({k: line[k] for k in line if k not in ("problem", "crc")} for line in lines)))
    as_killed(tmp_path)
    scores = evaluate(spec, "mock", output_path=tmp_path).scores
    assert (len(scores), len({cluster_of(score, ()) for score in scores})) == (12, 6)
