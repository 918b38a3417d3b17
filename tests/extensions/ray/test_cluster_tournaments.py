"""Swiss tournaments on a real Ray cluster: rounds are drawn from results, and workers start again for each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.config.project import builtin
from harness.engines.mock import Mock
from harness.tables import EpisodeScore
from tests.extensions.ray.clusters import recorded
from tests.helpers.toy import results

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("cluster")]
RAY = {"use": "ray", "workers": 2, "num_cpus": 1}
DICE = {
    "name": "dice",
    "task": {
        "use": "world",
        "agents": 2,
        "own": {"purse": 0},
        "actions": {"HIGH": {"effects": {"mine.purse": "randint(1, 8)"}}, "LOW": {"effects": {"mine.purse": "3"}}},
        "end": "rounds >= 1",
        "scores": {"returns": "purse", "score": "0"},
    },
    "protocol": "steps",
    "prompts": "world/standard",
    "metrics": ["score", "games/results"],
    "tournament": {
        "pool": ["model", {"policy": "random"}, {"label": "other", "policy": "random"}],
        "pairing": "swiss",
        "rounds": 2,
        "games_per_pairing": 6,
    },
    "tables": [{"title": "Ratings", "kind": "rating", "of": "games/results"}],
}


class StopError(Exception):
    """Ends a run from outside."""


def run(folder: Path, executor: Any, on_score: Any = None) -> harness.Run:
    engine = Mock(function=lambda request: ["ACTION: HIGH", "ACTION: LOW"][request.seed % 2])
    return harness.evaluate(
        DICE, engine, output_path=folder, project=builtin(), executor=executor, on_score=on_score, max_concurrency=2
    )


def test_swiss_rounds_are_those_of_one_process_also_after_a_cut(tmp_path: Path) -> None:
    """Cut in the second round, when the rounds of all processes must be drawn from the same results."""
    one, many, cut = (tmp_path / name / "r" for name in ("one", "many", "cut"))
    calm = run(one, "local")
    assert len(calm.scores) == 2 * 12 and not calm.failed
    run(many, RAY)
    seen = 0

    def interrupt(score: EpisodeScore | None, total: int) -> None:
        nonlocal seen
        seen += score is not None
        if seen == 15:
            raise StopError

    with pytest.raises(StopError):
        run(cut, RAY, interrupt)
    assert json.loads((cut / "run.json").read_text())["status"] != "finished"
    run(cut, RAY)
    for folder in (many, cut):
        assert results(folder) == results(one) and recorded(folder) == recorded(one)
        assert (folder / "spec.yaml").read_bytes() == (one / "spec.yaml").read_bytes(), "other rounds were drawn"
    assert set(recorded(cut).values()) == {1}, "a recorded move was asked again"
