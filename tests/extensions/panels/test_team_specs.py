"""The shipped specs of teams: each plays offline, and a team of programmers mends its program."""

from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Request
from harness.engines.mock import Mock
from tests.extensions.datasets.documents_kit import jsonl
from tests.helpers import shipped

CODE = ("teams/software", "teams/two_agents")
OFFLINE = [name for name in shipped.specs() if name.startswith("teams/") and name not in CODE]
ROW = {
    "task_id": "Own/0", "entry_point": "double", "prompt": 'def double(x: int) -> int:\n    """Twice x."""\n',
    "canonical_solution": "    return 2 * x\n", "test": "def check(candidate):\n    assert candidate(2) == 4\n",
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", OFFLINE)
def test_a_spec_plays_with_and_without_a_model(name: str, tmp_path: Path) -> None:
    floor = harness.evaluate(name, limit=2, output_path=tmp_path / "floor")
    model = harness.evaluate(name, Mock(text="The answer is 7."), limit=1, output_path=tmp_path / "model")
    for run in (floor, model):
        assert run.scores and not run.failed
    assert all(score.numbers["answered"] == 1 and score.numbers["calls"] > 1 for score in model.scores)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("seats", "calls"), [(4, 5), (64, 65)])
def test_every_seat_of_a_graph_is_asked_once(seats: int, calls: int, tmp_path: Path) -> None:
    overrides = [f"matrix.seats=[{seats}]"]
    model = Mock(text="The answer is 7.")
    run = harness.evaluate("teams/dag_scaling", model, limit=1, overrides=overrides, output_path=tmp_path)
    assert {score.labels["graph"]: score.numbers["calls"] for score in run.scores} == dict.fromkeys(
        ("chain", "star", "tree", "mesh", "layered", "random"), calls
    )


def test_fewer_seats_go_on_where_a_team_is_pruned(tmp_path: Path) -> None:
    def disagrees(request: Request) -> str:
        seat = request.id.split("/")[-3]
        if "Rate each" in request.thread.messages[-1]["content"]:
            return '{"1": 1, "2": 3, "3": 5}' if seat != "ranker" else '{"1": 1, "2": 3, "3": 5, "4": 4}'
        return f"The answer is {seat[-1]}."

    run = harness.evaluate("teams/importance", Mock(function=disagrees), limit=1, output_path=tmp_path)
    calls = {score.labels["team"]: score.numbers["calls"] for score in run.scores}
    assert calls == {"all go on": 12, "three go on": 14, "two go on": 12, "a ranker keeps two": 9}


def test_a_software_team_mends_what_its_tests_find(tmp_path: Path) -> None:
    prompts: dict[str, list[str]] = {}

    def writes(request: Request) -> Any:
        seat, prompt = request.id.split("/")[-3], request.thread.messages[-1]["content"]
        prompts.setdefault(seat, []).append(prompt)
        if seat == "coder":
            body = "2 * x" if "AssertionError" in prompt else "x"
            return f"```python\ndef double(x: int) -> int:\n    return {body}\n```"
        return "```python\nassert double(3) == 6\n```" if seat == "tester" else "Double the number; negative ones too."

    run = harness.evaluate(
        "teams/software", Mock(function=writes), output_path=tmp_path / "run", allow_code_execution=True,
        overrides=[f"task.data_files={jsonl(tmp_path / 'rows.jsonl', [ROW])}"],
    )  # fmt: skip
    [score] = run.scores
    assert (score.numbers["score"], score.numbers["stopped"], score.numbers["rounds"]) == (1, 1, 2)
    assert {seat: len(seen) for seat, seen in prompts.items()} == {"analyst": 1, "coder": 2, "tester": 2}
    assert "negative ones too" in prompts["coder"][0] and "negative ones too" not in prompts["tester"][0]


def test_conditions_that_differ_in_the_order_of_roles_are_two_teams(tmp_path: Path) -> None:
    a, b = {"a": {"brief": "You are a."}}, {"b": {"brief": "You are b."}}
    orders = [{"name": "a first", "roles": {**a, **b}}, {"name": "b first", "roles": {**b, **a}}]
    spec = {
        "extends": "teams/chain", "name": "orders", "matrix": {"order": orders},
        "protocol": {"use": "team", "edges": "chain", "roles": "${order.roles}"},
    }  # fmt: skip
    asked: list[tuple[str, str]] = []

    def answer(request: Request) -> str:
        asked.append((request.id.split("/")[0], request.id.split("/")[-3]))
        return "The answer is 1."

    harness.evaluate(spec, Mock(function=answer), limit=1, output_path=tmp_path)
    first = dict(reversed(asked))
    assert first == {"order=a first": "a", "order=b first": "b"}
