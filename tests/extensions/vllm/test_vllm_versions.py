"""The script that compares the engine with versions of vLLM, on small wheels of our own; and that its list is whole."""

import ast
import importlib.util
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    place = importlib.util.spec_from_file_location("check_vllm_versions", ROOT / ".ci" / "check_vllm_versions.py")
    assert place is not None and place.loader is not None
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


FILES = {
    "vllm/__init__.py": "",
    "vllm/inputs/__init__.py": "from .data import tokens_input as tokens_input\nfrom ..base import Base\n",
    "vllm/inputs/data.py": "def tokens_input(prompt, *, more=None): ...\n",
    "vllm/base.py": "class Base:\n    inherited: int = 0\n    def __init__(self): self.set_later: int = 1\n",
    "vllm/arguments.py": (
        "from typing import TYPE_CHECKING\nfrom vllm.inputs import Base\n"
        "if TYPE_CHECKING:\n    platform: object\n"
        "class Arguments(Base):\n    model: str\n    KIND = 1\n    async def run(self, text, *, rank=None): ...\n"
    ),
}
THERE = {
    "vllm.inputs:tokens_input": (),
    "vllm.inputs:tokens_input()": ("prompt", "more"),
    "vllm.arguments:platform": (),
    "vllm.arguments:Arguments": ("model", "KIND", "run", "inherited", "set_later"),
    "vllm.arguments:Arguments.run()": ("text", "rank"),
}


def test_names_are_found_through_imports_and_bases_and_what_is_gone_is_named(
    script: ModuleType, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "vllm.whl", "w") as wheel:
        for name, text in FILES.items():
            wheel.writestr(name, text)
    sources = script.Sources(tmp_path / "vllm.whl")
    assert script.missing(sources, THERE) == []
    absent = {
        "vllm.nowhere:x": (), "vllm.inputs:prompt_input": (), "vllm.inputs:tokens_input()": ("ids",),
        "vllm.arguments:Arguments": ("model", "seed"), "vllm.arguments:Arguments.walk()": (),
    }  # fmt: skip
    assert script.missing(sources, absent) == [
        "vllm.nowhere:x", "vllm.inputs:prompt_input", "vllm.inputs:tokens_input() ids",
        "vllm.arguments:Arguments seed", "vllm.arguments:Arguments.walk()",
    ]  # fmt: skip


def test_the_list_holds_every_import_from_vllm(script: ModuleType) -> None:
    for file in sorted((ROOT / "harness" / "engines").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "vllm":
                for alias in node.names:
                    assert f"{node.module}:{alias.name}" in script.USED, file.name
