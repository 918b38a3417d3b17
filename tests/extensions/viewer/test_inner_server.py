"""Inner calls and costs as the viewer's server gives them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from harness.api import Completion, Request
from harness.api.errors import RequestError
from harness.config import resolve, spec
from harness.config.project import builtin
from harness.engines.mock import Mock
from harness.evaluation.stages import execute
from harness.extensions.viewer._inner import AT_ONCE, inner_json
from harness.runtime.options import Options
from tests.helpers.programs import Ask, Programs
from tests.helpers.viewing import get, serving

MANY = 60
LONG = "long " * 10_000


def answer(request: Request) -> Completion:
    text = request.thread.messages[-1]["content"]
    if text == "fail":
        raise RequestError("the server <b>fell</b>")
    if text == "silent":
        return Completion("", output_tokens=None)
    calls = [{"id": "1", "name": "look", "arguments": '{"at": 1}'}] if text == "look" else None
    return Completion("so \u202e " + text, reasoning="hm", input_tokens=10, output_tokens=2, tool_calls=calls)


async def program(ask: Ask, request: Request) -> str:
    first = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "look"}]
    await ask("", messages=first, tools=[{"name": "look", "description": "see", "parameters": {}}, {"odd": 1}])
    await ask("", messages=[*first, {"role": "assistant", "content": "x"}, {"role": "user", "content": LONG}])
    with pytest.raises(RequestError):
        await ask("fail")
    await ask("silent")
    for number in range(MANY):
        await ask(f"question {number}")
    return "42"


async def fails(ask: Ask, request: Request) -> str:
    await ask("one")
    raise RequestError("the program fell over")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    root = tmp_path_factory.mktemp("runs")
    prices = "prices={small: {input: 1000, output: 1000}}"
    loaded = spec.load("arithmetic", builtin(), ["matrix.terms=[2]", "protocol.parse_retries=0", prices], limit=1)
    engine = Programs(program=program, inner=Mock(model="small", function=answer))
    execute(resolve.plan(loaded, builtin(), engine), Options(output_path=root / "agent", max_error_rate=1.0))
    failing = Programs(program=fails, inner=Mock(model="small", function=answer))
    execute(resolve.plan(loaded, builtin(), failing), Options(output_path=root / "failing", max_error_rate=1.0))
    bare = spec.load("arithmetic", builtin(), ["matrix.terms=[2]"], limit=1)
    execute(resolve.plan(bare, builtin(), Mock(model="free", function=answer)), Options(output_path=root / "bare"))
    with serving(root, builtin().root) as served:
        yield served


PAID = (2 + MANY) * 12 * 1000 / 1e6


def test_runs_and_episodes_have_what_is_known_of_their_costs(client: TestClient) -> None:
    lines = {line["name"]: line for line in get(client, "")["runs"]}
    for shown in (lines["agent"], get(client, "/agent"), get(client, "/agent/episodes", sort="cost")["episodes"][0]):
        assert shown["cost"] == pytest.approx(PAID) and shown["cost_is_whole"] is False, "one call says no tokens"
        assert shown["inner_calls"] == MANY + 4
    assert lines["bare"]["cost"] is None and lines["bare"]["inner_calls"] is None


def test_tokens_agree_with_the_cost_where_a_turn_failed(client: TestClient) -> None:
    run = next(line for line in get(client, "")["runs"] if line["name"] == "failing")
    [row] = get(client, "/failing/episodes")["episodes"]
    [turn] = get(client, "/failing/episode", episode=row["id"])["turns"]
    assert turn["calls"] == [] and turn["used"] == {"input_tokens": 10, "output_tokens": 2}
    assert (row["input_tokens"], row["output_tokens"]) == (10, 2)
    assert run["tokens"] == 12 and run["cost"] == pytest.approx(0.012)


def test_a_turn_has_a_line_of_its_inner_calls_and_the_calls_when_they_are_opened(client: TestClient) -> None:
    name = get(client, "/agent/episodes")["episodes"][0]["id"]
    episode = get(client, "/agent/episode", episode=name)
    [turn] = episode["turns"]
    used = turn["inner"]
    assert (used["calls"], used["failed"], used["cost_is_whole"]) == (MANY + 4, 1, False)
    assert used["cost"] == episode["cost"] == pytest.approx(PAID) and [*episode["paid"]] == episode["agents"]
    assert "question 7" not in str(episode)
    found = get(client, "/agent/inner", episode=name, turn=0)
    assert found["total"] == MANY + 4 and len(found["calls"]) == AT_ONCE
    first, second, failed, silent = found["calls"][:4]
    assert [one["role"] for one in first["messages"]] == ["system", "user"] and first["earlier"] == 0
    assert first["tools"] == 'look(): see\n{"odd": 1}' and first["reply"] == 'so \u202e look\nlook({"at": 1})'
    assert (second["earlier"], [one["role"] for one in second["messages"]]) == (2, ["assistant", "user"])
    assert first["model"] == "small" and first["cost"] == pytest.approx(0.012) and first["reasoning"] == "hm"
    assert failed["error"] == "the server <b>fell</b>" and failed["reply"] is None and failed["cost"] is None
    assert silent["reply"] == "" and silent["cost"] is None
    rest = get(client, "/agent/inner", episode=name, turn=0, offset=AT_ONCE)["calls"]
    assert [one["number"] for one in rest] == [*range(AT_ONCE, MANY + 4)]
    assert get(client, "/agent/inner", episode=name, turn=99) == {"total": 0, "calls": [], "cuts": {}}


def test_a_long_text_of_an_inner_call_is_cut_and_can_be_had_whole(client: TestClient) -> None:
    name = get(client, "/agent/episodes")["episodes"][0]["id"]
    found = get(client, "/agent/inner", episode=name, turn=0)
    part = f"{found['calls'][1]['name']}.message.1"
    assert found["cuts"][part] == len(LONG) > len(found["calls"][1]["messages"][1]["text"])
    query = {"episode": name, "turn": 0, "part": part}
    assert client.get("/api/runs/agent/text", params=query).text == LONG
    for wrong in ("inner.0.1.message.9", "inner.0.999.reply", "inner.0.1.nothing", "inner.x"):
        assert client.get("/api/runs/agent/text", params={**query, "part": wrong}).status_code == 404


def test_what_a_program_did_not_ask_again_is_marked() -> None:
    call: dict[str, Any] = {"k": "inner", "i": 0, "r": 0, "n": 0, "model": "a.inner", "dropped": True, "try": 1}
    call |= {"ask": {"text": "on"}, "call": {"text": "x"}}
    found = inner_json([call], -3, {"inner": {"a": {"engine": "a.inner", "model": "m"}}}, {})
    [shown] = found["calls"]
    assert shown["dropped"] and shown["model"] == "m" and shown["start"] == 1
    assert shown["messages"] == [{"role": "text", "text": "on"}]
