"""Whom `harness view` answers, and its command: who may ask, what stands outside, mistakes, its end."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from starlette.testclient import TestClient

from tests.helpers.commands import ROOT, invoke
from tests.helpers.toy import TOY, run
from tests.helpers.viewing import get, serving


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs: one of policies, one of a model that writes much."""
    root = tmp_path_factory.mktemp("results")
    run(root / "coin")
    return root


@pytest.fixture(scope="module")
def client(results: Path) -> Iterator[TestClient]:
    with serving(results) as client:
        yield client


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


@pytest.mark.sampled(12)
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
    assert [entry["name"] for entry in get(client, "")["runs"]] == ["coin"]


def test_the_page_is_cached_by_its_content(client: TestClient) -> None:
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert client.get("/static/index.html").content == page.content
    assert client.get("/", headers={"if-none-match": page.headers["etag"]}).status_code == 304


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
