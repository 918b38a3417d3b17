"""`--trace`: spans that are sent while a run plays, to collectors in good order and to others."""

import random
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import harness
from harness.api import Completion, Request
from harness.api.errors import RequestError, SetupError, SpecError
from harness.config import building, resolve
from harness.config.spec import load
from harness.engines.mock import Mock
from harness.evaluation.stages import execute
from harness.extensions.exports import export
from harness.extensions.traces import sender as sending
from harness.extensions.traces.sender import Sender
from harness.extensions.traces.trace_listener import TraceListener
from harness.runtime.options import Options
from harness.runtime.runner import RunStoppedError
from tests.helpers.commands import eval_toy
from tests.helpers.toy import TOY, results, run
from tests.helpers.trace_collector import Seen, accept, collecting, in_file, say

HOSTILE = ("\x00\x1b[2J", "\ud800 lone", "x" * 100_000, "a", "b", "b")
CLOCKS = ("mas_eval.time.derived",)


def answer(request: Request, hostile: bool = False) -> Completion:
    rng = random.Random(request.seed)
    if rng.random() < 0.1:
        raise RequestError("busy")
    return Completion(rng.choice(HOSTILE if hostile else ("a", "b", "?")), None, "stop", 10, 3, latency=0.001)


def played(folder: Path, listener: TraceListener, model: Any = None, **options: Any) -> harness.Run:
    plan = resolve.plan(load("toy", TOY, ()), TOY, model or Mock(function=answer))
    how = Options(output_path=folder, max_error_rate=1, **options)
    return execute(plan, how, asked_for={"trace": listener})


def listener(url: str, timeout: float = 5.0, **more: Any) -> TraceListener:
    return TraceListener(f"{url}/v1/traces", sender=partial(Sender, timeout=timeout), **more)


def comparable(spans: list[Seen]) -> dict[str, Seen]:
    """By id, without what only a clock beside the run can know."""
    return {
        span.id: replace(span, start=0, end=0, attributes={k: v for k, v in span.attributes.items() if k not in CLOCKS})
        for span in spans
    }


def exported(done: harness.Run, folder: Path, **options: Any) -> dict[str, Seen]:
    (file,) = export(done, "otel", folder, **options).files
    return comparable(in_file(file))


@pytest.mark.parametrize("content", [False, True], ids=["bare", "content"])
def test_what_is_sent_is_what_is_exported(tmp_path: Path, content: bool) -> None:
    with collecting() as collector:
        model = Mock(function=partial(answer, hostile=content))
        done = played(tmp_path / "r", listener(collector.url, content=content), model)
    live = comparable(collector.spans)
    assert len(live) == len(collector.spans), "none twice"
    assert live == exported(done, tmp_path / "out", trace_content=content or None)
    assert {path for path, _ in collector.requests} == {"/v1/traces"}


def test_every_span_of_a_live_trace_lies_within_its_parent(tmp_path: Path) -> None:
    with collecting() as collector:
        played(tmp_path / "r", listener(collector.url))
    known = {span.id: span for span in collector.spans}
    for span in collector.spans:
        assert span.start <= span.end
        if span.parent:
            assert known[span.parent].start <= span.start and span.end <= known[span.parent].end


def test_the_sdk_reads_the_same_spans(tmp_path: Path) -> None:
    memory = InMemorySpanExporter()
    heard = TraceListener("memory", sender=partial(Sender, exporter=memory))
    done = played(tmp_path / "r", heard)
    spans, known = memory.get_finished_spans(), exported(done, tmp_path / "out")
    assert len(spans) == len(known)
    for span in spans:
        one = known[f"{span.context.span_id:016x}"]
        parent = "" if span.parent is None else f"{span.parent.span_id:016x}"
        assert (span.name, parent, f"{span.context.trace_id:032x}") == (one.name, one.parent, one.trace)
        own = {key: [*v] if isinstance(v, tuple) else v for key, v in span.attributes.items() if key not in CLOCKS}
        assert own == one.attributes and span.status.is_ok != one.failed
        assert span.resource.attributes["mas_eval.run"] == "r" and span.instrumentation_scope.schema_url


def test_a_resumed_run_goes_on_with_its_trace(tmp_path: Path) -> None:
    dice = partial(building.engine, project=TOY)
    with collecting() as collector:
        with pytest.raises(RunStoppedError):
            played(tmp_path / "r", listener(collector.url), dice({"use": "dice", "fatal_after": 30}), max_concurrency=2)
        first = list(collector.spans)
        done = played(tmp_path / "r", listener(collector.url), dice({"use": "dice"}), max_concurrency=2)
        count = len(collector.spans)
        played(tmp_path / "r", listener(collector.url), dice({"use": "dice"}))
    assert len(collector.spans) == count, "nothing was left to be played"
    assert first and not [span for span in first if not span.parent], "a run that stopped has no span yet"
    assert len({span.id for span in collector.spans}) == count, "none twice"
    assert comparable(collector.spans) == exported(done, tmp_path / "out")


# ------------------------------------------------------------------------------ collectors in no good order


def refuses(handler: BaseHTTPRequestHandler, number: int) -> None:
    say(handler, 400, b"no")


def is_a_page(handler: BaseHTTPRequestHandler, number: int) -> None:
    say(handler, 200, b"<html>hello</html>", "text/html")


def is_garbage(handler: BaseHTTPRequestHandler, number: int) -> None:
    say(handler, 200, b"\xff\xff\xff", "application/x-protobuf")


def leads_away(handler: BaseHTTPRequestHandler, number: int) -> None:
    say(handler, 302, b"", Location="http://127.0.0.1:9/elsewhere")


def says_much(handler: BaseHTTPRequestHandler, number: int) -> None:
    say(handler, 200, b"x" * 50_000_000, "text/html")


def speaks_no_http(handler: BaseHTTPRequestHandler, number: int) -> None:
    handler.wfile.write(b"\x00" * 100 + b"\r\n\r\n")
    handler.close_connection = True


def asks_to_wait_for_an_hour(handler: BaseHTTPRequestHandler, number: int) -> None:
    say(handler, 429, b"", Retry_After="3600")


def takes_some(handler: BaseHTTPRequestHandler, number: int) -> None:
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service

    partial_success = service.ExportTracePartialSuccess(rejected_spans=3, error_message="too new")
    body = service.ExportTraceServiceResponse(partial_success=partial_success).SerializeToString()
    say(handler, 200, body, "application/x-protobuf")


@pytest.mark.parametrize(
    ("behaves", "words"),
    [
        (refuses, "it answers 400"),
        (is_a_page, "with text/html, which no collector does"),
        (is_garbage, "bytes that are no answer of a collector"),
        (leads_away, "it answers 302 Found, a redirect"),
        (says_much, "with text/html, which no collector does"),
        (speaks_no_http, "Connection|in time"),
        (asks_to_wait_for_an_hour, "it answers 429"),
        (takes_some, "it refused 3 spans: too new"),
    ],
    ids=["refuses", "page", "garbage", "redirect", "50_mb", "no_http", "429", "takes_some"],
)
def test_a_collector_that_takes_nothing_costs_the_run_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, behaves: Callable[..., None], words: str
) -> None:
    with collecting(behaves) as collector:
        done = played(tmp_path / "r", listener(collector.url, 0.2 if behaves is speaks_no_http else 20.0))
    check_alone(done, tmp_path, caplog, words)
    assert collector.requests


def test_a_collector_that_is_not_there_or_hangs_costs_the_run_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with collecting() as collector:
        gone = collector.url
    check_alone(
        played(tmp_path / "gone" / "r", listener(gone, 0.1)), tmp_path / "gone", caplog, "Connection refused|in time"
    )
    caplog.clear()

    def hang(handler: BaseHTTPRequestHandler, number: int) -> None:
        hanging.over.wait()

    with collecting(hang) as hanging:
        done = played(tmp_path / "hangs" / "r", listener(hanging.url, 0.1))
    check_alone(done, tmp_path / "hangs", caplog, "timed out|in time")


def check_alone(done: harness.Run, folder: Path, caplog: pytest.LogCaptureFixture, words: str) -> None:
    """The results are those of a run without a trace; one warning says why, and one at the end how many are lost."""
    run(folder / "alone" / "r", Mock(function=answer), max_error_rate=1)
    assert results(done.folder) == results(folder / "alone" / "r")
    said = [record.getMessage() for record in caplog.records if "--trace" in record.getMessage()]
    assert len(said) == 2 and re.search(words, said[0]) and "the run goes on" in said[0], said
    assert "did not reach" in said[1] and "harness export RUN --to otel" in said[1]
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry")]


def test_what_fails_for_a_moment_is_sent_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def busy(handler: BaseHTTPRequestHandler, number: int) -> None:
        if number < 2:
            say(handler, 503, b"", Retry_After="0")
        else:
            accept(handler, number)

    with collecting(busy) as collector:
        done = played(tmp_path / "r", listener(collector.url))
    assert comparable(collector.spans) == exported(done, tmp_path / "out")
    assert "did not reach" not in caplog.text


def test_what_waits_is_bounded(tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: Any) -> None:
    def hang(handler: BaseHTTPRequestHandler, number: int) -> None:
        collector.over.wait()

    monkeypatch.setattr(sending, "MAX_WAITING", 20_000)  # 33 million would be a long test
    with collecting(hang) as collector:
        heard = listener(collector.url, 0.2)
        played(tmp_path / "r", heard)
    assert heard.sender._size <= 20_000 + 1000 * 20 and heard.sender.lost > 20


# ------------------------------------------------------------------------------ the option


def test_the_command_sends_to_the_address_with_keys_of_the_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret-key")
    with collecting() as collector:
        code, _, errors = eval_toy(capsys, tmp_path / "r", "--model", "mock", "--trace", f"otlp={collector.url}/base/")
    assert code == 0 and "--trace" not in errors
    assert {(path, headers["x-key"]) for path, headers in collector.requests} == {("/base/v1/traces", "secret-key")}
    assert [span.name for span in collector.spans if not span.parent] == ["invoke_workflow toy"]
    written = "".join(file.read_text("utf-8") for file in (tmp_path / "r").iterdir() if file.is_file())
    assert "secret-key" not in written


def test_python_takes_the_same_option(tmp_path: Path) -> None:
    with collecting() as collector:
        run(tmp_path / "r", Mock(text="a"), trace=f"otlp={collector.url}", trace_content=True, limit=1)
    assert any("gen_ai.output.messages" in span.attributes for span in collector.spans)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("http://127.0.0.1:4318", "It takes otlp=URL"),
        ("otlp=", "which is no address"),
        ("otlp=127.0.0.1:4318", "which is no address"),
        ("otlp=ftp://h/", "which is no address"),
        ("otlp=http://h:99999/", "which is no address"),
        ("otlp=http://user:secret-key@h:1/", "OTEL_EXPORTER_OTLP_HEADERS"),
        ("otlp=https://h/?key=secret-key", "OTEL_EXPORTER_OTLP_HEADERS"),
    ],
)
def test_what_is_no_address_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        run(tmp_path / "r", Mock(text="a"), trace=text)
    assert words in str(caught.value) and "secret-key" not in str(caught.value) and not (tmp_path / "r").exists()


def test_other_mistakes_are_refused_too(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="trace_content=True without trace"):
        run(tmp_path / "r", Mock(text="a"), trace_content=True)
    with pytest.raises(SetupError, match="what the workers of this executor play is not heard"):
        run(tmp_path / "r", Mock(text="a"), trace="otlp=http://127.0.0.1:9", executor={"use": "ray", "workers": 2})
