"""`harness new environment`: a package of a spec, which holds all that the spec needs of the user's project."""

from __future__ import annotations

import ast
import keyword
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.config.project import at
from harness.extensions.training import TrainingEnv
from harness.extensions.training.new_environment import agent_names
from tests.helpers.commands import TOY, invoke, refused


def test_a_shipped_spec_is_named_in_its_package(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = invoke(capsys, "new", "environment", "dpbench_quick", "five-seats")
    assert code == 0, err
    assert "vf-eval five-seats" in out
    files = sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file())
    assert files == [f"five-seats/{name}" for name in ("README.md", "five_seats/__init__.py", "pyproject.toml")]
    module = (tmp_path / "five-seats" / "five_seats" / "__init__.py").read_text()
    assert 'environment("dpbench_quick", learn=["default"], beside=__file__)' in module
    entry = tomllib.loads((tmp_path / "five-seats" / "pyproject.toml").read_text())["project"]
    assert entry["name"] == "five-seats" and entry["dependencies"][0].startswith("mas-eval-harness[verifiers]>=")
    marks = "__NAME__", "__MODULE__", "__SPEC__", "__LEARN__", "__AGENT"
    assert not any(mark in (tmp_path / file).read_text() for file in files for mark in marks)


def test_the_folder_is_called_after_the_spec_where_it_has_no_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(capsys, "new", "environment", "teams/star")[0] == 0
    assert (tmp_path / "star" / "star" / "__init__.py").is_file()


@pytest.mark.parametrize("name", ['the "big" one', "back\\slash", '""" and more', 'ends with a "'])
def test_files_are_whole_whatever_the_spec_is_called(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"{name}.yaml").write_text("extends: agentsnet_quick\nlimit: 1\n")
    code, _, err = invoke(capsys, "new", "environment", f"{name}.yaml", "packed")
    assert code == 0, err
    assert tomllib.loads(Path("packed/pyproject.toml").read_text())["project"]["name"] == "packed"
    module = ast.parse(Path("packed/packed/__init__.py").read_text())
    [call] = [one for one in ast.walk(module) if isinstance(one, ast.Call)]
    assert isinstance(call.args[0], ast.Constant) and call.args[0].value == name


@pytest.mark.parametrize("inside", [True, False], ids=["in a project", "a file alone"])
def test_a_spec_of_the_user_comes_with_its_project(
    inside: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if inside:
        shutil.copytree(TOY, tmp_path / "mine", ignore=shutil.ignore_patterns("results", "__pycache__"))
        monkeypatch.chdir(tmp_path / "mine")
        reference = "toy"
    else:
        monkeypatch.chdir(tmp_path)
        Path("mine.yaml").write_text("extends: agentsnet_quick\nlimit: 1\n")
        reference = "mine.yaml"
    code, _, err = invoke(capsys, "new", "environment", reference, "packed")
    assert code == 0, err
    inner = Path("packed/packed/project").resolve()
    monkeypatch.chdir(tmp_path.parent)
    with TrainingEnv(Path(reference).stem, project=at(inner), limit=1) as env:
        assert env.rollouts(lambda *asked: "0", env.tasks[:1])[0].error is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param((), "one word of small letters", id="no spec"),
        pytest.param(("agentsnet_quik",), "Did you mean agentsnet_quick", id="a spec that there is not"),
        pytest.param(("agentsnet_quick", "Mine"), "one word of small letters", id="a name that is none"),
        pytest.param(("math",), "Choose another: harness new environment math math_env", id="a module of Python"),
        pytest.param(("tournament",), "no model under test plays here", id="policies alone"),
        pytest.param(("tiny", "--kind", "world"), "an environment has no --kind", id="kind"),
        pytest.param(("mine.yaml",), "missing required key 'name'", id="a file with a mistake"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(
    words: tuple[str, ...],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text("task: mine/task\nprotocol: single\n")
    refused(capsys, message, "new", "environment", *words)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]


@given(st.lists(st.text(min_size=1, max_size=12), unique=True))
def test_each_group_has_a_name_of_its_own_in_python(groups: list[str]) -> None:
    names = agent_names(groups)
    assert names.keys() == set(groups)
    assert len(set(names.values())) == len(names)
    assert all(name.isidentifier() and not keyword.iskeyword(name) and name[0] != "_" for name in names.values())
    assert agent_names(["default", "timeout", "model_x"]) == {
        "default": "default", "timeout": "agents_timeout", "model_x": "agents_model_x"
    }  # fmt: skip


def test_a_missing_package_is_named_with_what_installs_it() -> None:
    program = (
        "import sys; sys.modules['verifiers'] = None\n"
        "from harness.api.errors import SetupError\n"
        "try: import harness.extensions.training.verifiers_env\n"
        "except SetupError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "the package verifiers, version 0.4, cannot be imported" in done.stdout
    assert "pip install 'mas-eval-harness[verifiers]'" in done.stdout
