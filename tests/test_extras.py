"""What pip installs is what the code imports: of the core the plain package, of everything else the extra it names."""

import ast
import functools
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
OWN = ("harness", "registry", "metrics")
FILES = {
    file: file.read_text("utf-8")
    for folder in OWN
    for file in sorted((ROOT / folder).rglob("*.py"))
    if "starters" not in file.parts
}
TRAINING, SEATS = (ROOT / "harness" / "extensions" / name for name in ("training", "seats"))
NO_CODE = {"inspect": "reads what the export writes", "docs": "builds the site", "dev": "runs the tests"}
ALSO = {
    "": [TRAINING / "rows.py", TRAINING / "token_model.py"],
    "trl": [TRAINING / "trl_rollouts.py"],
    "mcp": [SEATS / "mcp_server.py", SEATS / "stdio_relay.py"],
    "a2a": [SEATS / "a2a_server.py"],
}
"""Extra → files for which the documentation says to install it; "": none."""
BRINGS = {
    "pyyaml": {"yaml"},
    "scipy": {"numpy"},
    "jinja2": {"markupsafe"},
    "lm-eval": {"datasets", "evaluate", "sklearn"},
    "open-spiel": {"pyspiel"},
    "textarena": {"nltk"},
    "pettingzoo": {"gymnasium"},
    "mcp": {"anyio", "httpx2", "mcp_types", "starlette", "uvicorn"},
    "a2a-sdk": {"a2a", "google", "httpx"},
    "opentelemetry-exporter-otlp-proto-http": {"google", "opentelemetry"},
    "trl": {"datasets", "transformers"},
    "vllm": {"transformers"},
    "openenv": {"fastapi", "pydantic"},
    "verifiers": {"openai", "pydantic"},
}
"""Distribution → modules that it brings, beside the one of its own name."""
CHECKED = {
    "harness/extensions/datasets/libraries.py": {"evaluate", "sacrebleu"},
    "harness/extensions/tiny/folder.py": {"transformers"},
}
"""File → modules whose absence other code has reported before it imports them."""


def modules(requirements: Iterable[str]) -> set[str]:
    """The modules that requirements bring, those of our own extras among them."""
    found: set[str] = set()
    for one in requirements:
        if of_ours := re.match(r"mas-eval-harness\[(.+)\]", one):
            found |= modules(r for extra in of_ours[1].split(",") for r in EXTRAS[extra])
        else:
            name = re.match(r"[\w.-]+", one)[0].lower().replace("_", "-")
            found |= {name.replace("-", "_")} | BRINGS.get(name, set())
    return found


def dotted(file: Path) -> list[str]:
    return [part for part in file.relative_to(ROOT).with_suffix("").parts if part != "__init__"]


@functools.cache
def imports(file: Path) -> list[tuple[str, bool, bool]]:
    """(what is imported, whether when the file is, whether its absence is caught) of every import, but those that only
    types need."""
    package = dotted(file) if file.name == "__init__.py" else dotted(file)[:-1]

    def walk(node: ast.AST, at_once: bool, caught: bool) -> Iterator[tuple[str, bool, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((alias.name, at_once, caught) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = [*package[: len(package) - child.level + 1]] if child.level else []
                origin = ".".join([*base, *([child.module] if child.module else [])])
                yield from ((f"{origin}.{alias.name}", at_once, caught) for alias in child.names)
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                handlers = child.handlers if isinstance(child, ast.Try) else ()
                catches = any(re.search("ImportError|ModuleNotFound", ast.unparse(h.type)) for h in handlers if h.type)
                inner = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
                yield from walk(child, at_once and not inner, caught or catches)

    return [*walk(ast.parse(FILES[file]), True, False)]


def reached(files: Iterable[Path]) -> set[Path]:
    """These files, and what is imported with them."""
    found, left = set(files), [*files]
    while left:
        for name, at_once, _ in imports(left.pop()):
            parts = name.split(".") if at_once and name.startswith("harness.") else []
            while parts:
                path = ROOT.joinpath(*parts)
                file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
                if file in FILES and file not in found:
                    found.add(file)
                    left.append(file)
                parts.pop()
    return found


def code_of(extra: str) -> list[Path]:
    """The files that an extra is for: those that name it, all of an extension whose manifest does; without an extra
    the core."""
    manifests = {file.parent: tomllib.loads(file.read_text("utf-8")) for file in ROOT.glob("harness/**/extension.toml")}
    folders = [folder for folder, manifest in manifests.items() if extra and manifest.get("extra") == extra]
    named = [
        file
        for file, text in FILES.items()
        if (extra and f"harness[{extra}]" in text) or any(file.is_relative_to(folder) for folder in folders)
    ]
    core = [file for file in FILES if file.is_relative_to(ROOT / "harness") and "extensions" not in file.parts]
    return [*(named if extra else core), *ALSO.get(extra, ())]


@pytest.mark.parametrize("extra", ["", *(name for name in EXTRAS if name not in NO_CODE)])
def test_an_extra_brings_what_its_code_imports(extra: str) -> None:
    """Or the code says what to install where the import fails."""
    there = {*sys.stdlib_module_names, *OWN, *modules([*PROJECT["dependencies"], *EXTRAS.get(extra, ())])}
    code = code_of(extra)
    assert code
    for file in sorted(reached(code)):
        name = str(file.relative_to(ROOT))
        uncaught = {module.partition(".")[0] for module, _, caught in imports(file) if not caught}
        assert uncaught <= there | CHECKED.get(name, set()), name
