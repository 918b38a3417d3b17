"""Agents whose own model is one of the run's: how programs, functions, classes and servers find it, what is recorded,
and what they may do wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.api.errors import SetupError
from harness.extensions.agents.agent import Agent
from harness.runtime.runner import RunStoppedError
from tests.helpers.fake_openai import FakeOpenAI, Fault, status
from tests.helpers.inner_agents import MODULE, Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_program_finds_its_model_in_its_environment(place: Place) -> None:
    command = place.program('ask("say b"); say(text=ask("say a"), input_tokens=999, cost=5)')
    run = place.play({"command": command}, rounds=2)
    moves = place.lines("move")
    assert len(moves) == 4 and all(move["a"] == "a" for move in moves)
    assert sorted(place.asked) == ["say a"] * 4 + ["say b"] * 4
    for move in moves:
        assert {name: move["inner"][name] for name in ("calls", "input_tokens", "output_tokens")} == {
            "calls": 2, "input_tokens": 4, "output_tokens": 2}  # fmt: skip
        [call] = move["calls"]
        assert (call["input_tokens"], call["output_tokens"], "cost" in call) == (4, 2, False)
    assert run.scores[0].labels["model"].endswith(" (parrot)")
    assert run.meta["engine_args"]["model.inner"]["log"] == str(place.log)
    assert {line["model"] for line in place.lines("inner")} == {"model.inner"}
    assert len({line["seed"] for line in place.lines("inner")}) == 8


def test_a_limit_is_the_error_of_the_provider_and_a_limited_move(place: Place) -> None:
    command = place.program(
        f"""
answers = [call(f"say {{i}}") for i in range(4)]
note({str(place.folder / "seen")!r}, [status for status, _ in answers], answers[-1][1]["error"]["code"])
if question["agent"] == "S0": say(text="a")
else: sys.exit(1)
"""
    )
    place.play({"command": command, "inner_limits": {"turn": {"calls": 2}}})
    assert [*place.notes("seen")] == [[[200, 200, 429, 429], "insufficient_quota"]] * 2
    by_agent = {move["s"]: move for move in place.lines("move")}
    assert by_agent["S0"]["a"] == "a" and by_agent["S0"]["inner"]["refused"] == 2 and "error" not in by_agent["S0"]
    assert by_agent["S1"]["error_kind"] == "limit"
    assert by_agent["S1"]["error"].startswith("the limit of 2 calls a turn is reached; then ")


@pytest.mark.parametrize(("call", "args"), [("Thinker", {}), ("function", {"word": "a"})])
def test_functions_and_classes_have_parameters_for_it(tmp_path: Path, call: str, args: Any) -> None:
    place = Place(tmp_path)
    name = f"thinkers_{call.lower()}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    import sys

    sys.path.insert(0, str(tmp_path))
    try:
        place.play({"call": f"{name}:{call}", "args": args}, rounds=2)
    finally:
        sys.path.remove(str(tmp_path))
    assert [move["a"] for move in place.lines("move")] == ["a"] * 4
    assert {move["inner"]["calls"] for move in place.lines("move")} == {1}


def test_what_is_the_fault_of_the_model_is_not_that_of_the_program(place: Place) -> None:
    command = place.program(
        """
status, answer = call("too long" if question["agent"] == "S0" else "fail")
say(error=str(status) + " " + answer["error"]["message"])
"""
    )
    with pytest.raises(RunStoppedError, match="nothing was answered since"):
        place.play({"command": command})
    kinds = {move["s"]: move for move in place.lines("move")}
    assert kinds["S1"]["error_kind"] == "inner" and kinds["S1"]["engine"][0] == "model.inner"
    assert kinds["S0"]["error_kind"] == "context_length" and "400" in kinds["S0"]["error"]


TOOLS = [{"type": "function", "function": {"name": "wait", "parameters": {"type": "object", "properties": {}}}}]


@pytest.mark.parametrize(
    ("odd", "refusal"),
    [
        pytest.param({"path": "/completions"}, status(404, "This is a chat model"), id="text"),
        pytest.param({"tools": TOOLS}, status(400, "fake does not support tools"), id="tools"),
        pytest.param({"top_k": 9}, status(400, "unknown parameter: top_k"), id="sampling"),
    ],
)
def test_what_a_server_does_not_take_of_a_program_ends_no_run(
    place: Place, odd: dict[str, Any], refusal: Fault
) -> None:
    """The program chose to ask so, and not the spec: it hears it, and all others go on."""
    seen = str(place.folder / "seen")
    command = place.program(
        f"""
ask("say a")
if question["agent"] == "S0":
    for _ in range(3): status, answer = call("say b", **{odd!r})
    note({seen!r}, status, answer["error"]["code"])
say(text="a")
"""
    )
    refused = {"prompt", "tools", "top_k"}
    with FakeOpenAI(lambda body: "a", faults=lambda body: refusal if refused & body.keys() else None) as server:
        inner = {"use": "openai", "model": "fake", "base_url": server.url, "api_key_env": ""}
        place.play({"command": command, "inner": inner}, rounds=2, max_error_rate=0.02)
    assert [move["a"] for move in place.lines("move")] == ["a"] * 4
    assert [*place.notes("seen")] == [[400, "refused_by_engine"]] * 2


def test_tools_that_the_model_would_not_see_are_refused(place: Place) -> None:
    """Its card says that the server takes them and leaves them out of the prompt."""
    seen = str(place.folder / "seen")
    command = place.program(
        f"""
status, answer = call("say b", tools={TOOLS!r}, tool_choice="required")
note({seen!r}, status, answer["error"]["message"])
say(text=ask("say a"))
"""
    )
    with FakeOpenAI(lambda body: "a") as server:
        card = {"card": 1, "server": server.url, "model": "fake", "at": "2026-11-30T00:00:00+00:00", "tools": "dropped"}
        (place.folder / "card.json").write_text(json.dumps({**card, "harness": "0.7.0", "requests": 23}))
        inner = {"use": "openai", "model": "fake", "base_url": server.url, "card": str(place.folder / "card.json")}
        place.play({"command": command, "inner": {**inner, "api_key_env": ""}})
        assert len(server.bodies) == 2 and not any("tools" in body for body in server.bodies)
    assert [*place.notes("seen")] == [[400, "fake calls no tools: the server leaves tools out of its prompts"]] * 2


def test_a_program_that_dies_between_request_and_answer_loses_no_answer(place: Place) -> None:
    """It is started again for its next turn, and the answer is on the record."""
    command = place.program(
        """
if question["id"].endswith("/0/0"):
    at = urlsplit(os.environ["OPENAI_BASE_URL"])
    connection = http.client.HTTPConnection(at.hostname, at.port)
    body = json.dumps({"model": os.environ["OPENAI_MODEL"], "messages": [{"role": "user", "content": "and dies"}]})
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    connection.request("POST", at.path + "/chat/completions", body, headers)
    os._exit(3)
say(text=ask("say a"))
"""
    )
    place.play({"command": command}, rounds=2, max_error_rate=1.0)
    first, second = ([move for move in place.lines("move") if move["i"] == i] for i in (0, 1))
    assert {move["error_kind"] for move in first} == {"request"} and {move["a"] for move in second} == {"a"}
    recorded = [line for line in place.lines("inner") if line["i"] == 0]
    assert len(recorded) == place.asked.count("and dies")
    assert all(line["call"]["text"] == "dies" for line in recorded)


def test_what_goes_on_after_the_reply_is_refused(place: Place) -> None:
    """A child that was forked, and a thread: the turn is over, and so is the seat once its episode is."""
    seen = str(place.folder / "seen")
    command = place.program(
        f"""
if question["agent"] == "S0" and os.fork() == 0:
    os.setsid()
    while True:
        try:
            status, answer = call("from the child")
        except OSError:
            os._exit(0)
        if status != 200:
            note({seen!r}, "child", status, answer["error"]["code"])
            os._exit(0)
say(text="a")
"""
    )
    place.play({"command": command}, rounds=2)
    assert [move["a"] for move in place.lines("move")] == ["a"] * 4
    for who, answered, code in place.notes("seen") if (place.folder / "seen").exists() else ():
        assert who == "child" and (answered, code) in ((409, "no_turn"), (410, "seat_closed"))
    assert sum(move["inner"].get("calls", 0) for move in place.lines("move")) == len(place.lines("inner"))


def test_names_of_models_and_variables_of_its_own(place: Place) -> None:
    seen = str(place.folder / "seen")
    command = place.program(
        f"""
is_there = os.environ["MY_URL"] == os.environ["OPENAI_BASE_URL"]
note({seen!r}, call("x", model="gpt-9")[0], call("x", model="o1")[0], is_there)
say(text="a")
"""
    )
    place.play({"command": command, "inner_aliases": ["gpt-9"], "env": {"MY_URL": "base_url"}})
    assert [*place.notes("seen")] == [[200, 404, True]] * 2


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"inner_args": {"text": "a"}}, "inner_args= is about the agent's own model; inner= names none"),
        ({"env": {"A": "base_url"}}, "env= is about the agent's own model"),
        ({"inner": "mock", "env": {"A": "url"}}, r"env: A is to say 'url'"),
        ({"inner": "mock", "inner_limits": {"episode": {"calls": 1}}}, "inner_limits has 'episode'"),
        ({"inner": "mock", "inner_limits": {"turn": {"call": 1}}}, "inner_limits: turn has no 'call'"),
        ({"inner": "mock", "inner_limits": {"turn": {"calls": 0}}}, "must be above 0, found 0"),
        ({"inner": {"use": "mock"}, "inner_args": {"text": "a"}}, "inner= is a mapping already"),
        ({"inner": "mock", "inner_kwargs": {"temprature": 1}}, "unknown word 'temprature'"),
    ],
)
def test_fields_that_do_not_fit_say_so(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(SetupError, match=said):
        Agent(command="true", **fields)
