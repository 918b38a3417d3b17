"""What a command loads: a plain run needs the core, and of extensions only those of its task."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST = 20_900
"""Lines of ours that the main command may load with a mock model.

What a plain run needs: rules for replies in many more styles, shares of turns that were read, and approvals of what a
spec sends took 1,500 lines; what a run says of replies like those of this mock, none of which is read, 500;
rules that end a run and rounds of pairings, 200; token ids of replies, 150; listeners, inner calls and what turns
used, 150; what engines lack is looked at in every run, 200.
What only a mistake, a call of a tool in text, thinking or another one's extension needs is loaded with it."""
MOST_OF_THREE_KEYS = 25_650
"""The same for a spec of three keys: a data set's task, one agent, and all else as the task proposes it."""
LOADED = """
import contextlib, io, json, sys
from harness.cli import main

with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    try:
        code = main(sys.argv[1:])
    except SystemExit as end:
        code = end.code
files = sorted(str(m.__file__) for m in list(sys.modules.values()) if getattr(m, "__file__", None))
assert "scipy.stats" not in sys.modules, "it takes a second to import: scipy.special has what it is made of"
print(json.dumps([code, files]))
"""


def loaded(*arguments: str) -> list[Path]:
    """The files of ours that a command has loaded at its end, below the repository."""
    command = [sys.executable, "-c", LOADED, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    code, files = json.loads(done.stdout)
    assert code == 0
    inside = (Path(file).relative_to(ROOT) for file in files if Path(file).is_relative_to(ROOT))
    return [file for file in inside if file.parts[0] in ("harness", "registry", "metrics")]


def test_the_main_command_loads_little(tmp_path: Path) -> None:
    options = ("--model", "mock", "--limit", "1", "--quiet", "--output_path", str(tmp_path / "run"))
    files = loaded("eval", "--spec", "agentsnet_quick", *options)
    lines = sum(len((ROOT / file).read_text("utf-8").splitlines()) for file in files)
    assert len(files) > 50 and lines <= MOST
    extensions = {
        file.parts[2] for file in files if file.parts[:2] == ("harness", "extensions") and len(file.parts) > 3
    }
    assert extensions <= {"networks", "panels"}


def test_help_loads_next_to_nothing() -> None:
    files = loaded("--help")
    assert {file.parts[1] for file in files if len(file.parts) > 2} <= {"api", "cli", "plugins", "runtime"}
    assert sum(len((ROOT / file).read_text("utf-8").splitlines()) for file in files) <= 1_940


def test_a_spec_of_three_keys_imports_what_its_task_needs(tmp_path: Path) -> None:
    """No key, no kind of table and no part of an extension that it does not use."""
    spec = tmp_path / "three.yaml"
    spec.write_text("name: three\ntask: {use: arithmetic, size: 2, terms: 2}\nprotocol: single\n")
    options = ("--model", "mock", "--limit", "1", "--quiet", "--output_path", str(tmp_path / "run"))
    files = loaded("eval", "--spec", str(spec), *options)
    used = {"/".join(file.parts[2:4]) for file in files if file.parts[:2] == ("harness", "extensions")}
    assert {name for name in used if name.startswith("sandbox/")} <= {"sandbox/__init__.py", "sandbox/clock.py"}
    assert {name for name in used if name.startswith("games/")} <= {"games/__init__.py", "games/actions.py"}
    assert {name.partition("/")[0] for name in used} == {
        "__init__.py",
        "datasets",
        "games",
        "panels",
        "sandbox",
        "yaml_tasks",
    }
    assert sum(len((ROOT / file).read_text("utf-8").splitlines()) for file in files) <= MOST_OF_THREE_KEYS
