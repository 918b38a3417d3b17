"""The index of lm-eval's names in the user's cache: kept, made again; and what `harness list` shows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.api.errors import DataError
from harness.cli.listing import listing
from harness.cli.parser import parser
from harness.extensions.lm_eval import _package, task_index
from harness.extensions.lm_eval._yaml_files import defined, yaml_files
from tests.extensions.lm_eval.package_kit import DATA, own_task


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_what_a_folder_has(cache: Path) -> None:
    known = task_index.entries([DATA], ["local_group"])
    assert known["local_group"].kind == "group" and known["local_topics"].kind == "tag"
    assert known["local_group"].members == ("local_group_animals", "local_group_rivers", "local_group_numbers")
    assert known["local_topics"].members == ("local_group_animals", "local_group_numbers", "local_group_rivers")
    assert known["local_cloze"].output == "multiple_choice" and known["local_cloze"].path == DATA / "cloze.yaml"
    assert task_index.kept_file(DATA).is_relative_to(cache) and not cache.exists()  # it is small


def large(folder: Path) -> Path:
    """A folder with so many files that its index is kept."""
    own_task(folder)
    (folder / "more").mkdir()
    for i in range(task_index.MIN_CACHED_FILES):
        (folder / "more" / f"{i}.yaml").write_text(f"task: other_{i}\ntag: others\n")
    return folder


def entries_of(folder: Path) -> Any:
    return task_index.entries([folder], ["own"])


def test_the_kept_index_is_read_until_a_file_changes(tmp_path: Path, cache: Path) -> None:
    folder = large(tmp_path / "tasks")
    entries_of(folder)
    kept = task_index.kept_file(folder)
    data = json.loads(kept.read_text())
    data["entries"]["own"][3] = "loglikelihood"  # so one sees where it comes from
    kept.write_text(json.dumps(data))
    assert entries_of(folder)["own"].output == "loglikelihood"
    own_task(folder, description="more")
    assert entries_of(folder)["own"].output == "generate_until"
    assert json.loads(kept.read_text())["entries"]["own"][3] == "generate_until"


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: "",
        lambda data: "[" * 100_000,
        lambda data: "[1]",
        lambda data: json.dumps({**data, "entries": []}),
        lambda data: json.dumps({**data, "entries": {"own": None}}),
    ],
    ids=["empty", "deep", "list", "names", "none"],
)
def test_a_damaged_index_is_made_again(damage: Any, tmp_path: Path, cache: Path) -> None:
    folder = large(tmp_path / "tasks")
    before, kept = entries_of(folder), task_index.kept_file(folder)
    text = kept.read_text()
    kept.write_text(damage(json.loads(text)))
    assert entries_of(folder) == before
    assert kept.read_text() == text


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert "own" in entries_of(large(tmp_path / "tasks"))


def test_a_few_names_are_found_without_the_rest(tmp_path: Path) -> None:
    folder = large(tmp_path / "tasks")
    (folder / "group.yaml").write_text("group: g\ntask:\n  - group: inner\n    task: [other_1]\n  - other_2\n")
    (folder / "twice.yaml").write_text("task: other_3\n")
    (folder / "link").symlink_to(folder)  # what would never end
    assert set(defined(folder, ["own"]) or ()) == {"own"}
    assert set(defined(folder, ["g", "own.yaml"]) or ()) == {"g", "other_1", "other_2"}
    for name in ("other_3", "others", "other_*", "nothing"):  # two files, a tag, a pattern, no file
        assert defined(folder, [name]) is None


@pytest.mark.slow
def test_names_of_the_package_are_found_as_its_index_has_them() -> None:
    root = _package.folder().resolve()
    names = ["gsm8k", "hellaswag", "arc_challenge", "wikitext", "mmlu_anatomy", "humaneval"]
    few = defined(root, names) or {}
    assert set(few) == set(names)
    whole = task_index.entries()
    assert {name: str(entry.yaml_path) for name, entry in few.items()} == {name: whole[name].file for name in few}


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no folder"):
        task_index.entries([tmp_path / "nowhere"], ["own"])


def harness(cache: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness", *words]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


@pytest.mark.slow
def test_harness_list_reads_the_kept_index(tmp_path: Path, cache: Path) -> None:
    root = _package.folder().resolve()
    invented = {
        "invented_sums": ["task", "sums/sums.yaml", [], "", False],
        "invented_choice": ["task", "choice.yaml", [], "multiple_choice", False],
        "invented_all": ["group", "all.yaml", ["invented_sums", "invented_choice"], "", False],
        "invented_tag": ["tag", None, ["invented_sums"], "", False],
        "other": ["python", "other.yaml", [], "", False],
    }
    task_index.kept_file(root).parent.mkdir(parents=True)
    task_index.kept_file(root).write_text(
        json.dumps({"stamp": task_index.stamp_of(yaml_files(root)), "entries": invented})
    )
    ended = harness(cache, "list", "tasks", "--lm_eval", "INVENTED")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert [line.split() for line in ended.stdout.splitlines()] == [
        ["invented_all", "group", "all.yaml"],
        ["invented_choice", "multiple_choice", "choice.yaml"],
        ["invented_sums", "generate_until", "sums/sums.yaml"],
        ["invented_tag", "tag", "1", "tasks"],
    ]
    (tmp_path / "s.yaml").write_text("name: s\ntask: {use: lm_eval, task: invented_sum}\nprotocol: single\n")
    wrong = harness(cache, "validate", str(tmp_path / "s.yaml"))
    assert wrong.returncode == 2
    assert "s.yaml:2:28: lm-eval has no task, group or tag 'invented_sum'" in wrong.stderr
    assert "Did you mean invented_sums" in wrong.stderr


def test_lm_eval_lists_tasks_only() -> None:
    options = parser().parse_args(["list", "metrics", "--lm_eval"])
    with pytest.raises(DataError, match="--lm_eval lists tasks"):
        listing(options)


@pytest.mark.slow
def test_the_package_has_its_well_known_tasks(cache: Path) -> None:
    ended = harness(cache, "list", "tasks", "--lm_eval", "gsm8k")
    assert ["gsm8k", "generate_until", "gsm8k/gsm8k.yaml"] in [line.split() for line in ended.stdout.splitlines()]
