"""The core without extensions: each can be absent, and what lacks one says its name.

A copy of `harness` made of links, without the folders of some extensions, takes the place of the package.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from harness import manifests

ROOT = Path(__file__).parents[2]
SHIPPED = sorted(folder.parent.name for folder in (ROOT / "harness" / "extensions").glob("*/extension.toml"))
FIRST = ("eval", "--spec", "agentsnet_quick", "--limit", "1", "--quiet")
"""README's first command, on fewer graphs."""
FOR_FIRST = {"networks", "panels"}
"""What AgentsNet's task and protocol need."""
BROUGHT = {
    "viewer": ("view",),
    "charts": ("plot", "results/none", "--kind", "scaling"),
    "openai": ("eval", "--spec", "agentsnet_quick", "--model", "openai"),
    "people": ("eval", "--spec", "agentsnet_quick", "--model", "human"),
    "ray": ("eval", "--spec", "agentsnet_quick", "--executor", "ray"),
    "worlds": ("validate", "worlds/commons"),
    "datasets": ("validate", "math"),
    "sharded": ("validate", "silo_quick"),
    "declared": ("validate", "networks/coloring"),
    "sandbox": ("validate", "humaneval"),
    "effects": ("validate", "agentsnet_camoc"),
}
"""Extension → a command that needs it."""


def without(folder: Path, hidden: Iterable[str]) -> Path:
    """A folder for `PYTHONPATH` with `harness` as it is, but for these extensions."""
    package = folder / "harness"
    (package / "extensions").mkdir(parents=True)
    for entry in (ROOT / "harness").iterdir():
        if entry.name not in ("extensions", "__pycache__"):
            (package / entry.name).symlink_to(entry)
    for entry in (ROOT / "harness" / "extensions").iterdir():
        if entry.name not in (*hidden, "__pycache__"):
            (package / "extensions" / entry.name).symlink_to(entry)
    return folder


def run(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(path)}
    command = [sys.executable, "-P", "-m", "harness", *arguments]  # the working directory has a whole one
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)


def test_the_index_is_that_of_the_manifests() -> None:
    assert manifests.INDEX.read_text("utf-8") == manifests.index(), "python -m harness.manifests > harness/shipped.toml"
    assert [*manifests._index()] == SHIPPED  # the file reads back


def test_the_first_command_works_without_all_others(tmp_path: Path) -> None:
    path = without(tmp_path / "path", {*SHIPPED} - FOR_FIRST)
    done = run(path, *FIRST, "--output_path", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert "Fraction" in done.stdout
    listed = run(path, "list").stdout
    for name in {*SHIPPED} - FOR_FIRST:
        assert f"The extension {name} is not installed: pip install" in listed


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in SHIPPED])
def test_what_lacks_an_extension_says_its_name(name: str, tmp_path: Path) -> None:
    path = without(tmp_path / "path", [name])
    listed = run(path, "list")
    assert listed.returncode == 0, listed.stderr
    assert f"The extension {name} is not installed: pip install" in listed.stdout
    if name not in FOR_FIRST:
        done = run(path, *FIRST, "--output_path", str(tmp_path / "run"))
        assert done.returncode == 0, done.stderr
    if name in BROUGHT:
        refused = run(path, *BROUGHT[name])
        assert refused.returncode == 2 and "Traceback" not in refused.stderr
        assert f"comes with the extension {name}, which is not installed: pip install" in refused.stderr


@pytest.mark.parametrize("name", SHIPPED)
def test_a_manifest_names_the_extensions_that_its_modules_import(name: str) -> None:
    """Those that are imported with a module; what a function imports serves something that is optional."""
    folder, needed = ROOT / "harness" / "extensions" / name, set[str]()
    for file in folder.rglob("*.py"):
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
                needed |= {one.split(".")[2] for one in names if one.startswith("harness.extensions.")}
    assert {*manifests.extensions()[name].needs} == needed - {name}


def test_an_extension_that_lacks_another_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {name: one for name, one in manifests._found().items() if name != "worlds"}
    monkeypatch.setattr(manifests, "_found", lambda: found)
    manifests.extensions.cache_clear()
    try:
        assert not {"declared", "games", "textarena"} & manifests.extensions().keys()
        assert manifests.missing()["declared"] == "needs the extension worlds"
        assert manifests.missing()["worlds"].startswith("is not installed: pip install")
    finally:
        manifests.extensions.cache_clear()
