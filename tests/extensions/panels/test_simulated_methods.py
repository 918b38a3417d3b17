"""Methods on simulated panels come to what counting all outcomes says; `darkforest_quick` shows what it is for."""

import json
import math
import random
import re
from pathlib import Path
from typing import Any

import pytest
import scipy.stats

from harness.api import Case
from harness.cli import main
from harness.config import project, resolve, spec
from harness.evaluation.evaluate import evaluate
from harness.evaluation.run import Run
from harness.extensions.panels.fit import fit
from harness.runtime.options import Options
from harness.runtime.steps import drive
from tests.extensions.panels import condorcet

BUILTIN = project.builtin()
AGENTS = ("Agent-0", "Agent-1", "Agent-2")
CASES = 1000
EXPERT: dict[str, Any] = {
    "accuracy": 0.55,
    "agents": {"Agent-0": {"accuracy": 0.85}},
    "correlated": [{"agents": ["Agent-1", "Agent-2"], "correlation": 0.8}],
}
JOINT = condorcet.outcomes([0.85, 0.55, 0.55], 3, {2: (1, 0.8)})


def likely(happened: int, probability: float, of: int = CASES) -> bool:
    """Not beyond what happens once in a million times; seeds are fixed."""
    return bool(scipy.stats.binomtest(happened, of, probability).pvalue > 1e-6)


def right(protocol: Any, declared: dict[str, Any], cases: int = CASES) -> int:
    """In how many cases the group's answer is right."""
    simulated = BUILTIN.load("policies", "simulated")
    task = BUILTIN.load("tasks", "arithmetic")(size=cases)
    result = 0
    for number, case in enumerate(task.cases(None, 0)):
        players = {agent: simulated(**declared) for agent in protocol.possible_agents(case)}
        for agent, player in players.items():
            player.inform(agent, case, number)
        played = drive(protocol, task, case, lambda turn, who=players: who[turn.agent].choose(turn, random.Random(0)))  # type: ignore[misc]
        result += task.grade(case, played.outcome)["score"] == 1
    return result


def darkforest(**parameters: Any) -> Any:
    return BUILTIN.load("protocols", "darkforest")(agents=3, coordinate="never", **parameters)


# --------------------------------------------------------------------------- belief in closed form


def patterns(answers: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
    """Answer → who gave it."""
    return {answer: tuple(i for i, a in enumerate(answers) if a == answer) for answer in dict.fromkeys(answers)}


def reliability(joint: dict[tuple[int, ...], float]) -> dict[tuple[int, ...], tuple[float, float]]:
    """Pattern → (P(it is right), P(it is there))."""
    mapping: dict[tuple[int, ...], tuple[float, float]] = {}
    for answers, probability in joint.items():
        for answer, pattern in patterns(answers).items():
            correct, seen = mapping.get(pattern, (0.0, 0.0))
            mapping[pattern] = (correct + probability * (answer == 0), seen + probability)
    return {pattern: (correct / seen, seen) for pattern, (correct, seen) in mapping.items()}


def believed(joint: dict[tuple[int, ...], float], alpha: list[float], terms: list[str]) -> float:
    """P(the candidate with most belief is right), reliabilities being known exactly (Section 3.4: R · Σ α)."""
    names = reliability(joint)
    total = 0.0
    for answers, probability in joint.items():
        backed = patterns(answers)

        def standing(answer: int, backed: dict[int, tuple[int, ...]] = backed) -> tuple[float, ...]:
            pattern = backed[answer]
            behind = sum(alpha[i] if "agent" in terms else 1.0 for i in pattern)
            share = names[pattern][0] if "pattern" in terms else 1.0
            return (round(share * behind, 9), len(pattern), round(sum(alpha[i] for i in pattern), 9), -pattern[0])

        total += probability * (max(backed, key=standing) == 0)
    return total


def calibration(joint: dict[tuple[int, ...], float], questions: int = 10**8) -> dict[str, Any]:
    """The counts that so many calibration questions would come to without any chance."""

    def tally(share: float, of: float = 1.0) -> dict[str, int]:
        return {"correct": round(questions * share * of), "valid": round(questions * of), "all": round(questions * of)}

    accuracy = [sum(p for answers, p in joint.items() if answers[i] == 0) for i in range(3)]
    nothing = {"correct": 0, "valid": 0, "all": 0}
    listed = [
        {
            "agents": [AGENTS[i] for i in pattern],
            "correct": round(questions * share * seen),
            "count": round(questions * seen),
        }
        for pattern, (share, seen) in reliability(joint).items()
    ]
    tallies = {agent: tally(share) for agent, share in zip(AGENTS, accuracy, strict=True)}
    mapping = {"unstated": nothing, "malformed": nothing, "formed": tally(sum(accuracy) / 3, 3)}
    return {"agents": list(AGENTS), "episodes": questions, "tallies": tallies, "patterns": listed, **mapping}


@pytest.mark.slow
def test_belief_that_weighs_nothing_is_a_vote() -> None:
    exact = condorcet.expert_and_pair(0.85, 0.55, 0.8, 3)
    vote, uniform = BUILTIN.load("protocols", "vote")(agents=3), darkforest(terms="uniform")
    assert right(vote, EXPERT) == right(uniform, EXPERT)
    assert likely(right(vote, EXPERT), exact) and math.isclose(exact, condorcet.plurality(JOINT))


@pytest.mark.slow
@pytest.mark.parametrize("terms", [["agent"], ["pattern"], ["agent", "pattern"]])
@pytest.mark.parametrize("panel", ["expert", "equals", "mixed"])
def test_calibrated_belief_is_as_often_right_as_all_outcomes_say(terms: list[str], panel: str) -> None:
    declared, alpha, joint = {
        "expert": (EXPERT, [0.85, 0.55, 0.55], JOINT),
        "equals": ({"accuracy": 0.65}, [0.65] * 3, condorcet.outcomes([0.65] * 3, 3)),
        "mixed": (
            {"agents": {agent: {"accuracy": p} for agent, p in zip(AGENTS, (0.9, 0.4, 0.3), strict=True)}},
            [0.9, 0.4, 0.3],
            condorcet.outcomes([0.9, 0.4, 0.3], 3),
        ),
    }[panel]
    protocol = darkforest(terms=terms)
    protocol.load_parameters(calibration(joint))
    assert likely(right(protocol, declared), believed(joint, alpha, terms))


def test_what_calibrated_belief_can_gain_and_where_it_gains_nothing() -> None:
    """In closed form: belief follows the expert, who is right with 0.85; of three independent equals a vote is best."""
    assert condorcet.plurality(JOINT) < 0.62
    assert math.isclose(believed(JOINT, [0.85, 0.55, 0.55], ["agent", "pattern"]), 0.85)
    assert math.isclose(believed(JOINT, [0.85, 0.55, 0.55], ["agent"]), condorcet.plurality(JOINT)), (
        "α alone: 2 · 0.55 > 0.85"
    )
    equals = condorcet.outcomes([0.65] * 3, 3)
    assert math.isclose(believed(equals, [0.65] * 3, ["agent", "pattern"]), condorcet.three_equals(0.65, 3))


# -------------------------------------------------------------------------------- darkforest_quick


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return evaluate("darkforest_quick", output_path=tmp_path_factory.mktemp("quick") / "run", project=BUILTIN)


def cells(run: Run, table: int) -> dict[tuple[str, str], float]:
    result = run.tables[table]
    return {
        (str(row.key["panel"]), str(column.key.get("method", column.metric))): cell.value or 0.0
        for row in result.rows
        for column, cell in zip(result.columns, row.cells, strict=True)
    }


@pytest.mark.slow
def test_quick_shows_when_belief_beats_a_vote_and_when_not(quick: Run) -> None:
    assert not quick.failed and len(quick.scores) == 8 * 8 * 300
    score = cells(quick, 0)
    for panel in ("expert_and_pair", "malformed", "overconfident"):
        assert score[panel, "belief"] > score[panel, "vote"] + 0.05
        assert score[panel, "darkforest"] > score[panel, "vote"] + 0.05
    assert score["able_coordinator", "darkforest"] > score["able_coordinator", "belief"] + 0.05
    assert score["overconfident", "confidence"] < score["overconfident", "vote"], (
        "what is stated cannot be taken at its word"
    )
    for panel in ("three_equals", "common_error", "few_rows"):
        assert abs(score[panel, "belief"] - score[panel, "vote"]) < 0.05
    assert score["own_mind", "no_guardrail"] < score["own_mind", "darkforest"] - 0.2
    assert score["few_rows", "belief"] < score["expert_and_pair", "belief"] - 0.1
    for panel, exact in (
        ("expert_and_pair", condorcet.expert_and_pair(0.85, 0.55, 0.8, 3)),
        ("three_equals", condorcet.three_equals(0.65, 3)),
    ):
        assert likely(round(300 * score[panel, "vote"]), exact, 300)
    assert all("‡" in str(table.notes) for table in quick.tables)


@pytest.mark.slow
def test_methods_meet_the_same_answers_so_that_what_they_lose_can_be_compared(quick: Run) -> None:
    available: dict[tuple[str, str], set[Any]] = {}
    for s in quick.scores:
        if s.labels["method"] != "vote_6_calls":  # asks more often
            available.setdefault((str(s.labels["panel"]), str(s.labels["question"])), set()).add(s.numbers["available"])
    assert len(available) == 8 * 300 and all(len(item) == 1 for item in available.values())


@pytest.mark.slow
def test_the_files_that_ship_are_what_fit_makes_of_the_spec(tmp_path: Path) -> None:
    root = BUILTIN.root / "results" / "fitted" / "darkforest_quick"
    loaded = spec.load("darkforest_quick", BUILTIN)
    assert {f"{panel['name']}" for panel in loaded.data["matrix"]["panel"]} == {
        file.stem for file in root.glob("*.json")
    }
    text = re.sub(r"results/fitted/darkforest_quick", str(tmp_path), json.dumps(loaded.data))
    result = fit(
        spec.parse(json.loads(text), BUILTIN), BUILTIN, lambda: None, options=Options(output_path=tmp_path / "runs")
    )
    for file in result:
        new, shipped = (json.loads(path.read_text()) for path in (file, root / file.name))
        for key in ("agents", "questions", "parameters", "seed"):
            assert new[key] == shipped[key], (file.name, key)


@pytest.mark.slow
def test_quick_validates_and_its_plan_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "darkforest_quick"]) == 0
    plan = resolve.plan(spec.load("darkforest_quick", BUILTIN), BUILTIN)
    assert plan.model == "simulated" and all(condition.uses_ground_truth for condition in plan.conditions)
    assert isinstance(next(iter(plan.conditions[0].task.cases(1, 0))), Case)
