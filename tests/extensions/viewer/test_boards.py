"""The pages over several runs: the leaderboard, and two runs side by side, as the commands compute them."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import harness
from harness.api import Request
from harness.cli import main
from harness.config.project import find
from harness.engines.mock import Mock
from harness.extensions.viewer._board_jobs import comparison
from tests.helpers.viewing import serving

CASES = 6
TERMS = ["matrix.terms=[2,4]"]


def right_in(share: int) -> Mock:
    """Answers the first `share` cases rightly and the others with 0; `right_in(2)` is the model m2."""

    def reply(request: Request) -> str:
        terms = request.thread.messages[-1]["content"].rpartition("Question:")[2]
        line = next(text for text in terms.splitlines() if any(sign in text for sign in "+-*"))
        number = int(request.id.split("/")[1])
        return f"The answer is {eval(''.join(c for c in line if c in '0123456789+-*() ')) if number < share else 0}."

    return Mock(model=f"m{share}", function=reply)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of the same cases, one of other cases, one that cannot be read, one whose record is a link."""
    root = tmp_path_factory.mktemp("boards")
    for share in (1, 5):
        harness.evaluate("arithmetic", right_in(share), limit=CASES, overrides=TERMS, output_path=root / f"m{share}")
    harness.evaluate("arithmetic", right_in(2), limit=CASES, overrides=["matrix.terms=[3]"], output_path=root / "other")
    (root / "broken").mkdir()
    (root / "broken" / "run.json").write_text('{"schema": 4, "spec": ["<img>"]')
    (root / "linked").mkdir()
    for file in (root / "m1").iterdir():
        if file.name == "scores.jsonl":
            (root / "linked" / file.name).symlink_to(file)
        elif file.is_file():
            shutil.copy(file, root / "linked" / file.name)
    return root


@pytest.fixture(scope="module")
def client(runs: Path) -> Iterator[TestClient]:
    with serving(runs, find().root) as made:
        yield made


def computed(client: TestClient, path: str, **query: Any) -> Any:
    """What a route gives once it has been computed."""
    while "pending" in (found := client.get(f"/api/{path}", params=query).json()):
        pass
    return found


def printed(capsys: pytest.CaptureFixture[str], *command: str) -> list[dict[str, Any]]:
    """The tables that a command prints."""
    assert main([*command, "--format", "json"]) == 0
    tables: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return tables


def numbers(table: dict[str, Any]) -> list[list[Any]]:
    return [
        [tuple(cell.get(name) for name in ("value", "low", "high")) for cell in row["cells"]] for row in table["rows"]
    ]


@pytest.mark.slow
def test_the_leaderboard_is_that_of_the_command(
    client: TestClient, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = computed(client, "leaderboard")
    tables = printed(capsys, "leaderboard", str(runs))
    boards = {table["title"]: table for table in tables}
    assert shown["overall"] is None, "there is one benchmark"
    assert [section["is_main"] for section in shown["sections"]] == [True, False]
    for section in shown["sections"]:
        standings = section["standings"]
        said = boards[standings["title"]]
        assert standings["notes"] == said["notes"] and numbers(standings) == numbers(said)
        assert [row["key"] for row in standings["rows"]] == [row["key"] for row in said["rows"]]
    assert [row["key"]["rank"] for row in shown["sections"][0]["standings"]["rows"]] == ["1", "2"]
    apart = shown["sections"][1]["standings"]["notes"]
    assert any(note.startswith("Apart: run other cannot be compared with m1") for note in apart)
    assert {line.partition(":")[0] for line in shown["apart"]} == {"broken/run.json", "linked"}
    assert "its scores.jsonl is a link" in " ".join(shown["apart"])


@pytest.mark.slow
def test_rows_lead_to_their_runs_and_tables_come_when_asked_for(client: TestClient) -> None:
    sections = computed(client, "leaderboard")["sections"]
    assert sections[0]["runs"] == {"m1": "m1", "m5": "m5"} and sections[1]["runs"] == {"m2": "other"}
    tables = computed(client, "leaderboard/tables", section=0)["tables"]
    assert len(tables) == sections[0]["tables"] > 0
    assert {row["key"].get("model") for row in tables[0]["rows"]} == {"m1", "m5"}
    assert client.get("/api/leaderboard/tables?section=9").status_code == 400


@pytest.mark.slow
def test_the_leaderboard_changes_when_a_run_does(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "m1", tmp_path / "m1")
    with serving(tmp_path, find().root) as client:
        first = computed(client, "leaderboard")
        assert computed(client, "leaderboard", stamp=first["stamp"]) == {"same": True}
        shutil.copytree(runs / "m5", tmp_path / "m5")
        second = computed(client, "leaderboard", stamp=first["stamp"])
        scores = tmp_path / "m1" / "scores.jsonl"
        scores.write_text(scores.read_text().replace('"score": 0.0', '"score": 1.0'))
        third = computed(client, "leaderboard", stamp=second["stamp"])
    ahead = [board["sections"][0]["standings"]["rows"][0] for board in (first, second, third)]
    assert [row["key"]["model"] for row in ahead] == ["m1", "m5", "m1"] and ahead[2]["cells"][0]["value"] == 1


@pytest.mark.slow
def test_a_comparison_is_that_of_the_command(
    client: TestClient, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = computed(client, "compare", a="m1", b="m5")
    differs, tested, most = printed(capsys, "compare", str(runs / "m1"), str(runs / "m5"))
    assert shown["names"] == ["m1", "m5"] and shown["unchecked"] is None
    for table, said in zip(shown["tables"], (differs, tested), strict=True):
        assert (table["title"], table["notes"], numbers(table)) == (said["title"], said["notes"], numbers(said))
    cases = computed(client, "compare/cases", a="m1", b="m5", limit=100)
    assert cases["total"] == shown["cases"]["score"]["differing"] == 8
    listed = [(case["a"][0], [case["first"], case["second"], case["difference"]]) for case in cases["cases"]]
    assert listed == [(row["key"]["a"], [cell["value"] for cell in row["cells"]]) for row in most["rows"]]
    ids = {score.id for score in harness.load_run(runs / "m1").scores}
    assert all(case["a"] == case["b"] and case["a"][0] in ids for case in cases["cases"])


def test_two_parts_of_one_run_are_compared_as_by_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    harness.evaluate("arithmetic_votes", limit=8, output_path=tmp_path / "one")
    label = ("weights", "alike", "by confidence")
    shown = comparison(find(), tmp_path / "one", tmp_path / "one", label)
    said_by_command = printed(capsys, "compare", str(tmp_path / "one"), "--label", *label)
    assert shown["names"] == [*label[1:]]
    for table, said in zip(shown["tables"], said_by_command[:2], strict=True):
        assert (table["title"], numbers(table)) == (said["title"], numbers(said))
    cases = shown["cases"]["score"]["cases"]
    assert all("weights=alike" in one["a"][0] and "confidence" in one["b"][0] for one in cases)


@pytest.mark.slow
def test_parts_of_a_run_are_asked_for_by_a_label(tmp_path: Path) -> None:
    harness.evaluate("arithmetic_votes", limit=8, output_path=tmp_path / "one")
    label = {"label": "weights", "first": "alike", "second": "by confidence"}
    with serving(tmp_path, find().root) as client:
        shown = computed(client, "compare", a="one", b="one", **label)
        cases = computed(client, "compare/cases", a="one", b="one", **label)
        alone = computed(client, "compare", a="one", b="one")
        wrong = computed(client, "compare", a="one", b="one", **{**label, "second": "<b>"})
    assert shown["names"] == ["alike", "by confidence"] and shown["cases"]["score"]["pairs"] == 8
    assert cases["total"] == shown["cases"]["score"]["differing"] and alone["cases"]["score"]["differing"] == 0
    assert "has weights '<b>'" in wrong["problem"]


@pytest.mark.slow
def test_cases_are_paged_by_metric(client: TestClient) -> None:
    every = computed(client, "compare/cases", a="m5", b="m1", metric="score", limit=100)["cases"]
    assert {case["difference"] for case in every} == {-1}
    page = computed(client, "compare/cases", a="m5", b="m1", metric="score", offset=3, limit=2)
    assert page["cases"] == every[3:5] and page["total"] == len(every)
    answer = client.get("/api/compare/cases?a=m5&b=m1&metric=none")
    assert answer.status_code == 400 and "'none'" in answer.json()["error"]


@pytest.mark.slow
def test_runs_that_cannot_be_compared_say_why(client: TestClient) -> None:
    assert "m1 has several values of terms: 2, 4" in computed(client, "compare", a="m1", b="other")["problem"]
    assert "broken" in computed(client, "compare", a="m1", b="broken")["problem"]
    for path in ("compare", "compare/cases"):
        assert client.get(f"/api/{path}?a=m1&b=none").status_code == 404
