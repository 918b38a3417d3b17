"""Reply forms that most benchmarks share. A reply form parses model text into an action.

All of them take linear time, never raise, and have two modes of parsing:

- `tolerant` (the default) accepts every reply whose meaning is clear;
- `reference` accepts what the benchmark's own code accepts, quirks included, for comparison with published numbers.
  Where that code can crash or take quadratic time, this mode refuses the reply instead.

Forms that belong to one kind of task or protocol live with it, in its extension; those of several fields in `contract`
and `action_with_message`, and replies that are given as arguments of a tool in `tool_reply`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .characters import Parsing, says_nothing, unquoted, valid
from .choice import Choice, Labelled
from .extract import ANSWER, field_of, fields_of, stated
from .json_fields import json_fields
from .strip_reasoning import strip_reasoning, unfenced, without_thinking

if TYPE_CHECKING:
    from .freetext import FreeText
    from .wrapped_reply import WrappedReply, act_of

__all__ = [
    "ANSWER",
    "Choice",
    "FreeText",
    "Labelled",
    "Parsing",
    "WrappedReply",
    "act_of",
    "field_of",
    "fields_of",
    "json_fields",
    "says_nothing",
    "stated",
    "strip_reasoning",
    "unfenced",
    "unquoted",
    "valid",
    "without_thinking",
]

_LATER = {"FreeText": ".freetext", "WrappedReply": ".wrapped_reply", "act_of": ".wrapped_reply"}


def __getattr__(name: str) -> Any:
    """Load what few specs need with its first use."""
    if name not in _LATER:
        raise AttributeError(f"module 'harness.replies' has no attribute {name!r}")
    return getattr(import_module(_LATER[name], __name__), name)
