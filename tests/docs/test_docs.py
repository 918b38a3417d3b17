"""Every command in README.md and docs/ is run, in the order of its page, as a reader would.

Left to `.ci/run`: installing packages and running the tests themselves. Models are stood in for: servers by the fake
one on this machine (and `tests/extensions/vllm/test_vllm_agentsnet.py` runs vLLM's command with the tiny model).
"""

import contextlib
import importlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml

from harness.cli import main
from harness.cli.parser import parser
from harness.config import project, spec
from harness.config.editor_schema import whole_schema
from harness.config.proposals import complete
from harness.evaluation.load_run import load_run
from tests.helpers.fake_openai import FakeOpenAI

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
LONG = {"darkforest", "discussions", "mas_bench", "simulated", "text_games", "tournaments", "until", "who_matters"}
"""Pages whose commands take longest: the group `docs` runs them as it does recipes, a few at a time."""
FENCE = re.compile(r"(?:<!-- (?P<note>[^>]*?) -->\n)?```(?P<kind>\w+)\n(?P<body>.*?)```", re.DOTALL)
OTHER_GROUPS = ("--model vllm", "--model tiny", "results/tiny-", "--executor ray")  # and what needs the run of one
ELSEWHERE = ("pip ", "pytest", ".ci/", "python benchmarks/", "export ", "vllm serve", "vf-eval ")


def blocks(page: Path, kind: str) -> list[tuple[str, str]]:
    """(note above, body) of every fenced block of a kind."""
    return [(m["note"] or "", m["body"]) for m in FENCE.finditer(page.read_text("utf-8")) if m["kind"] == kind]


def commands(page: Path) -> list[str]:
    results = []
    for _, body in blocks(page, "bash"):
        joined = body.replace("\\\n", " ")
        results += [
            line.split("  #")[0].strip() for line in joined.splitlines() if line.strip() and line.strip()[0] != "#"
        ]
    return results


def parses(line: str) -> bool:
    with contextlib.suppress(SystemExit):
        parser().parse_args(shlex.split(line)[1:])
        return True
    return False


@pytest.mark.sampled(12)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_line_is_a_command_that_exists(page: Path) -> None:
    for line in commands(page):
        assert line.startswith((*ELSEWHERE, "cd ")) or (line.startswith("harness ") and parses(line)), line
    for name in re.findall(r"^\| `(harness [^`]+)` \|", page.read_text("utf-8"), re.MULTILINE):
        assert parses(name), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_import_works(page: Path) -> None:
    for note, body in blocks(page, "python"):
        if not note.startswith(("plugin: ", "trainers: ")):  # these run where the packages of trainers are
            for line in re.findall(r"^(?:from harness\S* )?import .*$", body, re.MULTILINE):
                exec(line, {})


@pytest.fixture
def server() -> Iterator[str]:
    """The address of a server that answers whatever it is asked with a final answer of 0 and no messages."""
    with FakeOpenAI(lambda body: "{} ### Final Answer ### 0") as fake:
        yield fake.url


@pytest.mark.docs
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if page.stem in LONG else ()) for page in PAGES],
    ids=[page.name for page in PAGES],
)
def test_every_command_runs(page: Path, tmp_path: Path, server: str) -> None:
    display = outputs(page, tmp_path, server)
    for _, body in blocks(page, "text"):
        hint = f"`python -m tests.helpers.refresh_docs {page.relative_to(ROOT)}` puts in what they print now"
        assert any(body.strip() in output for output in display), f"{page.name} shows what no command prints; {hint}"


def outputs(page: Path, where: Path, server: str) -> list[str]:
    """What every command of a page prints, in order; they run in the folder `where`."""
    display = []
    for file, body in named_files(page):
        target = where / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(body)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "none"}
    for line in commands(page):
        if line.startswith(ELSEWHERE) or any(one in line for one in OTHER_GROUPS):
            continue
        if line.startswith("cd "):
            where = where / line.removeprefix("cd ").strip()
            for file, body in plugin_files(page):
                (where / file).parent.mkdir(parents=True, exist_ok=True)
                (where / file).write_text(body)
            continue
        arguments = shlex.split(line)[1:]
        if "--model openai" in line:  # the smallest piece of the benchmark, on the fake server
            arguments = [re.sub(r"base_url=[^,]+", f"base_url={server}", a) for a in arguments]
            arguments = [re.sub(r",model=[^,]+", ",model=fake", a) for a in arguments]
            arguments += ["--limit", "1", "--set", "matrix.size=[4]", "--set", "matrix.problem=[consensus]"]
        if arguments == ["validate"]:  # every spec that ships, in half a minute: test_conformance.py does that
            arguments += [str(path) for path in sorted(where.rglob("specs/*.yaml"))]
        if "agentsnet_scale" in line or "agentsnet_prompts" in line:
            arguments += ["--limit", "1"]
        code, out, err = printed(arguments, where)
        assert code == 0, f"{line}\n{err}"
        display.append(out)
    for script in [body for note, body in blocks(page, "python") if note == "run"]:
        python = [sys.executable, "-c", script]
        done = subprocess.run(python, cwd=where, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{script}\n{done.stderr}"
        display.append(done.stdout)
    return display


def printed(arguments: list[str], where: Path) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of a command in a folder, in this process: most of a command's time is its start."""
    out, err = io.StringIO(), io.StringIO()
    environment = {"OPENAI_API_KEY": "none", "COLUMNS": ""}  # a page is as wide as a pipe
    with (
        mock.patch.dict(os.environ, environment),
        contextlib.chdir(where),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            code = main(arguments)
        except SystemExit as error:  # argparse's own
            code = int(error.code or 0)
    return code, out.getvalue(), err.getvalue()


def plugin_files(page: Path) -> list[tuple[str, str]]:
    """(path, body) of the blocks noted as plugins, after those of the pages that this one goes on from."""
    before = [page.parent / name for name in re.findall(r"<!-- plugins of (\S+) -->", page.read_text("utf-8"))]
    results = [
        block for one in (*before, page) for kind in ("python", "jinja", "yaml", "csv") for block in blocks(one, kind)
    ]
    return [(note.removeprefix("plugin: "), body) for note, body in results if note.startswith("plugin: ")]


def named_files(page: Path) -> list[tuple[str, str]]:
    """YAML blocks that are whole specs, under the name that the page's commands use for them, and named CSV files."""
    results = [(note.removeprefix("file: "), body) for note, body in blocks(page, "csv") if note.startswith("file: ")]
    for note, body in blocks(page, "yaml"):
        data = yaml.safe_load(body)
        if isinstance(data, dict) and "name" in data and "task" in data and not note:
            results.append((f"{data['name']}.yaml", body))
    return results


def recipes() -> list[Any]:
    """Every YAML block that a reader may take for a spec and that no command of its page runs under a file's name."""
    return [
        pytest.param(page, body, id=f"{page.stem}-{i}")
        for page in PAGES
        for i, (note, body) in enumerate(blocks(page, "yaml"))
        if not note
    ]


@pytest.mark.docs
@pytest.mark.slow
@pytest.mark.parametrize(("page", "body"), recipes())
def test_every_recipe_is_validated_fitted_and_played(
    page: Path, body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = yaml.safe_load(body)
    whole = "name" in data
    if not whole:
        body = f"extends: {BASES[page.name]}\nname: part\n{body}"
    monkeypatch.chdir(tmp_path)
    Path("recipe.yaml").write_text(body)
    for file, rows in LOCAL.items():
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        Path(file).write_text(json.dumps(rows) if file.endswith(".json") else lines)
    folder = f"data/{data.get('name')}"
    where = ["--set", f"task.data_dir={folder}"] if Path(folder).is_dir() else []
    if "base_url" in body:  # outside a project, a reader approves once where prompts go
        assert main(["trust", "recipe.yaml", "--yes"]) == 0, capsys.readouterr().err
    assert main(["validate", "recipe.yaml", *where]) == 0, capsys.readouterr().err
    if not whole:
        return
    loaded = complete(spec.load("recipe.yaml", project.builtin()), project.builtin())
    play = ["--spec", "recipe.yaml", *where, "--quiet"]
    play += ["--model", "mock", "--model_args", f"text={SAYS!r}"] if loaded.get("baseline") is None else []
    for name in loaded.get("models", {}):
        play += ["--set", f"models.{name}={{use: mock, text: {SAYS!r}}}"]
    if "fit" in json.dumps(loaded.data):
        assert main(["calibrate", *play]) == 0, capsys.readouterr().err
    assert main(["eval", *play, "--limit", "1", "--output_path", "run"]) == 0, capsys.readouterr().err
    assert not load_run("run").failed


SAYS = "The answer is (A). #### 1"
BASES = {
    "ability.md": "networks/coloring_ladder",
    "worlds.md": "worlds/four_way_stop", "replay.md": "agentsnet_quick",
    "graph_of_agents.md": "arithmetic", "networks.md": "networks/vertex_cover", "sharded.md": "sharded/ranks",
    "team.md": "arithmetic", "engines.md": "teams/star", "scaling.md": "agentsnet_quick",
    "specs.md": "agentsnet_quick", "tables.md": "agentsnet_quick",
}  # fmt: skip
"""What parts of specs are parts of, by page."""


def _choices(first: int) -> list[dict[str, Any]]:
    return [
        {"question_id": i, "question": f"Which is {i}?", "options": ["one", "two"], "answer": "AB"[i % 2],
         "answer_index": i % 2, "cot_content": "A: Let's think. The answer is (A).", "category": "math"}
        for i in range(first, first + 4)
    ]  # fmt: skip


def _clauses(first: int) -> list[dict[str, Any]]:
    return [{"index": i, "text": f"Clause {i}.", "answer": ["Yes", "No"][i % 2]} for i in range(first, first + 4)]


LOCAL: dict[str, list[dict[str, Any]]] = {
    "mmlu_pro/sampled_test.json": _choices(0),
    "mmlu_pro/validation.jsonl": [*_choices(10), *_choices(20)],
    "legalbench/evaluation.jsonl": _clauses(0),
    "legalbench/calibration.jsonl": _clauses(10),
    "data/mmlu_pro_vote/test.jsonl": _choices(0),
    "data/mmlu_pro_vote/validation.jsonl": [*_choices(10), *_choices(20)],
    "data/mmlu_pro_sure/test.jsonl": _choices(0),
    "data/mmlu_pro_sure/validation.jsonl": [*_choices(10), *_choices(20)],
    "data/mmlu_pro_scored/test.jsonl": _choices(0),
    "data/mmlu_pro_scored/validation.jsonl": [*_choices(10), *_choices(20)],
    "data/gsm8k/train.jsonl": [{"question": f"What is {i}?", "answer": f"It is. #### {i}"} for i in range(8)],
    "data/gsm8k/test.jsonl": [{"question": "What is 9?", "answer": "It is. #### 9"}],
    "data/gsm8k_debate/train.jsonl": [{"question": f"What is {i}?", "answer": f"It is. #### {i}"} for i in range(8)],
    "data/gsm8k_debate/test.jsonl": [{"question": "What is 9?", "answer": "It is. #### 9"}],
    "data/sums.jsonl": [{"question": "What is 4 + 5?", "answer": "9"}],
    "data/products.jsonl": [{"question": "What is 4 times 5?", "answer": "20"}],
    "data/arc_easy/test.jsonl": [
        {"question": "Which?", "choices": {"text": ["one", "two"], "label": ["A", "B"]}, "answerKey": "B"}
    ],
}
"""The files that the recipes read, tiny: those they name, and for data sets of the hub those of `data/<spec>`."""


def test_links_lead_somewhere() -> None:
    """On a code host. On the site `mkdocs build --strict` checks them, anchors included."""
    for page in (*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"):
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_page_on_the_command_line_has_every_command_and_the_site_its_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(ROOT / ".ci")
    options = importlib.import_module("command_options")
    page = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")
    [commands] = [a.choices for a in parser()._actions if isinstance(a.choices, dict)]
    assert set(commands) <= set(re.findall(r"`harness (\w+)", page))
    assert sorted(options.MARK.findall(page)) == sorted(commands)
    site = options.with_options(page)
    for name, command in commands.items():
        rows = site.partition(f"Options of `harness {name}`:")[2].partition("\n\n|")[2].partition("\n\n")[0]
        names = {name for action in command._actions for name in action.option_strings if name.startswith("--")}
        assert names - {"--help", "--debug"} == set(re.findall(r"`(--\w[\w-]*)[ `]", rows.replace("harness ", "")))
    every = {name for command in commands.values() for action in command._actions for name in action.option_strings}
    assert set(re.findall(r"`(--\w[\w-]*)", page)) <= every


def rows_of(page: str, heading: str) -> set[str]:
    """What the first column of the first table below a heading names."""
    table = page.partition(f"\n## {heading}\n")[2].partition("\n| `")[2].partition("\n\n")[0]
    return {name for row in f"| `{table}".splitlines() for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])}


def test_the_pages_on_specs_have_every_key() -> None:
    page, tables = ((ROOT / "docs" / "reference" / name).read_text("utf-8") for name in ("specs.md", "tables.md"))
    keys = whole_schema()["properties"]
    assert set(keys) | {"metric_list"} == rows_of(page, "Keys")
    assert set(keys["limits"]["properties"]) == rows_of(page, "Limits")
    assert set(keys["tables"]["items"]["properties"]) <= rows_of(tables, "Keys")


def test_every_module_of_the_package_that_a_text_names_exists() -> None:
    """Found in the files, without importing them: `harness.api.errors.near` is a module and a word in it."""
    for page in [*PAGES, *(ROOT / "harness").rglob("*.py")]:
        for name in set(re.findall(r"`(harness(?:\.\w+)+)`", page.read_text("utf-8"))) - {"harness.yaml"}:
            parts, place = name.split("."), ROOT
            while parts and (place / parts[0] / "__init__.py").is_file():  # not what Git has left of a folder
                place /= parts.pop(0)
            if parts and (place / f"{parts[0]}.py").is_file():
                place /= f"{parts.pop(0)}.py"
            text = (place / "__init__.py" if place.is_dir() else place).read_text("utf-8")
            assert not parts or re.search(rf"\b{parts[0]}\b", text), f"{page.relative_to(ROOT)}: {name}"
