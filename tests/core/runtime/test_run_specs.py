"""Specs of runs are read once for all runs of the same spec, and each run has what it would have alone."""

import json
import shutil
from pathlib import Path

import pytest

from harness.config.project import builtin
from harness.evaluation.load_run import load_run
from harness.runtime.run_specs import RunSpecs
from harness.transcripts.reader import Transcripts
from tests.helpers.toy import TOY, run


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("runs")
    first = run(root / "a").folder
    shutil.copytree(first, root / "b")
    other = run(root / "c", overrides=("seed=1",)).folder
    return [first, root / "b", other]


def _meta(folder: Path) -> dict[str, object]:
    meta: dict[str, object] = json.loads((folder / "run.json").read_text())
    return meta


def test_runs_of_one_spec_share_its_plan_and_others_do_not(folders: list[Path]) -> None:
    specs = RunSpecs(TOY)
    a, b, c = (specs.plan(folder, _meta(folder)) for folder in folders)
    assert a is b
    assert c.plan.seed == 1 != a.plan.seed
    assert specs.plan(folders[0], {**_meta(folders[0]), "policies_only": False}) is not a


def test_a_run_read_beside_others_is_the_run_read_alone(folders: list[Path]) -> None:
    specs = RunSpecs(TOY)
    for folder in folders:
        alone, shared = load_run(folder, TOY), load_run(folder, specs=specs)
        assert shared.spec == alone.spec and shared.project == alone.project
        assert shared.spec.place("metrics").file == str(folder / "spec.yaml")
        assert [table.to_json() for table in shared.tables] == [table.to_json() for table in alone.tables]
        assert list(Transcripts(folder, TOY, specs)) == list(Transcripts(folder, TOY))


def test_what_a_record_says_of_a_metric_stays_with_its_run(folders: list[Path]) -> None:
    specs, meta = RunSpecs(TOY), _meta(folders[0])
    one, other = (specs.read(folder, meta)[1] for folder in folders[:2])
    assert one.keys() == other.keys()
    assert not {id(metric) for metric in one.values()} & {id(metric) for metric in other.values()}


def test_a_task_that_reads_beside_its_spec_has_a_plan_for_each_folder(tmp_path: Path) -> None:
    spec = {"name": "j", "task": {"use": "judging", "file": "a.jsonl"}, "protocol": "single", "metrics": ["tokens"]}
    folders, specs = [tmp_path / "one", tmp_path / "two"], RunSpecs(builtin())
    for folder in folders:
        folder.mkdir()
        (folder / "spec.yaml").write_text(json.dumps({**spec, "prompts": "judges/helpfulness"}))
    tasks = [specs.plan(folder, {}).plan.conditions[0].task for folder in folders]
    assert [getattr(task, "folder", None) for task in tasks] == folders


def test_the_same_words_may_extend_another_spec_in_another_folder(tmp_path: Path, folders: list[Path]) -> None:
    whole, specs = (folders[0] / "spec.yaml").read_text(), RunSpecs(TOY)
    for seed in (3, 4):
        (folder := tmp_path / str(seed)).mkdir()
        (folder / "base.yaml").write_text(whole)
        (folder / "spec.yaml").write_text("extends: base.yaml\n")
        with (folder / "base.yaml").open("a") as file:
            file.write(f"\nlimit: {seed}\n")
        assert specs.read(folder, {})[0].get("limit") == seed
