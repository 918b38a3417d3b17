"""Engines that run programs: those that a spec names need the consent of the person who gives the command."""

from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api.errors import SetupError
from harness.config.project import Project, find
from harness.engines.mock import Mock
from harness.evaluation.rescore import rescored
from harness.extensions.judges.judge_runs import judge
from harness.runtime.options import Options

TOY = Path(__file__).parents[2] / "toy"
RUNNER = '''
"""Answers with what a program prints."""
from harness.api import Completion, plugin
from harness.plugins.needed_approval import NeededApproval
from harness.plugins.approvals import NeedsApproval
from harness.api import Engine

@plugin
class Runner(Engine, NeedsApproval):
    """Answers with what a program prints."""
    path: str | None = "./greet"
    confined = False

    @property
    def model(self) -> str:
        return "runner"

    def approvals(self):
        if self.path is not None:
            yield NeededApproval.declared(f"runner, a model of the spec, runs {self.path}", self.path)

    async def complete(self, request) -> Completion:
        return Completion("a")
'''


@pytest.fixture
def project(tmp_path: Path) -> Project:
    folder = tmp_path / "project" / "registry" / "engines"
    folder.mkdir(parents=True)
    (folder / "runner.py").write_text(RUNNER)
    (tmp_path / "project" / "harness.yaml").write_text(f"parents: [{TOY}, harness_builtin]\n")
    return find(tmp_path / "project")


def toy(path: str | None = "./greet") -> dict[str, Any]:
    agents = {"default": "model", "other": {"model": "mine", "count": 1}}
    return {"extends": "toy", "name": "t", "models": {"mine": {"use": "runner", "path": path}}, "agents": agents}


def test_a_spec_with_programs_needs_consent(project: Project, tmp_path: Path) -> None:
    model = Mock(text="a")
    with pytest.raises(SetupError, match=r"runs \./greet \(models: mine\)\n.*allow_code_execution=True"):
        harness.evaluate(toy(), model, project=project, output_path=tmp_path / "no")
    assert not (tmp_path / "no").exists()
    run = harness.evaluate(toy(), model, project=project, output_path=tmp_path / "yes", allow_code_execution=True)
    assert run.scores and not run.failed
    rescored(tmp_path / "yes", project)  # nothing of them is asked
    harness.evaluate(toy(None), model, project=project, output_path=tmp_path / "nothing runs")


def test_an_engine_on_the_command_line_is_consent(project: Project, tmp_path: Path) -> None:
    run = harness.evaluate("toy", "runner", project=project, output_path=tmp_path / "run")
    assert run.scores and not run.failed


@pytest.mark.parametrize("models", ["mine", ["mine", "other"]])
def test_a_judge_that_runs_programs_is_refused_before_the_run(
    project: Project, tmp_path: Path, models: str | list[str]
) -> None:
    metric = {"use": "judge", "name": "liked", "model": models, "prompt": "judges/helpfulness"}
    judges = {"mine": {"use": "runner"}, "other": {"use": "runner"}}
    changes = {
        "name": "open",
        "models": judges,
        "metrics": [metric],
        "tables": [],
        "headline": {"metric": "liked", "also_show": []},
    }
    with pytest.raises(SetupError, match=r"runner, a model of the spec, runs \./greet"):
        harness.evaluate(
            {"extends": "judged", **changes}, Mock(), limit=1, project=project, output_path=tmp_path / "no"
        )
    assert not (tmp_path / "no").exists()


def test_a_judge_of_a_finished_run_needs_consent_too(project: Project, tmp_path: Path) -> None:
    spec = {"extends": "judged", "name": "open", "models": {"mine": {"use": "runner"}}}
    harness.evaluate(spec, Mock(text="because"), limit=1, project=project, output_path=tmp_path / "run", judge=Mock())
    metric = {"name": "again", "model": "mine", "prompt": "judges/helpfulness"}
    with pytest.raises(SetupError, match="runner, a model of the spec"):
        judge(tmp_path / "run", None, metric, project=project)
    judge(tmp_path / "run", None, metric, project=project, options=Options(allow_code_execution=True))
