"""What commands print, and where the results go."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.api.errors import DataError
from harness.cli.evaluate import pairs
from harness.evaluation.load_run import load_run
from tests.helpers.commands import ROOT, TOY, eval_toy, invoke


def test_eval_prints_progress_tables_and_where_the_results_are(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, err = eval_toy(capsys, tmp_path / "r")
    assert code == 0
    assert err.startswith("toy · coin: 0/8 episodes\n") and "toy · coin: 8/8 episodes" in err
    assert "Agreement" in out and "coin" in out
    assert out.rstrip().endswith(f"results: {tmp_path / 'r'}")


def test_a_run_ends_with_how_to_look_at_it_and_what_is_missing_for_an_interval(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "a run"
    _, out, _ = eval_toy(capsys, folder)
    assert out.splitlines()[-2:] == [f"view: harness view '{folder}'", f"results: {folder}"]
    assert "no interval:" not in out
    _, out, _ = eval_toy(capsys, tmp_path / "short", "--limit", "1")
    missing = "no interval: 2 of 2 conditions have only one case with a number for agreed; "
    assert missing + "there are more without --limit" in out.splitlines()
    _, out, _ = eval_toy(capsys, tmp_path / "small", "--set", "task.cases_made=1")
    assert missing + "harness show --spec toy says how many the task has" in out.splitlines()
    assert invoke(capsys, "score", str(tmp_path / "small"))[1].endswith(out[out.index("no interval:") :])


def test_data_is_followed_by_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = eval_toy(capsys, tmp_path / "r", "--format", "json")
    assert code == 0 and json.loads(out)
    assert err.endswith(f"results: {tmp_path / 'r'}\n")


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert eval_toy(capsys, tmp_path / "r", "--quiet")[2] == ""


def test_a_model_with_arguments_and_sampling(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    more = (
        "--model",
        "dice",
        "--model_args",
        "name=my dice,latency=0.001",
        "--gen_kwargs",
        "temperature=0.5,top_p=0.9",
    )
    code, out, _ = eval_toy(capsys, tmp_path / "r", *more, "--limit", "1", "--repeats", "2", "--seed", "5")
    assert code == 0 and "my dice" in out
    meta = json.loads((tmp_path / "r" / "run.json").read_text())
    assert meta["generation_kwargs"] == {"temperature": 0.5, "max_tokens": 8, "top_p": 0.9}
    assert len((tmp_path / "r" / "scores.jsonl").read_text().splitlines()) == 4


def test_secrets_never_reach_the_record(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "harness", "eval", "--spec", "toy", "--output_path", str(tmp_path / "r"),
               "--model", "dice", "--model_args", "name=api_key=sk-123"]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, env={"PYTHONPATH": str(ROOT), "PATH": ""})
    assert "sk-123" not in json.dumps(json.loads((tmp_path / "r" / "run.json").read_text())["command"])


@pytest.mark.parametrize("form", ["text", "markdown", "csv", "json"])
def test_report_and_score_print_the_tables_again(capsys: pytest.CaptureFixture[str], tmp_path: Path, form: str) -> None:
    eval_toy(capsys, tmp_path / "r", "--quiet")
    code, out, _ = invoke(capsys, "report", str(tmp_path / "r"), "--format", form)
    assert code == 0 and "coin" in out
    if form == "json":
        assert json.loads(out)[0]["title"] == "Agreement"
    code, again, _ = invoke(capsys, "score", str(tmp_path / "r"), "--format", form)
    said = "toy: coin (bias=0.9), generation_kwargs: (none: policies play), limit: none, seed: 0, repeats: 1\n\n"
    said = said if form in ("text", "markdown") else ""  # nothing stands before data
    assert code == 0 and again.startswith(said + out.rstrip("\n"))
    assert invoke(capsys, "report", str(tmp_path / "r"), "--format", form, "--output", str(tmp_path / "f"))[0] == 0
    assert (tmp_path / "f").read_text() == out


def test_a_file_has_the_format_of_its_suffix_unless_another_is_given(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    eval_toy(capsys, tmp_path / "r")
    for suffix, begin in ((".html", "<!doctype html>"), (".csv", "model,"), (".md", "### "), (".txt", "Agreement")):
        file = tmp_path / f"x{suffix}"
        assert invoke(capsys, "report", str(tmp_path / "r"), "-o", str(file))[0] == 0
        assert file.read_text().startswith(begin), file.read_text()[:80]
    file = tmp_path / "text.html"
    assert invoke(capsys, "report", str(tmp_path / "r"), "--format", "text", "-o", str(file))[0] == 0
    assert file.read_text().startswith("Agreement")


def test_leaderboard_merges_runs_of_one_benchmark_only(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    eval_toy(capsys, tmp_path / "a", "--model", "dice", "--quiet")
    eval_toy(capsys, tmp_path / "b", "--quiet")
    eval_toy(capsys, tmp_path / "c", "--quiet", "--set", "protocol.rounds=1")
    code, out, _ = invoke(capsys, "leaderboard", str(tmp_path / "a"), str(tmp_path / "b"))
    assert code == 0 and "dice" in out and "coin" in out
    code, _, err = invoke(capsys, "leaderboard", str(tmp_path / "a"), str(tmp_path / "c"))
    assert code == 2 and "c" in err


def test_validate_plan_show_list_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(capsys, "validate")[:2] == (0, "toy: ok\ntoy_loud: ok\n")
    code, out, _ = invoke(capsys, "plan", "--spec", "toy")
    assert code == 0
    assert "conditions      2" in out and "episodes        8" in out
    assert "60 without retries, at most 120" in out  # (2 + 3 agents) · 4 cases · 3 rounds
    code, out, _ = invoke(capsys, "show", "--spec", "toy_loud")
    assert code == 0 and "prompts: toy/loud" in out and "extends" not in out
    code, out, _ = invoke(capsys, "show", "--spec", "toy_loud", "--case", "1", "--agent", "S1", "--round", "1")
    assert code == 0
    assert "You are S1." in out and "ROUND 0! SAY ONE LETTER!" in out and "ROUND 1!" in out and "ROUND 2" not in out
    code, out, _ = invoke(capsys, "list", "tasks")
    assert code == 0 and out.splitlines()[0] == "pick   Everybody must name the same letter."
    for kind in ("protocols", "channels", "policies", "prompts", "metrics", "engines", "specs"):
        assert invoke(capsys, "list", kind)[0] == 0
    code, out, _ = invoke(capsys, "schema", "tasks", "pick")
    assert json.loads(out)["properties"]["agents"] == {"type": "integer", "minimum": 1, "maximum": 50, "default": 3}
    assert set(json.loads(invoke(capsys, "schema", "policies")[1])) == {"coin", "illegal"}


@pytest.mark.slow
def test_the_published_schema_accepts_the_specs_it_describes(capsys: pytest.CaptureFixture[str]) -> None:
    import jsonschema
    import yaml

    shape = json.loads(invoke(capsys, "schema")[1])
    jsonschema.Draft202012Validator.check_schema(shape)
    jsonschema.validate(yaml.safe_load((TOY / "specs" / "toy.yaml").read_text()), shape)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        ("a=1,b=x y", {"a": 1, "b": "x y"}),
        ("a=[1,2],b={c: 1,d: 2},e='x,y'", {"a": [1, 2], "b": {"c": 1, "d": 2}, "e": "x,y"}),
        ("a=", {"a": ""}),
        ("a=b=c", {"a": "b=c"}),
        ("a=true,b=1e-3", {"a": True, "b": 0.001}),
    ],
)
def test_pairs(text: str, value: object) -> None:
    assert pairs(text, "--flag") == value


def test_a_second_configuration_gets_a_folder_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--limit 3` to see whether it works, then the whole run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "harness.yaml").write_text(f"parents: ['{TOY}']\n")
    folders = []
    for limit in (["--limit", "1"], [], [], ["--limit", "1"]):
        code, out, err = invoke(capsys, "eval", "--spec", "toy", *limit)
        assert code == 0, err
        folders.append(out.rpartition("results: ")[2].strip())
    trial, whole, again, trial_again = folders
    assert trial == trial_again == str(tmp_path / "results" / "toy-coin")
    assert whole == again and re.fullmatch(r"toy-coin-[0-9a-f]{8}", Path(whole).name)


def test_list_alone_counts_the_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = invoke(capsys, "list")
    assert code == 0
    counts = dict(line.split()[:2] for line in out.partition("\n\n")[0].splitlines())
    for kind, count in counts.items():
        assert len(invoke(capsys, "list", kind)[1].splitlines()) == int(count), kind
    plugins = ("protocols", "channels", "policies", "metrics", "engines")
    assert next(iter(counts)) == "tasks" and counts.keys() >= {*plugins, "prompts", "specs"}


def test_a_run_is_read_from_a_path_as_text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert eval_toy(capsys, tmp_path / "r", "--quiet")[0] == 0
    assert load_run(str(tmp_path / "r")).scores == load_run(tmp_path / "r").scores
    with pytest.raises(DataError, match=r"folder not found: [^\n]*\n  Did you mean r\?"):
        load_run(str(tmp_path / "rr"))
