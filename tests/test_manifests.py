"""Extensions: manifests of those that ship, and a package of someone else, installed from a wheel."""

import base64
import hashlib
import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from harness import manifests
from harness.errors import PluginError

ROOT = Path(__file__).parent.parent
ECHO = {
    "harness_echo/__init__.py": '"""An extension of someone else."""\n',
    "harness_echo/extension.toml": """
name = "echo"
summary = "Says things again."

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
""",
    "harness_echo/parrot.py": '''
from harness.api import Completion, plugin
from harness.engine_api import Engine

@plugin
class Parrot(Engine):
    """Answers with what it was asked."""

    model: str = "parrot"

    async def complete(self, request):
        return Completion("0")
''',
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


def harness(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(site)])}
    command = [sys.executable, "-m", "harness", *arguments]
    return subprocess.run(command, env=environment, cwd=site, capture_output=True, text=True)


def test_a_package_of_someone_else_adds_a_command_and_an_engine(installed: Path) -> None:
    assert "  echo         say a word again" in harness(installed, "--help").stdout
    assert harness(installed, "echo", "hello").stdout == "hello hello\n"
    assert "echo     Answers with what it was asked." in harness(installed, "list", "engines").stdout
    run = ("eval", "--spec", "arithmetic", "--limit", "2", "--model", "echo", "--output_path", str(installed / "r"))
    assert "parrot" in harness(installed, *run).stdout


def test_manifests_name_what_is_there() -> None:
    for point in manifests.POINTS:
        for name, offer in manifests.offers(point).items():
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


@pytest.mark.parametrize(
    "text, words",
    [
        ("name = 1", "name: expected a str, found 1"),
        ('name = "x"', "missing required key 'summary'"),
        ('name = "x"\nsummary = "y"\ncomands = {}', "unknown key 'comands'. Did you mean commands?"),
        ("name = ", "cannot be read"),
    ],
)
def test_a_mistake_in_a_manifest_has_its_place(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "extension.toml"
    file.write_text(text)
    with pytest.raises(PluginError, match=r"extension\.toml") as caught:
        manifests.read("x", file)
    assert words in str(caught.value)
