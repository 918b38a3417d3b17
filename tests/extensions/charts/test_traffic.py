"""`harness messages`: who sent how much to whom, as data and as heat maps."""

import csv
import io
import itertools
import json
from pathlib import Path

import pytest

import harness
from harness.cli import main
from harness.engines.mock import Mock


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "r"
    overrides = ["matrix.agents=[5]", "matrix.problem=[global_maximum]"]
    harness.evaluate("silo_quick", overrides=overrides, output_path=folder)
    return folder


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, str]]:
    assert main(["messages", *arguments]) == 0
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def condition(protocol: str) -> str:
    return f"protocol={protocol},agents=5,problem=global_maximum"


def test_messages_go_from_sender_to_receiver(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = rows(capsys, str(run), "--condition", condition("P2P"))
    to_hub = {(f"Agent-{i}", "Agent-0", "1") for i in range(1, 5)}
    back = {("Agent-0", f"Agent-{i}", "1") for i in range(1, 5)}
    assert {(row["sender"], row["receiver"], row["messages"]) for row in result} == to_hub | back
    assert all(int(row["characters"]) > 0 for row in result)


def test_a_broadcast_goes_to_every_agent_and_is_one_row(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = rows(capsys, str(run), "--condition", condition("BP"))
    assert [(row["sender"], row["receiver"]) for row in result] == [(f"Agent-{i}", "*") for i in (1, 2, 3, 4, 0)]


def test_of_files_the_writer_sends_and_the_reader_receives(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = rows(capsys, str(run), "--condition", condition("SFS"))
    pairs = {(row["sender"], row["receiver"]) for row in result}
    assert pairs == {(f"Agent-{i}", "Agent-0") for i in range(1, 5)} | {("Agent-0", f"Agent-{i}") for i in range(1, 5)}
    assert {row["characters"] for row in result} == {""}


@pytest.mark.slow
def test_json_and_a_file(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    assert main(["messages", str(run), "--format", "json", "--output", str(file)]) == 0
    assert {row["episode"].split(",")[0] for row in json.loads(file.read_text())} == {
        "protocol=P2P", "protocol=BP", "protocol=SFS",
    }  # fmt: skip


def test_what_cannot_be_classified_is_reported(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["messages", str(run), "--condition", "nowhere"]) == 2
    assert "has no finished episode of condition 'nowhere'" in capsys.readouterr().err
    assert main(["messages", str(run), "--condition", "protocol=P2P,agents=5,problem=global_maxim"]) == 2
    suggested = capsys.readouterr().err.partition("Did you mean ")[2].partition("?")[0]
    assert condition("P2P") in suggested
    harness.evaluate("arithmetic", limit=1, output_path=tmp_path / "alone")
    assert main(["messages", str(tmp_path / "alone")]) == 2
    assert "agents answer alone" in capsys.readouterr().err


def test_agentsnet_sends_along_edges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "r"
    harness.evaluate("agentsnet_quick", limit=1, output_path=folder)
    counts = {r["episode"]: 0 for r in rows(capsys, str(folder))}
    for row in rows(capsys, str(folder)):
        counts[row["episode"]] += int(row["messages"])
    for line in (folder / "journal.jsonl").read_text("utf-8").splitlines():
        end = json.loads(line)
        if end.get("k") == "end":
            assert counts.get(end["e"], 0) == end["outcome"]["facts"]["messages"]
    assert sum(counts.values()) > 0


def test_philosophers_speak_to_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    say = Mock(text="MESSAGE: left first\nACTION: WAIT")
    overrides = ["matrix.condition=[sim3c]", "protocol.max_timesteps=2"]
    harness.evaluate("dpbench_quick", model=say, overrides=overrides, repeats=1, output_path=tmp_path / "r")
    result = rows(capsys, str(tmp_path / "r"))
    assert [(row["sender"], row["receiver"], row["messages"], row["characters"]) for row in result] == [
        (f"P{i}", "*", "2", "20") for i in range(3)
    ]


def test_panels_show_whose_texts_who_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    three = {f"Agent-{i}" for i in range(3)}
    pairs = {(one, two) for one in three for two in three if one != two}
    assert panel(tmp_path, capsys, "{use: debate}") == pairs
    assert panel(tmp_path, capsys, "{use: debate, summarize: shared}") == {
        *((one, "Summarizer") for one in three),
        *(("Summarizer", one) for one in three),
    }
    assert panel(tmp_path, capsys, "{use: mixture_of_agents, layers: 2}") == {(one, "Aggregator") for one in three}
    assert panel(tmp_path, capsys, "{use: vote, agents: 3}") == set()
    to_meta = {(one, "Meta") for one in three}
    assert panel(tmp_path, capsys, "{use: graph_of_agents, agents: 3, top_k: 3, meta: Meta}") <= pairs | to_meta
    by_doubt = "{use: darkforest, agents: 3, coordinate: always, coordinator: Chair}"
    assert panel(tmp_path, capsys, by_doubt) == {(one, "Chair") for one in three}


def panel(tmp_path: Path, capsys: pytest.CaptureFixture[str], protocol: str) -> set[tuple[str, str]]:
    """Who was read by whom where three agents give different answers; the characters are those of peer text."""
    numbers = itertools.count()
    say = Mock(function=lambda request: f"Because.\nThe answer is {next(numbers)}.")
    folder = tmp_path / str(len(list(tmp_path.iterdir())))
    overrides = [f"protocol={protocol}", "prompts=panels/standard", "matrix={}", "task.terms=2", "tables=[]"]
    harness.evaluate("arithmetic", model=say, overrides=[*overrides, "metrics=[calls]"], limit=1, output_path=folder)
    result = rows(capsys, str(folder))
    lines = map(json.loads, (folder / "journal.jsonl").read_text("utf-8").splitlines())
    [facts] = [line["outcome"]["facts"] for line in lines if line["k"] == "end"]
    if all(row["characters"] for row in result):
        assert sum(int(row["characters"]) for row in result) == facts["peer_characters"]
    return {(row["sender"], row["receiver"]) for row in result}
