"""Sends spans to a collector, in a thread of its own: OTLP over HTTP, by OpenTelemetry's own exporter."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import requests
from opentelemetry.exporter.otlp.proto.http import trace_exporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from harness.api.printable import clean_name, cut
from harness.api.version import __version__

from .span import CLIENT, MAX_SPANS, SCHEMA_URL, SCOPE, RunSpans, Span, batches

MAX_WAITING: Final = 1 << 25
"""Characters that wait to be sent, about; what comes beyond is dropped and counted."""
GATHER: Final = 1.0
"""Seconds in which spans are gathered for a request."""
MAX_ANSWER: Final = 1 << 16
"""Bytes that are read of a collector's answer."""
PATIENCE: Final = 2.0
"""Seconds that the end of a run waits for a collector whose last answer was none."""
PAUSE, MAX_PAUSE = 1.0, 60.0
"""Seconds between two tries where a collector does not say how many, and at most."""
_log = logging.getLogger(__name__)
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_PASSING: Final = (429, 502, 503, 504)
_READABLE: Final = ("application/x-protobuf", "application/json", "")
Make = Callable[[], Iterable[Span]]
"""Makes the spans of one thing that happened; called in the sender's thread."""


class Sender:
    """Sends what it is given, in order, and makes no one wait but in `close`.

    A request that fails for the moment is sent again until the collector takes it or the end has come; what comes
    meanwhile waits, up to `MAX_WAITING` characters.

    Args:
        endpoint: the address to which requests go.
        run: of which run the spans are.
        exporter: what sends them; None: OTLP over HTTP, as OpenTelemetry's variables set it up.
        timeout: seconds that a request may take, and `close`; None: as OpenTelemetry's variables say, else 10.

    Attributes:
        sent: how many spans the collector took.
    """

    def __init__(
        self, endpoint: str, run: RunSpans, exporter: SpanExporter | None = None, timeout: float | None = None
    ) -> None:
        self.endpoint, self.run = endpoint, run
        self.sent = self._made = self._dropped = 0
        self._session = _Session()
        self.timeout = timeout or _seconds()
        if exporter is None:
            exporter = trace_exporter.OTLPSpanExporter(endpoint, session=self._session, timeout=self.timeout)
        self._exporter = exporter
        self._resource = Resource(run.resource, SCHEMA_URL)
        self._scope = InstrumentationScope(SCOPE, __version__, SCHEMA_URL)
        self._trace = int(run.trace, 16)
        self._waiting: deque[tuple[Make, int]] = deque()
        self._size = 0
        self._change = threading.Condition()
        self._is_closing = self._is_over = self._has_warned = False
        self._thread = threading.Thread(target=self._send_all, name="traces", daemon=True)
        self._filter = _NotOf(self._thread)
        logging.getLogger(trace_exporter.__name__).addFilter(self._filter)
        self._thread.start()

    @property
    def lost(self) -> int:
        """How many spans the collector did not take, and how many things that happened were not kept for it."""
        return self._made - self.sent + self._dropped + len(self._waiting)

    def put(self, make: Make, size: int, needed: bool = False) -> bool:
        """Send the spans that `make` will make; whether they are kept until then.

        Args:
            make: is called in the thread.
            size: how many characters they have, about.
            needed: whether `make` must be called even where too much waits: the end of what was kept before.
        """
        with self._change:
            if self._size + size > MAX_WAITING and not needed:
                self._dropped += 1
                return False
            self._size += size
            self._waiting.append((make, size))
            if len(self._waiting) == 1:
                self._change.notify()
            return True

    def drop(self) -> None:
        """Count something that happened and is not sent, because what it belongs to was not kept."""
        with self._change:
            self._dropped += 1

    def close(self) -> None:
        """Send what waits, for at most `timeout` seconds, or `PATIENCE` where the collector has not answered; what is
        left then is lost."""
        with self._change:
            self._is_closing = True
            self._change.notify()
        self._thread.join(min(PATIENCE, self.timeout))
        if not self._session.is_failing:
            self._thread.join(max(0.0, self.timeout - PATIENCE))
        self._is_over = True
        self._exporter.shutdown()  # it waits for no further try
        self._thread.join(min(1.0, self.timeout))
        if self.lost:
            self._warn(self._session.answer)  # of a request that is still under way
        if not self._thread.is_alive():
            logging.getLogger(trace_exporter.__name__).removeFilter(self._filter)

    # ------------------------------------------------------------------------------ the thread

    def _send_all(self) -> None:
        while not self._is_over:
            with self._change:
                self._change.wait_for(lambda: self._waiting or self._is_closing)
                if len(self._waiting) < MAX_SPANS // 4:
                    self._change.wait_for(lambda: self._is_closing, GATHER)
                gathered = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_SPANS))]
                is_last = self._is_closing and not self._waiting
            for spans in batches(self._spans(gathered)):
                self._send(spans)
            with self._change:
                self._size -= sum(size for _, size in gathered)
            if is_last:
                return

    def _spans(self, gathered: Iterable[tuple[Make, int]]) -> Iterator[Span]:
        for make, _ in gathered:
            try:
                spans = [*make()]
            except Exception as error:  # what cannot be made costs nothing else
                self._dropped += 1
                self._warn(f"a span could not be made: {type(error).__name__}: {error}")
                continue
            self._made += len(spans)
            yield from spans

    def _send(self, spans: list[Span]) -> None:
        """Send them, again and again until they are taken, or cannot be, or the end has come."""
        while not self._is_over:
            session, is_last = self._session, self._is_closing
            try:
                done = self._exporter.export([self._readable(span) for span in spans])
            except Exception as error:  # whatever it is: the next spans may go well
                done, session.answer, session.pause = SpanExportResult.FAILURE, f"{type(error).__name__}: {error}", None
            if done is SpanExportResult.SUCCESS:
                self.sent += max(0, len(spans) - session.refused)
                if session.refused:
                    self._warn(session.answer)
                return
            self._warn(session.answer)
            if is_last or session.pause is None:
                return
            with self._change:
                self._change.wait_for(lambda: self._is_closing, session.pause)

    def _warn(self, why: str) -> None:
        with self._change:
            known, self._has_warned = self._has_warned, True
        if not known:
            text = "--trace: %s: %s; the run goes on, and what is lost is counted at its end"
            _log.warning(text, self.endpoint, clean_name(cut(why, 300)))

    def _readable(self, span: Span) -> ReadableSpan:
        return ReadableSpan(
            name=span.name,
            context=SpanContext(self._trace, int(span.id, 16), False, _SAMPLED),
            parent=None if span.parent is None else SpanContext(self._trace, int(span.parent, 16), False, _SAMPLED),
            resource=self._resource,
            attributes=span.attributes,
            kind=SpanKind.CLIENT if span.kind == CLIENT else SpanKind.INTERNAL,
            instrumentation_scope=self._scope,
            status=Status(StatusCode.ERROR, span.message or None) if span.error else Status(),
            start_time=span.start,
            end_time=span.end,
        )


class _Session(requests.Session):
    """Reads little of an answer, follows no redirect, and takes no answer for good that is none of a collector.

    Attributes:
        answer: what was last heard, in words.
        refused: how many spans of the last request a collector says that it did not take.
        pause: seconds after which it may be well to send the same again; None: that would change nothing.
        is_failing: whether the last request was not answered, or put off.
    """

    def __init__(self) -> None:
        super().__init__()
        self.answer, self.refused = "it does not answer in time", 0
        self.pause: float | None = PAUSE
        self.is_failing = False

    def request(self, *arguments: Any, **more: Any) -> requests.Response:
        """As the base class, for a short answer. Raises `requests.RequestException`."""
        self.refused, self.pause = 0, PAUSE
        try:
            with super().request(*arguments, **{**more, "stream": True, "allow_redirects": False}) as response:
                response._content = response.raw.read(MAX_ANSWER, decode_content=False)
        except Exception as error:  # of a server that says anything
            self.is_failing = True
            self.answer = f"{type(error).__name__}: {error}"
            raise requests.ConnectionError(self.answer) from error
        self.answer = f"it answers {response.status_code} {response.reason or ''}".rstrip()
        self.is_failing = response.status_code in _PASSING
        if self.is_failing:
            self.pause = _retry_after(response.headers.get("retry-after", ""))
            return response
        self.pause = None
        if 300 <= response.status_code < 400:
            self.answer += ", a redirect"
            raise requests.RequestException(self.answer)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.ok and response.content and kind not in _READABLE:
            self.answer += f" with {kind}, which no collector does: is this the address for OTLP over HTTP?"
            raise requests.RequestException(self.answer)
        if response.ok and kind == _READABLE[0]:
            self._read(response.content)
        return response

    def _read(self, body: bytes) -> None:
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

        try:
            partial = ExportTraceServiceResponse.FromString(body).partial_success
        except DecodeError:
            self.answer += " with bytes that are no answer of a collector"
            raise requests.RequestException(self.answer) from None
        if partial.rejected_spans > 0:
            self.refused = partial.rejected_spans
            self.answer = f"it refused {partial.rejected_spans} spans: {partial.error_message}"


class _NotOf(logging.Filter):
    """Drops what a thread logs: the sender says it itself, and once."""

    def __init__(self, thread: threading.Thread) -> None:
        super().__init__()
        self._thread = thread

    def filter(self, record: logging.LogRecord) -> bool:
        return record.thread != self._thread.ident


def _retry_after(text: str) -> float:
    try:
        return min(max(float(text), PAUSE), MAX_PAUSE)
    except ValueError:  # a date, or nothing
        return PAUSE


def _seconds() -> float:
    """How long a request may take, as OpenTelemetry's variables say it."""
    for name in ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"):
        try:
            if (found := float(os.environ.get(name, ""))) > 0:
                return found
        except ValueError:
            continue
    return 10.0
