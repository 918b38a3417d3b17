"""`harness leaderboard --pairs`: all paired differences of a leaderboard, corrected as one family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Metric
from harness.extensions.analysis.leaderboard import RunScores
from harness.extensions.analysis.overall import overall
from harness.extensions.analysis.pairs_table import all_pairs
from harness.extensions.analysis.standings import Standings, standings
from harness.tables import EpisodeScore, HeadlineSpec, Table, stats
from tests.helpers.commands import invoke


class Share(Metric):
    bounds = (0, 1)

    def measure(self, episode: object) -> float | None:
        return None


METRICS: Mapping[str, Metric] = {"solved": Share()}


@given(st.lists(st.floats(0, 1), max_size=30))
def test_the_false_discovery_rate_is_scipys(pvalues: list[float]) -> None:
    theirs = scipy.stats.false_discovery_control(pvalues).tolist() if pvalues else []
    assert stats.benjamini_hochberg(pvalues) == pytest.approx(theirs)
    assert all(rate <= holm + 1e-12 for rate, holm in zip(theirs, stats.holm(pvalues), strict=True))


def board(name: str, **models: Sequence[float]) -> Standings:
    spec: dict[str, Any] = {"headline": {"metric": "solved", "unit": "percent"}}
    runs = [
        RunScores(
            {"run": model, "spec": name, "spec_digest": "d" * 64, "model": model},
            [EpisodeScore(f"c/{i}/0", "c", {"model": model}, {"solved": x}) for i, x in enumerate(values)],
            [],
            METRICS,
            {},
            HeadlineSpec.of(spec, METRICS),
        )
        for model, values in models.items()
    ]
    return standings(runs[1:], [("floor", runs[0])], name)


def leaderboard() -> list[Standings]:
    rng = numpy.random.default_rng(0)

    def share(p: float) -> list[float]:
        return [float(x) for x in rng.random(200) < p]

    first = board("first", floor=[0.0] * 200, a=share(0.5), b=share(0.52), c=share(0.8))
    return [first, board("second", floor=[0.0] * 200, a=share(0.4), b=share(0.5), c=share(0.6))]


def rows(table: Table) -> dict[tuple[str, str, str], list[float | None]]:
    return {
        (row.key["benchmark"], row.key["a"], row.key["b"]): [cell.value for cell in row.cells] for row in table.rows
    }


def test_one_correction_runs_over_the_whole_leaderboard() -> None:
    boards = leaderboard()
    table = all_pairs(boards)
    found = rows(table)
    assert len(found) == 3 + 3 + 3  # two benchmarks and the average
    pvalues = [p for _, p, *_ in found.values() if p is not None]
    assert [holm for _, _, holm, *_ in found.values()] == pytest.approx(stats.holm(pvalues))
    assert [q for _, _, _, q, _ in found.values()] == pytest.approx(stats.benjamini_hochberg(pvalues))
    difference, p, *_, observations = found["first", "a", "c"]
    assert difference == pytest.approx(0.3, abs=0.12) and p is not None and p < 1e-4 and observations == 200
    assert "all 9 tests" in " ".join(table.notes) and "lists them" in " ".join(overall(boards).notes)


def test_the_difference_of_averages_is_paired() -> None:
    boards = leaderboard()
    table = all_pairs(boards)
    averages = {row.key["model"]: row.cells[-1].value for row in overall(boards).rows}
    [row] = [row for row in table.rows if tuple(row.key.values()) == ("average", "a", "c")]
    assert row.cells[0].value == pytest.approx(averages["c"] - averages["a"])
    assert row.cells[0].low is not None and row.cells[0].low > 0


def test_the_command_has_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for policy in ("calculator", "random"):
        more = ("--set", "task.size=12", "--set", f"baseline={policy}", "--output_path", str(tmp_path / policy))
        assert invoke(capsys, "eval", "--spec", "arithmetic", *more)[0] == 0
    out = " ".join(invoke(capsys, "leaderboard", str(tmp_path), "--pairs")[1].split())
    assert "All pairs of models" in out and "Holm's correction for the one test of this table" in out
