"""`harness plan`: what it says without playing every case is what playing every case gives."""

from collections.abc import Hashable

import pytest

from harness.checks.estimate import estimate
from harness.config import resolve, spec
from harness.config.project import builtin
from harness.engines.mock import Mock
from harness.runtime.steps import drive

PROJECT = builtin()
SMALL = {
    "silo_camoc": ["matrix.agents=[2,5]", "matrix.problem=[checksum_xor,matrix_multiply]", "protocol.max_rounds=3"],
    "silo_scaffolds": ["matrix.agents=[5]", "matrix.problem=[global_maximum,load_balance]", "protocol.max_rounds=3"],
    "silo_quick": ["protocol.calls_per_round=2", "protocol.parse_retries=2", "protocol.max_rounds=4"],
    "mas_quick": [],
    "discussion_space": ["matrix.hears=[all,star]", "matrix.personas=[experts]", "matrix.decision=[majority,judge]"],
    "agentsnet_byzantine": ["limits.calls_per_agent=5"],
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SMALL)
def test_cases_of_one_shape_are_played_alike(name: str) -> None:
    plan = resolve.plan(spec.load(name, PROJECT, SMALL[name], limit=2), PROJECT, Mock())
    first: dict[Hashable, object] = {}
    for condition, case, _ in plan.episodes():
        shape = condition.protocol.shape(condition.task, case)
        if shape is None:
            continue
        contexts_seen: set[str] = set()
        seen = []
        for turn in drive(condition.protocol, condition.task, case).turns():
            opens = turn.fresh or turn.agent not in contexts_seen
            contexts_seen.add(turn.agent)
            seen.append((turn.agent, turn.name, turn.parse_retries, turn.fresh, None if opens else turn.observation))
        assert first.setdefault((id(condition.protocol), shape), seen) == seen


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SMALL)
def test_turns_are_those_of_all_cases(name: str) -> None:
    plan = resolve.plan(spec.load(name, PROJECT, SMALL[name], limit=2), PROJECT, Mock())
    turns = calls = 0
    for condition, case, _ in plan.episodes():
        policies = {group.name for group in condition.groups if group.policy is not None}
        requests: dict[str, list[int]] = {}
        for turn in drive(condition.protocol, condition.task, case).turns():
            if case.roles.get(turn.agent, "default") not in policies:
                requests.setdefault(turn.agent, []).append(1 + turn.parse_retries)
        most = 5 if condition.limits is not None else 10**9
        turns += sum(min(most, len(each)) for each in requests.values())
        calls += sum(min(most, sum(each)) for each in requests.values())
    result = estimate(plan)
    assert (result.turns, result.calls, result.episodes) == (turns, calls, len(list(plan.episodes())))


DECISIONS = {"plurality": 0, "unanimity": 0, "last_word": 0, "judge": 1, "vote": 5, "borda": 5, "points": 5}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("personas", ["none", "experts"])
@pytest.mark.parametrize("decision", DECISIONS)
def test_discussions_are_counted_with_their_ballots(decision: str, personas: str) -> None:
    changes = {"agents": 5, "max_rounds": 2, "decision": decision, "personas": personas}
    overrides = [f"protocol={{use: discussion, {', '.join(f'{k}: {v}' for k, v in changes.items())}}}"]
    plan = resolve.plan(
        spec.load("arithmetic", PROJECT, [*overrides, "prompts=panels/standard"], limit=3), PROJECT, Mock()
    )
    assert estimate(plan).calls == 3 * len(plan.conditions) * (
        5 + 2 * 5 + DECISIONS[decision] + (personas == "experts")
    )
