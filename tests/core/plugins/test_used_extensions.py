"""Extensions of other people are part of a run: changes are noticed, and absence costs no finished score."""

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.cli import main
from harness.plugins import manifests
from tests.core.plugins.test_broken_extensions import forget, install

__all__ = ["install"]

MANIFEST = """name = "echo"
summary = "Says things again."

[keys]
loud = "key:Loud"

[tables]
tally = "key:Tally"
"""
KEY = """from harness.config.keys import SpecKey
from harness.tables import Table, TableKind


class Loud(SpecKey):
    entry = int


class Tally(TableKind):
    entry = dict
    @classmethod
    def read(cls, entry):
        return cls()
    def problems(self, table):
        return []
    def build(self, table, scores, metrics):
        raise NotImplementedError
"""
METRIC = """from dataclasses import dataclass

from harness.api import Metric, plugin


@plugin
@dataclass(kw_only=True)
class Length(Metric):
    needs = ("score",)

    def measure(self, episode):
        return 3.0
"""
Install = Callable[..., Path]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def package(install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    found = install(MANIFEST, {"key.py": KEY})
    (tmp_path / "harness.yaml").write_text("parents: [harness_builtin]\n")
    (tmp_path / "loud.yaml").write_text("{extends: arithmetic, name: loud, loud: 1}\n")
    monkeypatch.chdir(tmp_path)
    yield found


def play(folder: str, spec: str = "loud.yaml") -> int:
    return main(["eval", "--spec", spec, "--model", "mock", "--limit", "1", "--quiet", "--output_path", folder])


def test_their_code_and_versions_are_in_the_record(package: Path) -> None:
    assert play("r") == 0 and play("plain", "arithmetic") == 0
    meta = json.loads(Path("r/run.json").read_text())
    assert meta["extensions"]["echo"] == {
        "package": "harness-echo", "version": "1.0", "keys": ["loud"], "tables": ["tally"]
    }  # fmt: skip
    assert meta["versions"]["harness-echo"] == "1.0"
    for part in ("play", "task", "metrics"):
        assert {"echo:key.py", "echo:__init__.py", "echo:extension.toml"} <= meta["code"][part].keys()
    plain = json.loads(Path("plain/run.json").read_text())
    assert plain["extensions"] == {} and not any(name.startswith("echo:") for name in plain["code"]["play"])


@pytest.mark.parametrize("file", ["key.py", "_helper.py", "extension.toml"])
def test_changed_code_is_noticed(package: Path, file: str, capsys: Capture) -> None:
    (package / "_helper.py").write_text("")
    assert play("r") == 0
    (package / file).write_text((package / file).read_text() + "# other\n")
    assert play("r") == 2
    assert f"code changed since the run in r began: echo:{file}" in capsys.readouterr().err
    assert play("other") == 0
    assert main(["compare", "r", "other"]) == 0
    assert f"code of echo:{file}" in capsys.readouterr().out
    assert main(["report", "r", "other"]) == 2 or main(["leaderboard", "r", "other"]) == 2


def test_grading_again_says_which_code_changed(package: Path) -> None:
    assert play("r") == 0
    (package / "key.py").write_text(KEY + "# other\n")
    assert main(["score", "r"]) == 0
    graded = json.loads(Path("r/run.json").read_text())["graded_again"]
    assert graded[-1]["changed"] == ["echo:key.py"]


def test_a_run_whose_extension_is_gone_prints_its_scores(package: Path, capsys: Capture) -> None:
    table = "{title: T, kind: tally}"
    assert play("r") == 0
    spec = Path("r/spec.yaml")
    spec.write_text(spec.read_text() + ("" if "tables:" in spec.read_text() else f"tables: [{table}]\n"))
    capsys.readouterr()
    lose(package)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert main(["report", "r"]) == 0
        printed = capsys.readouterr()
        assert "Right answers" in printed.out
        assert "echo of the package harness-echo 1.0, which is not here: pip install harness-echo" in printed.err
        assert main(["score", "r"]) == 2
    assert "cannot be graded again: this run used the extension echo" in capsys.readouterr().err


@pytest.mark.parametrize(
    "tables",
    [
        "[{title: T, rows: model, metrics: length}]",
        "[{title: T, rows: model, metrics: [score, length], unit: {length: thousands}, labels: {length: Long}}]",
        "[{title: T, rows: model, metrics: [score, quotient], ratio: {quotient: [length, score]}}]",
    ],
)
@pytest.mark.parametrize("headline", ["length", "score"])
def test_a_run_whose_metric_is_gone_prints_the_others(
    package: Path, tables: str, headline: str, capsys: Capture
) -> None:
    bring(package, {"metrics/length.py": METRIC})
    head = f"metrics: [score, length], headline: {{metric: {headline}, min_read: 0}}"
    spec = f"{{extends: arithmetic, name: loud, {head}, tables: {tables}}}"
    Path("loud.yaml").write_text(spec)
    assert play("r") == 0, capsys.readouterr().err
    assert capsys.readouterr().out
    assert json.loads(Path("r/run.json").read_text())["extensions"]["echo"]["metrics"] == ["length"]
    lose(package)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert main(["report", "r"]) == 0
    printed = capsys.readouterr()
    shown = "0.00" if headline == "score" else "mock has no score"  # else the first of the others is the headline
    assert shown in printed.out and "3.00" not in printed.out
    assert "echo of the package harness-echo 1.0, which is not here: pip install harness-echo" in printed.err


def test_a_run_all_of_whose_metrics_are_gone_says_what_to_install(package: Path, capsys: Capture) -> None:
    bring(package, {"metrics/length.py": METRIC})
    Path("loud.yaml").write_text("{extends: arithmetic, name: loud, metrics: [length], headline: null, tables: null}")
    assert play("r") == 0, capsys.readouterr().err
    lose(package)
    assert main(["report", "r"]) == 2
    assert "there is no number to show: this run used the extension echo" in capsys.readouterr().err


def test_a_run_whose_task_is_gone_prints_its_scores(package: Path, capsys: Capture) -> None:
    task = Path(__file__).parents[3] / "registry" / "tasks" / "arithmetic.py"
    bring(package, {"registry/tasks/sums.py": task.read_text()})
    Path("loud.yaml").write_text("{extends: arithmetic, name: loud, task: {use: sums, terms: '${terms}'}}")
    assert play("r") == 0, capsys.readouterr().err
    lose(package)
    for words in (["report", "r"], ["leaderboard", "r"], ["report", "r", "--format", "html"]):
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            assert main(words) == 0
        assert "pip install harness-echo" in capsys.readouterr().err


def bring(package: Path, files: dict[str, str]) -> None:
    """Let the extension bring a project with these files."""
    (package / "extension.toml").write_text(f'{MANIFEST}\n[projects]\necho = "plugins"\n')
    for name, text in {"harness.yaml": "name: echo\n", **files}.items():
        (package / "plugins" / name).parent.mkdir(parents=True, exist_ok=True)
        (package / "plugins" / name).write_text(text)
    forget()


def lose(package: Path) -> None:
    (package.parent / "harness_echo-1.0.dist-info" / "entry_points.txt").unlink()
    forget()
    assert "echo" not in manifests.extensions()
