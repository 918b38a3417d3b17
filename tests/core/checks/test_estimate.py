"""`harness plan`: what it says without playing every case is what playing every case gives."""

from collections.abc import Hashable
from pathlib import Path

import pytest

from harness.api import Completion, Engine, Request
from harness.checks.estimate import estimate
from harness.config import resolve, spec
from harness.config.project import builtin
from harness.engines.mock import Mock
from harness.evaluation.stages import execute
from harness.runtime.options import Options
from harness.runtime.steps import drive
from harness.tables.cost import Price, usd_of_episodes
from tests.helpers.commands import invoke

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


class Rambler(Engine):
    """Writes as much as it may, and nothing that can be read; four characters are a token."""

    model = "rambler"

    async def complete(self, request: Request) -> Completion:
        most = int(request.sampling["max_tokens"])
        asked = sum(len(message["content"]) for message in request.thread.messages) // 4
        return Completion("x" * 4 * most, "length", input_tokens=asked, output_tokens=most)


@pytest.mark.parametrize("limits", [[], ["limits.calls_per_agent=3"]])
def test_what_unread_replies_cost_lies_within_the_range(tmp_path: Path, limits: list[str]) -> None:
    changes = [
        "matrix.agents=[2]",
        "matrix.problem=[checksum_xor]",
        "protocol.max_rounds=4",
        "protocol.parse_retries=2",
    ]
    loaded = spec.load("silo_camoc", PROJECT, [*changes, "generation_kwargs.max_tokens=400", *limits], limit=1)
    plan = resolve.plan(loaded, PROJECT, Rambler())
    figures, price = estimate(plan), Price(1.0, 2.0)
    run = execute(plan, Options(output_path=tmp_path / "run"))
    paid = sum(usd.value for usd in usd_of_episodes(run.scores, {"rambler": price}) if usd is not None)
    assert figures.cost(price) < paid <= figures.most(price) * 1.001
    assert figures.most(price) < 1.5 * paid, "an end that says something"


def planned(tmp_path: Path, capsys: pytest.CaptureFixture[str], fields: str, prices: str) -> list[str]:
    text = f"""extends: arithmetic
name: asks
models: {{small: {{use: mock, model: Small}}, asker: {{use: agent, command: cat, inner: small{fields}}}}}
agents: {{default: asker}}
protocol: {{parse_retries: 1}}
matrix: {{terms: [2]}}
prices: {prices}
"""
    (tmp_path / "asks.yaml").write_text(text)
    code, out, err = invoke(capsys, "plan", "--spec", str(tmp_path / "asks.yaml"), "--limit", "3")
    assert code == 0, err
    return out.splitlines()


@pytest.mark.parametrize(
    ("sampling", "agents", "most"),
    [
        ({"max_tokens": None}, {"default": "model"}, None),
        ({"max_tokens": 40}, {"default": "model"}, 40),
        ({"max_tokens": "${long}"}, {"default": "model"}, 90),
        ({"max_tokens": 40}, {"default": {"model": "model", "generation_kwargs": {"max_tokens": 70}}}, 70),
        (
            {"max_tokens": None},
            {"default": "model", "one": {"model": "model", "count": 1, "generation_kwargs": {"max_tokens": 70}}},
            None,
        ),
        ({"max_tokens": 40}, {"default": "model", "one": {"count": 1, "policy": "random"}}, 40),
    ],
    ids=["none", "one", "swept", "group", "other group", "policy"],
)
def test_output_tokens_are_bounded_where_every_reply_is(
    sampling: dict[str, object], agents: dict[str, object], most: int | None
) -> None:
    changes: dict[str, object] = {"generation_kwargs": sampling, "agents": agents, "repeats": 1}
    if "${long}" in sampling.values():
        changes["matrix"] = {"long": [20, 90]}
    loaded = spec.parse({"extends": "dpbench_quick", "name": "x", **changes}, PROJECT)
    figures = estimate(resolve.plan(loaded, PROJECT, Mock()))
    assert figures.max_tokens == most
    if most is not None:
        assert figures.most_output_tokens <= figures.calls * most


def test_a_plan_does_not_bound_calls_of_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = planned(tmp_path, capsys, "", "{Small: {input: 1000, output: 0}}")
    assert "inner calls     the seats of asker ask Small as often as they like in 3 turns" in lines
    assert "cost            not known for the seats of asker: they ask Small as often as they like" in lines
    assert not any("at most" in line for line in lines if "calls" in line)
    lines = planned(tmp_path, capsys, "", "{other: {input: 1000, output: 0}}")
    assert "cost            not known for the seats of asker: no price for Small" in lines


def test_a_limit_of_calls_bounds_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cost = []
    for calls in (1, 10):
        limit = f", inner_limits: {{turn: {{calls: {calls}}}}}"
        lines = planned(tmp_path, capsys, limit, "{Small: {input: 1000, output: 0}}")
        assert f"inner calls     the seats of asker ask Small at most {3 * calls} times" in lines
        line = next(line for line in lines if line.startswith("cost"))
        assert f"for the seats of asker, with {calls} calls of Small a turn (" in line
        cost.append(float(line.split("$")[1].split()[0]))
    assert cost[1] == pytest.approx(10 * cost[0], rel=0.05)
