"""Batches of a provider: the results of a run are those without batches, whatever becomes of a batch."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Request, Thread
from harness.api.errors import SetupError
from harness.extensions.openai.openai import OpenAI
from harness.runtime.runner import RunStoppedError
from tests.extensions.openai.dialects.play import ENGINE, by_seed, calm, errors, every, play, report
from tests.helpers.commands import TOY
from tests.helpers.fake_batches import FakeBatches
from tests.helpers.fake_openai import Body, FakeOpenAI, Fault, chat, raw, reset, status
from tests.helpers.toy import results

WAVES = [20, 20, 20]
"""Requests of each round of the toy spec's eight episodes."""
LIMITED = status(429, "Rate limit reached. Please try again in 1ms.")
EVENTS = ["upload", "uploaded", "create", "created", "poll", "download"]


def batched(folder: Path, server: FakeBatches, engine: dict[str, Any] | None = None, **options: Any) -> harness.Run:
    """Eight episodes in batches that are polled without a pause."""
    return play(folder, server, {"batch": {"poll": 0.0}, **(engine or {})}, **options)


def poll(**more: Any) -> dict[str, Any]:
    return {"batch": {"poll": 0.0, **more}}


def is_paid_once(server: FakeBatches) -> bool:
    return max(Counter(server.paid).values()) == 1


def paid_in_full(folder: Path) -> dict[str, bytes]:
    """The results of a run in batches as if they were not: all tokens of its scores are those of batches."""
    wild = results(folder)
    lines = [json.loads(line) for line in wild["scores.jsonl"].splitlines()]
    for counts in (counts for line in lines for counts in line.get("usage", {}).values()):
        assert {kind: counts.pop(f"batch_{kind}") for kind in [*counts] if f"batch_{kind}" in counts} == counts
    return {**wild, "scores.jsonl": b"".join(json.dumps(line).encode() + b"\n" for line in lines)}


def same_as_calm(folder: Path, **options: Any) -> bool:
    return paid_in_full(folder / "wild" / "run") == calm(folder / "calm" / "run", **options)


def test_each_round_of_all_episodes_is_a_batch(tmp_path: Path) -> None:
    with FakeBatches(by_seed) as server:
        done = batched(tmp_path / "wild" / "run", server)
    assert server.sizes == WAVES and is_paid_once(server) and not server.paths
    assert report(done) == {"requests": 60, "retries": 0, "failures": 0, "batches": 3, "answered_as": {"fake": 60}}
    assert same_as_calm(tmp_path)


def test_more_episodes_than_other_runs_keep_open_are_in_one_wave(tmp_path: Path) -> None:
    with FakeBatches(by_seed) as server:
        batched(tmp_path / "run", server, repeats=33)
    assert server.sizes == [660, 660, 660]


def test_max_concurrency_bounds_a_wave(tmp_path: Path) -> None:
    with FakeBatches(by_seed) as server:
        batched(tmp_path / "wild" / "run", server, max_concurrency=10)
    assert max(server.sizes) == 10 and sum(server.sizes) == 60
    assert same_as_calm(tmp_path)


# --------------------------------------------------------------------------------------- a process that ends


def ending(event: str, number: int, end: Callable[[], None]) -> Callable[[str], None]:
    """Ends the process at an event, when it happens for this time."""
    seen: Counter[str] = Counter()

    def on(now: str) -> None:
        seen[now] += 1
        if now == event and seen[now] == number:
            end()

    return on


@pytest.mark.sampled
@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("forgets", [False, True])
def test_a_run_that_was_interrupted_creates_no_batch_twice(tmp_path: Path, event: str, forgets: bool) -> None:
    """Ctrl-C does not wait for batches: in the second wave, at each step."""
    folder = tmp_path / "wild" / "run"
    on = ending(event, 6 if event == "poll" else 2, lambda: os.kill(os.getpid(), signal.SIGINT))
    with FakeBatches(by_seed, on=on, forgets_metadata=forgets) as server:
        with pytest.raises(KeyboardInterrupt):
            batched(folder, server)
        batched(folder, server)
    assert server.sizes == WAVES and is_paid_once(server)
    assert same_as_calm(tmp_path)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("event", EVENTS[::-1])
def test_a_run_that_was_killed_creates_no_batch_twice(tmp_path: Path, event: str) -> None:
    """kill -9 at each step of the second wave, and once more when the same command goes on."""
    folder = tmp_path / "wild" / "run"
    processes: list[subprocess.Popen[str]] = []
    kill = lambda: processes[-1].kill()  # noqa: E731
    first, second = (6, 8) if event == "poll" else (2, 3)
    both = ending(event, first, kill), ending(event, second, kill)

    def on(now: str) -> None:
        for each in both:
            each(now)

    with FakeBatches(by_seed, on=on) as server:
        fields = {**ENGINE, "base_url": server.url, "batch": "{poll: 0.01}"}
        command = [sys.executable, "-m", "harness", "eval", "--spec", "toy", "--model", "openai", "--output_path"]
        command += [str(folder), "--model_args", ",".join(f"{key}={value}" for key, value in fields.items())]
        codes = []
        for _ in range(3):
            processes.append(subprocess.Popen(command, cwd=TOY, stderr=subprocess.PIPE, text=True))
            said = processes[-1].communicate()[1]
            codes.append(processes[-1].returncode)
    assert codes == [-signal.SIGKILL, -signal.SIGKILL, 0], said
    assert server.sizes == WAVES and is_paid_once(server)
    assert same_as_calm(tmp_path)


def test_a_batch_of_another_run_is_not_taken(tmp_path: Path) -> None:
    with FakeBatches(by_seed) as server:
        batched(tmp_path / "run", server)
        batched(tmp_path / "run", server, overwrite=True, resume=False)
        batched(tmp_path / "other", server)
    assert server.sizes == WAVES * 3


def test_batches_of_another_address_are_named_and_taken_when_the_run_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    on = ending("poll", 6, lambda: os.kill(os.getpid(), signal.SIGINT))
    with FakeBatches(by_seed, on=on) as server, FakeBatches(by_seed) as other:
        with pytest.raises(KeyboardInterrupt):
            batched(tmp_path / "wild" / "run", server)
        assert "20 requests stay with the provider (batch_1): the same command takes their answers" in caplog.messages
        other.on = ending("uploaded", 1, lambda: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            batched(tmp_path / "wild" / "run", other)
        assert f"batches of another address than {other.url} are not waited for: batch_1" in caplog.messages
        batched(tmp_path / "wild" / "run", server)
    assert server.sizes == WAVES and same_as_calm(tmp_path)


def test_a_creation_without_an_answer_is_not_repeated(tmp_path: Path) -> None:
    with FakeBatches(by_seed, lost=2) as server:
        batched(tmp_path / "wild" / "run", server)
    assert server.sizes == WAVES and same_as_calm(tmp_path)


def test_the_time_ends_a_run_that_waits_for_a_batch(tmp_path: Path) -> None:
    """The time is over while the batch is under way; what it answers is taken later."""
    hours = [status(503, "later")] * 100
    with FakeBatches(by_seed, polls=hours) as server:
        with pytest.raises(RunStoppedError, match="max_time"):
            batched(tmp_path / "wild" / "run", server, {"batch": {"poll": 0.05}}, max_time=0.2)
        server.faults_of["poll"].clear()
        batched(tmp_path / "wild" / "run", server)
    assert server.sizes == WAVES and same_as_calm(tmp_path)


# --------------------------------------------------------------------------------------- requests that fail


FAILING: dict[str, Fault] = {
    "500": status(500, "overloaded"),
    "429": LIMITED,
    "failure inside 200": raw(json.dumps(chat("", finish_reason="error"))),
    "nothing, of 0 tokens": raw(json.dumps(chat("", {"prompt_tokens": 7, "completion_tokens": 0}))),
}


@pytest.mark.parametrize("failure", FAILING)
def test_requests_that_failed_are_asked_again_in_the_next_batch(tmp_path: Path, failure: str) -> None:
    with FakeBatches(by_seed, faults=every(3, FAILING[failure])) as server:
        done = batched(tmp_path / "wild" / "run", server)
    assert sum(server.sizes) > 60 and len(server.batches) <= 6 and errors(done) == []
    assert same_as_calm(tmp_path)


def test_a_refused_request_is_an_error_of_its_move_as_without_batches(tmp_path: Path) -> None:
    def faults(body: Body) -> Fault | None:
        return status(400, "no such thing") if body["seed"] % 5 == 0 else None

    with FakeBatches(by_seed, faults=faults) as server:
        done = batched(tmp_path / "batches" / "run", server)
    with FakeOpenAI(by_seed, faults=faults) as plain:
        other = play(tmp_path / "plain" / "run", plain)
    assert errors(done) == errors(other) != []
    assert paid_in_full(tmp_path / "batches" / "run") == results(tmp_path / "plain" / "run")


def test_what_a_server_refuses_is_written_otherwise_also_after_a_resume(tmp_path: Path) -> None:
    """The second process writes the old word again, and still finds the batches with the new one."""

    def faults(body: Body) -> Fault | None:
        words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
        return status(400, words) if "max_tokens" in body else None

    on = ending("poll", 10, lambda: os.kill(os.getpid(), signal.SIGINT))
    with FakeBatches(by_seed, faults=faults, on=on) as server:
        with pytest.raises(KeyboardInterrupt):
            batched(tmp_path / "wild" / "run", server)
        done = batched(tmp_path / "wild" / "run", server)
    assert errors(done) == [] and is_paid_once(server) and len(server.paid) == 60
    assert same_as_calm(tmp_path)


def test_expired_requests_are_asked_again(tmp_path: Path) -> None:
    with FakeBatches(by_seed, expires={0: 12, 1: 0}) as server:
        done = batched(tmp_path / "wild" / "run", server)
    assert server.sizes[0] == 20 and is_paid_once(server) and report(done)["retries"] == 8 + server.sizes[1]
    assert same_as_calm(tmp_path)


def test_a_batch_that_someone_cancels_ends_the_run_which_goes_on_later(tmp_path: Path) -> None:
    with FakeBatches(by_seed, cancels={1: 7}) as server:
        with pytest.raises(RunStoppedError, match=r"batch_1 was cancelled at http.*: the same command asks"):
            batched(tmp_path / "wild" / "run", server)
        batched(tmp_path / "wild" / "run", server)
    assert server.sizes[:2] == WAVES[:2] and is_paid_once(server)
    assert same_as_calm(tmp_path)


# --------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize(("limits", "most"), [({"requests": 7}, 7), ({"bytes": 2000}, 6)])
def test_waves_are_split(tmp_path: Path, limits: dict[str, int], most: int) -> None:
    with FakeBatches(by_seed, most=7) as server:
        batched(tmp_path / "wild" / "run", server, poll(**limits))
    assert max(server.sizes) <= most and len(server.sizes) >= 9
    files = [server.files[batch.facts["input_file_id"]] for batch in server.batches]
    assert max(map(len, files)) <= limits.get("bytes", 10**9)
    assert same_as_calm(tmp_path)


def test_a_request_that_is_larger_than_a_batch_is_refused(tmp_path: Path) -> None:
    with FakeBatches() as server, pytest.raises(RunStoppedError, match="and a batch 1,000 at most"):
        batched(tmp_path / "run", server, poll(bytes=1000), overrides=["generation_kwargs.stop=[" + "x" * 900 + "]"])


@pytest.mark.parametrize("room", [7000, *(pytest.param(n, marks=pytest.mark.slow) for n in (3000, 600))])
def test_a_provider_with_little_room_gets_smaller_batches_one_after_another(tmp_path: Path, room: int) -> None:
    """OpenAI: a batch of more tokens than may be enqueued fails as a whole."""
    with FakeBatches(by_seed, room=room) as server:
        done = batched(tmp_path / "wild" / "run", server)
    assert is_paid_once(server) and errors(done) == []
    assert same_as_calm(tmp_path)


def test_a_provider_without_any_room_ends_the_run(tmp_path: Path) -> None:
    with FakeBatches(by_seed, room=10) as server, pytest.raises(RunStoppedError, match="Enqueued token limit"):
        batched(tmp_path / "run", server, {"max_retries": 2})


@pytest.mark.parametrize("event", ["creations", "uploads", "downloads"])
def test_a_limit_of_the_rate_is_waited_for(tmp_path: Path, event: str) -> None:
    faults: Any = {event: [LIMITED, LIMITED, status(503, "Too many requests")]}
    with FakeBatches(by_seed, **faults) as server:
        done = batched(tmp_path / "wild" / "run", server)
    assert server.sizes == WAVES and report(done)["rate_limited"] == 3
    assert same_as_calm(tmp_path)


@pytest.mark.sampled
@pytest.mark.parametrize("fault", [status(502, "bad gateway"), reset, raw("<html>", "text/html"), raw("[1]")])
@pytest.mark.parametrize("event", ["creations", "uploads", "polls"])
def test_a_gateway_that_fails_is_asked_again(tmp_path: Path, event: str, fault: Fault) -> None:
    faults: Any = {event: [fault, fault]}
    with FakeBatches(by_seed, **faults) as server:
        batched(tmp_path / "wild" / "run", server)
    assert server.sizes == WAVES and same_as_calm(tmp_path)


def test_a_file_that_breaks_off_is_read_again(tmp_path: Path) -> None:
    with FakeBatches(by_seed, downloads=[reset, status(502, "bad gateway")]) as server:
        batched(tmp_path / "wild" / "run", server)
    assert server.sizes == WAVES and same_as_calm(tmp_path)


def test_lines_that_are_none_count_as_no_answer(tmp_path: Path) -> None:
    """Nothing of it is an answer, so all twenty are asked again."""
    junk = [b"", b"{", b"[]", b'{"custom_id": 5}', b'{"custom_id": "x", "response": {}}', b"\xff" * 9, b"[" * 9999]
    with FakeBatches(by_seed, downloads=[raw(b"\n".join(junk))]) as server:
        done = batched(tmp_path / "wild" / "run", server)
    assert server.sizes == [20, *WAVES] and report(done)["retries"] == 20
    assert same_as_calm(tmp_path)


# --------------------------------------------------------------------------------------- what cannot be


def test_lines_that_fail_the_validation_are_refused_and_the_others_asked_again(tmp_path: Path) -> None:
    with FakeBatches(by_seed, refuses=lambda body: body["seed"] % 5 == 0) as server:
        done = batched(tmp_path / "run", server)
    wrong = errors(done)
    assert wrong and all("refuses the request: not so" in one for one in wrong) and is_paid_once(server)
    assert len(server.paid) == 60 - len(wrong)


def test_a_provider_that_carries_out_nothing_ends_the_run(tmp_path: Path) -> None:
    with (
        FakeBatches(by_seed, most=5) as server,
        pytest.raises(RunStoppedError, match="carries out nothing of batch_0"),
    ):
        batched(tmp_path / "run", server)


def test_a_server_without_batches_is_said(tmp_path: Path) -> None:
    with FakeOpenAI() as server, pytest.raises(RunStoppedError, match="has it /v1/files and /v1/batches"):
        play(tmp_path / "run", server, {"batch": True})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rpm": 30}, "whose size rpm does not bound"),
        ({"tpm": 30000}, "whose size tpm does not bound"),
        ({"sequential_engines": True}, "would let no other engine work"),
        ({"executor": {"use": "ray", "workers": 2}}, "batches of all episodes, which one process"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    with FakeBatches() as server, pytest.raises(SetupError, match=words):
        batched(tmp_path / "run", server, **options)
    assert not server.files


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"base_url": ["http://a/v1", "http://b/v1"]}, "base_url names several servers"),
        ({"extra_body": {"stream": True}}, "cannot be streamed"),
    ],
)
def test_fields_that_make_no_sense_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(SetupError, match=words):
        OpenAI(model="m", batch=True, **fields)


# --------------------------------------------------------------------------------------- beside a run


def test_in_a_script_what_is_asked_together_goes_together() -> None:
    async def main(url: str) -> list[str]:
        engine = OpenAI(model="fake", base_url=url, batch={"poll": 0.0})
        await engine.start()
        try:
            thread = Thread()
            thread.add("user", "a or b?")
            asked = [Request("same", thread, {}, 7) for _ in range(5)]
            answers = await asyncio.gather(*map(engine.complete, asked))
            return [answer.text for answer in answers] + [(await engine.complete(asked[0])).text]
        finally:
            await engine.close()

    with FakeBatches(by_seed) as server:
        assert asyncio.run(main(server.url)) == ["b"] * 6
    assert server.sizes == [5, 1]


def test_what_is_sent_and_how_it_ended_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "harness")
    with FakeBatches(by_seed) as server:
        batched(tmp_path / "run", server)
    said = [text for text in caplog.messages if text.startswith("batch_1")]
    assert said == ["batch_1: 20 requests sent", "batch_1: completed, 20/20 requests"]


def test_progress_says_what_is_waited_for() -> None:
    async def main(url: str) -> tuple[str, str]:
        engine = OpenAI(model="fake", base_url=url, batch={"poll": 3600.0})
        await engine.start()
        before = engine.waiting_for
        task = asyncio.create_task(engine.complete(Request("a", Thread(), {}, 7)))
        while "batch_0" not in engine.waiting_for:
            await asyncio.sleep(0)
        task.cancel()
        after = engine.waiting_for
        await engine.close()
        return before, after

    with FakeBatches(by_seed) as server:
        assert asyncio.run(main(server.url)) == ("", "batch_0: created")
