"""What users import: `harness` and `harness.api`, by name, lazily; and what an editor says of it."""

import inspect
import subprocess
import sys
import typing
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from mypy import api as mypy

import harness
import harness.api
from harness.config.project import find
from harness.evaluation.eval_options import EvalOptions
from harness.runtime.options import Options

ROOT = Path(__file__).parents[3]
OF_SPECS = {"limit", "seed", "repeats", "model_args"}
OF_EXTENSIONS = {"adaptive", "judge", "judge_args", "trace", "trace_content", "until"}


def test_every_public_name_is_there() -> None:
    nothing = "nothing"
    for package in (harness, harness.api):
        assert len({*package.__all__}) == len(package.__all__)
        for name in package.__all__:
            assert getattr(package, name) is not None
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            getattr(package, nothing)


def test_one_page_names_all_of_them() -> None:
    page = (ROOT / "docs" / "reference" / "api" / "evaluate.md").read_text("utf-8")
    for name in {*harness.__all__} - {"__version__"}:
        assert f"`{name}`" in page, name


def test_an_import_loads_what_is_named_and_little_else() -> None:
    program = (
        "import sys, harness, harness.api\n"
        "assert [m for m in sys.modules if m.startswith('harness')] == ['harness', 'harness.api']\n"
        "from harness.api import SpecError\n"
        "assert 'harness.api.task' not in sys.modules\n"
        "from harness import UserError\n"
        "assert issubclass(SpecError, UserError) and 'harness.evaluation' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_the_options_of_evaluate_are_those_of_a_run() -> None:
    names = {field.name for field in fields(Options)}
    assert {*EvalOptions.__annotations__} == names | OF_SPECS | OF_EXTENSIONS
    kept, given = typing.get_type_hints(Options), typing.get_type_hints(EvalOptions)
    for name in names:  # a path may also be given as text
        paths = str | kept[name] if kept[name] == Path | None else kept[name]
        assert given[name] == paths, name


def test_help_shows_every_option_with_its_default() -> None:
    parameters = inspect.signature(harness.evaluate).parameters
    for field in fields(Options):
        assert parameters[field.name].default == field.default
    assert {*parameters} >= OF_SPECS | OF_EXTENSIONS
    assert [*parameters][:2] == ["spec", "model"] and parameters["options"].kind is inspect.Parameter.VAR_KEYWORD


@pytest.mark.parametrize("wrong, near", [("max_call", "max_calls"), ("modelargs", "model_args")])
def test_an_option_that_there_is_not_names_the_nearest(wrong: str, near: str) -> None:
    given: dict[str, Any] = {wrong: 1}
    with pytest.raises(TypeError, match=rf"no option '{wrong}'. Did you mean {near}"):
        harness.evaluate("arithmetic", **given)


EDITOR = """
import harness

done = harness.evaluate("agentsnet", model="vllm", model_args={"pretrained": "m"}, max_calls=3, output_path="r")
harness.evaluate("agentsnet", max_call=3)
harness.evaluate("agentsnet", max_calls="3")
harness.evaluate("agentsnet", judge="mock", judge_args={"seed": 1})
run = harness.load_run("results/r")
reveal_type(done)
reveal_type(run)
reveal_type(run.scores[0].number("solved"))
reveal_type(run.tables)
reveal_type(run.rows[0]["value"])
reveal_type(run.headline)
reveal_type([*run.transcripts()])
reveal_type(run.episode("c/0/0").turns[0].move)
reveal_type(run.published())
reveal_type(run.tidy)
"""
SEEN = """
5: error: Unexpected keyword argument "max_call" for "evaluate"; did you mean "max_calls"?
6: error: Argument "max_calls" to "evaluate" has incompatible type "str"; expected "int | None"
9: note: Revealed type is "harness.evaluation.run.Run"
10: note: Revealed type is "harness.evaluation.run.Run"
11: note: Revealed type is "float | None"
12: note: Revealed type is "list[harness.tables.table.Table]"
13: note: Revealed type is "float | None"
14: note: Revealed type is "harness.tables.headline.HeadlineSpec"
15: note: Revealed type is "list[harness.transcripts.view_api.Transcript]"
16: note: Revealed type is "harness.api.episode.Move | None"
17: note: Revealed type is "list[harness.tables.published_figures.PublishedTable]"
18: note: Revealed type is "harness.transcripts.tidy.Tidy"
"""


@pytest.mark.slow  # mypy reads the core
def test_an_editor_completes_options_and_knows_what_a_run_holds(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(EDITOR)
    config = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(tmp_path / "cache")]
    printed, problems, _ = mypy.run([*config, "--no-pretty", "--hide-error-codes", "--no-error-summary", str(program)])
    assert not problems
    lines = [line.removeprefix(f"{program}:") for line in printed.splitlines() if " defined in " not in line]
    assert lines == SEEN.strip().splitlines(), printed


def test_a_run_prints_as_one_line(tmp_path: Path) -> None:
    run = harness.evaluate("agentsnet_quick", output_path=tmp_path / "run", project=find(ROOT), limit=1)
    assert repr(run) == f"Run(folder={tmp_path / 'run'!r}, unfinished='')"
