"""Why the harness gives no answer, in words for the program that asked."""

from __future__ import annotations

import logging
import re

from harness.api import (
    BudgetSpentError,
    ContextLengthError,
    EngineFatalError,
    HarnessError,
    LimitReachedError,
    NoTurnError,
    RefusedError,
)
from harness.extensions.endpoints._fields import ProblemError
from harness.storage.redaction import redacted

_MAX_CHARS = 1000
_ADDRESS = re.compile(r"\b[a-z]{2,10}://[^\s\"'<>)]+", re.IGNORECASE)
"""Where the engine is. A program that knows it could ask there, and nothing would be on the record."""
_log = logging.getLogger("harness.endpoints")


def problem_of(error: Exception) -> ProblemError:
    """The refusal that stands for an error of the harness, or for a bug. Details of failures stay in the log."""
    message = _ADDRESS.sub("…", redacted(str(error)[:_MAX_CHARS]))
    match error:
        case LimitReachedError():
            return ProblemError(429, message, code="insufficient_quota", kind="insufficient_quota")
        case NoTurnError():
            return ProblemError(409, message, code="no_turn", kind="conflict_error")
        case ContextLengthError():
            return ProblemError(400, message, code="context_length_exceeded", param="messages")
        case RefusedError():
            return ProblemError(400, message, code="refused_by_engine")
        case BudgetSpentError() | EngineFatalError():
            return ProblemError(503, "the run has stopped: its model answers no further call", code="run_stopped")
        case HarnessError():
            return ProblemError(502, f"the model failed: {message}", code="engine_error")
        case _:
            _log.error("a model failed: %s: %s", type(error).__name__, message)
            return ProblemError(500, f"the model failed: {type(error).__name__}", code="internal_error")
