"""A provider's failure in a response with HTTP 200 is an outage: asked again, never the model's answer."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from harness.runtime.runner import RunStoppedError
from tests.extensions.openai.dialects.play import by_seed, calm, every, play, report
from tests.helpers.fake_openai import Body, FakeOpenAI, chat, raw
from tests.helpers.toy import results


def choice(**parts: Any) -> Any:
    """HTTP 200 with a choice of these parts beside an empty message."""
    body = chat("", {"prompt_tokens": 7, "completion_tokens": 0, "total_tokens": 7})
    body["choices"][0] |= parts
    return raw(json.dumps(body))


FAILURES = {
    "error in the choice": choice(error={"code": 502, "message": "Provider returned error"}, finish_reason="error"),
    "finish_reason error": choice(message={"role": "assistant", "content": "a part of"}, finish_reason="error"),
    "finish_reason network_error": choice(message={"role": "assistant", "content": "a"}, finish_reason="network_error"),
    "finish_reason abort": choice(message={"role": "assistant", "content": "b"}, finish_reason="abort"),
    "nothing, of 0 tokens": choice(),
    "null, of 0 tokens": choice(message={"role": "assistant", "content": None}),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_it_is_asked_again_and_in_no_number_and_in_no_cache(tmp_path: Path, failure: str) -> None:
    """OpenRouter: finish_reason `error` and `network_error`, github.com/gethouston/houston/pull/1211; the error behind
    "Provider returned error", github.com/open-webui/computer/issues/293."""
    with FakeOpenAI(by_seed, faults=every(3, FAILURES[failure])) as server:
        done = play(tmp_path / "wild" / "run", server, use_cache=tmp_path / "cache.sqlite")
        asked = len(server.bodies)
    assert report(done)["retries"] == asked - report(done)["requests"] > 5
    assert report(done)["failures"] == 0
    assert results(tmp_path / "wild" / "run") == calm(tmp_path / "calm" / "run")
    with sqlite3.connect(tmp_path / "cache.sqlite") as cache:
        said = [json.loads(row[0])["text"] for row in cache.execute("SELECT answer FROM answers")]
    assert {*said} == {"a", "b"}


def test_a_provider_that_only_fails_stops_the_run(tmp_path: Path) -> None:
    with (
        FakeOpenAI(faults=lambda body: FAILURES["error in the choice"]) as server,
        pytest.raises(RunStoppedError, match=r"first 10 requests to fake all failed, .*Provider returned error"),
    ):
        play(tmp_path / "run", server, {"max_retries": 1})


@pytest.mark.parametrize("reason", ["stop", "end_turn", "eos", "stop_sequence", "STOP", "content_filter", None])
def test_other_words_for_the_end_of_a_reply_are_answers(tmp_path: Path, reason: str | None) -> None:
    def answer(body: Body) -> Body:
        said = chat(by_seed(body))
        said["choices"][0]["finish_reason"] = reason
        return said

    with FakeOpenAI(answer) as server:
        done = play(tmp_path / "run", server)
    assert report(done)["retries"] == 0 and not done.failed


def test_a_filter_that_leaves_nothing_is_the_answer(tmp_path: Path) -> None:
    """The filter of a provider answers in place of the model: asking again would be an evasion of it."""
    with FakeOpenAI(faults=every(3, choice(finish_reason="content_filter"))) as server:
        server.answer = by_seed
        done = play(tmp_path / "run", server)
    assert report(done)["retries"] == 0
