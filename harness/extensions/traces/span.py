"""A span, the names of attributes, and the ids that a run's spans have wherever they are made."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness.api.version import __version__

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.44.0"
"""The semantic conventions that the attributes follow; those for generative AI are in development there."""
SCOPE: Final = "harness.extensions.traces"
SERVICE: Final = "mas-eval-harness"
INTERNAL, CLIENT = 1, 3
"""Kinds of spans, as OTLP numbers them."""

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
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_CALL: Final = "gen_ai.tool.call.id"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
INPUT: Final = "gen_ai.input.messages"
OUTPUT: Final = "gen_ai.output.messages"
INSTRUCTIONS: Final = "gen_ai.system_instructions"
ERROR: Final = "error.type"

# The harness's own.
DERIVED: Final = "harness.time.derived"
"""On spans of which no clock has measured the start or the end: it follows from what was before, and latencies."""


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


class RunIds:
    """The ids of a run's spans: the same in an export, in a live trace, and after the run was resumed.

    Args:
        meta: run.json.

    Attributes:
        trace: the trace's id, 32 hexadecimal digits.
        name: the run's name.
        start: when it began, in nanoseconds since 1970.
        resource: attributes of all that the run sends.
    """

    def __init__(self, meta: Mapping[str, Any], start: int) -> None:
        self.name, self.start = str(meta["run"]), start
        self.trace = _digest("trace", self.name, meta["start"], meta["spec_digest"])[:32]
        self.resource = {"service.name": SERVICE, "service.version": __version__, "harness.run": self.name}

    def span(self, *parts: object) -> str:
        """The id of a span, by what it stands for."""
        return _digest(self.trace, *parts)[:16]


def _digest(*parts: object) -> str:
    text = "\0".join(map(str, parts))
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
