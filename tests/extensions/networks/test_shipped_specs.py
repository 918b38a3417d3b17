"""The specs of `specs/networks`: each can be played, rendered, and solved."""

import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Case, Request
from harness.checks.consistency import check_plan
from harness.cli import main
from harness.config import resolve
from harness.config.spec import load
from harness.engines.mock import Mock
from tests.extensions.networks.network_kit import BUILTIN, SPECS, grade, of_spec, one_case


def chatter(request: Request) -> str:
    """What a model may write: messages to no neighbor, and an answer that stands among the options."""
    text = str(request.thread.messages[-1]["content"])
    options = text.rpartition("your answer, ")[2].partition(". Write nothing")[0]
    if "Final Answer" not in text:
        return '{"Nobody": "hello"}'
    return f"Let me see.\n### Final Answer ###\n{random.Random(request.id).choice(options.split(': ')[-1].split(', '))}"


def test_there_are_twelve() -> None:
    assert len(SPECS) == 12


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("model", [None, Mock(function=chatter)], ids=["random", "mock"])
def test_it_can_be_played(name: str, model: Mock | None, tmp_path: Path) -> None:
    run = harness.evaluate(name, model=model, limit=1, output_path=tmp_path / "run")
    assert not run.failed
    for score in run.scores:
        assert score.numbers["solved"] in (0, 1) and score.numbers["score"] is not None
        if model is None:
            assert score.numbers["parse_failures"] == 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("prompts", ["network/standard", "network/aware", "network/byzantine", "network/camoc"])
@pytest.mark.parametrize("name", SPECS)
def test_prompts_render(name: str, prompts: str) -> None:
    assert check_plan(resolve.plan(load(name, BUILTIN, [f"prompts={prompts}"]), BUILTIN)) == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("problem", ["coloring", "consensus", "leader_election", "matching", "vertex_cover"])
def test_prompts_of_agentsnet_render_declared_problems(problem: str) -> None:
    for prompts in ("agentsnet/standard", "agentsnet/minimal", "agentsnet/camoc"):
        assert check_plan(resolve.plan(load(f"networks/{problem}", BUILTIN, [f"prompts={prompts}"]), BUILTIN)) == []


@pytest.mark.slow
def test_prompts_of_agentsnet_take_a_template_of_the_problems_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "radio"]) == 0
    monkeypatch.chdir(tmp_path / "radio")
    folder = Path("prompts", "radio")
    folder.mkdir(parents=True)
    (folder / "prompts.yaml").write_text("base: agentsnet/step_by_step\n")
    macros = {
        "task1": "Choose channels, you of power {{ power }}.",
        "task2": "Of {{ channels }}.",
        "question": "Which?",
    }
    texts = [f"{{% macro {name}() %}}{text}{{% endmacro %}}\n" for name, text in macros.items()]
    (folder / "frequency_assignment.j2").write_text("".join(texts))
    spec = ["--spec", "networks/frequency_assignment", "--set", "prompts=radio"]
    assert main(["show", *spec, "--condition", "graphs=ring,size=4", "--case", "0"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"so forth\. Choose channels, you of power [12]\.", shown) and "task: Of 7." in shown
    assert "Which? Format your answer as follows" in shown and "'1', '2', '3', '4', '5', '6', '7'." in shown
    assert main(["eval", *spec, "--limit", "1", "--quiet", "--output_path", "run"]) == 0


@pytest.mark.parametrize("problem", ["consensus", "leader_election"])
def test_agentsnets_algorithms_play_declared_problems(problem: str, tmp_path: Path) -> None:
    """Flooding needs as many rounds as the diameter, so with the declared budget it always succeeds."""
    changes = ["baseline=agentsnet/classical", "matrix.size=[4, 8]"]
    run = harness.evaluate(f"networks/{problem}", overrides=changes, output_path=tmp_path / "run")
    assert len(run.scores) == 18 and all(score.numbers["solved"] == 1 for score in run.scores)


def best_answer(problem: Any, case: Case, answers: Mapping[str, Any], agent: str, rng: random.Random) -> Any:
    """The option of an agent with which most of the constraints hold, the others' answers being as they are."""

    def worth(option: Any) -> tuple[float, float]:
        grades = grade(problem, case, {**answers, agent: option})
        shares = [grades[name] for name in problem.constraints]
        return grades["solved"] or 0.0, sum(share for share in shares if share is not None) + rng.random() / 1e6

    return max(problem.reply(case, agent).options, key=worth)


def is_solvable(problem: Any, case: Case) -> bool:
    """Whether a search that betters one answer after the other ends in a solution, from one of several starts."""
    rng = random.Random(case.id)
    for start in range(60):
        options = {agent: problem.reply(case, agent).options for agent in case.agents}
        answers = {agent: many[0] if start == 0 else rng.choice(many) for agent, many in options.items()}
        for _ in range(3):
            for agent in case.agents:
                answers[agent] = best_answer(problem, case, answers, agent, rng)
        if grade(problem, case, answers)["solved"] == 1:
            return True
    return False


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SPECS)
def test_a_solution_exists(name: str) -> None:
    for problem in of_spec(name)[:3:2]:  # a small network and a large one
        assert is_solvable(problem, one_case(problem))
