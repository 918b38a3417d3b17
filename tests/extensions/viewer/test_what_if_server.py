"""Whom the viewer lets play an episode on with another reply, and what it answers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from harness.extensions.viewer._app import WhatIf
from harness.extensions.viewer._guard import KEY
from tests.helpers.commands import invoke
from tests.helpers.toy import run
from tests.helpers.viewing import get, serving

EPISODE = "agents=2/c0/0"
OWN = {"origin": "http://127.0.0.1:8400", "content-type": "application/json", KEY: "secret"}
ASKED = {"episode": EPISODE, "turn": 0, "text": "a", "player": None}
PATH = "/api/runs/coin/what_if"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("results")
    run(root / "coin", overrides=("agents=null",))
    return root


@pytest.fixture(scope="module")
def client(results: Path) -> Iterator[TestClient]:
    with serving(results, what_if=WhatIf("secret")) as client:
        yield client


def post(client: TestClient, body: Any = ASKED, path: str = PATH, headers: dict[str, str | None] | None = None) -> Any:
    merged = {**OWN, **(headers or {})}
    sent = {name.encode(): value.encode() for name, value in merged.items() if value is not None}
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return client.post(path, content=data, headers=sent)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({KEY: None}, 403),
        ({KEY: "secre"}, 403),
        ({KEY: "secret\u00e9"}, 403),
        ({"origin": None}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"host": "evil.example"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": None}, 415),
    ],
)
def test_other_pages_and_readers_without_the_key_play_nothing(
    client: TestClient, results: Path, headers: dict[str, str | None], status: int
) -> None:
    before = {*results.iterdir()}
    assert post(client, headers=headers).status_code == status
    assert {*results.iterdir()} == before


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_else_is_written(client: TestClient, method: str) -> None:
    for path in ("/api/runs", "/api/runs/coin", "/api/runs/coin/episode", "/api/runs/coin/what_if/", "/"):
        assert client.request(method, path, headers=OWN).status_code in (403, 405)


def test_a_viewer_that_only_reads_has_no_such_thing(results: Path) -> None:
    with serving(results) as client:
        assert post(client).status_code == 405
        for path in ("/api/what_if", f"{PATH}?episode={EPISODE}&turn=0"):
            assert client.get(path, headers=OWN).status_code == 403


def test_the_page_learns_who_may_answer_with_the_key_only(results: Path, client: TestClient) -> None:
    for path in ("/api/what_if", PATH, f"{PATH}%0A"):
        assert client.get(f"{path}?episode={EPISODE}&turn=0").status_code == 403
    assert client.get("/api/what_if", headers=OWN).json() == {"model": None}
    model = {"use": "openai", "model": "m1", "api_key": "hidden"}
    with serving(results, what_if=WhatIf("secret", model)) as other:
        answer = other.get("/api/what_if", headers=OWN)
        assert answer.json() == {"model": "m1"} and "hidden" not in answer.text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b"\xff",
        b"[]",
        b"null",
        {},
        {**ASKED, "more": 1},
        {**ASKED, "turn": "0"},
        {**ASKED, "turn": True},
        {**ASKED, "episode": None},
        {**ASKED, "text": ["a"]},
        {**ASKED, "player": 3},
        {**ASKED, "text": "a" * 300_000},
    ],
    ids=range(14),
)
def test_a_request_of_another_shape_is_refused_with_the_reason(client: TestClient, body: Any) -> None:
    answer = post(client, body)
    assert answer.status_code == 400 and answer.json()["error"]
    assert post(client, path="/api/runs/none/what_if").status_code == 404


@pytest.mark.slow
def test_an_unknown_player_is_refused(client: TestClient, results: Path) -> None:
    before = {*results.iterdir()}
    answer = post(client, {**ASKED, "player": "nobdy\u202e"})
    assert answer.status_code == 400 and "cannot play on here" in answer.json()["error"]
    assert "\u202e" not in answer.text and {*results.iterdir()} == before


@pytest.mark.slow
def test_an_episode_is_played_on_and_both_versions_are_shown(client: TestClient, results: Path) -> None:
    legal = client.get(f"{PATH}?episode={EPISODE}&turn=0", headers=OWN).json()
    other = next(text for text in legal["legal"] if text != legal["text"])
    answer = post(client, {**ASKED, "text": other})
    assert answer.status_code == 200, answer.text
    made = answer.json()["run"]
    assert made.startswith("coin-replay-") and (results / made / "run.json").is_file()
    before, after = (get(client, f"/{name}/episode", episode=EPISODE) for name in ("coin", made))
    assert (before["parent"], after["parent"]) == (None, "coin")
    assert before["turns"][0]["action"] != after["turns"][0]["action"] == other
    for text, said in (("\u202eno such letter", "say one of a, b"), ("a", "itself a replay")):
        refused = post(client, {**ASKED, "text": text}, PATH if "letter" in text else f"/api/runs/{made}/what_if")
        assert refused.status_code == 400 and said in refused.json()["error"] and "\u202e" not in refused.text
    assert post(client, {**ASKED, "turn": 10**30}).status_code == 400
    assert post(client, {**ASKED, "turn": -1}).status_code == 400
    assert post(client, {**ASKED, "episode": "../x"}).status_code == 400


def test_a_model_is_configured_only_where_readers_may_play(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = invoke(capsys, "view", str(results), "--model", "mock")
    assert code == 2 and "--model: nothing is asked of a model" in err and "Add --what_if." in err
    code, _, err = invoke(capsys, "view", str(results), "--model_args", "model=m1")
    assert code == 2 and "Add --what_if." in err
    code, _, err = invoke(capsys, "view", str(results), "--what_if", "--model", "mocc")
    assert code == 2 and "--model" in err and "Did you mean mock?" in err
    code, _, err = invoke(capsys, "view", str(results), "--what_if", "--max_calls", "3")
    assert code == 2 and "--max_calls: no model is asked" in err and "Add --model." in err


def test_a_model_that_answers_in_batches_is_refused(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = ("--model", "openai", "--model_args", "model=m,batch=true")
    code, _, err = invoke(capsys, "view", str(results), "--what_if", *model)
    assert code == 2 and "m answers in batches" in err and "Leave batch out." in err
