"""Which keys and prompts a foreign spec sends where, and which files it reads: none without approval."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

import harness
from harness.cli import main
from harness.engines.mock import Mock
from harness.evaluation.load_run import load_run
from harness.evaluation.rescore import rescored
from harness.extensions.judges.judge_runs import judge
from harness.plugins.approvals import NotApprovedError
from tests.helpers.strangers import Stranger, find_with, needed_by, trust

# ------------------------------------------------------------------------------------------ keys


ADDRESS = "http://evil.example/v1"
TO = f"prompts to {ADDRESS}"
PAIRS: list[tuple[dict[str, Any], list[str]]] = [
    ({"base_url": ADDRESS}, [TO, f"OPENAI_API_KEY to {ADDRESS}"]),
    ({"base_url": ADDRESS, "api_key_env": ""}, [TO]),
    ({"base_url": ADDRESS, "api_key_env": "AWS_SECRET"}, [TO, f"AWS_SECRET to {ADDRESS}"]),
    (
        {"base_url": [ADDRESS, "http://b/v1"]},
        [TO, f"OPENAI_API_KEY to {ADDRESS}", "prompts to http://b/v1", "OPENAI_API_KEY to http://b/v1"],
    ),
    ({"api_key_env": "AWS_SECRET"}, ["AWS_SECRET to the provider's own address"]),
    ({"base_url": "http://me:you@evil.example/v1?x=1"}, [TO, f"OPENAI_API_KEY to {ADDRESS}"]),
    ({}, []),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("fields", "pairs"), PAIRS)
def test_a_foreign_spec_chooses_no_key_and_no_address(
    stranger: Stranger, fields: dict[str, Any], pairs: list[str]
) -> None:
    model = {"use": "openai", "model": "x", **fields}
    file = stranger.folder / "s.yaml"
    file.write_text(yaml.safe_dump({"extends": "agentsnet_quick", "name": "x", "models": {"m": model}}))
    assert needed_by(file) == pairs
    own = Path.cwd() / "own.yaml"
    shutil.copy(file, own)
    assert needed_by(own) == []
    own.write_text(yaml.safe_dump({"extends": str(file)}))
    assert needed_by(own) == pairs  # a foreign spec that one's own extends stays foreign
    file.write_text(yaml.safe_dump({"extends": str(own), "name": "y", "models": {"m": {"timeout": 9}}}))
    own.write_text(yaml.safe_dump({"extends": "agentsnet_quick", "name": "x", "models": {"m": model}}))
    assert needed_by(file) == []  # it chose neither


def test_a_key_is_sent_where_a_person_sends_it(
    stranger: Stranger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_SECRET", "wJalrXUtnFEMI")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    closed = "http://127.0.0.1:9/v1"
    model = {"use": "openai", "model": "x", "base_url": closed, "api_key_env": "AWS_SECRET", "max_retries": 0}
    body = {"extends": "agentsnet_quick", "name": "x", "models": {"m": model}, "agents": {"default": "m"}}
    file = stranger.folder / "s.yaml"
    file.write_text(yaml.safe_dump(body))

    def says(*words: str, spec: Path = file) -> str:
        main(["eval", "--spec", str(spec), "--limit", "1", "--quiet", "--output_path", str(tmp_path / "out"), *words])
        return capsys.readouterr().err

    unheard = "no usable server at"
    lacking = f"not approved to be sent:\n    prompts to {closed} (models: m)"
    assert f"{lacking}\n    AWS_SECRET to {closed} (models: m)" in says()
    given = ["--set", f"models.m.base_url={closed}", "--set", "models.m.api_key_env=AWS_SECRET"]
    assert unheard in says(*given) and "not approved" in says(*given[:2])
    unset = says("--set", "models.m.api_key_env=NOT_SET")  # no key goes there, and prompts would
    assert lacking in unset and "NOT_SET" not in unset
    assert unheard in says("--allow_code_execution")
    assert unheard in says(
        "--set", "agents.default=model", "--model", "openai", "--model_args", "model=x,base_url=" + closed
    )
    assert trust("--key", f"AWS_SECRET={closed}") == 0
    capsys.readouterr()
    assert unheard in says()
    assert main(["trust", "--forget"]) == 0 and "not approved" in says()
    assert trust(str(file)) == 0
    capsys.readouterr()
    assert unheard in says()


def test_a_judge_of_a_finished_run_chooses_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-anything")
    project = find_with(Path(__file__).parents[2] / "toy")
    spec = {"extends": "judged", "models": {"mine": {"use": "openai", "model": "x", "base_url": ADDRESS}}}
    run = harness.evaluate(spec, Mock(text="a"), limit=1, project=project, output_path=tmp_path / "r", judge=Mock())
    for models in ("mine", ["mine", "mine2"]):
        file = run.folder / "spec.yaml"
        data = yaml.safe_load(file.read_text())
        data["models"]["mine2"] = data["models"]["mine"]
        file.write_text(yaml.safe_dump(data))
        with pytest.raises(NotApprovedError, match="OPENAI_API_KEY to http://evil"):
            judge(run.folder, None, {"name": "n", "model": models, "prompt": "judges/helpfulness"}, project=project)
    assert rescored(run.folder, project).scores and load_run(run.folder, project).scores


# ------------------------------------------------------------------------------------------ data


SECRET = '{"q": "my diary?", "a": "secret"}\n'
READERS: dict[str, dict[str, Any]] = {
    "a file": {"data_files": "HOME/diary.jsonl"},
    "a pattern": {"data_files": "HOME/*.jsonl"},
    "splits": {"data_files": {"test": ["rows.jsonl", "HOME/diary.jsonl"]}},
    "a folder": {"data_dir": "HOME"},
    "a data set": {"dataset_path": "HOME"},
    "a detour": {"data_files": "STRANGER/../private/diary.jsonl"},
    "a link": {"data_files": "STRANGER/link.jsonl"},
    "a way out of a folder": {"data_dir": "STRANGER/a/b", "data_files": "../../../private/diary.jsonl"},
    "a link in a folder": {"data_dir": "STRANGER/linked"},
}
HERE: dict[str, dict[str, Any]] = {
    "a file": {"data_files": "diary.jsonl"},
    "a pattern": {"data_files": "*.jsonl"},
    "a bare word": {"data_dir": "private"},
    "a word of a data set": {"dataset_path": "private"},
    "a folder's pattern": {"data_files": "./private/*.jsonl"},
    "all below": {"data_files": "private/**/*.jsonl"},
}


def test_a_text_in_brackets_is_no_pattern_of_names(stranger: Stranger) -> None:
    (Path.cwd() / "s" / "x").mkdir(parents=True)
    (Path.cwd() / "other").mkdir()
    here = [f"{Path.cwd()}"]
    above = f"{Path.cwd()}/[s ]/../oth*"
    file = stranger.folder / "s.yaml"
    task = {"use": "dataset_qa", "data_files": str(stranger.folder / "mine.jsonl"), "doc_to_target": "a"}
    texts = {"steps/[first think of it]": [], "[a-z]/x": here, "[a s]/x": here, "[s ]/*": here, above: here}
    for text, read in {**texts, "s/../[a s]": here}.items():
        body = {"name": "x", "task": {**task, "doc_to_text": text}, "protocol": "single"}
        file.write_text(yaml.safe_dump(body))
        assert needed_by(file) == read


@pytest.mark.parametrize("name", READERS)
def test_a_foreign_spec_reads_below_its_own_folder_only(
    stranger: Stranger, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    private = tmp_path / "private"
    private.mkdir()
    (private / "diary.jsonl").write_text(SECRET)
    (stranger.folder / "link.jsonl").symlink_to(private / "diary.jsonl")
    (stranger.folder / "a" / "b").mkdir(parents=True)
    (stranger.folder / "linked").mkdir()
    (stranger.folder / "linked" / "test.jsonl").symlink_to(private / "diary.jsonl")
    own_rows = stranger.folder / "mine.jsonl"
    own_rows.write_text(SECRET)
    given = json.loads(
        json.dumps(READERS[name]).replace("HOME", str(private)).replace("STRANGER", str(stranger.folder))
    )
    body: dict[str, Any] = {
        "name": "x",
        "task": {"use": "dataset_qa", "doc_to_text": "q", "doc_to_target": "a"},
        "protocol": "single",
    }
    file = stranger.folder / "s.yaml"
    swept = {
        **body,
        "matrix": {"what": [given]},
        "task": {**body["task"], **{key: f"${{what.{key}}}" for key in given}},
    }
    swept["matrix"]["what"][0] = {"name": "w", **given}
    play = ["--model", "mock", "--quiet", "--output_path", str(tmp_path / "out")]
    for spec in ({**body, "task": {**body["task"], **given}}, swept):
        file.write_text(yaml.safe_dump(spec))
        (Path.cwd() / "own.yaml").write_text(yaml.safe_dump({"extends": str(file)}))
        for path in (str(file), "own.yaml"):
            assert main(["eval", "--spec", path, *play]) == 2 and not (tmp_path / "out").exists()
            assert f"not approved to be read:\n    {private}" in capsys.readouterr().err
            assert main(["validate", path]) == 2 and "not approved to be read" in capsys.readouterr().err
    file.write_text(yaml.safe_dump({**body, "task": {**body["task"], "data_files": str(own_rows)}}))
    assert main(["eval", "--spec", str(file), *play]) == 0, capsys.readouterr().err
    shutil.rmtree(tmp_path / "out")
    file.write_text(yaml.safe_dump({**body, "task": {**body["task"], **given}}))
    assert trust(str(file)) == 0
    if name not in ("splits",):
        assert main(["eval", "--spec", str(file), *play]) == 0, capsys.readouterr().err


@pytest.fixture
def elsewhere(stranger: Stranger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory in no project."""
    folder = tmp_path / "elsewhere"
    (folder / "private").mkdir(parents=True)
    for place in (folder, folder / "private"):
        (place / "diary.jsonl").write_text(SECRET)
    monkeypatch.chdir(folder)
    return folder


def foreign_questions(stranger: Stranger, **task: Any) -> Path:
    """A foreign spec of questions."""
    (stranger.folder / "rows.jsonl").write_text(SECRET)
    file = stranger.folder / "s.yaml"
    given = {"data_files": str(stranger.folder / "rows.jsonl"), **task}
    given |= {"data_files": None} if "data_files" not in task and task.keys() & {"data_dir", "dataset_path"} else {}
    questions = {"use": "dataset_qa", "doc_to_text": "q", "doc_to_target": "a", **given}
    file.write_text(yaml.safe_dump({"name": "x", "task": questions, "protocol": "single"}))
    return file


@pytest.mark.parametrize("name", HERE)
def test_a_foreign_spec_reads_nothing_of_a_working_directory(stranger: Stranger, elsewhere: Path, name: str) -> None:
    [needed] = needed_by(foreign_questions(stranger, **HERE[name]))
    assert needed.startswith(str(elsewhere))


@pytest.mark.parametrize(
    "text",
    ["paid / (2 * n)", "What is a/b?", "run / x?", "[a, b] / 2 ** 3", "x ** 2 / y", "{{ q }} run/", "Dist. Max", "run"],
)
@pytest.mark.parametrize("key", ["doc_to_text", "description"])
def test_a_text_that_is_no_path_needs_no_approval(stranger: Stranger, elsewhere: Path, key: str, text: str) -> None:
    for folder in ("run", "run ", "a", "paid ", "[a, b] ", "x ** 2 ", "What is a"):
        (elsewhere / folder).mkdir()
        (elsewhere / folder / "b").touch()
    assert needed_by(foreign_questions(stranger, **{key: text})) == []


def test_what_no_plugin_gets_names_no_file(stranger: Stranger, elsewhere: Path) -> None:
    file = foreign_questions(stranger)
    data = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump({**data, "description": "diary.jsonl", "cluster": "case"}))
    assert needed_by(file) == []


def test_a_replay_does_not_open_the_run_that_it_names(
    tmp_path: Path, stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, other = stranger.folder / "runs", tmp_path / "other" / "here"
    harness.evaluate("arithmetic", limit=1, output_path=runs / "run")
    replay = runs / "again" / "spec.yaml"
    replay.parent.mkdir()
    data = yaml.safe_load((runs / "run" / "spec.yaml").read_text())
    entry = {"run": "../run", "moves": "0", "episodes": ["terms=2/0/0"]}
    replay.write_text(yaml.safe_dump({**data, "replay": entry}))
    (other.parent / "run").mkdir(parents=True)
    other.mkdir()
    monkeypatch.chdir(other)
    assert needed_by(replay) == [], "its moves are in the spec; the name is for readers of the run"


def test_a_foreign_spec_extends_only_what_is_below_its_folder_or_has_a_name(
    stranger: Stranger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "private.yaml").write_text("extends: agentsnet_quick\nname: secret\ndescription: my diary\n")
    (stranger.folder / "base.yaml").write_text("extends: agentsnet_quick\nname: base\n")
    file = stranger.folder / "s.yaml"
    for base, code in (("../private.yaml", 2), (str(tmp_path / "private.yaml"), 2), ("base.yaml", 0)):
        file.write_text(yaml.safe_dump({"extends": base, "name": "x"}))
        assert main(["validate", str(file)]) == code, capsys.readouterr()
        assert ("not approved to be read" in capsys.readouterr().err) == (code == 2)
    file.write_text("extends: ../private.yaml\nname: x\n")
    assert trust(str(file)) == 0 and main(["validate", str(file)]) == 0
