"""A user's mistakes: exit codes, places and near matches, and no tracebacks."""

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness import evaluate
from harness.api.errors import SpecError
from harness.cli.evaluate import pairs
from harness.config.project import find
from harness.engines.mock import Mock
from harness.evaluation.load_run import load_run
from tests.helpers.commands import TOY, eval_toy, invoke


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "broken YAML"),
        ("extends: toy\nname: x\ntask: {cases_mde: 1}", "bad.yaml:3:"),
        (
            "extends: toy\nname: x\ntables: [{title: t, rows: modle, columns: agents, metrics: agreed}]",
            "Did you mean model",
        ),
        (
            "extends: toy\nname: x\ntables: [{title: t, rows: model, columns: agents, metrics: agred}]",
            "Did you mean agreed",
        ),
        (
            "extends: toy\nname: x\ntables: [{title: t, rows: model, where: {agents: 5}, metrics: agreed}]",
            "agents is never '5'",
        ),
        ("extends: toy\nname: x\nagents: {o: {1: 2, count: 1}}", "unknown key '1'"),
        ("extends: toy\nname: x\nmetrics: [agreed, solved]", "there is no metric 'solved'"),
        ("extends: toy\nname: x\nprotocol: {rounds: 0}", "'rounds' must be ≥ 1, found 0"),
        ("extends: toy\nname: x\nbaseline: cion", "Did you mean coin"),
        ("extends: toy\nname: x\ngeneration_kwargs: {temperature: .inf}", "bad.yaml:3:20: generation_kwargs: temp"),
        ("extends: toy\nname: x\ngeneration_kwargs: {top_k: 1e999}", "top_k must be finite, not inf"),
        ("extends: toy\nname: x\nagents: {o: {share: .inf}}", "bad.yaml:3:21: "),
        ("extends: toy\nname: x\nseed: 12:30", "'seed' must be an integer, found text '12:30'"),
        ("extends: toy\nname: x\ndedupe_calls: yes", "'dedupe_calls' must be true or false, found text 'yes'"),
    ],
)
def test_validate_finds_mistakes_before_anything_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, says: str
) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    code, out, err = invoke(capsys, "validate", str(tmp_path / "bad.yaml"))
    assert code == 2 and ": 1 problem\n" in out
    assert says in err and "bad.yaml" in err and "Traceback" not in err


def test_validate_counts_every_problem(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("extends: toy\nname: x\nprotocol: {rounds: many}\nseed: no\nrepeats: 0\n")
    code, out, err = invoke(capsys, "validate", str(tmp_path / "x.yaml"))
    assert code == 2 and "x.yaml: 2 problems\n" in out
    assert len(err.splitlines()) == 2 and "x.yaml:4:7" in err and "x.yaml:5:10" in err


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("eval", "--spec", "nope"), "there is no spec 'nope'"),
        (("eval", "--spec", "toy", "--model", "dise"), "error: --model: there is no engine 'dise'"),
        (("eval", "--spec", "toy", "--model", ""), "error: --model: there is no engine ''"),
        (("eval", "--spec", "toy", "--limit", "9" * 5000), "must be a whole number"),
        (("show", "--spec", "toy", "--case", "²"), "there is no case '²'"),
        (("show", "--spec", "a" * 5000), "there is no spec 'aaa"),
        (("eval", "--spec", "toy", "--model", "dice", "--model_args", "nam=x"), "unknown key 'nam'. Did you mean name"),
        (("eval", "--spec", "toy", "--model", "dice", "--model_args", "oops"), "takes key=value"),
        (("eval", "--spec", "toy", "--model_args", "name=x"), "--model_args without --model"),
        (("eval", "--spec", "toy", "--model", "dice", "--model_args", "broken_start=true"), "Buy some"),
        (("eval", "--spec", "toy", "--set", "task.agent=3"), "Did you mean agents"),
        (("eval", "--spec", "toy", "--data_dir", "x", "--set", "task.data_dirs=1"), "Did you mean data_dir"),
        (("eval", "--spec", "toy", "--limit", "0"), "must be a whole number from 1 to 10^18 − 1, found '0'"),
        (("eval", "--spec", "toy", "--seed", "-1"), "must be a whole number from 0 to 10^18 − 1, found '-1'"),
        (("eval", "--spec", "toy", "--output_path", "/proc/nope"), "cannot write results to /proc/nope"),
        (("eval",), "--spec"),
        (("evil",), "there is no command 'evil'. Did you mean eval?"),
        (("eval", "--spec", "toy", "--modle", "dice"), "unknown option --modle. Did you mean --model"),
        (("eval", "--spce", "toy"), "unknown option --spce. Did you mean --spec"),
        (("eval", "-spec", "toy"), "unknown option -spec. Did you mean --spec?"),
        (("--verison",), "unknown option --verison. Did you mean --version?"),
        (("eval", "toy"), "name the spec with --spec toy"),
        (("eval", "--spec", "nowhere/toyy.yaml"), "file not found: nowhere/toyy.yaml"),
        (("plan", "--spec", "specs/"), "specs/ is a folder, not a spec"),
        (("plan", "--spec", "specs"), "specs is a folder, not a spec"),
        (("validate", "nowhere"), "there is no spec 'nowhere'"),
        (("score", "a", "b"), "unexpected argument 'b'"),
        (("messages", "/nowhere"), "folder not found: /nowhere"),
        (("report", "harness.yaml"), "harness.yaml is a file"),
        (("report", "/nowhere"), "folder not found: /nowhere"),
        (("score", "."), "holds no run"),
        (("list", "things"), "there is no kind 'things'. Available: channels"),
        (("export", "run", "--to", "parque"), "--to: there is no form 'parque'. Did you mean parquet?"),
        (("schema", "tasks", "pikc"), "Did you mean pick"),
        (("show", "--spec", "toy", "--case", "c9"), "there is no case 'c9'"),
        (("show", "--spec", "toy", "--case", "0", "--agent", "S7"), "there is no agent 'S7'"),
        (("show", "--spec", "toy", "--case", "0", "--round", "7"), "turns 0 to 2"),
    ],
)
def test_mistakes_have_exit_code_2_and_no_traceback(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    if arguments[0] == "eval" and "--output_path" not in arguments:
        arguments = (*arguments, "--output_path", str(tmp_path / "r"))
    code, _, err = invoke(capsys, *arguments)
    assert code == 2
    assert says in err and "Traceback" not in err
    if "usage:" in err:
        assert err.splitlines()[-1].startswith("error: ")


def test_a_run_of_which_everything_fails_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = eval_toy(capsys, tmp_path / "r", "--set", "baseline=illegal")
    assert code == 1
    assert "8 of 8 episodes failed" in err and "Illegal chose 'z'" in err


def test_a_fatal_engine_says_how_to_go_on(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = eval_toy(capsys, tmp_path / "r", "--model", "dice", "--model_args", "fatal_after=5")
    assert code == 1
    assert "the dice are gone" in err and "the same command again" in err


@pytest.mark.parametrize("text", ["a", "=1", "a b=1", "a=["])
def test_bad_pairs(text: str) -> None:
    with pytest.raises(SpecError):
        pairs(text, "--flag")


def test_a_run_that_recorded_nothing_gives_way_to_the_corrected_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["eval", "--spec", "toy", "--output_path", str(tmp_path / "r"), "--model", "agent", "--model_args"]
    assert invoke(capsys, *command, "call=shlex:quot")[0] != 0
    assert (tmp_path / "r" / "run.json").is_file()
    _, _, err = invoke(capsys, *command, "call=shlex:quote", "--resume")
    assert "already contains a run" in err
    _, _, err = invoke(capsys, *command, "call=shlex:quote")
    assert "already contains a run" not in err
    assert json.loads((tmp_path / "r" / "run.json").read_text())["model"] == "shlex:quote"


def test_a_folder_that_is_taken_says_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["eval", "--spec", "toy", "--output_path", str(tmp_path / "r")]
    assert invoke(capsys, *command, "--limit", "1")[0] == 0
    (tmp_path / "r" / "notes.txt").write_text("mine")
    code, _, err = invoke(capsys, *command)
    assert code == 2 and "already contains a run with a different configuration" in err
    assert "-  limit: 1" in err and "--output_path" in err and "--overwrite" in err
    code, _, err = invoke(capsys, *command, "--overwrite")
    assert code == 0 and (tmp_path / "r" / "notes.txt").read_text() == "mine"
    record = tmp_path / "r" / "run.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "command": ["harness", *command, "--overwrite"]}))
    _, _, err = invoke(capsys, *command, "--limit", "1")
    assert "own command" in err and "--overwrite" not in err.rpartition("own command")[2], (
        "the command that goes on replaces nothing"
    )
    journal = (tmp_path / "r" / "journal.jsonl").read_bytes()
    assert invoke(capsys, *command, "--overwrite")[0] == 0
    assert (tmp_path / "r" / "journal.jsonl").read_bytes() == journal, "the same configuration goes on"
    assert invoke(capsys, *command, "--overwrite", "--no-resume")[0] == 0
    meta = json.loads((tmp_path / "r" / "run.json").read_text())
    assert meta["status"] == "finished" and meta["end"] > meta["start"]


def test_gen_kwargs_that_change_nothing_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["eval", "--spec", "toy", "--output_path", str(tmp_path / "r"), "--gen_kwargs", "temperature=0.5"]
    code, _, err = invoke(capsys, *command)
    assert code == 2 and "--gen_kwargs: no model plays" in err and "--model" in err and not (tmp_path / "r").exists()
    assert "--gen_kwargs: no model plays" in invoke(capsys, "calibrate", *command[1:])[2]
    assert invoke(capsys, *command, "--model", "mock", "--model_args", "text=a")[0] == 0


@pytest.mark.parametrize("text", ["ACTION: vote", "a: b: c", '"ACTION: vote"'])
def test_a_text_of_model_args_needs_no_quotes_for_its_colon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    code, _, err = eval_toy(
        capsys, tmp_path / "r", "--model", "mock", "--model_args", f"text={text},model=m", "--limit", "1"
    )
    assert code == 0, err
    said = json.dumps(text.strip('"'))
    assert said in (tmp_path / "r" / "journal.jsonl").read_text()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"model": 3}, "model must be an engine or the name of one, found 3"),
        ({"model_args": {"replies": []}}, "model_args without the name of an engine"),
        ({"model": Mock(), "model_args": {"replies": []}}, "model_args without the name of an engine"),
        ({"model": "mock", "model_args": "replies"}, "model_args must be a mapping of the engine's fields"),
    ],
)
def test_evaluate_says_what_is_wrong_with_the_model(given: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=re.escape(says)):
        evaluate(TOY, output_path=tmp_path / "run", **given)


@pytest.mark.parametrize("spec, model", [("s" * 300, "m"), ("s", "é" * 300), ("s" * 190, "m" * 60)])
def test_a_long_name_is_cut_and_stays_one_run(tmp_path: Path, spec: str, model: str) -> None:
    (tmp_path / "harness.yaml").write_text(f"parents: [{TOY}, harness_builtin]\n")
    project = find(tmp_path)
    with contextlib.chdir(tmp_path):
        runs = [
            evaluate({"extends": "toy", "name": name}, Mock(text="a", model=model), limit=1, project=project)
            for name in (spec, spec, f"{spec}x")
        ]
    names = [run.folder.name for run in runs]
    assert names[0] == names[1] != names[2] and all(len(name.encode()) <= 200 for name in names)
    assert load_run(runs[0].folder, project).scores


@pytest.mark.parametrize(("short", "whole"), [("--max_call", "--max_calls"), ("--overw", "--overwrite")])
def test_an_option_is_written_in_full(short: str, whole: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An abbreviation could replace a run, and would change its meaning with the next option of that beginning."""
    code, _, err = invoke(capsys, "eval", "--spec", "agentsnet_quick", short, "3")
    assert code == 2 and f"unknown option {short}. Did you mean {whole}" in err
