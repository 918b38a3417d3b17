"""Reply forms that most benchmarks share. A reply form parses model text into an action.

All of them take linear time, never raise, and have two modes of parsing:

- `tolerant` (the default) accepts every reply whose meaning is clear;
- `reference` accepts what the benchmark's own code accepts, quirks included, for comparison with published numbers.
  Where that code can crash or take quadratic time, this mode refuses the reply instead.

The forms of data sets have one mode: `Boxed`, `Letter`, `Label`, `Number`, `FreeText`, and `json_fields` for replies
that should be JSON. `math_canonical` and `math_equal` compare mathematical answers.
"""

from ._aside import spoken
from ._text import Parsing, says_nothing, unquoted, valid
from .actions import ActionForm, ActionParameter, Actions, action_text
from .answer import Answer, AnswerForm, Integers, normalise, same
from .ballots import Approval, CandidateBallot, Points, Ranking
from .boxed import Boxed
from .calls import Calls, Verb
from .choice import Choice, Labelled
from .code import Code, assemble
from .commands import Commands
from .equivalence import math_equal
from .fields import json_fields
from .freetext import FreeText
from .label import Label, canonical_label
from .legal import LegalAction
from .letter import Letter
from .likelihoods import Continuation, Likelihoods, likelihoods_of
from .mathematics import math_canonical
from .messages import Messages
from .number import Number
from .pattern import Pattern
from .rating import Preference, Rating
from .stance import AgreeOrCounter, NamesFlaw
from .with_confidence import AnswerWithConfidence, confidence, split_confidence
from .with_message import ActionWithMessage, MessageLine
from .wrapped import WrappedReply

__all__ = [
    "ActionForm",
    "ActionParameter",
    "ActionWithMessage",
    "Actions",
    "AgreeOrCounter",
    "Answer",
    "AnswerForm",
    "AnswerWithConfidence",
    "Approval",
    "Boxed",
    "Calls",
    "CandidateBallot",
    "Choice",
    "Code",
    "Commands",
    "Continuation",
    "FreeText",
    "Integers",
    "Label",
    "Labelled",
    "LegalAction",
    "Letter",
    "Likelihoods",
    "MessageLine",
    "Messages",
    "NamesFlaw",
    "Number",
    "Parsing",
    "Pattern",
    "Points",
    "Preference",
    "Ranking",
    "Rating",
    "Verb",
    "WrappedReply",
    "action_text",
    "assemble",
    "canonical_label",
    "confidence",
    "json_fields",
    "likelihoods_of",
    "math_canonical",
    "math_equal",
    "normalise",
    "same",
    "says_nothing",
    "split_confidence",
    "spoken",
    "unquoted",
    "valid",
]
