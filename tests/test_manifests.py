"""Extensions: manifests of those that ship, and a package of someone else, installed from a wheel."""

import base64
import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from harness.plugins import manifests

ROOT = Path(__file__).parent.parent
ECHO = {
    "harness_echo/__init__.py": '"""An extension of someone else."""\n',
    "harness_echo/extension.toml": """
name = "echo"
summary = "Says things again."

[projects]
echo = "plugins"

[starters]
cheer = "starter"

[kinds.cheers]
run = "command:Cheer"
singular = "cheer"
help = "what to say first"

[keys]
twice = "key:Twice"

[tables]
tally = "tally:Tally"

[after.echo]
run = "after:Echo"
parameters = ["echo"]
eval = "after:options"

[exports]
echo = "form:ECHO"

[engines]
echo = "parrot"

[commands.echo]
run = "command:echo"
options = "command:options"
help = "say a word again"
usage = "WORD"
examples = ["harness echo hello"]
""",
    "harness_echo/command.py": """
def echo(options):
    print(f"{options.word} {options.word}")
    return 0

def options(command):
    command.add_argument("word")

class Cheer:
    times = 1
""",
    "harness_echo/parrot.py": '''
from harness.api import Completion, plugin
from harness.api import Engine

@plugin
class Parrot(Engine):
    """Answers with what it was asked."""

    model: str = "parrot"

    async def complete(self, request):
        return Completion("0")
''',
    "harness_echo/starter/specs/__NAME__.yaml": "extends: arithmetic\nname: __NAME__\n",
    "harness_echo/plugins/harness.yaml": "name: echo\n",
    "harness_echo/plugins/registry/cheers/loud.py": '''
from harness.api import plugin
from harness_echo.command import Cheer

@plugin
class Loud(Cheer):
    """Hooray."""

    times: int = 3
''',
    "harness_echo/plugins/metrics/loudness.py": '''
from harness.api import Metric, plugin

@plugin
class Loudness(Metric):
    """How loud an episode was, as the extension says afterwards."""

    measured_by = "echo"

    def measure(self, episode):
        return None
''',
    "harness_echo/key.py": '''
from dataclasses import replace
from harness.config.keys import SpecKey

class Twice(SpecKey):
    """Every condition is there twice."""

    entry = bool
    labels = ("voice",)

    def conditions(self, whole, before):
        for voice in ("first", "second") if self.value else ("first",):
            labels = {**whole.labels, "voice": voice}
            yield replace(whole, id=f"{whole.id},voice={voice}", labels=labels, base=whole.origin)
''',
    "harness_echo/tally.py": '''
from dataclasses import dataclass
from typing import TypedDict
from harness.tables import Cell, Column, Row, Table, TableKind

class Entry(TypedDict, total=False):
    of: str

@dataclass(frozen=True)
class Tally(TableKind):
    """How many episodes a metric has numbers of."""

    entry = Entry
    needs = ("of",)
    names_metrics = "of"

    @classmethod
    def read(cls, entry):
        return cls()

    def problems(self, table):
        return []

    def build(self, table, scores, metrics):
        [name] = table.cells
        count = sum(score.number(name) is not None for score in scores)
        cells = (Cell(count, None, count, 0, 0),)
        columns = (Column({"statistic": "n"}, ("n",), form="count"),)
        rows = (Row({"metric": name}, (name,), cells, name),)
        names = {"row_labels": ("metric",), "column_labels": ("statistic",)}
        return Table(title=table.title, columns=columns, rows=rows, **names)
''',
    "harness_echo/after.py": '''
from dataclasses import replace
from harness.evaluation.post_run import After

def options(command):
    command.add_argument("--echo", help="how loud")

class Echo(After):
    """Gives every episode its loudness."""

    def __init__(self, echo="3"):
        self.echo = float(echo)

    @classmethod
    def from_arguments(cls, project, arguments):
        return cls(arguments["echo"])

    @classmethod
    def again(cls, run):
        return run

    @classmethod
    def lines(cls, run):
        return ["echo: said again"]

    @classmethod
    def score(cls, folder, options):
        raise NotImplementedError

    def plans(self, plan):
        return []

    def check(self, plan, cases, options):
        pass

    def is_waiting(self, run):
        return True

    def run(self, done, plan, options, play, began):
        scores = [replace(score, numbers={**score.numbers, "loudness": self.echo}) for score in done.scores]
        return replace(done, scores=scores)
''',
    "harness_echo/form.py": """
from harness.extensions.exports.form import ExportForm

def write(run, folder):
    (folder / "echo.txt").write_text(run.spec.name)
    return "an echo"

ECHO = ExportForm(lambda run: ("echo.txt",), write)
""",
    "harness_echo-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: harness-echo\nVersion: 1.0\n",
    "harness_echo-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "harness_echo-1.0.dist-info/entry_points.txt": "[harness.extensions]\necho = harness_echo\n",
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the package from a wheel."""
    folder = tmp_path_factory.mktemp("echo")
    wheel, record = folder / "harness_echo-1.0-py3-none-any.whl", "harness_echo-1.0.dist-info/RECORD"
    with zipfile.ZipFile(wheel, "w") as file:
        lines = []
        for name, text in ECHO.items():
            file.writestr(name, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(text.encode())}")
        file.writestr(record, "\n".join([*lines, f"{record},,"]) + "\n")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(folder / "site")]
    subprocess.run([*pip, str(wheel)], check=True)
    return folder / "site"


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
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(site)])}
    process = [sys.executable, "-c", ONE_PROCESS, json.dumps(commands)]
    done = subprocess.run(process, env=environment, cwd=site, capture_output=True, text=True, check=True)
    return [(out, err) for out, err in json.loads(done.stdout)]


def test_a_package_of_someone_else_adds_a_command_and_an_engine(installed: Path) -> None:
    run = ("eval", "--spec", "arithmetic", "--limit", "2", "--model", "echo", "--output_path", str(installed / "r"))
    task = ("new", "task", "loud", "--kind", "chear")
    lists = (task, ("list", "engines"), ("list",), ("list", "cheers"), ("schema", "cheers", "loud"))
    commands = (("--help",), ("echo", "hello"), *lists, run)
    about, said, refused, engines, kinds, cheers, schema, played = harness(installed, *commands)
    assert "  echo         say a word again" in about[0]
    assert said[0] == "hello hello\n"
    assert "Did you mean cheer?" in refused[1]
    assert "echo     Answers with what it was asked." in engines[0]
    assert re.search(r"cheers +1  what to say first", kinds[0]) and cheers[0] == "loud  Hooray.\n"
    assert json.loads(schema[0])["properties"]["times"]["default"] == 3
    assert "parrot" in played[0]


SPEC = """
extends: arithmetic
twice: true
metrics: [score, loudness]
tables:
  - {title: Means, rows: voice, cell: [score, loudness], aggregate: pooled}
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
    assert (Path(out) / "echo.txt").read_text() == "arithmetic"
    assert "Did you mean twice?" in mistakes[1] and "Did you mean tally?" in mistakes[1]


def test_manifests_name_what_is_there() -> None:
    for point in manifests.POINTS:
        for name, offer in manifests.offers(point).items():
            if point in ("projects", "starters"):
                assert (offer.extension.file.parent / offer.value).is_dir(), f"{point}.{name}"
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
