"""A collector of traces on this machine, and what any reader of OTLP sees in what it got or in a file."""

import base64
import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

IDS = ("traceId", "spanId", "parentSpanId")


@dataclass(frozen=True)
class Seen:
    """A span as a reader sees it."""

    trace: str
    id: str
    parent: str
    name: str
    kind: int
    start: int
    end: int
    attributes: Mapping[str, Any]
    failed: bool
    message: str


def seen(request: ExportTraceServiceRequest) -> Iterator[Seen]:
    """The spans of a request, which all say what they follow."""
    for resource in request.resource_spans:
        names = {one.key: value(one.value) for one in resource.resource.attributes}
        assert names["service.name"] == "mas-eval-harness" and resource.schema_url.startswith(
            "https://opentelemetry.io/"
        )
        for scope in resource.scope_spans:
            assert scope.scope.name == "harness.extensions.traces" and scope.schema_url == resource.schema_url
            for span in scope.spans:
                attributes = {one.key: value(one.value) for one in span.attributes}
                assert len(attributes) == len(span.attributes)
                yield Seen(
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.name,
                    span.kind,
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    attributes,
                    span.status.code == span.status.STATUS_CODE_ERROR,
                    span.status.message,
                )


def value(one: Any) -> Any:
    kind = one.WhichOneof("value")
    return [value(each) for each in one.array_value.values] if kind == "array_value" else getattr(one, kind)


def in_file(path: Path) -> list[Seen]:
    """The spans of a file of OTLP/JSON, by the schema: anything that it does not have is a mistake."""
    found: list[Seen] = []
    for line in path.read_text("utf-8").splitlines():
        request = ExportTraceServiceRequest()
        ParseDict(_with_base64(json.loads(line)), request)
        found += seen(request)
    return found


def _with_base64(data: Any) -> Any:
    """OTLP/JSON has ids in hexadecimal digits, where protobuf's JSON has base64."""
    if isinstance(data, dict):
        return {
            k: base64.b64encode(bytes.fromhex(v)).decode() if k in IDS else _with_base64(v) for k, v in data.items()
        }
    return [_with_base64(one) for one in data] if isinstance(data, list) else data


def tree(spans: list[Seen]) -> list[str]:
    """The spans' names, indented, in the order of their starts and names."""
    below: dict[str, list[Seen]] = {}
    for span in spans:
        below.setdefault(span.parent, []).append(span)

    def lines(parent: str, depth: int) -> Iterator[str]:
        for span in sorted(below.get(parent, ()), key=lambda one: (one.start, one.name)):
            yield "  " * depth + span.name
            yield from lines(span.id, depth + 1)

    return list(lines("", 0))


Answer = Callable[[Any, int], None]
"""Answers a request: of its handler, which may `keep` the spans, and its number."""


def accept(handler: Any, number: int) -> None:
    """What a collector says."""
    handler.keep()
    say(handler, 200, b"", "application/x-protobuf")


def say(handler: BaseHTTPRequestHandler, code: int, body: bytes, kind: str = "text/plain", **headers: str) -> None:
    handler.send_response(code)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(body)))
    for name, text in headers.items():
        handler.send_header(name.replace("_", "-"), text)
    handler.end_headers()
    handler.wfile.write(body)


@dataclass
class Collector:
    """What came in.

    Attributes:
        url: its address.
        spans: those that it kept.
        requests: how many there were; paths and headers of them.
    """

    url: str
    spans: list[Seen] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)


@contextlib.contextmanager
def collecting(answer: Answer = accept) -> Iterator[Collector]:
    """A collector, up to the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.body = self.rfile.read(int(self.headers["Content-Length"]))
            number = len(collector.requests)
            collector.requests.append((self.path, {name.lower(): text for name, text in self.headers.items()}))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                answer(self, number)

        def keep(self) -> None:
            collector.spans += seen(ExportTraceServiceRequest.FromString(self.body))

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield collector
    finally:
        collector.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
