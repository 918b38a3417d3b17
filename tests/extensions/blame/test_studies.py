"""The shipped studies: what the page about them says holds for a part of each."""

import json
from collections import defaultdict
from pathlib import Path

import pytest

import harness


def means(folder: Path, spec: str, by: str, metric: str, *overrides: str) -> dict[object, float]:
    """Value of a label → mean of the metric."""
    done = harness.evaluate(f"studies/{spec}", overrides=overrides, output_path=folder)
    assert [score.error for score in done.scores if score.error] == []
    found = defaultdict(list)
    for score in done.scores:
        found[score.labels[by]].append(score.number(metric) or 0.0)
    return {key: sum(values) / len(values) for key, values in found.items()}


@pytest.mark.slow
def test_a_last_lie_costs_more_in_matching(tmp_path: Path) -> None:
    only = ("matrix.problem=[matching]", "matrix.lie=[0, 6]")
    found = means(tmp_path / "run", "first_or_last_lie", "lie", "agentsnet/solved_honest", *only)
    assert found[0] > found[6]


@pytest.mark.slow
def test_vertex_cover_needs_the_first_round_and_not_the_last(tmp_path: Path) -> None:
    only = ("matrix.problem=[vertex_cover]", "matrix.silent=[first, last]")
    assert means(tmp_path / "run", "last_round", "silent", "solved", *only) == {"first": 0, "last": 1}


@pytest.mark.slow
def test_a_star_fails_without_its_center(tmp_path: Path) -> None:
    only = ("matrix.plan=[star]", "matrix.problem=[prefix_sum]", "repeats=1")
    found = means(tmp_path / "run", "coordinator", "who", "silo/success", *only)
    assert found == {"Agent-0": 0, "Agent-3": pytest.approx(0.8)}


@pytest.mark.slow
def test_a_wrong_first_draft_misleads_who_writes_none(tmp_path: Path) -> None:
    only = (
        f"matrix={json.dumps({'drafts': ['all', 'one'], 'decision': ['majority'], 'who': ['Agent-0'], 'round': [0]})}",
    )
    found = means(tmp_path / "run", "who_changes_minds", "drafts", "score", *only, "task.size=5")
    assert found == {"all": 1, "one": 0}
