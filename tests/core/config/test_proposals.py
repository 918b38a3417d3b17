"""A spec of three lines: the task proposes what it leaves out, and the run records it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import harness
from harness.api.errors import PluginError, SpecError
from harness.config import spec as specs
from harness.config.project import Project, builtin
from harness.config.proposals import complete
from harness.config.spec import Spec, load
from tests.helpers.toy import TOY

QUESTIONS: dict[str, Any] = {"name": "sums", "task": {"use": "arithmetic", "size": 6}, "protocol": "single"}


def parse(data: dict[str, Any], project: Project) -> Spec:
    return complete(specs.parse(data, project), project)


def test_a_task_proposes_prompts_metrics_and_a_headline(tmp_path: Path) -> None:
    done = harness.evaluate({**QUESTIONS, "baseline": "calculator"}, output_path=tmp_path / "r", project=builtin())
    assert done.spec.data["prompts"] == "qa/standard" and done.headline.metric == "score"
    assert done.tables[0].rows[0].cells[0].value == 1.0
    written = yaml.safe_load((tmp_path / "r" / "spec.yaml").read_text("utf-8"))
    assert written["metrics"][0] == "score" and written["prompts"] == "qa/standard"
    assert load(str(tmp_path / "r" / "spec.yaml"), builtin()).digest() == done.spec.digest()


def test_a_panel_has_other_prompts() -> None:
    spec = parse({**QUESTIONS, "protocol": {"use": "debate", "rounds": 2}}, builtin())
    assert spec.data["prompts"] == "panels/standard"


def test_what_the_spec_has_stays() -> None:
    own = parse({**QUESTIONS, "metrics": ["calls"]}, builtin())
    assert own.data["metrics"] == ["calls"] and "headline" not in own.data and own.data["prompts"] == "qa/standard"
    assert parse({**QUESTIONS, "prompts": "panels/standard"}, builtin()).data["prompts"] == "panels/standard"


def test_scored_options_have_their_own_prompts_and_all_their_metrics() -> None:
    scored = parse({**QUESTIONS, "task": {"use": "mmlu_pro", "scoring": "loglikelihood"}}, builtin())
    names = [metric if isinstance(metric, str) else metric["of"] for metric in scored.data["metrics"]]
    assert scored.data["prompts"] == "qa/scored" and names == ["score", "acc_norm", "brier_score", "engine_errors"]


def test_a_matrix_takes_the_proposals_of_its_first_condition() -> None:
    swept = {**QUESTIONS, "task": {"use": "arithmetic", "terms": "${terms}"}, "matrix": {"terms": [2, 3]}}
    assert parse(swept, builtin()).data["prompts"] == "qa/standard"


@pytest.mark.parametrize(
    "file", ["specs/networks/coloring.yaml", "specs/sharded/ranks.yaml", "specs/worlds/commons.yaml"]
)
def test_tasks_in_yaml_need_no_prompts_and_no_metrics(file: str) -> None:
    data = yaml.safe_load((builtin().root / file).read_text("utf-8"))
    keys = ("name", "task", "protocol", "matrix", "baseline")
    short = {key: data[key] for key in keys if key in data}
    assert parse(short, builtin()).data["prompts"] == data["prompts"]
    plan = harness.config.resolve.plan(parse(short, builtin()), builtin())
    assert len(plan.metrics) >= 3


def test_a_task_without_proposals_says_so(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("name: s\ntask: pick\nprotocol: rounds\nbaseline: coin\n")
    with pytest.raises(
        SpecError, match=r"s\.yaml:1:1: missing required keys 'prompts', 'metrics': task 'pick' proposes"
    ):
        complete(load(str(tmp_path / "s.yaml"), TOY), TOY)


def test_a_task_that_does_not_exist_is_named_at_its_place(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("name: s\ntask: arithmetics\nprotocol: single\n")
    with pytest.raises(
        harness.api.errors.UserError, match=r"s\.yaml:2:7: there is no task 'arithmetics'\s+Did you mean arithmetic"
    ):
        complete(load(str(tmp_path / "s.yaml"), builtin()), builtin())


def test_a_spec_is_read_without_its_plugins() -> None:
    spec = specs.parse({**QUESTIONS, "task": "no/such_task"}, builtin())
    assert "prompts" not in spec.data and "metrics" not in spec.data
    with pytest.raises(PluginError, match="no/such_task"):
        complete(spec, builtin())
