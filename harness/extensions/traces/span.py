"""A span, the names of attributes, and the ids that a run's spans have wherever they are made."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from harness.api.errors import DataError
from harness.api.printable import utf8
from harness.api.version import __version__

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.44.0"
"""The semantic conventions that the attributes follow; those for generative AI are in development there."""
SCOPE: Final = "harness.extensions.traces"
SERVICE: Final = "mas-eval-harness"
INTERNAL, CLIENT = 1, 3
"""Kinds of spans, as OTLP numbers them."""
MAX_SPANS, MAX_CHARS = 512, 1 << 22
"""Spans in a batch, and characters of their attributes after which it ends: collectors take 20 MiB in a request."""
_LIMIT, _EACH = 1 << 63, 500

# https://github.com/open-telemetry/semantic-conventions-genai, as opentelemetry-semantic-conventions 0.66b2 has them.
OPERATION: Final = "gen_ai.operation.name"
WORKFLOW: Final = "gen_ai.workflow.name"
CONVERSATION: Final = "gen_ai.conversation.id"
AGENT_NAME: Final = "gen_ai.agent.name"
AGENT_ID: Final = "gen_ai.agent.id"
PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
SEED: Final = "gen_ai.request.seed"
SAMPLING: Final[Mapping[str, str]] = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "max_tokens": "gen_ai.request.max_tokens",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
    "stop": "gen_ai.request.stop_sequences",
}
USAGE: Final[Mapping[str, str]] = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
}
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
TOOL: Final = "execute_tool"
"""The operation of calls of tools."""
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_CALL: Final = "gen_ai.tool.call.id"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
INPUT: Final = "gen_ai.input.messages"
OUTPUT: Final = "gen_ai.output.messages"
INSTRUCTIONS: Final = "gen_ai.system_instructions"
ERROR: Final = "error.type"

# The harness's own.
DERIVED: Final = "mas_eval.time.derived"
"""On spans with times that no clock has measured, but that follow from others: "start", "end", or "start, end"."""
NEITHER, NO_END = "start, end", "end"


@dataclass(frozen=True, slots=True)
class Span:
    """A span that has ended.

    Attributes:
        name: what is done, and with what.
        id: 16 hexadecimal digits.
        parent: the id of the span around it; None: it is the root.
        start, end: in nanoseconds since 1970.
        kind: `INTERNAL`, or `CLIENT` where something else is asked.
        attributes: texts, whole numbers of 64 bits, finite numbers, truth values, and lists of one of these.
        error: whether what it stands for failed.
        message: how, in words; "" where that might show content.
    """

    name: str
    id: str
    parent: str | None
    start: int
    end: int
    kind: int = INTERNAL
    attributes: Mapping[str, Any] = field(default_factory=dict)
    error: bool = False
    message: str = ""


class RunSpans:
    """The ids of a run's spans, and its own span: the same in an export, in a live trace, and after a resume.

    Args:
        meta: run.json.

    Attributes:
        trace: the trace's id, 32 hexadecimal digits.
        root: the id of the run's own span.
        name: the run's name.
        start: when it began, in nanoseconds since 1970.
        resource: attributes of all that the run sends.
    """

    def __init__(self, meta: Mapping[str, Any]) -> None:
        self.name, self.meta = utf8(str(meta["run"])), meta
        began = str(meta.get("start") or "1970-01-01T00:00:00+00:00")
        self.start = nanoseconds(began)
        self.trace = _digest("trace", self.name, began, meta["spec_digest"])[:32]
        self.root = self.span("run")
        self.resource = {"service.name": SERVICE, "service.version": __version__, "mas_eval.run": self.name}

    def span(self, *parts: object) -> str:
        """The id of a span, by what it stands for."""
        return _digest(self.trace, *parts)[:16]

    def own(self, end: int) -> Span:
        """The run's own span."""
        spec = str(self.meta["spec"])
        facts = {
            OPERATION: "invoke_workflow",
            WORKFLOW: spec,
            "mas_eval.spec_digest": self.meta["spec_digest"],
            "mas_eval.model": self.meta["model"],
            "mas_eval.episodes.planned": self.meta.get("planned"),
        }
        name = utf8(f"invoke_workflow {spec}")
        return Span(name, self.root, None, self.start, max(self.start, end), INTERNAL, attributes_of(facts))


def batches(spans: Iterable[Span]) -> Iterator[list[Span]]:
    """The spans, as many together as a collector takes in a request; none waits for more than a batch."""
    batch, size = list[Span](), 0
    for span in spans:
        batch.append(span)
        size += _EACH + sum(len(value) for value in span.attributes.values() if isinstance(value, str))
        if len(batch) >= MAX_SPANS or size >= MAX_CHARS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def nanoseconds(time: str) -> int:
    """A time of run.json, since 1970. Raises `DataError` for what is none."""
    try:
        return int(datetime.fromisoformat(time).timestamp() * 1e6) * 1000
    except (ValueError, OverflowError):
        raise DataError(f"run.json: {time!r:.60} is no time") from None


def _digest(*parts: object) -> str:
    text = "\0".join(map(str, parts))
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def attributes_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Those facts that OTLP can say: None, numbers without an end and beyond 64 bits are left out."""
    return {name: value for name, fact in facts.items() if (value := _value(fact)) is not None}


def _value(fact: Any) -> Any:
    if fact is None:
        return None
    if isinstance(fact, str):
        return utf8(fact)
    if isinstance(fact, bool):
        return fact
    if isinstance(fact, int):
        return fact if -_LIMIT <= fact < _LIMIT else None
    if isinstance(fact, float):
        return fact if math.isfinite(fact) else None
    if isinstance(fact, list | tuple):
        values = [_value(one) for one in fact]
        if not values or None in values:
            return None
        kinds = {type(one) for one in values}
        return values if len(kinds) == 1 and not isinstance(values[0], list) else None
    return None
