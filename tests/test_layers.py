"""The house is as docs/architecture.md draws it: modules import only from the rows above their own."""

import ast
import functools
import re
from pathlib import Path

import pytest

from tests.helpers.statements import Function, nodes

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
PLUGINS = {"registry", "metrics", "specs", "prompts", "results"}
FOR_PLUGINS = set(re.findall(r"`harness\.(\w+)`", PAGE.partition("plugins import ")[2].partition("\n\n")[0]))


REACHES: dict[str, set[str]] = {}
"""Modules of the core that import extensions. The list may only get shorter."""


def rooms() -> list[tuple[int, set[str]]]:
    """The rows of the table: (floor, modules and packages)."""
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", PAGE, re.MULTILINE)
    return [(int(floor), set(re.findall(r"`(\w+)`", names))) for floor, names in rows]


@functools.cache
def layers() -> dict[str, int]:
    return {name: floor for floor, names in rooms() for name in names}


def test_the_core_has_few_rooms_on_few_floors() -> None:
    core = [(floor, names) for floor, names in rooms() if names != {"extensions"}]
    assert len(core) <= 13 and len({floor for floor, _ in core}) <= 11


def modules() -> list[Path]:
    return sorted(p for p in (ROOT / "harness").rglob("*.py") if "scaffold" not in p.parts)


@functools.cache
def imported(file: Path, package: str) -> set[str]:
    """Absolute names a file imports, relative imports resolved."""
    names: set[str] = set()
    for node in nodes(file):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            origin = ".".join(part for part in (base, node.module or "") if part)
            names |= {f"{origin}.{alias.name}" for alias in node.names} | {origin}
    return names


def test_every_module_has_a_layer() -> None:
    tops = {p.relative_to(ROOT / "harness").parts[0].removesuffix(".py") for p in modules()}
    assert tops - {"__init__", "__main__"} == set(layers())


def test_imports_point_upwards() -> None:
    rows = rooms()
    for file in modules():
        check_imports(file, rows)


def check_imports(file: Path, rows: list[tuple[int, set[str]]]) -> None:
    parts = file.relative_to(ROOT / "harness").with_suffix("").parts
    top = parts[0]
    if top in ("__init__", "__main__"):
        return
    names = layers()
    room = next(names for _, names in rows if top in names)
    package = ".".join(("harness", *parts[:-1]))
    for name in imported(file, package):
        head, *rest = name.split(".")
        assert head not in PLUGINS, f"{file} imports the plugin folder {name}"
        if head == "harness" and rest and rest[0] in names and rest[0] not in {*room, "extensions"}:
            assert names[rest[0]] < names[top], f"{top} (floor {names[top]}) imports {rest[0]} (floor {names[rest[0]]})"


def test_no_function_of_the_core_has_more_than_six_parameters() -> None:
    for file in modules():
        for node in nodes(file):
            if isinstance(node, Function) and "extensions" not in file.parts:
                given = node.args
                names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
                others = [one for one in (given.vararg, given.kwarg) if one is not None]
                count = len([name for name in names if name not in ("self", "cls")]) + len(others)
                assert count <= 6, f"{file}:{node.lineno}: {node.name} has {count} parameters"


def test_the_core_imports_extensions_nowhere_else() -> None:
    reaches: dict[str, set[str]] = {}
    for file in modules():
        name = str(file.relative_to(ROOT / "harness"))
        package = ".".join(("harness", *file.relative_to(ROOT / "harness").parts[:-1]))
        if not name.startswith("extensions/"):
            for one in imported(file, package):
                if one.startswith("harness.extensions."):
                    reaches.setdefault(name, set()).add(one.split(".")[2])
    assert reaches == REACHES


@pytest.mark.parametrize("folder", ["harness", "registry", "metrics"])
def test_private_modules_are_imported_within_their_package_only(folder: str) -> None:
    for file in sorted((ROOT / folder).rglob("*.py")):
        package = ".".join(file.relative_to(ROOT).parent.parts)
        for name in imported(file, package):
            parts = name.split(".")
            private = next(
                (i for i, part in enumerate(parts) if part.startswith("_") and not part.endswith("__")), None
            )
            if parts[0] == "harness" and private is not None:
                assert package.startswith(".".join(parts[:private])), f"{file} imports {name}"


@pytest.mark.parametrize("folder", ["registry", "metrics"])
def test_plugins_use_the_plugin_surface_only(folder: str) -> None:
    for file in sorted((ROOT / folder).rglob("*.py")):
        for name in imported(file, "plugin.deep.deep.deep"):
            head, *rest = name.split(".")
            if head == "harness" and rest:
                assert rest[0] in FOR_PLUGINS, f"{file} imports {name}"
                assert rest[0] != "api" or len(rest) < 3, f"{file}: import {rest[-1]} from harness.api"


def test_core_vocabulary_is_standard_library_only() -> None:
    import sys

    for file in (ROOT / "harness" / "api").glob("*.py"):
        heads = {n.split(".")[0] for n in imported(file, "harness.api")}
        assert heads <= {*sys.stdlib_module_names, "harness"}


def test_nothing_heavy_is_imported_at_the_top_of_a_file() -> None:
    heavy = {
        "networkx",
        "numpy",
        "scipy",
        "pandas",
        "torch",
        "vllm",
        "openai",
        "datasets",
        "matplotlib",
        "tqdm",
        "transformers",
        "ray",
    }
    for folder in ("harness", "registry", "metrics"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for node in nodes(file):
                if node.col_offset or not isinstance(node, ast.Import | ast.ImportFrom):
                    continue
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                assert not {n.split(".")[0] for n in names} & heavy, f"{file}:{node.lineno}"


def test_a_class_name_is_defined_once() -> None:
    """A search for a class by its name finds one."""
    defined: dict[str, list[str]] = {}
    for file in modules():
        for node in nodes(file):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined.setdefault(node.name, []).append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert {name: places for name, places in defined.items() if len(places) > 1} == {}
