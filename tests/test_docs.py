"""Every command in README.md and docs/ is run, in the order of its page, as a reader would.

Left to `.ci/run`: installing packages and running the tests themselves. Models are stood in for: servers by the fake
one on this machine (and `tests/engines/test_vllm_agentsnet.py` runs vLLM's command with the tiny model).
"""

import contextlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from harness import project, spec
from harness.cli.parser import parser
from tests.fake_openai import FakeOpenAI

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"(?:<!-- (?P<note>[^>]*?) -->\n)?```(?P<kind>\w+)\n(?P<body>.*?)```", re.DOTALL)
ELSEWHERE = ("pip ", "pytest", ".ci/", "python benchmarks/", "export ", "vllm serve")


def blocks(page: Path, kind: str) -> list[tuple[str, str]]:
    """(note above, body) of every fenced block of a kind."""
    return [(m["note"] or "", m["body"]) for m in FENCE.finditer(page.read_text("utf-8")) if m["kind"] == kind]


def commands(page: Path) -> list[str]:
    found = []
    for _, body in blocks(page, "bash"):
        joined = body.replace("\\\n", " ")
        found += [
            line.split("  #")[0].strip() for line in joined.splitlines() if line.strip() and line.strip()[0] != "#"
        ]
    return found


def parses(line: str) -> bool:
    with contextlib.suppress(SystemExit):
        parser().parse_args(shlex.split(line)[1:])
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_line_is_a_command_that_exists(page: Path) -> None:
    for line in commands(page):
        assert line.startswith((*ELSEWHERE, "cd ")) or (line.startswith("harness ") and parses(line)), line
    for name in re.findall(r"^\| `(harness [^`]+)` \|", page.read_text("utf-8"), re.MULTILINE):
        assert parses(name), name


@pytest.fixture
def server() -> Iterator[str]:
    """The address of a server that answers whatever it is asked with a final answer of 0 and no messages."""
    with FakeOpenAI(lambda body: "{} ### Final Answer ### 0") as fake:
        yield fake.url


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_runs(page: Path, tmp_path: Path, server: str) -> None:
    where, shown = tmp_path, []
    for file, body in named_files(page):
        target = where / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(body)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "none"}
    for line in commands(page):
        if line.startswith(ELSEWHERE) or "--model vllm" in line or "--executor ray" in line:
            continue
        if line.startswith("cd "):
            where = where / line.removeprefix("cd ").strip()
            for file, body in plugin_files(page):
                (where / file).parent.mkdir(parents=True, exist_ok=True)
                (where / file).write_text(body)
            continue
        arguments = shlex.split(line)[1:]
        if "--model" in arguments:  # the smallest piece of the benchmark, on the fake server
            arguments = [re.sub(r"base_url=[^,]+", f"base_url={server}", a) for a in arguments]
            arguments = [re.sub(r",model=[^,]+", ",model=fake", a) for a in arguments]
            arguments += ["--limit", "1", "--set", "matrix.size=[4]", "--set", "matrix.problem=[consensus]"]
        if "agentsnet_scale" in line or "agentsnet_prompts" in line:
            arguments += ["--limit", "1"]
        done = subprocess.run(
            [sys.executable, "-m", "harness", *arguments], cwd=where, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        shown.append(done.stdout)
    for _, body in blocks(page, "text"):
        assert any(body.strip() in output for output in shown), f"{page.name} shows what no command prints"


def plugin_files(page: Path) -> list[tuple[str, str]]:
    """(path, body) of the blocks noted as plugins, after those of the pages that this one goes on from."""
    before = [page.parent / name for name in re.findall(r"<!-- plugins of (\S+) -->", page.read_text("utf-8"))]
    found = [
        block for one in (*before, page) for kind in ("python", "jinja", "yaml", "csv") for block in blocks(one, kind)
    ]
    return [(note.removeprefix("plugin: "), body) for note, body in found if note.startswith("plugin: ")]


def named_files(page: Path) -> list[tuple[str, str]]:
    """YAML blocks that are whole specs, under the name that the page's commands use for them."""
    found = []
    for note, body in blocks(page, "yaml"):
        data = yaml.safe_load(body)
        if isinstance(data, dict) and "name" in data and "task" in data and not note:
            found.append((f"{data['name']}.yaml", body))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_yaml_shown_is_yaml_that_works(page: Path, tmp_path: Path) -> None:
    for note, body in blocks(page, "yaml"):
        data = yaml.safe_load(body)
        if note or not isinstance(data, dict):
            continue
        if "name" in data and ("task" in data or "extends" in data):
            (tmp_path / "s.yaml").write_text(body)
            spec.load(str(tmp_path / "s.yaml"), project.builtin())


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
