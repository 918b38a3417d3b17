"""The core without extensions: each can be absent, and what lacks one says its name.

A copy of `harness` made of links, without the folders of some extensions, takes the place of the package.
"""

import ast
import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from graphlib import TopologicalSorter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness import evaluate
from harness.api.errors import SetupError
from harness.cli import main
from harness.config.prompts import PromptSet
from harness.plugins import manifests, missing_extensions
from harness.tables.notes import of_episodes
from harness.tables.scores import EpisodeScore
from tests.helpers.statements import nodes

ROOT = Path(__file__).parents[2]
SHIPPED = sorted(folder.parent.name for folder in (ROOT / "harness" / "extensions").glob("*/extension.toml"))
FIRST = ("eval", "--spec", "agentsnet_quick", "--limit", "1", "--quiet")
"""README's first command, on fewer graphs."""
FOR_FIRST = {"networks", "panels"}
"""What AgentsNet's task and protocol need."""
BROUGHT = {
    "networks": ("new", "a_new_project"),
    "viewer": ("view",),
    "replay": ("replay", "results/none"),
    "blame": ("blame", "results/none"),
    "charts": ("plot", "results/none", "--kind", "scaling"),
    "openai": ("eval", "--spec", "agentsnet_quick", "--model", "openai"),
    "agents": ("eval", "--spec", "agentsnet_quick", "--model", "human"),
    "ray": ("eval", "--spec", "agentsnet_quick", "--executor", "ray"),
    "games": ("validate", "worlds/commons"),
    "datasets": ("validate", "math"),
    "yaml_tasks": ("validate", "networks/coloring"),
    "sandbox": ("validate", "humaneval"),
    "analysis": ("validate", "agentsnet_camoc"),
    "panels": ("eval", "--spec", "agentsnet_quick", "--set", "calibrate.limit=3"),
    "judges": ("eval", "--spec", "agentsnet_quick", "--judge", "mock"),
    "lm_eval": ("list", "tasks", "--include_path", "tasks"),
}
"""Extension → a command that needs it."""
SECOND = {"games": ("list", "tasks", "--textarena"), "networks": ("validate", "silo_quick")}
"""Extension → another command, which needs another part of it."""


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


EACH = "import json, sys; from harness.cli import main; sys.exit(max(map(main, json.loads(sys.argv[1]))))"


def run_each(path: Path, *commands: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Commands in one process."""
    return _started(path, "-c", EACH, json.dumps(commands))


def run(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return _started(path, "-m", "harness", *arguments)


def _started(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(path)}
    command = [sys.executable, "-P", *words]  # the working directory has a whole one
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)


def test_the_index_is_that_of_the_manifests() -> None:
    command = "python -m harness.plugins.missing_extensions > harness/shipped.toml"
    assert missing_extensions.INDEX.read_text("utf-8") == missing_extensions.index(), command
    assert [*missing_extensions._index()] == SHIPPED  # the file reads back


def test_the_first_command_works_without_all_others(tmp_path: Path) -> None:
    path = without(tmp_path / "path", {*SHIPPED} - FOR_FIRST)
    done = run_each(path, (*FIRST, "--output_path", str(tmp_path / "run")), ("list",))
    assert done.returncode == 0, done.stderr
    assert "Fraction" in done.stdout
    for name in {*SHIPPED} - FOR_FIRST:
        assert f"The extension {name} is not installed: pip install" in done.stdout


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in SHIPPED])
def test_what_lacks_an_extension_says_its_name(name: str, tmp_path: Path) -> None:
    path = without(tmp_path / "path", [name])
    listed = run(path, "list")
    assert listed.returncode == 0, listed.stderr
    assert f"The extension {name} is not installed: pip install" in listed.stdout
    if name not in FOR_FIRST:
        done = run(path, *FIRST, "--output_path", str(tmp_path / "run"))
        assert done.returncode == 0, done.stderr
    for command in (one[name] for one in (BROUGHT, SECOND) if name in one):
        refused = run(path, *command)
        assert refused.returncode == 2 and "Traceback" not in refused.stderr
        assert f"comes with the extension {name}, which is not installed: pip install" in refused.stderr


@contextlib.contextmanager
def hiding(*names: str) -> Iterator[None]:
    """Without these extensions, in this process."""
    found = {name: one for name, one in manifests.all_extensions().items() if name not in names}
    cached = (manifests.extensions, manifests.offers)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(manifests, "all_extensions", lambda: found)
            for one in cached:
                one.cache_clear()
            yield
    finally:
        for one in cached:
            one.cache_clear()


def test_an_option_of_an_extension_that_is_not_here_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Of two extensions, in this process; the test above asks each."""
    with hiding("panels", "judges"):
        for command in (("eval", "--spec", "x", "--judge", "mock"), ("score", "x", "--judge_args=a=1")):
            with pytest.raises(SystemExit, match="2"):
                main(command)
            assert "comes with the extension judges, which is not installed: pip" in capsys.readouterr().err
        assert main(["validate", "agentsnet_quick", "--set", "calibrate.limit=3"]) == 2
        assert "'calibrate' comes with the extension panels" in capsys.readouterr().err
        with pytest.raises(TypeError, match=r"no option 'judge'.*comes with the extension judges, which is not"):
            evaluate("agentsnet_quick", judge="mock")


def test_published_tables_that_nothing_has_looked_up_are_not_passed_in_silence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with hiding("analysis"):
        assert main(["validate", "agentsnet_quick", "--set", "tables.0.published=agentsnet/tabel2"]) == 0
        assert "'published' comes with the extension analysis, which is not installed: pip" in capsys.readouterr().out
        assert main(["validate", "arithmetic"]) == 0
        assert "published" not in capsys.readouterr().out, "there is nothing to check"


def test_no_table_is_without_a_note_on_who_played_whatever_is_missing() -> None:
    scores = [EpisodeScore("c/0/0", "c", {"model": f"{name} + random"}) for name in ("human (Ann)", "human")]
    for hidden, says in (
        ((), "a person played. This measures no model."),
        (("openai",), "a person played. This measures no model."),  # agents needs it
        (("agents",), "'human' comes with the extension agents, which is not installed: pip"),
    ):
        with hiding(*hidden):
            [note] = of_episodes(scores)
        assert note.startswith(f"human, human (Ann): {says}")


def test_templates_of_other_people_are_not_rendered_without_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "say.j2").write_text("{{ 1 + 1 }}")
    with hiding("yaml_tasks"):
        with pytest.raises(SetupError, match="'templates' comes with the extension yaml_tasks, which is not installed"):
            PromptSet("theirs", [tmp_path])
        (tmp_path / "harness.yaml").write_text("name: mine\n")
        monkeypatch.chdir(tmp_path)
        assert PromptSet("mine", [tmp_path]).render("say", {}) == "2"


@pytest.mark.parametrize("name", SHIPPED)
def test_a_manifest_names_the_extensions_that_its_modules_import(name: str) -> None:
    """Also those that a function imports, and those that only annotations name."""
    folder, needed = ROOT / "harness" / "extensions" / name, set[str]()
    for file in folder.rglob("*.py"):
        for node in nodes(file):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
            needed |= {one.split(".")[2] for one in names if one.startswith("harness.extensions.")}
    assert {*manifests.extensions()[name].needs} == (needed & {*SHIPPED}) - {name}


def test_no_extension_needs_itself_by_way_of_others() -> None:
    graph = TopologicalSorter({name: one.needs for name, one in manifests.extensions().items()})
    assert {*graph.static_order()} == {*SHIPPED}  # raises CycleError, which names the circle


def test_an_extension_that_lacks_another_is_not_offered() -> None:
    with hiding("games"):
        assert not {"agents", "games", "seats", "yaml_tasks"} & manifests.extensions().keys()
        assert missing_extensions.missing()["agents"] == "needs the extension games and seats"
        assert missing_extensions.missing()["games"].startswith("is not installed: pip install")


SHIP = {
    "test_a_file_has_the_format_of_its_suffix_unless_another_is_given",
    "test_a_project_of_an_extension_may_build_on_the_built_in_one",
    "test_they_are_columns_with_intervals_and_a_headline",
    "test_too_few_repeats_for_a_column_are_a_warning",
    "test_a_class_of_the_wrong_kind_is_reported",
    "test_a_kind_of_table_that_raises_is_a_mistake_of_its_entry",
    "test_a_mistake_in_a_manifest_is_reported_and_breaks_nothing",
    "test_a_mistake_is_named_once",
    "test_a_project_is_called_after_its_folder",
    "test_a_run_that_recorded_nothing_gives_way_to_the_corrected_command",
    "test_a_provider_that_does_not_exist_confines_nothing",
    "test_a_run_whose_extension_is_gone_prints_its_scores",
    "test_a_scored_turn_shows_its_history_how_the_reply_begins_and_the_texts",
    "test_a_spec_that_extends_another_says_what_is_different",
    "test_a_starter_with_programs_is_copied_without_what_pip_made_of_them",
    "test_changed_code_is_noticed",
    "test_ctrl_c_ends_all_of_them",
    "test_engines_of_the_core_are_listed",
    "test_every_spec_that_ships_is_accepted",
    "test_grading_again_says_which_code_changed",
    "test_it_ends_the_run_which_resumes_to_the_same_results",
    "test_json_is_one_document",
    "test_leaderboard_merges_runs_of_one_benchmark_only",
    "test_mistakes",
    "test_no_board_ranks_a_run_without_an_answer",
    "test_options_that_an_extension_cannot_add_do_not_stop_a_run",
    "test_programs_of_models_are_asked_about_when_they_run",
    "test_the_command_line_takes_the_calls_of_earlier_runs",
    "test_the_first_screen_says_what_share_was_parsed_and_why_not",
    "test_the_options_of_eval_stand_in_groups",
    "test_the_other_agents_do_what_they_do_in_the_run",
    "test_the_question_shows_the_whole_command_and_leads_with_it",
    "test_warnings_are_shown_by_a_quiet_command",
    "test_the_same_command_goes_on",
    "test_their_code_and_versions_are_in_the_record",
}
"""Tests of the core that are about what ships, and fail in other words without it. The set may only get smaller."""
ABSENT = re.compile(
    r"comes with the extension|not installed|cannot import name|No module named 'harness\.extensions|from 'harness\.ext"
)


@pytest.mark.slow
def test_the_cores_tests_pass_without_any_extension(tmp_path: Path) -> None:
    """All but those that play something of an extension: these fail because it is absent, and their errors say so."""
    path, report = without(tmp_path / "path", SHIPPED), tmp_path / "report.xml"
    own = [f"--ignore=tests/core/{name}.py" for name in ("test_hidden_extensions", "test_loaded_lines", "test_words")]
    options = ["-q", "-n", "2", "-p", "no:cacheprovider", "-o", "pythonpath=", f"--junitxml={report}", *own]
    command = [sys.executable, "-P", "-m", "pytest", *options, "tests/core"]
    environment = {**os.environ, "PYTHONPATH": f"{path}{os.pathsep}{ROOT}"}
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=1200, check=False)
    cases = [*ElementTree.parse(report).iter("testcase")]
    failed = {case: [*case.iter("failure"), *case.iter("error")] for case in cases}
    others = {
        str(case.get("name")).partition("[")[0]
        for case, why in failed.items()
        if why and not any(ABSENT.search(f"{one.get('message')}{one.text}") for one in why)
    }
    assert len(cases) - sum(map(bool, failed.values())) > 800
    assert others <= SHIP
