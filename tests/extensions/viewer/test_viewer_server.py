"""What the server of `harness view` answers: runs, episodes, transcripts, and a run that is going."""

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import harness
from harness.api import Completion
from harness.api.errors import DataError
from harness.api.run_files import TABLES
from harness.engines.mock import Mock
from harness.extensions.viewer import saved_tables
from harness.extensions.viewer._reader_process import Reader
from harness.extensions.viewer.run_index import OnProgress, RunIndex
from harness.report.grid import grid
from harness.runtime.runner import BudgetReachedError
from harness.storage import write_atomically
from harness.storage.locks import Lock
from harness.transcripts.reader import Transcripts
from tests.helpers.journals import as_killed, edited
from tests.helpers.mock_scores import mock_scores
from tests.helpers.toy import TOY, run
from tests.helpers.viewing import get, serving

Dice = TOY.load("engines", "dice")
LONG = "<script>alert('" + "x" * 30_000 + "')</script>\u202e"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs: one of policies, one of a model that writes much."""
    root = tmp_path_factory.mktemp("results")
    run(root / "coin")
    run(root / "deep er" / "~long", Mock(text=LONG))
    return root


@pytest.fixture(scope="module")
def client(results: Path) -> Iterator[TestClient]:
    with serving(results) as client:
        yield client


def test_runs_are_found_at_any_depth(client: TestClient, results: Path) -> None:
    found = get(client, "")
    assert found["root"] == results.name
    assert [(r["name"], r["status"], r["episodes"], r["of"], r["problem"]) for r in found["runs"]] == [
        ("coin", "finished", 8, 8, None),
        ("deep er/~long", "finished", 8, 8, None),
    ]
    assert {r["spec"] for r in found["runs"]} == {"toy"} and found["runs"][1]["model"] == "mock"


def test_the_list_has_the_tokens_of_a_finished_run_before_it_is_opened(tmp_path: Path) -> None:
    done = run(tmp_path / "counted", Mock(function=lambda request: Completion("no", input_tokens=30, output_tokens=2)))
    calls = sum(len(turn.move.calls) for transcript in done.transcripts() for turn in transcript.turns)
    with serving(tmp_path) as client:
        [line] = get(client, "")["runs"]
    assert (line["status"], line["episodes"]) == ("finished", len(done.scores))
    assert line["tokens"] == 32 * calls > 0


def test_a_run_has_its_tables_labels_and_counts(client: TestClient, results: Path) -> None:
    done = harness.load_run(results / "coin", TOY)
    while (shown := get(client, "/coin"))["tables_pending"]:
        assert shown["tables"] is None
    texts = [table.pop("grid") for table in shown["tables"]]
    assert {table.pop("heat") for table in shown["tables"]} == {None}, "it draws no table as a heat map"
    assert shown["tables"] == json.loads(json.dumps([table.to_json() for table in done.tables]))
    assert [text["body"] for text in texts] == [[list(row) for row in grid(table).body] for table in done.tables]
    assert shown["meta"]["spec_digest"] == done.meta["spec_digest"]
    assert shown["spec"] == (results / "coin" / "spec.yaml").read_text()
    assert shown["labels"]["agents"] == list(dict.fromkeys(str(score.labels["agents"]) for score in done.scores))
    assert shown["metrics"] == list(done.metrics)
    assert shown["conditions"] == list(dict.fromkeys(score.condition for score in done.scores))
    assert shown["counts"]["total"] == shown["counts"]["finished"] == 8 and shown["damage"] == []


def test_runs_have_their_headline(client: TestClient, results: Path) -> None:
    while None in (headlines := {r["name"]: r["headline"] for r in get(client, "")["runs"]}).values():
        pass
    for name, headline in headlines.items():
        done = harness.load_run(results / name, TOY)
        [cell] = done.headline.cells(done.scores).values()
        assert (headline["value"], headline["n"], headline["metric"]) == (cell.value, cell.n, done.headline.metric)
        assert headline["name"] == done.headline.title
        assert (cell.value is None) == (done.headline_missing is not None)
        assert headline.get("why") == done.headline_missing
        assert headline["text"].startswith("–" if cell.value is None else f"{cell.value:.2f}")


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The jobs that processes of the viewer were asked for; none of them is done."""
    asked: list[str] = []

    def do(self: Reader, job: str, *arguments: Any, **more: Any) -> Any:
        asked.append(job)
        raise DataError("no process here")

    monkeypatch.setattr(Reader, "do", do)
    return asked


def test_tables_and_headlines_that_the_run_wrote_are_there_at_once(results: Path, idle: list[str]) -> None:
    with serving(results) as client:
        headlines = [line["headline"]["metric"] for line in get(client, "")["runs"]]
        shown = get(client, "/coin")
    assert headlines == ["agreed", "agreed"]
    assert shown["tables_pending"] is False and [table["title"] for table in shown["tables"]] == ["Agreement"]
    assert "results" not in idle


Change = Callable[[Path], object]


def added(name: str, text: str) -> Change:
    return lambda folder: (folder / name).write_text((folder / name).read_text() + text)


def with_entries(**entries: Any) -> Change:
    return lambda folder: (folder / TABLES).write_text(
        json.dumps({**json.loads((folder / TABLES).read_text()), **entries})
    )


FORGED: list[Change] = [
    lambda folder: (folder / TABLES).unlink(),
    lambda folder: (folder / TABLES).write_text("[" * 100_000),
    added("spec.yaml", "\n# another\n"),
    added("scores.jsonl", "\n"),
    *(with_entries(schema=2), with_entries(tables=None), with_entries(tables=[{}]), with_entries(of="")),
    with_entries(headline={"name": 5}),
    with_entries(tables=[{"title": "", "notes": [], "rows": [], "heat": [], "grid": {}}]),
]


@pytest.mark.parametrize("change", FORGED)
def test_tables_of_another_run_or_shape_do_not_count(change: Change, results: Path, tmp_path: Path) -> None:
    shutil.copytree(results / "coin", tmp_path / "coin")
    assert saved_tables.read(tmp_path / "coin") is not None
    change(tmp_path / "coin")
    assert saved_tables.read(tmp_path / "coin") is None


@pytest.mark.slow
def test_without_tables_of_its_own_a_run_has_those_that_are_made_now(results: Path, tmp_path: Path) -> None:
    shutil.copytree(results / "coin", tmp_path / "coin")
    (tmp_path / "coin" / TABLES).unlink()
    with serving(tmp_path) as client:
        while (shown := get(client, "/coin"))["tables_pending"]:
            pass
    made = saved_tables.read(results / "coin")
    assert made is not None and shown["tables"] == made["tables"] and shown["headline"] == made["headline"]


@pytest.mark.slow
def test_tables_from_before_a_run_was_scored_again_are_not_shown(results: Path, tmp_path: Path) -> None:
    shutil.copytree(results / "coin", tmp_path / "coin")
    scores = tmp_path / "coin" / "scores.jsonl"
    with serving(tmp_path) as client:
        before = get(client, "/coin/results")
        lines = [json.loads(line) for line in scores.read_text().splitlines()]
        changed = [{**line, "numbers": {**line["numbers"], "agreed": 0.25}} for line in lines]
        scores.write_text("".join(json.dumps(line) + "\n" for line in changed))  # as a harness that writes no tables
        while (after := get(client, "/coin/results"))["tables_pending"]:
            assert after["tables"] is None and after["headline"] is None
    assert before["headline"]["value"] != after["headline"]["value"] == 0.25
    values = {cell["value"] for row in after["tables"][0]["rows"] for cell in row["cells"]}
    assert values == {0.25}


def test_pages_of_episodes(client: TestClient, results: Path) -> None:
    done = harness.load_run(results / "coin", TOY)
    everything = get(client, "/coin/episodes", limit=999)
    assert [e["id"] for e in everything["episodes"]] == [score.id for score in done.scores]
    assert get(client, "/coin/episodes", limit=3, offset=7)["episodes"] == everything["episodes"][7:]
    condition = done.scores[-1].condition
    assert get(client, "/coin/episodes", condition=condition)["total"] == 4
    agents = str(done.scores[-1].labels["agents"])
    assert get(client, "/coin/episodes", label__agents=agents)["total"] == 4
    assert get(client, "/coin/episodes", q=done.scores[0].id.upper())["total"] == 1
    by_moves = get(client, "/coin/episodes", sort="moves", desc="1")["episodes"]
    assert [e["moves"] for e in by_moves] == sorted((e["moves"] for e in by_moves), reverse=True)
    refused = client.get("/api/runs/coin/episodes?sort=mvoes")
    assert refused.status_code == 400 and "Did you mean moves?" in refused.json()["error"]


def test_an_episode_shows_every_prompt_and_reply(client: TestClient, results: Path) -> None:
    for episode, transcript in enumerate(Transcripts(results / "coin", TOY)):
        shown = get(client, "/coin/episode", episode=transcript.id)
        assert [(t["number"], t["round"], t["agent"], t["name"]) for t in shown["turns"]] == [
            (t.number, t.round, t.agent, t.name) for t in transcript.turns
        ]
        assert [[(m["role"], m["text"]) for m in t["prompt"]] for t in shown["turns"]] == [
            list(t.prompt) for t in transcript.turns
        ]
        assert [t["action"] for t in shown["turns"]] == [t.move.action for t in transcript.turns]
        assert shown["outcome"]["answers"] == dict(transcript.outcome.answers) and shown["problem"] is None
        assert (shown["previous"] is None) == (episode == 0) and (shown["next"] is None) == (episode == 7)
    missing = client.get("/api/runs/coin/episode?episode=none")
    assert missing.status_code == 404 and "none" in missing.json()["error"]


@pytest.mark.slow
def test_a_scored_turn_shows_the_texts_and_their_numbers(tmp_path: Path) -> None:
    weigh = {"name": "weigh", "task": "weigh", "protocol": {"use": "rounds", "rounds": 1}, "prompts": "toy/base"}
    numbers: list[list[float | bool]] = [[-1.0, True], [float("-inf"), False]]
    what = {
        **weigh,
        "metrics": ["agreed"],
        "tables": [{"title": "T", "rows": "model", "columns": "number", "metrics": "agreed"}],
    }
    harness.evaluate(
        what, Mock(function=mock_scores(lambda request: numbers)), output_path=tmp_path / "weighed", project=TOY
    )
    with serving(tmp_path) as client:
        first = get(client, "/weighed/episodes")["episodes"][0]
        turns = get(client, "/weighed/episode", episode=first["id"])["turns"]
    best = {"text": " a", "value": -1.0, "share": 1.0, "greedy": True}
    assert turns[0]["scored"] == [best, {"text": " b", "value": None, "share": 0.0, "greedy": False}]


def test_an_episode_has_its_neighbors_in_the_list_that_is_asked_for(client: TestClient) -> None:
    for query in ({}, {"desc": "1"}, {"sort": "moves", "desc": "1", "label__agents": "3"}, {"sort": "numbers.agreed"}):
        listed = [row["id"] for row in get(client, "/coin/episodes", **query)["episodes"]]
        for i, name in enumerate(listed):
            there = get(client, "/coin/episode", episode=name, limit=1, offset=3, **query)
            assert there["previous"] == (listed[i - 1] if i else None)
            assert there["next"] == (listed[i + 1] if i + 1 < len(listed) else None)
        assert len(listed) > 3
    refused = client.get("/api/runs/coin/episode", params={"episode": listed[0], "outcome": "slved"})
    assert refused.status_code == 400 and "Did you mean solved" in refused.json()["error"]


def test_long_texts_are_cut_and_there_whole(client: TestClient) -> None:
    id = "deep~20er:~7elong"
    name = get(client, f"/{id}/episodes")["episodes"][0]["id"]
    answer = client.get(f"/api/runs/{id}/episode", params={"episode": name})
    assert answer.headers["content-type"] == "application/json" and len(answer.content) < 3_000_000
    turn = answer.json()["turns"][0]
    assert turn["calls"][0]["text"] == LONG[:20_000] and turn["calls"][0]["cut"] == len(LONG)
    assert turn["cuts"]["call.0.text"] == len(LONG) and turn["retries"] and turn["error_kind"] == "parse"

    def text(part: str, number: int = 0) -> Any:
        where = {"episode": name, "turn": number, "part": part}
        return client.get(f"/api/runs/{id}/text", params=where)

    whole = text("call.0.text")
    assert whole.text == LONG and whole.headers["content-type"] == "text/plain; charset=utf-8"
    assert whole.headers["content-disposition"] == "inline" and whole.headers["x-content-type-options"] == "nosniff"
    assert text("prompt.0").text == turn["prompt"][0]["text"] and text("retry.0").text == turn["retries"][0]
    assert text("error").text == turn["error"] and text("action").status_code == 200
    for part, number in (("call.9.text", 0), ("call.0.__class__", 0), ("prompt.x", 0), ("", 0), ("error", 10**9)):
        assert text(part, number).status_code == 404
    hits = get(client, f"/{id}/search", q="ALERT('", limit=2)
    assert len(hits["hits"]) == 2 and not hits["complete"] and "<script>alert('" in hits["hits"][0]["snippet"]


def test_how_a_run_stands(tmp_path: Path) -> None:
    for name in ("killed", "running", "broken", "odd", "old", "empty", "cut"):
        run(tmp_path / name)
    as_killed(tmp_path / "killed")
    as_killed(tmp_path / "running")
    changed: dict[str, Callable[[dict[str, Any]], Any]] = {
        "odd": lambda meta: {**meta, "journals": [], "stopped": 3, "duration": "long", "session_start": 5},
        "old": lambda meta: {**meta, "schema": 3},
        "empty": lambda meta: [],
    }
    for name, change in changed.items():
        path = tmp_path / name / "run.json"
        path.write_text(json.dumps(change(json.loads(path.read_text()))))
    (tmp_path / "broken" / "run.json").write_text("{")
    (tmp_path / "cut" / "journal.jsonl").write_bytes(b"")
    lock = Lock(tmp_path / "running")
    with serving(tmp_path) as client:
        runs = {entry["name"]: entry for entry in get(client, "")["runs"]}
        status = {"broken": "damaged", "cut": "damaged", "empty": "damaged", "killed": "stopped", "odd": "damaged"}
        assert {name: entry["status"] for name, entry in runs.items()} == {
            **status, "old": "other version", "running": "running"
        }  # fmt: skip
        assert (
            "this run has the format 3" in runs["old"]["problem"] and "journal.jsonl was cut" in runs["cut"]["problem"]
        )
        assert "the same eval command resumes it" in runs["killed"]["problem"]
        assert get(client, "/old")["tables"] == [] and get(client, "/killed/episodes")["total"] == 8
        assert get(client, "/killed")["tables"] == [] and {runs[name]["of"] for name in ("killed", "running")} == {8}
        assert {runs[name]["episodes"] for name in ("killed", "running")} == {8}
        assert client.get("/api/runs/broken/episodes").status_code == 400
    lock.release()


@pytest.mark.slow
def test_a_budget_that_ended_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(BudgetReachedError):
        run(tmp_path / "r", Dice(), max_calls=20)
    with serving(tmp_path) as client:
        [entry] = get(client, "")["runs"]
        assert entry["status"] == "stopped" and "max_calls 20 ended it" in entry["problem"] and entry["of"] == 8
        rows = get(client, "/r/episodes")["episodes"]
        assert {row["outcome"] for row in rows} - {"solved", "partly solved", "unsolved", "unscored"} == {"unfinished"}
        unfinished = next(row for row in rows if row["outcome"] == "unfinished")
        shown = get(client, "/r/episode", episode=unfinished["id"])
        assert not shown["finished"] and shown["outcome"] is None and shown["turns"][0]["prompt"]
        assert sum(turn["answered"] for turn in shown["turns"]) == unfinished["moves"]


@pytest.mark.slow
def test_an_episode_with_a_damaged_line_is_shown_without_prompts(tmp_path: Path) -> None:
    run(tmp_path / "r", Dice())
    journal = tmp_path / "r" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if json.loads(line)["k"] == "move")
    name = json.loads(lines[at])["e"]
    lines[at] = lines[at].replace(b'"crc"', b'"CRC"')
    journal.write_bytes(b"".join(lines))
    with serving(tmp_path) as client:
        shown = get(client, "/r/episode", episode=name)
        assert "lines are gone or damaged" in shown["problem"] and not shown["turns"][0]["prompt"]
        assert shown["turns"][0]["calls"][0]["text"] and shown["outcome"]["answers"]
        text = {"episode": name, "turn": 0, "part": "call.0.text"}
        assert client.get("/api/runs/r/text", params=text).text == shown["turns"][0]["calls"][0]["text"]
        page = get(client, "/r")
        assert page["damage"] == [f"journal.jsonl:{at + 1}: the line is not as it was written (its checksum differs)"]
        [entry] = get(client, "")["runs"]
        assert entry["status"] == "damaged" and entry["problem"].startswith(page["damage"][0])
        others = [row["id"] for row in get(client, "/r/episodes")["episodes"] if row["id"] != name]
        assert get(client, "/r/episode", episode=others[0])["problem"] is None


@pytest.mark.slow
def test_the_headline_of_the_spec_says_what_is_solved(tmp_path: Path) -> None:
    done = run(tmp_path / "r")
    expected = sum(score.number("agreed") == 0 for score in done.scores)
    path = tmp_path / "r" / "spec.yaml"
    with serving(tmp_path) as client:
        assert get(client, "/r/episodes", outcome="solved")["total"] == 0 and get(client, "/r")["words"] == {}
        spec = path.read_text()
        for words, named in (
            ("", {}),
            (", words: [at odds, at one]", {"solved": "at odds", "unsolved": "at one"}),
            (", words: {a: b}", {}),
            (", words: [[], 3]", {}),
            (f", words: [{'x' * 999}, y]", {"solved": "x" * 40, "unsolved": "y"}),
        ):
            path.write_text(f"{spec}headline: {{metric: agreed, better: lower{words}}}\n")
            [first, *others] = get(client, "/r/episodes", outcome="solved")["episodes"]
            assert 1 + len(others) == expected and first["outcome"] == "solved"
            assert get(client, "/r")["words"] == get(client, "/r/episode", episode=first["id"])["words"] == named


@pytest.mark.slow
def test_numbers_that_are_none_are_null_for_browsers(tmp_path: Path) -> None:
    run(tmp_path / "r")
    edited(tmp_path / "r" / "journal.jsonl", '"a": "', '"a": NaN, "x": "')
    with serving(tmp_path) as client:
        name = get(client, "/r/episodes")["episodes"][0]["id"]
        assert get(client, "/r/episode", episode=name)["turns"][0]["action"] is None


def test_a_journal_that_is_being_read_has_its_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path / "r")
    go_on, update = threading.Event(), RunIndex.update

    def slow(self: RunIndex, on_progress: OnProgress | None = None) -> bool:
        go_on.wait()
        return update(self, on_progress)

    monkeypatch.setattr(RunIndex, "update", slow)
    with serving(tmp_path, patience=0.05) as client:
        busy = client.get("/api/runs/r/episodes")
        at_once = get(client, "/r/results")
        assert at_once["tables"] and not at_once["tables_pending"] and at_once["headline"]["n"] == 8
        assert busy.status_code == 503 and 0 <= busy.json()["indexing"] <= 1 and busy.headers["retry-after"] == "1"
        go_on.set()
        while (answer := client.get("/api/runs/r")).status_code == 503:
            pass
        assert not answer.json()["damage"]


def test_a_page_follows_a_run(tmp_path: Path) -> None:
    run(tmp_path / "r")
    journal = tmp_path / "r" / "journal.jsonl"
    whole, record = journal.read_bytes(), (tmp_path / "r" / "run.json").read_text()
    scores = (tmp_path / "r" / "scores.jsonl").read_bytes()
    (tmp_path / "r" / "scores.jsonl").unlink()
    as_killed(tmp_path / "r")
    journal.write_bytes(whole[: len(whole) // 2])
    lock = Lock(tmp_path / "r")
    with serving(tmp_path) as client:
        first = get(client, "/r/state")
        with journal.open("ab") as file:
            file.write(whole[len(whole) // 2 :])
        more = get(client, "/r/state")
        (tmp_path / "r" / "scores.jsonl").write_bytes(scores)
        write_atomically(tmp_path / "r" / "run.json", record)
        last = get(client, "/r/state")
    assert [state["status"] for state in (first, more, last)] == ["running", "running", "finished"]
    assert 0 < first["finished"] < more["finished"] == last["finished"] == first["of"] == 8
    assert first["moves"] < more["moves"] and first["start"] == last["start"] == json.loads(record)["start"]
    lock.release()
