"""Another model than was asked for, or prompts that a server may have cut: said wherever numbers of the run stand."""

import json
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Facts
from harness.engines.mock import Mock
from harness.extensions.exports.inspect_log import _specification
from harness.extensions.lm_eval.export import write_results
from harness.report.provenance import who_answered
from tests.helpers.commands import invoke

NAMED = "Asked for asked-for, the server says who answered: llama (fp_1) in 5, qwen in 1 replies."
STOOD = (
    "The server of {} counted no more tokens for 3 prompts that had grown: it cut them, or does not count all tokens, "
    "and then tokens and costs are too low."
)


class Other(Mock):
    """A server that states other names, and counts no more tokens for prompts that have grown."""

    def report(self) -> Facts:
        return {"answered_as": {"llama (fp_1)": 5, "qwen": 1}, "prompts_not_grown": 3}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, harness.Run]:
    folder = tmp_path_factory.mktemp("answered")
    options: Any = {"limit": 2, "overrides": ["matrix.terms=[2]"]}
    other = harness.evaluate("arithmetic", Other(model="asked-for", text="4"), output_path=folder / "other", **options)
    plain = harness.evaluate("arithmetic", Mock(model="plain", text="4"), output_path=folder / "plain", **options)
    return {"other": other, "plain": plain}


@pytest.mark.parametrize(
    "words", [["report"], ["leaderboard"], ["report", "--format", "html"], ["leaderboard", "--format", "json"]]
)
def test_tables_boards_and_reports_say_it(
    runs: dict[str, harness.Run], capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    for name, times in (("other", True), ("plain", False)):
        code, out, _ = invoke(capsys, words[0], str(runs[name].folder), *words[1:])
        text = " ".join(out.split())
        assert code == 0 and ("the server says who answered" in text) == times
        assert ("for 3 prompts that had grown" in text) == times


def test_a_comparison_says_of_which_side(runs: dict[str, harness.Run], capsys: pytest.CaptureFixture[str]) -> None:
    folders = [str(runs[name].folder) for name in ("plain", "other")]
    code, out, _ = invoke(capsys, "compare", *folders, "--format", "json")
    notes = json.loads(out)[1]["notes"]
    assert code == 0 and [note for note in notes if "asked-for" in note] == [
        f"B: {NAMED}",
        f"B: {STOOD.format('asked-for')}",
    ]


def test_the_viewer_and_exports_have_it(runs: dict[str, harness.Run], tmp_path: Path) -> None:
    other = runs["other"]
    tables = json.loads((other.folder / "tables.json").read_text())["tables"]
    assert tables and all(NAMED in table["notes"] for table in tables), "what the viewer shows"
    assert _specification(other)["metadata"]["who_answered"] == [NAMED, STOOD.format("asked-for")]
    write_results(other, tmp_path)
    [written] = tmp_path.glob("*/results_*.json")
    [config] = json.loads(written.read_text())["configs"].values()
    assert config["metadata"]["who_answered"] == [NAMED, STOOD.format("asked-for")]


@pytest.mark.parametrize("key", ["prompts_not_grown", pytest.param("prompts_cut", id="of version 0.7")])
def test_the_workers_of_a_cluster_count_together(key: str) -> None:
    reports = {f"worker {i}": {"answered_as": {"llama": 2, "qwen": 1}, key: 1} for i in range(3)}
    meta = {"engines": {"model": reports}, "engine_args": {"model": {"model": "llama"}}}
    assert [*who_answered(meta)] == [
        "Asked for llama, the server says who answered: llama in 6, qwen in 3 replies.",
        STOOD.format("llama"),
    ]
