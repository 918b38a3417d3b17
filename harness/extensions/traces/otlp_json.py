"""Spans as OTLP/JSON: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding, a batch a line as OTLP's file
exporter writes them (https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from harness.api.version import __version__

from .span import SCHEMA_URL, SCOPE, RunSpans, Span, batches

_FAILED: Final = 2
Json = dict[str, Any]


def lines(run: RunSpans, spans: Iterable[Span]) -> Iterator[str]:
    """A JSON text for each batch of spans, each on one line, without its end."""
    return (_line(run, batch) for batch in batches(spans))


def _line(run: RunSpans, spans: Sequence[Span]) -> str:
    scope = {"name": SCOPE, "version": __version__}
    own = {"scope": scope, "spans": [_span(run, one) for one in spans], "schemaUrl": SCHEMA_URL}
    resource = {"resource": {"attributes": _attributes(run.resource)}, "scopeSpans": [own], "schemaUrl": SCHEMA_URL}
    return json.dumps({"resourceSpans": [resource]}, separators=(",", ":"))  # of ASCII: no reader finds other line ends


def _span(run: RunSpans, span: Span) -> Json:
    above = {"parentSpanId": span.parent} if span.parent is not None else {}
    line: Json = {"traceId": run.trace, "spanId": span.id, **above, "name": span.name, "kind": span.kind}
    line |= {"startTimeUnixNano": str(span.start), "endTimeUnixNano": str(span.end)}
    line["attributes"] = _attributes(span.attributes)
    if span.error:
        line["status"] = {"code": _FAILED, **({"message": span.message} if span.message else {})}
    return line


def _attributes(attributes: Mapping[str, Any]) -> list[Json]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: Any) -> Json:
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"arrayValue": {"values": [_value(one) for one in value]}}
