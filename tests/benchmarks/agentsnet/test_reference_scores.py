"""`scoring: reference` and the profile `agentsnet_reference`: scores as AgentsNet's own code makes them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.api import Case
from harness.config import project, resolve, spec
from tests.benchmarks.agentsnet.agentsnet_kit import PROBLEMS, case_of, grade, network, networks, task
from tests.helpers.samples import examples

BUILTIN = project.builtin()


@st.composite
def played(draw: st.DrawFn, problem: str) -> tuple[Case, dict[str, Any]]:
    """A small network, and for every agent one of its options or nothing readable."""
    case = case_of(draw(networks(high=5)))
    replies = {agent: task(problem).reply(case, agent).options for agent in case.agents}
    return case, {agent: draw(st.sampled_from((*item, None))) for agent, item in replies.items()}


def edges(case: Case) -> list[tuple[str, str]]:
    topology = case.topology or {}
    return [(u, v) for u, v in combinations(topology, 2) if v in topology[u]]


def reference_cover(case: Case, answers: dict[str, Any]) -> float | None:
    """Coverage times the share of members without which an edge more is bare; of what is no cover all count."""
    every = edges(case)
    cover = {agent for agent, answer in answers.items() if answer == "Yes"}
    if not cover:
        return None

    def bare(members: set[str]) -> int:
        return sum(not members & {u, v} for u, v in every)

    covered = (len(every) - bare(cover)) / len(every)
    essential = len(cover) if bare(cover) else sum(bare(cover - {member}) > 0 for member in cover)
    return covered * essential / len(cover)


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_vertex_cover(data: st.DataObject) -> None:
    case, answers = data.draw(played("vertex_cover"))
    if edges(case):
        result, expected = (
            grade(task("vertex_cover", scoring="reference"), case, answers),
            reference_cover(case, answers),
        )
        assert result["score"] == (None if expected is None else pytest.approx(expected))
        assert result["solved"] == (None if expected is None else float(expected == 1))


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_coloring(data: st.DataObject) -> None:
    case, answers = data.draw(played("coloring"))
    if edges(case):
        result = grade(task("coloring", scoring="reference"), case, answers)
        good = sum(answers[u] != answers[v] for u, v in edges(case)) / len(edges(case))
        expected = 0.0 if None in answers.values() else good
        assert result == {"solved": float(expected == 1), "score": pytest.approx(expected)}


@pytest.mark.parametrize("problem", sorted({*PROBLEMS} - {"coloring", "vertex_cover"}))
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_the_others_are_scored_alike(problem: str, data: st.DataObject) -> None:
    case, answers = data.draw(played(problem))
    assert grade(task(problem, scoring="reference"), case, answers) == grade(task(problem), case, answers)


def test_one_invalid_answer_is_what_tells_the_two_apart() -> None:
    case = case_of(network({(0, 1), (1, 2), (2, 3)}, 4))
    answers = dict(zip(case.agents, ("Group 1", "Group 2", "Group 1", None), strict=True))
    assert grade(task("coloring"), case, answers) == {"solved": 0.0, "score": pytest.approx(2 / 3)}
    assert grade(task("coloring", scoring="reference"), case, answers) == {"solved": 0.0, "score": 0.0}


def test_the_profile_sets_every_switch() -> None:
    plan = resolve.plan(spec.load("agentsnet_reference", BUILTIN), BUILTIN, None)
    assert len(plan.conditions) == 45
    switches = {(c.task.scoring, c.protocol.parsing, c.protocol.parse_retries) for c in plan.conditions}  # type: ignore[attr-defined]
    assert switches == {("reference", "reference", 1)}
    assert [c.id for c in plan.conditions] == [
        c.id for c in resolve.plan(spec.load("agentsnet", BUILTIN), BUILTIN, None).conditions
    ]
