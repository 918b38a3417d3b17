"""What runs with no approval, what `harness trust` approves, and that nothing else runs."""

from __future__ import annotations

import hashlib
import json
import os
import py_compile
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import harness
from harness.cli import main
from harness.config.project import builtin, find
from harness.engines.mock import Mock
from harness.plugins import approvals
from harness.plugins.approval_record import approved, store
from harness.plugins.approvals import NotApprovedError
from harness.plugins.needed_approval import NeededApproval
from tests.helpers.strangers import Stranger, find_with, needed_by, trust
from tests.helpers.viewing import get, serving

READING = {
    "validate": ["validate", "SPEC"],
    "plan": ["plan", "--spec", "SPEC"],
    "show": ["show", "--spec", "SPEC"],
    "a prompt": ["show", "--spec", "SPEC", "--case", "0"],
    "trust": ["trust", "SPEC"],
    "list": ["list", "tasks", "--lm_eval", "foreign", "--include_path", "FOLDER"],
    "eval": ["eval", "--spec", "SPEC", "--output_path", "OUT", "--model", "mock"],
}


# ------------------------------------------------------------------------------------------ reading


@pytest.mark.parametrize("command", [pytest.param(c, marks=pytest.mark.slow) if c == "list" else c for c in READING])
def test_no_command_runs_what_is_not_approved(
    stranger: Stranger, tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stranger.task()
    names = {"SPEC": str(stranger.spec()), "OUT": str(tmp_path / "out"), "FOLDER": str(stranger.folder)}
    code = main([names.get(word, word) for word in READING[command]])
    printed = capsys.readouterr()
    assert stranger.did == [] and not (tmp_path / "out").exists()
    assert (code == 0) == (command in ("show", "list"))
    if command not in ("list", "trust"):
        for file in ("foreign.yaml", "utils.py"):
            assert str(stranger.folder / file) in printed.err
        assert "harness trust" in printed.err


def test_a_template_of_a_task_runs_nothing_unless_it_is_approved(stranger: Stranger) -> None:
    """lm-eval renders `doc_to_text` in no sandbox."""
    target = stranger.ran.parent / "ran_template"
    escape = "{{ cycler.__init__.__globals__.os.makedirs('TARGET', exist_ok=True) }}{{question}}"
    stranger.task(text=json.dumps(escape.replace("TARGET", str(target))))
    file = stranger.spec()
    assert main(["validate", str(file)]) == 2 and not target.exists()
    assert trust(str(file)) == 0 and not target.exists()  # to approve it runs nothing either
    assert main(["plan", "--spec", str(file)]) == 0 and target.exists()


@pytest.mark.slow
def test_a_run_can_be_looked_at_without_its_code(
    stranger: Stranger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stranger.task(metric_list=[{"metric": "exact_match", "aggregation": "!function utils.own"}])
    (stranger.folder / "foreign.yaml").write_text(
        (stranger.folder / "foreign.yaml").read_text().replace("'!function utils.own'", "!function utils.own")
    )
    with (stranger.folder / "utils.py").open("a") as file:
        file.write("def own(items):\n    return sum(items) / len(items)\n")
    runs = tmp_path / "home" / "results"
    harness.evaluate(str(stranger.spec()), Mock(text="2"), output_path=runs / "r", allow_code_execution=True)
    shutil.rmtree(stranger.ran)

    with serving(runs, Path.cwd()) as client:
        name = get(client, "/r/episodes")["episodes"][0]["id"]
        shown = get(client, "/r/episode", episode=name)
        assert "utils.py, not approved" in shown["problem"] and "harness trust" in shown["problem"]
        assert shown["turns"][0]["calls"][0]["text"] == "2" and shown["outcome"]["answers"]
        while (page := get(client, "/r"))["tables_pending"]:
            pass
    assert stranger.did == []
    for words in (
        ["report", str(runs / "r")],
        ["leaderboard", str(runs)],
        ["export", str(runs / "r"), "--to", "jsonl"],
        ["export", str(runs / "r"), "--to", "lm_eval"],
    ):
        capsys.readouterr()
        assert main(words) == 0 and stranger.did == [], words
        assert "left out: " in (err := capsys.readouterr().err) and "harness trust" in err, words
    assert main(["compare", str(runs / "r"), str(runs / "r")]) in (0, 2) and stranger.did == []
    assert main(["score", str(runs / "r")]) == 2 and stranger.did == []
    turns = (runs / "r" / "export" / "jsonl" / "turns.jsonl").read_text().splitlines()
    assert "2" in map(str, json.loads(turns[0]).values())

    assert trust(str(runs / "r")) == 0 and stranger.did == []
    assert main(["score", str(runs / "r")]) == 0 and stranger.did == ["utils"]
    with serving(runs, Path.cwd()) as client:
        shown = get(client, "/r/episode", episode=name)
        assert shown["problem"] is None and "Q: 1 + 1?" in json.dumps(shown["turns"][0]["prompt"])
    assert page["tables_problem"] is None


def test_a_run_that_names_plugins_of_a_foreign_project_runs_none(stranger: Stranger, tmp_path: Path) -> None:
    """Its plugins are looked up in one's own project, whatever the run's folder and those above it hold."""
    tasks = stranger.folder / "registry" / "tasks"
    tasks.mkdir(parents=True)
    (stranger.folder / "harness.yaml").write_text("parents: [harness_builtin]\n")
    (tasks / "evil.py").write_text(stranger.code("plugin"))
    run = harness.evaluate("agentsnet_quick", limit=1, output_path=stranger.folder / "results" / "r", project=builtin())
    file = run.folder / "spec.yaml"
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), "task": "evil"}))
    with serving(stranger.folder, Path.cwd()) as client:
        name = get(client, "/results:r/episodes")["episodes"][0]["id"]
        shown = get(client, "/results:r/episode", episode=name)
        assert "prompts cannot be shown" in shown["problem"] and shown["turns"]
    assert stranger.did == []


# ------------------------------------------------------------------------------------------ approving


def test_what_is_approved_runs_until_it_changes(stranger: Stranger, capsys: pytest.CaptureFixture[str]) -> None:
    stranger.task()
    file = stranger.spec()
    assert trust(str(file)) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[:3] == [
        "would run:",
        f"  {stranger.folder / 'foreign.yaml'} (templates of a task of lm-eval)",
        f"  {stranger.folder / 'utils.py'} (functions of a task of lm-eval)",
    ]
    play = ["plan", "--spec", str(file)]
    assert main(play) == 0
    for name in ("utils.py", "foreign.yaml"):
        with (stranger.folder / name).open("a") as more:
            more.write("# changed\n")
        capsys.readouterr()
        assert main(play) == 2
        err = capsys.readouterr().err
        assert str(stranger.folder / name) in err and err.count(str(stranger.folder)) < 5
        assert trust(str(file)) == 0
        assert main(play) == 0
    assert main(["trust", str(file), "--forget"]) == 0
    assert main(play) == 2
    assert main([*play, "--allow_code_execution"]) == 0
    assert main(play) == 2  # for one command


def test_without_a_terminal_nothing_is_approved(stranger: Stranger, capsys: pytest.CaptureFixture[str]) -> None:
    stranger.task()
    assert main(["trust", str(stranger.spec())]) == 2
    assert "--yes" in capsys.readouterr().err and approved() == {}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"approved": 3}', '{"approved": {"a": []}}', "\0" * 100, "[" * 99_999]
)
def test_a_damaged_store_approves_nothing_and_is_written_anew(stranger: Stranger, text: str) -> None:
    stranger.task()
    store().parent.mkdir(parents=True)
    store().write_text(text)
    assert main(["plan", "--spec", str(stranger.spec())]) == 2 and stranger.did == []
    assert trust(str(stranger.folder / "spec.yaml")) == 0
    assert main(["plan", "--spec", str(stranger.spec())]) == 0


def test_kept_bytecode_is_not_what_was_approved(stranger: Stranger) -> None:
    """Python would take a .pyc of the same size and time in place of the source that a person read."""
    source = stranger.task().with_name("utils.py")
    other = source.with_name("other.py")
    harmless = source.read_text().replace(stranger.code("utils"), "")
    other.write_text(stranger.code("bytecode") + harmless)
    source.write_text(harmless + "#" * (len(other.read_text()) - len(harmless)))
    os.utime(other, ns=(source.stat().st_atime_ns, source.stat().st_mtime_ns))
    kept = source.parent / "__pycache__" / f"utils.{os.sys.implementation.cache_tag}.pyc"  # type: ignore[attr-defined]
    py_compile.compile(str(other), cfile=str(kept), dfile=str(source))
    other.unlink()
    assert trust(str(stranger.spec())) == 0
    assert main(["plan", "--spec", str(stranger.folder / "spec.yaml")]) == 0 and stranger.did == []


def test_a_file_that_changes_while_it_is_loaded_is_refused(stranger: Stranger, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger.task()
    file = stranger.spec()
    assert trust(str(file)) == 0
    source, known = stranger.folder / "utils.py", approvals.recorded

    def changing() -> Any:
        found = known()
        source.write_text(stranger.code("later") + "def text(doc):\n    return ''\n")
        return found

    monkeypatch.setattr(approvals, "recorded", changing)
    assert main(["plan", "--spec", str(file)]) == 2
    assert stranger.did == []


def test_links_and_detours_are_followed_before_they_are_judged(stranger: Stranger, tmp_path: Path) -> None:
    home = Path.cwd()
    stranger.task()
    (home / "mine").symlink_to(stranger.folder)
    (home / "tasks").mkdir()
    for name in ("foreign.yaml", "utils.py"):
        (home / "tasks" / name).symlink_to(stranger.folder / name)
    for place in ("mine", "tasks", "../stranger", f"{home}/tasks/../../stranger"):
        body = {"name": "x", "task": {"use": "lm_eval", "task": "foreign", "include_path": place}, "protocol": "single"}
        (home / "own.yaml").write_text(yaml.safe_dump(body))
        assert main(["plan", "--spec", "own.yaml"]) == 2, place
    assert stranger.did == []


def test_ones_own_project_needs_no_approval_and_its_results_do(stranger: Stranger) -> None:
    stranger.task()
    home = Path.cwd()
    for place, code in (("tasks", 0), ("results/tasks", 2), ("runs/r", 2)):
        (home / place).parent.mkdir(exist_ok=True)
        shutil.copytree(stranger.folder, home / place)
        if place == "runs/r":
            (home / place / "run.json").write_text("{}")
        body = {"name": "x", "task": {"use": "lm_eval", "task": "foreign", "include_path": place}, "protocol": "single"}
        (home / "own.yaml").write_text(yaml.safe_dump(body))
        assert main(["plan", "--spec", "own.yaml"]) == code, place


@pytest.mark.parametrize("task", ["foreign", "foreign_tag", "GROUP", pytest.param("inn*", marks=pytest.mark.slow)])
def test_names_of_the_package_cannot_be_taken_over_unseen(stranger: Stranger, task: str) -> None:
    """A group, an included file, a tag, a pattern (which needs the index of all tasks): what they lead to is named."""
    stranger.task("inner", tag="foreign_tag")
    text = (stranger.folder / "inner.yaml").read_text()
    (stranger.folder / "base.yaml").write_text(text.replace("task: inner\n", ""))
    (stranger.folder / "inner.yaml").write_text("include: base.yaml\ntask: inner\ntag: foreign_tag\n")
    (stranger.folder / "group.yaml").write_text("group: foreign\ntask: [{group: nested, task: [inner]}]\n")
    task = task.replace("GROUP", str(stranger.folder / "group.yaml"))
    body = {"name": "x", "task": {"use": "lm_eval", "task": task, "include_path": str(stranger.folder)}}
    with pytest.raises(NotApprovedError) as refused:
        harness.evaluate({**body, "protocol": "single"}, Mock(), output_path=stranger.folder / "out")
    names = {one.file.name for one in refused.value.needed if one.file is not None}
    assert {"inner.yaml", "base.yaml", "utils.py"} <= names
    assert stranger.did == []


def test_all_conditions_and_headlines_are_listed(stranger: Stranger) -> None:
    for name in ("foreign", "second"):
        stranger.task(name)
    task = {"use": "lm_eval", "task": "${name}", "include_path": str(stranger.folder)}
    file = stranger.folder / "spec.yaml"
    body = {"name": "x", "matrix": {"name": ["foreign", "second"]}, "task": task, "protocol": "single"}
    file.write_text(yaml.safe_dump(body))
    files = {Path(what.partition(" ")[0]).name for what in needed_by(file)}
    assert files == {"foreign.yaml", "second.yaml", "utils.py"} and stranger.did == []


# ------------------------------------------------------------------------------------------ other code


def test_a_script_of_the_package_evaluate_runs_once_it_is_approved(stranger: Stranger, tmp_path: Path) -> None:
    folder = stranger.folder / "longest"
    folder.mkdir()
    (folder / "longest.py").write_text(stranger.code("script"))
    metric = {"use": "evaluate", "metric": "longest", "path": str(folder)}
    task = {"use": "dataset_qa", "data_files": str(stranger.folder / "rows.jsonl"), "doc_to_text": "question"}
    body = {
        "name": "x",
        "task": {**task, "doc_to_target": "answer"},
        "protocol": "single",
        "metrics": ["score", metric],
    }
    (Path.cwd() / "x.yaml").write_text(yaml.safe_dump({**body, "prompts": "qa/standard"}))
    assert main(["eval", "--spec", "x.yaml", "--model", "mock", "--output_path", str(tmp_path / "r")]) == 2
    assert stranger.did == [] and not (tmp_path / "r").exists()
    assert main(["validate", "x.yaml"]) in (0, 2) and stranger.did == []
    assert trust("x.yaml") == 0 and stranger.did == []
    main(["validate", "x.yaml"])
    assert stranger.did == ["script"]


def test_a_folder_called_like_a_metric_is_a_script_too(stranger: Stranger) -> None:
    (Path.cwd().parent / "elsewhere" / "bleu").mkdir(parents=True)
    os.chdir(Path.cwd().parent / "elsewhere")  # no project
    Path("bleu/bleu.py").write_text(stranger.code("bleu"))
    with pytest.raises(NotApprovedError, match=r"bleu\.py"):
        from harness.extensions.datasets.libraries import library_metric

        library_metric("bleu")
    assert stranger.did == []


@pytest.mark.slow
def test_plugins_of_a_parent_elsewhere_need_approval(stranger: Stranger, capsys: pytest.CaptureFixture[str]) -> None:
    policies = stranger.folder / "registry" / "policies"
    policies.mkdir(parents=True)
    (stranger.folder / "harness.yaml").write_text("parents: [harness_builtin]\n")
    (policies / "_helper.py").write_text(stranger.code("helper"))
    plugin = "from harness.api import Policy, plugin\nfrom . import _helper\n\n@plugin\nclass Own(Policy):\n"
    (policies / "own.py").write_text(
        plugin + '    """A policy."""\n    def choose(self, turn, rng):\n        return None\n'
    )
    (Path.cwd() / "harness.yaml").write_text(f"parents: [{stranger.folder}, harness_builtin]\n")
    (Path.cwd() / "x.yaml").write_text("{extends: agentsnet_quick, name: x, baseline: own}")
    for words in (["validate", "x.yaml"], ["list", "policies"], ["schema"], ["eval", "--spec", "x.yaml"]):
        main(words)
        assert stranger.did == []
    assert str(policies / "own.py") in (err := capsys.readouterr().err) and str(policies / "_helper.py") in err
    assert trust(str(stranger.folder)) == 0 and stranger.did == []
    (policies / "_helper.py").write_text(stranger.code("changed"))
    assert main(["validate", "x.yaml"]) == 2 and stranger.did == []
    assert trust("x.yaml") == 0
    assert find().load("policies", "own").__name__ == "Own" and stranger.did == ["changed"]


ENGINES: dict[str, tuple[dict[str, Any], str]] = {
    "a program": ({"use": "agent", "command": ["sh", "-c", "true"]}, r"sh -c true, in no sandbox"),
    "a function": ({"use": "agent", "call": "subprocess:getoutput"}, "subprocess:getoutput, in no sandbox"),
    "code of a model": ({"use": "vllm", "pretrained": "a/b", "trust_remote_code": True}, "comes with the model a/b"),
    "classes by name": ({"use": "vllm", "pretrained": "a/b", "engine_args": {"worker_cls": "x.Y"}}, r"worker_cls"),
}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("how", ["spec", "extends", "judge"])
def test_a_foreign_spec_names_no_program(stranger: Stranger, tmp_path: Path, name: str, how: str) -> None:
    model, what = ENGINES[name]
    body: dict[str, Any] = {"extends": "toy", "name": "x", "models": {"m": model}, "agents": {"default": "m"}}
    toy = Path(__file__).parents[2] / "toy"
    file = stranger.folder / "s.yaml"
    if how == "judge":
        metric = {"use": "judge", "name": "liked", "model": "m", "prompt": "judges/helpfulness"}
        body = {"extends": "judged", "name": "x", "models": {"m": model}, "tables": []}
        body |= {"metrics": [metric], "headline": {"metric": "liked", "also_show": []}}
    else:
        body["extends"] = "toy"
    file.write_text(yaml.safe_dump(body))
    if how == "extends":  # one's own spec over the foreign one
        file = Path.cwd() / "own.yaml"
        file.write_text(yaml.safe_dump({"extends": str(stranger.folder / "s.yaml"), "models": {"m": {"label": "y"}}}))
    project = find_with(toy)
    if how == "extends" and model["use"] == "vllm":
        file.write_text(yaml.safe_dump({"extends": str(stranger.folder / "s.yaml"), "models": {"m": {"dtype": "x"}}}))
    model_given = Mock(text="a") if how == "judge" else None
    with pytest.raises(NotApprovedError, match=what):
        harness.evaluate(str(file), model_given, project=project, limit=1, output_path=tmp_path / "out")
    assert not (tmp_path / "out").exists()


# ------------------------------------------------------------------------------------------ the rule


def test_what_an_error_names_can_be_read_and_sent_between_processes() -> None:
    import pickle

    many = [NeededApproval.of_file(Path(f"/x/{i}.py"), bytes([i])) for i in range(30)]
    error = pickle.loads(pickle.dumps(NotApprovedError(many)))
    assert str(error).count(".py") == 8 and "… and 22 more" in str(error) and len(error.needed) == 30
    assert error.line().count("\n") == 0


@pytest.mark.parametrize(
    ("change", "same"),
    [(lambda c: c, True), (lambda c: c + b" ", False), (lambda c: c[:-1], False), (bytes.lower, False)],
)
def test_a_digest_is_of_all_that_runs(change: Callable[[bytes], bytes], same: bool) -> None:
    content = b"print('A')\n"
    one, other = (NeededApproval.of_file(Path("a.py"), text) for text in (content, change(content)))
    assert (one.digest == other.digest) == same == (hashlib.sha256(content).hexdigest() == other.digest)
