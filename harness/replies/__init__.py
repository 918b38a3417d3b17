"""The reply forms most benchmarks share: how what a model wrote becomes an action.

All of them read in linear time, never raise, and come in two readings:

- ``tolerant`` (the default) accepts every reply whose meaning is plain;
- ``reference`` accepts what the benchmark's own code accepts, quirks included, for comparison with published
  numbers. Where that code can crash or take quadratic time, this reading refuses the reply instead.

Those of data sets have one reading: `Boxed`, `Letter`, `Label`, `Number`, `FreeText`, and `json_fields` for replies
that should be JSON. `math_canonical` and `math_equal` compare mathematical answers.
"""

from ._text import Parsing, says_nothing, unquoted
from .answer import Answer, Form, Integers, normalise, same
from .boxed import Boxed
from .calls import Calls, Verb
from .choice import Choice
from .code import Code, assemble
from .commands import Commands
from .considered import Considered, considered
from .equivalence import math_equal
from .fields import confidence, json_fields
from .freetext import FreeText
from .label import Label, canonical_label
from .labelled import Labelled
from .letter import Letter
from .mathematics import math_canonical
from .messages import Messages
from .number import Number
from .pattern import Pattern
from .spoken import Said, Spoken

__all__ = [
    "Answer",
    "Boxed",
    "Calls",
    "Choice",
    "Code",
    "Commands",
    "Considered",
    "Form",
    "FreeText",
    "Integers",
    "Label",
    "Labelled",
    "Letter",
    "Messages",
    "Number",
    "Parsing",
    "Pattern",
    "Said",
    "Spoken",
    "Verb",
    "assemble",
    "canonical_label",
    "confidence",
    "considered",
    "json_fields",
    "math_canonical",
    "math_equal",
    "normalise",
    "same",
    "says_nothing",
    "unquoted",
]
