"""`harness view`: what its server answers, to whom, and what it says of runs that are not as they should be."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from starlette.testclient import TestClient

import harness
from harness.engines.mock import Mock
from harness.report.render import grid
from harness.runtime.runner import BudgetReachedError
from harness.runtime.transcripts import Transcripts
from harness.storage import write_atomically
from harness.storage.index import INDEX
from harness.storage.locks import Lock
from harness.viewer import app
from tests.helpers.commands import ROOT, invoke
from tests.helpers.journals import as_killed, edited
from tests.helpers.toy import TOY, run

Dice = TOY.load("engines", "dice")
LONG = "<script>alert('" + "x" * 30_000 + "')</script>\u202e"


@contextmanager
def serving(root: Path, **more: Any) -> Iterator[TestClient]:
    application = app(root, TOY.root, **{"patience": 60, "seconds": 60, **more})
    with closing(application.state):
        yield TestClient(application, base_url="http://127.0.0.1:8400")


def get(client: TestClient, path: str, **query: Any) -> Any:
    answer = client.get(f"/api/runs{path}", params={name.replace("__", "."): value for name, value in query.items()})
    assert answer.status_code == 200, answer.text
    return answer.json()


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


# ------------------------------------------------------------------------------------------- what there is


def test_runs_are_found_at_any_depth(client: TestClient, results: Path) -> None:
    found = get(client, "")
    assert found["root"] == results.name
    assert [(r["name"], r["status"], r["episodes"], r["of"], r["problem"]) for r in found["runs"]] == [
        ("coin", "finished", 8, 8, None),
        ("deep er/~long", "finished", 8, 8, None),
    ]
    assert {r["spec"] for r in found["runs"]} == {"toy"} and found["runs"][1]["model"] == "mock"


def test_a_run_has_its_tables_labels_and_counts(client: TestClient, results: Path) -> None:
    done = harness.Run.load(results / "coin", TOY)
    while (shown := get(client, "/coin"))["tables_pending"]:
        assert shown["tables"] is None
    texts = [table.pop("grid") for table in shown["tables"]]
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
        done = harness.Run.load(results / name, TOY)
        [cell] = done.headline.cells(done.scores).values()
        assert (headline["value"], headline["n"], headline["metric"]) == (cell.value, cell.n, done.headline.metric)
        assert headline["text"].startswith(f"{cell.value:.2f}") and headline["name"] == done.headline.title


def test_pages_of_episodes(client: TestClient, results: Path) -> None:
    done = harness.Run.load(results / "coin", TOY)
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


# --------------------------------------------------------------------------------------------- who may ask

PATHS = ["/", "/api/runs", "/api/runs/coin", "/api/runs/none", "/static/none.js", "/nowhere", "/api/runs/coin/state"]


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_keeps_browsers_strict(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;")
    assert "frame-ancestors 'none'" in policy and "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert not any(name.startswith("access-control") for name in headers)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1.evil.example:8400"},
        {"host": "evil.example:8400@127.0.0.1"},
        {"host": "127.0.0.1:x"},
        {"host": ""},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:8400"},
        {"origin": "https://127.0.0.1:8400"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
    ],
)
def test_other_pages_and_names_are_refused(client: TestClient, path: str, headers: dict[str, str]) -> None:
    answer = client.get(path, headers=headers)
    assert answer.status_code == 403 and "coin" not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1:8400", "localhost:8400", "LOCALHOST", "[::1]:9000", "localhost:9000"])
def test_this_machine_may_ask_by_its_names_and_through_a_tunnel(client: TestClient, host: str) -> None:
    assert client.get("/api/runs", headers={"host": host, "origin": f"http://{host}"}).status_code == 200
    link = {"host": host, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=link).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_changed(client: TestClient, method: str) -> None:
    assert client.request(method, "/api/runs").status_code == 405


@pytest.mark.parametrize(
    "id",
    ["%2e%2e", "%2e%2e%2fsecret", "%2e%2e/secret", "..%2fsecret", "%2fetc%2fpasswd", "coin%00", "%00", "%2e",
     "coin/%2e%2e", "~2e~2e", "..:secret", "..~2fsecret", "link", "%ed%a0%80", "%ff"],
)  # fmt: skip
def test_nothing_outside_the_folder_is_shown(results: Path, client: TestClient, id: str) -> None:
    secret = results.parent / "secret"
    if not secret.exists():
        run(secret)
        (results / "link").symlink_to(secret)
    for path in (f"/api/runs/{id}", f"/api/runs/{id}/episodes", f"/api/runs/{id}/text", f"/static/{id}"):
        answer = client.get(f"http://127.0.0.1:8400{path}")
        assert answer.status_code == 404 and "agreed" not in answer.text
    assert [entry["name"] for entry in get(client, "")["runs"]] == ["coin", "deep er/~long"]


def test_the_page_is_cached_by_its_content(client: TestClient) -> None:
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert client.get("/static/index.html").content == page.content
    assert client.get("/", headers={"if-none-match": page.headers["etag"]}).status_code == 304


# ------------------------------------------------------------------------------- runs that are not as they should be


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
        assert "the same eval command goes on" in runs["killed"]["problem"]
        assert get(client, "/old")["tables"] == [] and get(client, "/killed/episodes")["total"] == 8
        assert get(client, "/killed")["tables"] == [] and {runs[name]["of"] for name in ("killed", "running")} == {8}
        assert {runs[name]["episodes"] for name in ("killed", "running")} == {8}
        assert client.get("/api/runs/broken/episodes").status_code == 400
    lock.release()


def test_a_budget_that_ended_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(BudgetReachedError):
        run(tmp_path / "r", Dice(), max_calls=20)
    with serving(tmp_path) as client:
        [entry] = get(client, "")["runs"]
        assert entry["status"] == "stopped" and "max_calls 20 ended it" in entry["problem"] and entry["of"] == 8
        rows = get(client, "/r/episodes")["episodes"]
        assert {row["outcome"] for row in rows} - {"solved", "unsolved", "unscored"} == {"unfinished"}
        unfinished = next(row for row in rows if row["outcome"] == "unfinished")
        shown = get(client, "/r/episode", episode=unfinished["id"])
        assert not shown["finished"] and shown["outcome"] is None and shown["turns"][0]["prompt"]
        assert sum(turn["answered"] for turn in shown["turns"]) == unfinished["moves"]


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
            path.write_text(f"{spec}headline: {{cell: agreed, better: lower{words}}}\n")
            [first, *others] = get(client, "/r/episodes", outcome="solved")["episodes"]
            assert 1 + len(others) == expected and first["outcome"] == "solved"
            assert get(client, "/r")["words"] == get(client, "/r/episode", episode=first["id"])["words"] == named


def test_a_spec_of_someone_else_does_no_harm(tmp_path: Path) -> None:
    values = ", ".join(f"a{i}: [1, 2, 3, 4]" for i in range(20))
    specs = {
        "no_plugin": "name: toy\ntask: {use: none}\nprotocol: talk\n",
        "no_yaml": "a: [",
        "nothing": "",
        "endless": "name: x\nextends: /dev/zero\n",
        "huge": f"name: toy\ntask: pick\nmatrix: {{{values}}}\n",
    }
    for name, spec in specs.items():
        run(tmp_path / name)
        (tmp_path / name / "spec.yaml").write_text(spec)
    with serving(tmp_path) as client:
        for name in specs:
            episode = get(client, f"/{name}/episodes")["episodes"][0]["id"]
            shown = get(client, f"/{name}/episode", episode=episode)
            assert "prompts cannot be shown" in shown["problem"] and shown["turns"] and shown["outcome"]
        while (page := get(client, "/huge"))["tables_pending"]:
            pass
        assert page["tables"] == [] and page["tables_problem"].startswith("no tables: ")


def test_what_takes_too_long_is_ended(tmp_path: Path) -> None:
    run(tmp_path / "r", Dice())
    with serving(tmp_path, seconds=0) as client:
        for _ in range(2):
            name = get(client, "/r/episodes")["episodes"][0]["id"]
            shown = get(client, "/r/episode", episode=name)
            assert shown["problem"] == "prompts cannot be shown: it took longer than 0 s" and shown["turns"]
        text = client.get("/api/runs/r/text", params={"episode": name, "turn": 0, "part": "call.0.text"})
        assert text.text == shown["turns"][0]["calls"][0]["text"]


def test_numbers_that_are_none_are_null_for_browsers(tmp_path: Path) -> None:
    run(tmp_path / "r")
    edited(tmp_path / "r" / "journal.jsonl", '"a": "', '"a": NaN, "x": "')
    with serving(tmp_path) as client:
        name = get(client, "/r/episodes")["episodes"][0]["id"]
        assert get(client, "/r/episode", episode=name)["turns"][0]["action"] is None


def test_a_journal_that_is_being_read_has_its_progress(tmp_path: Path) -> None:
    run(tmp_path / "r")
    with serving(tmp_path, patience=0.05) as client:
        while client.get("/api/runs/r/episodes").status_code == 503:
            pass
        with (tmp_path / "r" / "journal.jsonl").open("ab") as journal:
            journal.write(b"{}\n")
        with closing(sqlite3.connect(tmp_path / "r" / INDEX)) as other:
            other.execute("BEGIN IMMEDIATE")  # another viewer reads it
            busy = client.get("/api/runs/r/episodes")
            assert busy.status_code == 503 and 0 <= busy.json()["indexing"] <= 1 and busy.headers["retry-after"] == "1"
        while (answer := client.get("/api/runs/r")).status_code == 503:
            pass
        assert answer.json()["damage"][0].startswith("journal.jsonl:")


# ----------------------------------------------------------------------------------------------- while a run is going


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


# ---------------------------------------------------------------------------------------------- the command


def test_mistakes_say_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    code, _, err = invoke(capsys, "view", str(tmp_path))
    assert code == 2 and f"no run is in {tmp_path} (no run.json)" in err and "Give a run's folder" in err
    code, _, err = invoke(capsys, "view", str(tmp_path / "aa"))
    assert code == 2 and "Did you mean a?" in err
    run(tmp_path / "r")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = invoke(capsys, "view", str(tmp_path), "--port", str(port))
    assert code == 2 and err.splitlines()[-2:] == [
        f"error: port {port} is in use", "  Leave --port out to take the next free one."
    ]  # fmt: skip
    for port in ("65536", "-1", "x"):
        code, _, err = invoke(capsys, "view", "--port", port)
        assert code == 2 and "--port" in err


def test_without_the_extra_the_package_is_named(tmp_path: Path) -> None:
    program = "import sys; sys.modules['starlette'] = None; from harness.cli import main; sys.exit(main(['view']))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.splitlines() == [
        "error: harness view needs the package starlette", '  pip install "mas-eval-harness[view]"'
    ]  # fmt: skip


def test_it_serves_until_it_is_ended_and_leaves_no_process(tmp_path: Path) -> None:
    run(tmp_path / "r")
    command = [sys.executable, "-m", "harness", "view", str(tmp_path / "r"), "--port", "0"]
    with subprocess.Popen(command, cwd=TOY.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as viewer:
        line = viewer.stdout.readline()
        assert line.startswith(f"1 run in {tmp_path / 'r'}: http://127.0.0.1:")
        url = line.rpartition(": ")[2].strip()
        with urlopen(f"{url}api/runs") as answer:
            [entry] = json.load(answer)["runs"]
        assert entry["id"] == entry["name"] == "r"
        with urlopen(f"{url}api/runs/r/episodes") as answer:
            name = json.load(answer)["episodes"][0]["id"]
        with urlopen(f"{url}api/runs/r/episode?episode={name}") as answer:
            assert json.load(answer)["problem"] is None
        children = [int(p) for t in Path(f"/proc/{viewer.pid}/task").glob("*/children") for p in t.read_text().split()]
        viewer.terminate()
        assert viewer.wait(30) == 0 and viewer.stderr.read() == ""
    end = time.monotonic() + 30
    while any(map(_is_alive, children)) and time.monotonic() < end:
        os.sched_yield()
    assert children and not any(map(_is_alive, children))


def _is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
