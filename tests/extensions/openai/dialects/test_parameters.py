"""Names and bounds of parameters, roles and empty turns: one refusal, and the server is asked as it wants."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from harness.runtime.runner import RunStoppedError
from tests.extensions.openai.dialects.play import by_seed, calm, errors, play, refusing, report
from tests.helpers.commands import eval_toy
from tests.helpers.fake_openai import Body, FakeOpenAI, Fault, chat, status
from tests.helpers.toy import TOY, results

UNSUPPORTED = "Unsupported parameter: '{0}' is not supported with this model."


def test_a_server_that_wants_the_other_name_for_the_most_tokens(tmp_path: Path) -> None:
    """Azure: github.com/anomalyco/opencode/issues/37964, github.com/owndev/Open-WebUI-Functions/issues/136."""
    message = UNSUPPORTED.format("max_tokens") + " Use 'max_completion_tokens' instead."
    refuse = refusing(message, lambda body: "max_tokens" in body)
    with FakeOpenAI(by_seed, faults=refuse) as server:
        done = play(tmp_path / "wild" / "run", server, max_concurrency=1)
        refused = [body for body in server.bodies if "max_tokens" in body]
        assert len(refused) == 1, "then it is remembered"
        assert all(body["max_completion_tokens"] == 8 for body in server.bodies if body not in refused)
    assert report(done)["failures"] == 0 and errors(done) == []
    assert results(tmp_path / "wild" / "run") == calm(tmp_path / "calm" / "run")


def test_a_server_that_knows_neither_name_is_not_asked_forever(tmp_path: Path) -> None:
    def refuse(body: Body) -> Fault | None:
        name = next(name for name in body if name.startswith("max_"))
        return status(400, UNSUPPORTED.format(name))

    with (
        FakeOpenAI(by_seed, faults=refuse) as server,
        pytest.raises(RunStoppedError, match="first 10 requests to fake all failed"),
    ):
        play(tmp_path / "run", server, max_concurrency=1)
    assert len(server.bodies) == 11


@pytest.mark.parametrize(
    ("most", "message"),
    [
        (4, "Invalid 'stop': array too long. Expected an array with maximum length 4, but got one of length 5."),
        (0, UNSUPPORTED.format("stop")),  # gpt-5, o3, o4-mini
        (4, "'$.stop' is invalid. Please check the API reference."),  # Azure
    ],
)
def test_stops_that_a_server_does_not_take_are_cut_here(tmp_path: Path, most: int, message: str) -> None:
    """More than four: github.com/langchain-ai/langchain/issues/20234; none: github.com/BerriAI/litellm/pull/28655."""
    stops = (f"generation_kwargs.stop={['#', '%', '&', '~', 'END']}",)

    def refuse(body: Body) -> Fault | None:
        return status(400, message, param="stop") if len(body.get("stop", ())) > most else None

    def answer(body: Body) -> Body:
        text = by_seed(body) + "ENDb a"
        ends = [at for stop in body.get("stop", ()) if (at := text.find(stop)) >= 0]
        return chat(text[: min(ends)] if ends else text)

    with FakeOpenAI(answer, faults=refuse) as server:
        done = play(tmp_path / "wild" / "run", server, overrides=stops, max_concurrency=1)
        assert [len(body.get("stop", ())) for body in server.bodies[-9:]] == [most] * 9
    assert report(done)["failures"] == 0 and errors(done) == []
    with FakeOpenAI(answer) as server:
        play(tmp_path / "calm" / "run", server, overrides=stops)
    wild, calm = (results(tmp_path / name / "run") for name in ("wild", "calm"))
    billed = re.compile(rb'"usage": \{.*?\}\}')  # what was cut here was written and paid for
    assert {name: billed.sub(b"", data) for name, data in wild.items()} == {
        name: billed.sub(b"", data) for name, data in calm.items()
    }


@pytest.mark.parametrize("name", ["max_tokens", "temperature"])
def test_null_takes_a_parameter_out(tmp_path: Path, name: str) -> None:
    with FakeOpenAI(by_seed) as server:
        done = play(tmp_path / "run", server, overrides=(f"generation_kwargs.{name}=null",))
    assert not any(name in body for body in server.bodies) and errors(done) == []
    assert ({"max_tokens", "temperature"} - {name}) < server.bodies[0].keys()


@pytest.mark.parametrize("name", ["max_tokens", "max_new_tokens"])
def test_null_on_the_command_line_takes_a_parameter_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(TOY.root)
    with FakeOpenAI(by_seed) as server:
        engine = ("--model", "openai", "--model_args", f"model=fake,api_key_env=NO_SUCH_KEY,base_url={server.url}")
        code, _, err = eval_toy(capsys, tmp_path / "run", *engine, "--gen_kwargs", f"{name}=null")
    assert code == 0, err
    assert not any("max_tokens" in body for body in server.bodies) and server.bodies[0]["temperature"] == 1


def test_a_temperature_that_is_refused_says_how_to_leave_it_out(tmp_path: Path) -> None:
    message = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is supported."
    with (
        FakeOpenAI(by_seed, faults=lambda body: status(400, message)) as server,
        pytest.raises(RunStoppedError, match="--gen_kwargs temperature=null leaves it out"),
    ):
        play(tmp_path / "run", server)


NO_SYSTEM = [
    "System role not supported",  # Gemma's template
    "Conversation roles must alternate user/assistant/user/assistant/...",  # Mistral's first
    "Only user, assistant and tool roles are supported, got system",
]


@pytest.mark.parametrize("message", NO_SYSTEM)
def test_templates_without_a_system_role(tmp_path: Path, message: str) -> None:
    """github.com/suitenumerique/conversations/issues/197, github.com/anomalyco/opencode/issues/5034."""
    refuse = refusing(message, lambda body: body["messages"][0]["role"] == "system")
    with FakeOpenAI(by_seed, faults=refuse) as server:
        with pytest.raises(RunStoppedError, match="'system': 'merge'"):
            play(tmp_path / "wild" / "run", server)
        done = play(tmp_path / "merged" / "run", server, {"system": "merge"})
    first = server.bodies[-1]["messages"]
    assert [one["role"] for one in first] == ["user", "assistant"] * (len(first) // 2) + ["user"]
    assert first[0]["content"].startswith("You are S")
    assert first[0]["content"].endswith("\n\nRound 0. Say one letter.")
    assert errors(done) == []


EMPTY = {
    "Mistral": "Assistant message must have either content or tool_calls, but not none.",
    "Bedrock": "The content field in the Message object at messages.2 is empty. Add a ContentBlock object to the "
    "content field and try again.",
    "Anthropic": "messages.1: all messages must have non-empty content except for the optional final assistant message",
}


@pytest.mark.parametrize("server_words", EMPTY)
def test_a_conversation_with_an_empty_reply_goes_on(tmp_path: Path, server_words: str) -> None:
    """github.com/NousResearch/hermes-agent/issues/31583, github.com/OpenHands/OpenHands/issues/8685,
    github.com/Portkey-AI/gateway/issues/995."""

    def refuse(body: Body) -> Fault | None:
        lacks = [one for one in body["messages"] if one["role"] == "assistant" and not one["content"]]
        return status(400, EMPTY[server_words]) if lacks else None

    def answer(body: Body) -> str | Body:
        silent = body["seed"] % 4 == 1
        return chat("", {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}) if silent else by_seed(body)

    with FakeOpenAI(answer, faults=refuse) as server:
        done = play(tmp_path / "run", server, max_concurrency=1)
        placed: list[Any] = [one["content"] for body in server.bodies for one in body["messages"]]
    kinds = {turn["error_kind"] for turn in done.turns()}
    assert kinds <= {None, "parse"} and report(done)["failures"] == 0
    assert placed.count("(no reply)") > 3
    assert done.meta["engine_args"]["model"]["empty_reply"] == "(no reply)", "a part of what the run is"
