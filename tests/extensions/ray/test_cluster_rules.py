"""A rule that ends a run, on a cluster: it ends it after the same episodes as in one process."""

from pathlib import Path
from typing import Any

import pytest

import harness
from harness.config.project import find
from tests.extensions.ray.clusters import RAY
from tests.helpers.toy import results

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("cluster")]
SUMS: dict[str, Any] = {
    "name": "sums",
    "task": {"use": "arithmetic", "size": 40, "terms": "${size}"},
    "protocol": {"use": "vote", "agents": 1},
    "prompts": "panels/standard",
    "matrix": {"size": [2, 4, 8]},
    "baseline": {"use": "simulated", "accuracy": 0.9},
    "metrics": ["score"],
    "headline": {"metric": "score"},
    "tables": [{"title": "Solved", "rows": "model", "metrics": "score", "uncertainty": "interval"}],
}


def test_a_rule_ends_a_run_after_the_same_episodes_on_a_cluster(tmp_path: Path) -> None:
    def played(executor: Any) -> harness.Run:
        folder = tmp_path / str(executor)[:5] / "r"
        return harness.evaluate(SUMS, until="headline ±12%", output_path=folder, project=find(), executor=executor)

    here, there = played("local"), played(RAY)
    assert 0 < len(here.scores) < 120
    assert results(there.folder) == results(here.folder)
    assert there.meta["stopped"] | {"not_counted": []} == here.meta["stopped"] | {"not_counted": []}
    assert there.meta["executor"]["use"] == "ray"
