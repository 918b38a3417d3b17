"""Extensions: manifests of those that ship, and the sample package `examples/harness-echo`, from its wheel."""

import ast
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from harness.plugins import extension, manifests
from harness.plugins.installed import checked

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "examples" / "harness-echo"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the sample package, from the wheel that its build backend makes."""
    folder = tmp_path_factory.mktemp("echo")
    shutil.copytree(SAMPLE, folder / "source", ignore=shutil.ignore_patterns("__pycache__", "tests"))
    pip = [sys.executable, "-m", "pip"]
    wheel = ["wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(folder / "dist")]
    subprocess.run([*pip, *wheel, str(folder / "source")], check=True)
    install = ["install", "-q", "--no-deps", "--no-index", "--target", str(folder / "site")]
    subprocess.run([*pip, *install, *map(str, (folder / "dist").glob("*.whl"))], check=True)
    return folder / "site"


def environment(site: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(site)])}


ONE_PROCESS = """
import contextlib, io, json, sys
from harness.cli import main
printed = []
for command in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            main(command)
        except SystemExit:
            pass
    printed.append((out.getvalue(), err.getvalue()))
print(json.dumps(printed))
"""


def harness(site: Path, *commands: tuple[str, ...]) -> list[tuple[str, str]]:
    """(stdout, stderr) of each command, in one process that finds the package where pip has put it."""
    process = [sys.executable, "-c", ONE_PROCESS, json.dumps(commands)]
    done = subprocess.run(process, env=environment(site), cwd=site, capture_output=True, text=True, check=True)
    return [(out, err) for out, err in json.loads(done.stdout)]


def test_a_package_of_someone_else_adds_a_command_and_an_engine(installed: Path) -> None:
    run = ("eval", "--spec", "arithmetic", "--limit", "2", "--model", "parrot", "--output_path", str(installed / "r"))
    task = ("new", "task", "loud", "--kind", "chear")
    lists = (task, ("list", "engines"), ("list",), ("list", "cheers"), ("schema", "cheers", "loud"))
    commands = (("--help",), ("echo", "hello"), *lists, run)
    about, said, refused, engines, kinds, cheers, schema, played = harness(installed, *commands)
    assert "  echo         say a word again" in about[0]
    assert said[0] == "hello hello\n"
    assert "Did you mean cheer?" in refused[1]
    assert "parrot   Says the last word that it heard." in engines[0]
    assert re.search(r"cheers +1  what to say first", kinds[0]) and cheers[0] == "loud  Hooray.\n"
    assert json.loads(schema[0])["properties"]["times"]["default"] == 3
    assert "parrot" in played[0]


def test_it_is_found_in_a_checkout_of_the_harness_too(installed: Path) -> None:
    program = "from harness.config.project import find; assert find().load('metrics', 'loudness')"
    subprocess.run([sys.executable, "-c", program], env=environment(installed), cwd=ROOT, check=True)


SPEC = """
extends: arithmetic
twice: true
metrics: [score, loudness]
tables:
  - {title: Means, rows: voice, metrics: [score, loudness], aggregate: pooled}
  - {title: Numbers, kind: tally, of: loudness}
"""


def test_it_adds_a_key_of_specs_a_kind_of_table_a_metric_and_what_follows_a_run(installed: Path) -> None:
    spec, wrong, out = installed / "loud.yaml", installed / "wrong.yaml", str(installed / "out")
    spec.write_text(SPEC)
    wrong.write_text(SPEC.replace("twice", "twise").replace("tally", "taly"))
    folder = str(installed / "loud")
    run = ("eval", "--spec", str(spec), "--limit", "2", "--echo", "5", "--output_path", folder)
    export = ("export", folder, "--to", "echo", "-o", out)
    valid, played, _, mistakes = harness(installed, ("validate", str(spec)), run, export, ("validate", str(wrong)))
    assert "loud.yaml: ok" in valid[0]
    assert re.search(r"first .*5\.00.*\n.*second .*5\.00", played[0]), played
    assert re.search(r"loudness\W+12\b", played[0]) and "echo: said again" in played[1]
    assert (Path(out) / "echo.txt").read_text() == "arithmetic\n" * 12
    assert "Did you mean twice?" in mistakes[1] and "Did you mean tally?" in mistakes[1]


@pytest.mark.slow  # a process that plays, draws and exports
def test_its_own_tests_pass_where_it_is_installed(installed: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(SAMPLE / "tests")]
    done = subprocess.run(command, env=environment(installed), cwd=SAMPLE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_it_adds_one_of_each_open_point_and_runs_on_the_newest_version() -> None:
    file = SAMPLE / "src" / "harness_echo" / "extension.toml"
    one = checked("harness_echo", file, "harness-echo")
    assert {point for point, offered in one.points.items() if offered} == {*extension.POINTS} - {*extension.CLOSED}
    assert tomllib.loads(file.read_text("utf-8"))["api"] == extension.API_VERSIONS[-1]


def test_it_imports_the_promised_names_only() -> None:
    """Those in the table of stable imports, which all are there."""
    page = (ROOT / "docs" / "reference" / "extensions.md").read_text("utf-8")
    table = page.partition("## Stable imports")[2].partition("\n## ")[0]
    promised: dict[str, set[str]] = {}
    for module, names in re.findall(r"^\| `([\w.]+)` \| (.+?) \|", table, re.MULTILINE):
        promised[module] = {*re.findall(r"`(\w+)`", names)} or {*importlib.import_module(module).__all__}
        assert all(hasattr(importlib.import_module(module), name) for name in promised[module]), module
    for source in sorted(SAMPLE.rglob("*.py")):
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "harness":
                assert {alias.name for alias in node.names} <= promised[str(node.module)], f"{source}:{node.lineno}"


def test_manifests_name_what_is_there() -> None:
    for point in extension.POINTS:
        for name, offer in manifests.offers(point).items():
            if point in ("projects", "starters"):
                folder = offer.value["folder"] if isinstance(offer.value, dict) else offer.value
                assert (offer.extension.file.parent / folder).is_dir(), f"{point}.{name}"
                if folder == offer.value:
                    continue
            values = offer.value.values() if point == "commands" else [offer.value]
            for value in values:
                reference = value["run"] if isinstance(value, dict) else value
                if not isinstance(reference, str) or " " in reference or (point == "commands" and ":" not in reference):
                    continue
                module, _, attribute = reference.partition(":")
                spec = importlib.util.find_spec(f"{offer.extension.package}.{module}")
                assert spec is not None and spec.origin is not None, f"{point}.{name}: {reference}"
                source = Path(spec.origin).read_text("utf-8")
                assert not attribute or attribute in source, f"{point}.{name}: {reference}"


def test_every_folder_of_an_extension_has_its_manifest_and_page() -> None:
    folders = [file.parent for file in (ROOT / "harness" / "extensions").glob("*/__init__.py")]
    assert {folder.name for folder in folders} == manifests.extensions().keys()
    for folder in folders:
        lines = (folder / "README.md").read_text("utf-8").splitlines()
        assert lines[0] == f"# {folder.name}" and len(lines) <= 40
