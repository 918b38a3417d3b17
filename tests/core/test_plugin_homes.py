"""The README of an extension says which plugins use it; a plugin's name is its path, which no extension changes."""

import ast
import functools
import re
from pathlib import Path

import pytest

from tests.helpers.statements import nodes

ROOT = Path(__file__).parents[2]
EXTENSIONS = sorted(folder.parent for folder in (ROOT / "harness" / "extensions").glob("*/extension.toml"))
HOMES = ("registry/tasks", "registry/protocols", "registry/channels", "registry/policies", "registry/views", "metrics")


@functools.cache
def imports(file: Path) -> tuple[frozenset[str], frozenset[Path]]:
    """(extensions, helpers beside it) that a file imports."""
    extensions, helpers = set[str](), set[Path]()
    for node in nodes(file):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = file.parents[node.level - 1].joinpath(*filter(None, (node.module or "").split(".")))
            for path in (folder, *(folder / alias.name for alias in node.names)):
                helpers |= {one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()}
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}", *(f"{node.module}.{alias.name}" for alias in node.names)]
            extensions |= {name.split(".")[2] for name in names if name.startswith("harness.extensions.")}
    return frozenset(extensions), frozenset(helpers)


@functools.cache
def used(plugin: Path) -> frozenset[str]:
    """The extensions that a plugin imports, itself or by its helpers."""
    files, waiting = {plugin}, [plugin]
    while waiting:
        new = imports(waiting.pop())[1] - files
        files |= new
        waiting += new
    return frozenset().union(*(imports(file)[0] for file in files))


def plugins(extension: str) -> dict[str, list[str]]:
    """Folder → names of the plugins there that use an extension."""
    found: dict[str, list[str]] = {}
    for home in HOMES:
        for file in sorted((ROOT / home).rglob("*.py")):
            name = file.relative_to(ROOT / home).with_suffix("").as_posix()
            if not any(part.startswith("_") for part in name.split("/")) and extension in used(file):
                found.setdefault(home, []).append(name)
    return found


def line(extension: str) -> str:
    """The line of a README; where a whole folder of plugins uses it, the folder stands for them."""
    parts = []
    for home, names in plugins(extension).items():
        short = dict.fromkeys(_short(home, name, names) for name in names)
        parts.append(f"`{home}/` {', '.join(f'`{name}`' for name in short)}")
    return f"- Plugins that use it: {'; '.join(parts)}." if parts else ""


def _short(home: str, name: str, names: list[str]) -> str:
    folder = name.rpartition("/")[0]
    inside = [file.stem for file in (ROOT / home / folder).glob("[!_]*.py")]
    return f"{folder}/*" if folder and all(f"{folder}/{stem}" in names for stem in inside) else name


@pytest.mark.parametrize("folder", EXTENSIONS, ids=lambda folder: folder.name)
def test_a_readme_names_the_plugins_that_use_its_extension(folder: Path) -> None:
    text = " ".join((folder / "README.md").read_text("utf-8").split())
    stated = re.search(r"- Plugins that use it: .*?\.(?= - |$)", text)
    assert (stated[0] if stated else "") == line(folder.name)
