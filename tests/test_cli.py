"""The command line as a person meets it: what it prints, its exit codes, and mistakes without tracebacks."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cli import main
from harness.cli.evaluate import pairs
from harness.errors import DataError, SpecError
from harness.evaluation import Run

ROOT = Path(__file__).parent.parent
TOY = ROOT / "tests" / "toy"


@pytest.fixture(autouse=True)
def in_toy(tmp_path: Path) -> Iterator[None]:
    """A copy-free visit to the toy project; runs go to `tmp_path`."""
    with contextlib.chdir(TOY):
        yield


def harness(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of a command."""
    try:
        code = main(arguments)
    except SystemExit as error:  # argparse's own refusals
        code = int(error.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def run(capsys: pytest.CaptureFixture[str], folder: Path, *more: str) -> tuple[int, str, str]:
    return harness(capsys, "eval", "--spec", "toy", "--output_path", str(folder), *more)


def test_eval_prints_progress_tables_and_where_the_results_are(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, err = run(capsys, tmp_path / "r")
    assert code == 0
    assert err.startswith("toy · coin: 0/8 episodes\n") and "toy · coin: 8/8 episodes" in err
    assert "Agreement" in out and "coin" in out
    assert out.rstrip().endswith(f"results: {tmp_path / 'r'}")


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(capsys, tmp_path / "r", "--quiet")[2] == ""


def test_a_model_with_arguments_and_sampling(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    more = (
        "--model",
        "dice",
        "--model_args",
        "name=my dice,latency=0.001",
        "--gen_kwargs",
        "temperature=0.5,top_p=0.9",
    )
    code, out, _ = run(capsys, tmp_path / "r", *more, "--limit", "1", "--repeats", "2", "--seed", "5")
    assert code == 0 and "my dice" in out
    meta = json.loads((tmp_path / "r" / "run.json").read_text())
    assert meta["generation_kwargs"] == {"temperature": 0.5, "max_tokens": 8, "top_p": 0.9}
    assert len((tmp_path / "r" / "scores.jsonl").read_text().splitlines()) == 4


def test_secrets_never_reach_the_record(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "harness", "eval", "--spec", "toy", "--output_path", str(tmp_path / "r"),
               "--model", "dice", "--model_args", "name=api_key=sk-123"]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, env={"PYTHONPATH": str(ROOT), "PATH": ""})
    assert "sk-123" not in json.dumps(json.loads((tmp_path / "r" / "run.json").read_text())["command"])


@pytest.mark.parametrize("form", ["text", "markdown", "csv", "latex", "json", "html"])
def test_report_and_score_print_the_tables_again(capsys: pytest.CaptureFixture[str], tmp_path: Path, form: str) -> None:
    run(capsys, tmp_path / "r", "--quiet")
    code, out, _ = harness(capsys, "report", str(tmp_path / "r"), "--format", form)
    assert code == 0 and "coin" in out
    if form == "json":
        assert json.loads(out)[0]["title"] == "Agreement"
    code, again, _ = harness(capsys, "score", str(tmp_path / "r"), "--format", form)
    assert code == 0 and again.startswith(out.rstrip("\n"))
    assert harness(capsys, "report", str(tmp_path / "r"), "--format", form, "--output", str(tmp_path / "f"))[0] == 0
    assert (tmp_path / "f").read_text() == out


def test_leaderboard_merges_runs_of_one_benchmark_only(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run(capsys, tmp_path / "a", "--model", "dice", "--quiet")
    run(capsys, tmp_path / "b", "--quiet")
    run(capsys, tmp_path / "c", "--quiet", "--set", "protocol.rounds=1")
    code, out, _ = harness(capsys, "leaderboard", str(tmp_path / "a"), str(tmp_path / "b"))
    assert code == 0 and "dice" in out and "coin" in out
    code, _, err = harness(capsys, "leaderboard", str(tmp_path / "a"), str(tmp_path / "c"))
    assert code == 2 and "c" in err


def test_validate_plan_show_list_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert harness(capsys, "validate")[:2] == (0, "toy: ok\ntoy_loud: ok\n")
    code, out, _ = harness(capsys, "plan", "--spec", "toy")
    assert code == 0
    assert "conditions      2" in out and "episodes        8" in out
    assert "60 without re-asks, at most 120" in out  # (2 + 3 seats) · 4 cases · 3 rounds
    code, out, _ = harness(capsys, "show", "--spec", "toy_loud")
    assert code == 0 and "prompts: toy/loud" in out and "extends" not in out
    code, out, _ = harness(capsys, "show", "--spec", "toy_loud", "--case", "1", "--seat", "S1", "--round", "1")
    assert code == 0
    assert "You are S1." in out and "ROUND 0! SAY ONE LETTER!" in out and "ROUND 1!" in out and "ROUND 2" not in out
    assert harness(capsys, "list", "tasks")[:2] == (0, "pick  Everybody must name the same letter.\n")
    for kind in ("protocols", "channels", "policies", "prompts", "metrics", "engines", "specs"):
        assert harness(capsys, "list", kind)[0] == 0
    code, out, _ = harness(capsys, "schema")
    assert code == 0 and json.loads(out)["title"] == "harness spec"
    code, out, _ = harness(capsys, "schema", "tasks", "pick")
    assert json.loads(out)["properties"]["seats"] == {"type": "integer", "minimum": 1, "maximum": 50, "default": 3}
    assert set(json.loads(harness(capsys, "schema", "policies")[1])) == {"coin", "illegal"}


def test_the_published_schema_accepts_the_specs_it_describes(capsys: pytest.CaptureFixture[str]) -> None:
    import jsonschema
    import yaml

    shape = json.loads(harness(capsys, "schema")[1])
    jsonschema.Draft202012Validator.check_schema(shape)
    jsonschema.validate(yaml.safe_load((TOY / "specs" / "toy.yaml").read_text()), shape)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "broken YAML"),
        ("extends: toy\nname: x\ntask: {cases_mde: 1}", "bad.yaml:3:"),
        ("extends: toy\nname: x\ntask: {broken: brief}", "no brief for S1"),
        (
            "extends: toy\nname: x\ntables: [{title: t, rows: modle, columns: seats, cell: agreed}]",
            "Did you mean model",
        ),
        (
            "extends: toy\nname: x\ntables: [{title: t, rows: model, columns: seats, cell: agred}]",
            "Did you mean agreed",
        ),
        (
            "extends: toy\nname: x\ntables: [{title: t, rows: model, where: {seats: 5}, cell: agreed}]",
            "seats is never '5'",
        ),
        (
            "extends: toy\nname: x\ntables: [{title: t, rows: model, published: a/b, cell: agreed}]",
            "unknown table 'a/b'",
        ),
        ("extends: toy\nname: x\ntask: {broken: cases}", "no cases today"),
        ("extends: toy\nname: x\nseats: {o: {1: 2, count: 1}}", "unknown key '1'"),
        ("extends: toy\nname: x\nmetrics: [agreed, solved]", "there is no metric 'solved'"),
        ("extends: toy\nname: x\nprotocol: {rounds: 0}", "'rounds' must be ≥ 1, found 0"),
        ("extends: toy\nname: x\nbaseline: cion", "Did you mean coin"),
    ],
)
def test_validate_finds_mistakes_before_anything_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, says: str
) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    code, out, err = harness(capsys, "validate", str(tmp_path / "bad.yaml"))
    assert code == 2 and ": 1 problem\n" in out
    assert says in err and "bad.yaml" in err and "Traceback" not in err


def test_validate_counts_every_problem(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("extends: toy\nname: x\nprotocol: {rounds: many}\nseed: no\nrepeats: 0\n")
    code, out, err = harness(capsys, "validate", str(tmp_path / "x.yaml"))
    assert code == 2 and "x.yaml: 2 problems\n" in out
    assert len(err.splitlines()) == 2 and "x.yaml:4:7" in err and "x.yaml:5:10" in err


def test_validate_finds_a_template_variable_nobody_gives(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    project = tmp_path / "p"
    (project / "prompts" / "typo").mkdir(parents=True)
    (project / "harness.yaml").write_text(f"name: p\nparents: [{TOY}]\n")
    (project / "prompts" / "typo" / "prompts.yaml").write_text("base: toy/base\n")
    (project / "prompts" / "typo" / "retry.j2").write_text("\n{% if round > 99 %}{{ eror }}{% endif %}")
    (project / "s.yaml").write_text("extends: toy\nname: s\nprompts: typo\n")
    with contextlib.chdir(project):
        code, _, err = harness(capsys, "validate", "s.yaml")
    assert code == 2
    assert "retry.j2:2:1: prompt set 'typo': nobody gives the variable 'eror'" in err and "Did you mean error" in err


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
        (("eval", "--spec", "toy", "--set", "task.seat=3"), "Did you mean seats"),
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
        (("report", "a", "b"), "unexpected argument 'b'"),
        (("messages", "/nowhere"), "folder not found: /nowhere"),
        (("report", "harness.yaml"), "harness.yaml is a file"),
        (("report", "/nowhere"), "folder not found: /nowhere"),
        (("score", "."), "holds no run"),
        (("list", "things"), "there is no kind 'things'. There are: channels"),
        (("schema", "tasks", "pikc"), "Did you mean pick"),
        (("show", "--spec", "toy", "--case", "c9"), "there is no case 'c9'"),
        (("show", "--spec", "toy", "--case", "0", "--seat", "S7"), "there is no seat 'S7'"),
        (("show", "--spec", "toy", "--case", "0", "--round", "7"), "turns 0 to 2"),
        (("new", "."), "is not empty"),
    ],
)
def test_mistakes_have_exit_code_2_and_no_traceback(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    if arguments[0] == "eval" and "--output_path" not in arguments:
        arguments = (*arguments, "--output_path", str(tmp_path / "r"))
    code, _, err = harness(capsys, *arguments)
    assert code == 2
    assert says in err and "Traceback" not in err
    if "usage:" in err:
        assert err.splitlines()[-1].startswith("error: ")


def test_a_run_of_which_everything_fails_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = run(capsys, tmp_path / "r", "--set", "baseline=illegal")
    assert code == 1
    assert "8 of 8 episodes failed" in err and "Illegal chose 'z'" in err


def test_a_fatal_engine_says_how_to_go_on(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = run(capsys, tmp_path / "r", "--model", "dice", "--model_args", "fatal_after=5")
    assert code == 1
    assert "the dice are gone" in err and "the same command again" in err


def as_from_a_terminal() -> None:
    """In a new process: SIGHUP ends it, also where these tests run under `nohup`, which it would inherit."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.parametrize(
    ("sent", "before", "code"),
    [
        (signal.SIGINT, [], 130),
        (signal.SIGTERM, [], 143),
        (signal.SIGHUP, [], 129),
        (signal.SIGTERM, ["-c", "trap '' INT; exec \"$@\"", "sh"], 143),  # as in the background of a script
    ],
)
def test_ctrl_c_and_sigterm_stop_cleanly_and_say_how_to_go_on(
    tmp_path: Path, sent: signal.Signals, before: list[str], code: int
) -> None:
    command = [sys.executable, "-m", "harness", "eval", "--spec", "toy", "--model", "dice",
               "--model_args", "latency=0.2", "--output_path", str(tmp_path / "r"),
               "--repeats", "30", "--max_concurrency", "2"]  # fmt: skip
    command = ["/bin/sh", *before, *command] if before else command
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    process = subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, text=True, preexec_fn=as_from_a_terminal
    )
    assert process.stderr is not None
    first = process.stderr.readline()  # the first progress line: the run is under way
    assert "episodes" in first
    if before:
        process.send_signal(signal.SIGINT)  # ignored, as it was meant
    process.send_signal(sent)
    _, err = process.communicate()
    assert process.returncode == code
    assert (
        "of 240 episodes are in" in err
        and "To go on:" in err
        and "harness eval --spec toy" in err
        and "Traceback" not in err
    )
    assert json.loads((tmp_path / "r" / "run.json").read_text())["status"] == "stopped"


INTERRUPTED_IMPORT = """
import os, runpy, signal, sys

wanted = sys.argv[1]

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
sys.argv[:2] = ["harness"]
runpy.run_module("harness", run_name="__main__")
"""


@pytest.mark.parametrize("module", ["harness.cli", "argparse", "harness.cli.evaluate", "harness.config.spec", "jinja2"])
def test_ctrl_c_while_modules_are_imported_shows_no_traceback(tmp_path: Path, module: str) -> None:
    command = [
        sys.executable,
        "-c",
        INTERRUPTED_IMPORT,
        module,
        "eval",
        "--spec",
        "toy",
        "--output_path",
        str(tmp_path),
    ]
    done = subprocess.run(command, env={"PYTHONPATH": str(ROOT), "PATH": ""}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "\nstopped.\n")


def test_a_terminal_that_is_closed_ends_a_run_as_ctrl_c_does(tmp_path: Path) -> None:
    """Nothing can be printed there any more, and run.json still says how it ended."""
    above, below = os.openpty()
    command = [sys.executable, "-m", "harness", "eval", "--spec", "toy", "--model", "dice", "--model_args",
               "latency=0.2", "--output_path", str(tmp_path / "r"), "--repeats", "30",
               "--max_concurrency", "2"]  # fmt: skip
    attach = [sys.executable, "-c", "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
              "os.execv(sys.argv[1], sys.argv[1:])"]  # fmt: skip
    process = subprocess.Popen(
        [*attach, *command],
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        stdin=below,
        stdout=below,
        stderr=below,
        start_new_session=True,
        preexec_fn=as_from_a_terminal,
    )
    os.close(below)
    journal = tmp_path / "r" / "journal.jsonl"
    while not (journal.exists() and journal.stat().st_size):  # the run is under way
        assert process.poll() is None
    os.close(above)
    assert process.wait(60) == 129
    assert json.loads((tmp_path / "r" / "run.json").read_text())["status"] == "stopped"


def test_output_may_be_cut_by_a_pipe() -> None:
    command = f"{sys.executable} -m harness schema | head -1"
    done = subprocess.run(
        ["bash", "-c", command], env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, capture_output=True
    )
    assert done.stderr == b""


def bash(command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "-c", command.replace("harness ", f"{sys.executable} -m harness ")],
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("redirection", [">&-", "2>&-", ">&- 2>&-", "</dev/null"])
def test_closed_streams_are_no_reason_to_fail(tmp_path: Path, redirection: str) -> None:
    done = bash(f"harness eval --spec toy --output_path {tmp_path}/r {redirection}")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert (tmp_path / "r" / "tables.md").is_file()


def test_a_full_disk_behind_stdout_is_told(tmp_path: Path) -> None:
    done = bash("harness schema > /dev/full")
    assert (done.returncode, done.stderr) == (2, "error: No space left on device\n")


def test_a_terminal_without_the_signs_shows_their_codes(tmp_path: Path) -> None:
    done = bash(f"harness eval --spec toy --limit 1 --output_path {tmp_path}/r", PYTHONIOENCODING="ascii", LC_ALL="C")
    assert done.returncode == 0 and "(\\u2013)" in done.stdout and "\\xb7" in done.stderr


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


@pytest.mark.parametrize("text", ["a", "=1", "a b=1", "a=["])
def test_bad_pairs(text: str) -> None:
    with pytest.raises(SpecError):
        pairs(text, "--flag")


@pytest.mark.parametrize("command", ["list tasks", "validate", "--help", "plan --spec toy"])
def test_light_commands_import_nothing_heavy(command: str) -> None:
    heavy = ["torch", "vllm", "datasets", "pandas", "scipy", "numpy", "openai", "networkx", "matplotlib"]
    code = (
        "import sys\nfrom harness.cli import main\n"
        f"try: main({command.split()!r})\nexcept SystemExit: pass\n"
        f"print([m for m in {heavy!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.stderr.strip().endswith("[]"), done.stderr


def test_a_second_configuration_gets_a_folder_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--limit 3` to see whether it works, then the whole run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "harness.yaml").write_text(f"parents: ['{TOY}']\n")
    folders = []
    for limit in (["--limit", "1"], [], [], ["--limit", "1"]):
        code, out, err = harness(capsys, "eval", "--spec", "toy", *limit)
        assert code == 0, err
        folders.append(out.rpartition("results: ")[2].strip())
    trial, whole, again, trial_again = folders
    assert trial == trial_again == str(tmp_path / "results" / "toy-coin")
    assert whole == again and re.fullmatch(r"toy-coin-[0-9a-f]{8}", Path(whole).name)


def test_a_folder_that_is_taken_says_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["eval", "--spec", "toy", "--output_path", str(tmp_path / "r")]
    assert harness(capsys, *command, "--limit", "1")[0] == 0
    (tmp_path / "r" / "notes.txt").write_text("mine")
    code, _, err = harness(capsys, *command)
    assert code == 2 and "already contains a run with a different configuration" in err
    assert "-  limit: 1" in err and "--output_path" in err and "--overwrite" in err
    code, _, err = harness(capsys, *command, "--overwrite")
    assert code == 0 and (tmp_path / "r" / "notes.txt").read_text() == "mine"
    record = tmp_path / "r" / "run.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "command": ["harness", *command, "--overwrite"]}))
    _, _, err = harness(capsys, *command, "--limit", "1")
    assert "own command" in err and "--overwrite" not in err.rpartition("own command")[2], (
        "the command that goes on replaces nothing"
    )
    journal = (tmp_path / "r" / "journal.jsonl").read_bytes()
    assert harness(capsys, *command, "--overwrite")[0] == 0
    assert (tmp_path / "r" / "journal.jsonl").read_bytes() == journal, "the same configuration goes on"
    assert harness(capsys, *command, "--overwrite", "--no-resume")[0] == 0
    meta = json.loads((tmp_path / "r" / "run.json").read_text())
    assert meta["status"] == "finished" and meta["end"] > meta["start"]


def test_gen_kwargs_that_change_nothing_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["eval", "--spec", "toy", "--output_path", str(tmp_path / "r"), "--gen_kwargs", "temperature=0.5"]
    code, _, err = harness(capsys, *command)
    assert code == 2 and "--gen_kwargs: no model plays" in err and "--model" in err and not (tmp_path / "r").exists()
    assert "--gen_kwargs: no model plays" in harness(capsys, "fit", *command[1:])[2]
    assert harness(capsys, *command, "--model", "mock", "--model_args", "text=a")[0] == 0


def test_list_alone_counts_the_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = harness(capsys, "list")
    assert code == 0
    counts = dict(line.split()[:2] for line in out.partition("\n\n")[0].splitlines())
    for kind, count in counts.items():
        assert len(harness(capsys, "list", kind)[1].splitlines()) == int(count), kind
    assert next(iter(counts)) == "tasks" and len(counts) == 8


def test_a_run_is_read_from_a_path_as_text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(capsys, tmp_path / "r", "--quiet")[0] == 0
    assert Run.load(str(tmp_path / "r")).scores == Run.load(tmp_path / "r").scores
    with pytest.raises(DataError, match=r"folder not found: [^\n]*\n  Did you mean r\?"):
        Run.load(str(tmp_path / "rr"))
