"""The reply forms most benchmarks share: how what a model wrote becomes an action.

All of them read in linear time, never raise, and come in two readings:

- ``tolerant`` (the default) accepts every reply whose meaning is plain;
- ``reference`` accepts what the benchmark's own code accepts, quirks included, for comparison with published
  numbers. Where that code can crash or take quadratic time, this reading refuses the reply instead.
"""

from ._text import Parsing
from .answer import Answer, Form, Integers, normalise, same
from .calls import Calls, Verb
from .choice import Choice
from .code import Code, assemble
from .commands import Commands
from .labelled import Labelled
from .messages import Messages
from .spoken import Said, Spoken

__all__ = [
    "Answer",
    "Calls",
    "Choice",
    "Code",
    "Commands",
    "Form",
    "Integers",
    "Labelled",
    "Messages",
    "Parsing",
    "Said",
    "Spoken",
    "Verb",
    "assemble",
    "normalise",
    "same",
]
