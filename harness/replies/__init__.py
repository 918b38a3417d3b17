"""Reply forms that most benchmarks share. A reply form parses model text into an action.

All of them take linear time, never raise, and have two modes of parsing:

- `tolerant` (the default) accepts every reply whose meaning is clear;
- `reference` accepts what the benchmark's own code accepts, quirks included, for comparison with published numbers.
  Where that code can crash or take quadratic time, this mode refuses the reply instead.

Forms that belong to one kind of task or protocol live with it, in its extension; those of several fields in `contract`
and `action_with_message`, and replies that are given as arguments of a tool in `tool_reply`.
"""

from .characters import Parsing, says_nothing, unquoted, valid
from .choice import Choice, Labelled
from .extract import ANSWER, field_of, fields_of, stated
from .freetext import FreeText
from .json_fields import json_fields
from .strip_reasoning import strip_reasoning, unfenced, without_thinking
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
