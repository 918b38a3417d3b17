"""Cases are made once in a run, and conditions with the same task share them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import evaluate
from harness.api import Case
from harness.config.plan import survey
from harness.config.project import builtin
from harness.config.resolve import plan
from harness.config.spec import parse
from harness.engines.mock import Mock

SPEC = {
    "name": "sums",
    "task": {"use": "arithmetic", "terms": 2},
    "protocol": {"use": "vote", "agents": "${agents}"},
    "prompts": "panels/standard",
    "metrics": ["score"],
    "matrix": {"agents": [1, 2, 3]},
    "limit": 3,
}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The arguments of every call of `cases`, but for those that ask for an example."""
    task, calls = builtin().load("tasks", "arithmetic"), list[tuple[Any, ...]]()
    real = task.cases

    def cases(self: Any, *arguments: Any) -> Iterator[Case]:
        calls.extend([arguments] if arguments != (1, 0) else [])
        yield from real(self, *arguments)

    monkeypatch.setattr(task, "cases", cases)
    return calls


def test_cases_are_made_once_in_a_run(made: list[tuple[Any, ...]], tmp_path: Path) -> None:
    """Also where an engine computes no log-likelihoods, so that all cases are looked at before."""
    run = evaluate(SPEC, Mock(), output_path=tmp_path / "run")
    assert len(run.scores) == 9 and made == [(3, 0)]


def test_conditions_with_the_same_task_share_what_is_in_its_cases(made: list[tuple[Any, ...]]) -> None:
    done = survey(plan(parse(SPEC, builtin()), builtin(), Mock()))
    assert len(done.episodes) == 9 and made == [(3, 0)]
    assert len({id(case.public) for _, case, _ in done.episodes}) == 3
    assert len({condition.id for condition, _, _ in done.episodes}) == 3


def test_cases_of_other_tasks_are_their_own(made: list[tuple[Any, ...]]) -> None:
    spec = {**SPEC, "task": {"use": "arithmetic", "terms": "${terms}"}, "matrix": {"terms": [2, 4], "agents": [1, 2]}}
    done = survey(plan(parse(spec, builtin()), builtin(), Mock()))
    assert len(done.episodes) == 12 and made == [(3, 0), (3, 0)]


def test_conditions_that_are_added_have_the_cases_of_the_others() -> None:
    first = plan(parse(SPEC, builtin()), builtin(), Mock())
    episodes = list(first.episodes())
    again = list(plan(parse(SPEC, builtin()), builtin(), Mock()).episodes(episodes[:3]))
    assert [(c.id, case, repeat) for c, case, repeat in again] == [(c.id, case, repeat) for c, case, repeat in episodes]
    assert again[0][1].public is episodes[0][1].public
