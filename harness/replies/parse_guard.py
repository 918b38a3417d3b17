"""Parsing of model text behind one guard: no text of a model ever costs an episode.

All code that reads a model's text does so through this module. If it raises, the reply counts as unreadable: a model
must not be able to remove its own episodes from the results by a text that triggers a bug.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import TypeVar

from harness.api import Completion, Parsed, Reply, ReplyField
from harness.api.errors import SetupError

MAX_CHARS = 1_000_000
"""Characters of a reply that a form is given; the longest right answer (SILO-Bench III-30, N = 100) has 70,000."""

CUT_OFF = "length"
"""The `finish_reason` of a reply that ended at its token limit."""
_SECOND_LOOK = re.compile(
    r"[ \t>*_(-]*(?:(?:but|oh|so|ok(?:ay)?|well|no)[,.… ]+)?(?:wait|hmm+|hold on|actually|on second thought"
    r"|let(?:['’]s| me| us) (?:just |quickly )?(?:re|double|check|verify|think|look|make sure))",
    re.IGNORECASE,
)
"""What begins a last line that may yet take the answer back."""
_ON = ("9", "\n\nSo much for now; the rest is still to come.")
"""What such a reply might have gone on with: a value at its end is not whole, and no line of it is the last one."""

T = TypeVar("T")
Note = Callable[..., object]
"""Called as `ErrorLog.record` is: with what was raised, at which stage ("reply", "canonical"), and `plugin`."""

_note: ContextVar[Note | None] = ContextVar("note", default=None)
_warned: set[str] = set()
_log = logging.getLogger(__name__)
_PLAIN = (str, int, float, bool, type(None))


def read(reply: Reply, text: str, max_chars: int = MAX_CHARS) -> Parsed:
    """Parse a text with a form. Raises nothing but `SetupError`: a bug of the form is a parse failure of the text.

    Args:
        reply: the form, built in or of a plugin.
        text: as the model wrote it.
        max_chars: a longer text is not passed to the form at all.
    """
    if len(text) > max_chars:
        return Parsed(error=f"too long: {len(text):,} characters, at most {max_chars:,} are read")
    return guarded(
        "reply",
        reply,
        lambda: _checked(reply.parse(text), "parse"),
        lambda bug: Parsed(error=f"the reply hits a bug: {bug}"),
    )


def read_completion(reply: Reply, completion: Completion, max_chars: int = MAX_CHARS) -> Parsed:
    """Parse a model's answer with a form: its calls where the form offers tools, else its text. A form that
    `takes_text` beside its tools gets the text of an answer without calls, one with an `ability` the whole answer.

    The arguments are those of `read`; `max_chars` then bounds the names and arguments of all calls together. The error
    of an unreadable answer that was cut off says so first: all that ask again show it.
    """
    parsed = _parsed(reply, completion, max_chars)
    if parsed.error is None or completion.finish_reason != "length":
        return parsed
    tokens = completion.output_tokens
    after = "" if tokens is None else f" after {tokens:,} token{'s' * (tokens != 1)}"
    error = f"it was cut off{after}: answer more briefly; {parsed.error}"
    return Parsed(error=error, fallback_action=parsed.fallback_action)


def _parsed(reply: Reply, completion: Completion, max_chars: int) -> Parsed:
    if reply.ability is not None:
        return guarded(
            "reply",
            reply,
            lambda: _checked(reply.parse_completion(completion), "parse_completion"),
            lambda bug: Parsed(error=f"the answer hits a bug: {bug}"),
        )
    if not reply.tools or (reply.takes_text and not completion.tool_calls):
        found = read(reply, completion.text, max_chars)
        return _final(reply, completion.text, found, max_chars) if completion.finish_reason == CUT_OFF else found

    def parsed() -> Parsed:
        calls = completion.tool_calls or ()
        size = sum(len(call["name"]) + len(call["arguments"]) for call in calls)
        if size > max_chars:
            return Parsed(error=f"too long: calls of {size:,} characters, at most {max_chars:,} are read")
        return _checked(reply.parse_calls(calls), "parse_calls")

    return guarded("reply", reply, parsed, lambda bug: Parsed(error=f"the calls hit a bug: {bug}"))


def _final(reply: Reply, text: str, parsed: Parsed, max_chars: int) -> Parsed:
    """What is read of a reply that was cut off, as far as it would be read the same if the reply went on.

    What a field says that must be there, other than a text without a label, is final or the reply is unreadable; what
    else is not final is left out.
    """
    if parsed.error is not None or parsed.action is None:
        return parsed
    said = guarded("reply", reply, lambda: reply.says(parsed.action), lambda bug: {})
    unsure = set[str]()
    for more in _ON:
        longer = read(reply, text + more, max_chars)
        action = longer.action if longer.error is None else None
        others = {} if action is None else guarded("reply", reply, partial(reply.says, action), lambda bug: {})
        unsure |= {name for name in said if said[name] != others.get(name)}
    fields = {one.name: one for one in reply.fields}
    before, _, last = text.rstrip().rpartition("\n")
    if _SECOND_LOOK.match(last) and read(reply, before, max_chars).action == parsed.action:
        unsure |= {name for name in said if name in fields and fields[name].required}
    unsure = {name for name in unsure if name in fields and not _is_free(fields[name])}
    if any(fields[name].required for name in unsure):
        listed = " and ".join(sorted(unsure))
        return Parsed(error=f"the reply was cut off at its token limit, where it says its {listed}")
    if unsure:  # what stands before its last word
        whole = read(reply, text[: len(text) - len(text.split()[-1])], max_chars)
        return whole if whole.error is None else parsed
    return parsed


def _is_free(field: ReplyField) -> bool:
    """Whether a field is a text of any length: as much of it as there is has a meaning."""
    is_text = field.schema.get("type", "string") == "string" and "enum" not in field.schema
    return is_text and not (field.required and field.lead)


def guarded(stage: str, plugin: object, act: Callable[[], T], otherwise: Callable[[str], T]) -> T:
    """Return the result of `act`; if it raises, record the bug and return the result of `otherwise`.

    Args:
        stage: a word for what is done.
        plugin: whose code it is.
        act: works on model text.
        otherwise: takes the kind of the bug, its message and its place.
    """
    try:
        return act()
    except SetupError:  # a missing package is a person's to install
        raise
    except (Exception, SystemExit) as error:  # whatever a text makes a parser do
        from harness.storage.plugin_errors import describe, place  # what only a bug needs

        bug = f"{type(error).__name__} ({place(error, plugin)})"
        if bug not in _warned:  # once, however many texts hit it
            _warned.add(bug)
            _log.warning(
                "what a model wrote hits a bug, and counts as unreadable (%s): %s; see errors.jsonl", stage, bug
            )
        if (note := _note.get()) is not None:
            note(error, stage, plugin=plugin)
        return otherwise(describe(error, plugin))


def note_bugs(note: Note) -> None:
    """Call `note` from now on for every bug in this task, and in tasks and threads that start in it."""
    _note.set(note)


def _checked(parsed: Parsed, method: str) -> Parsed:
    if not isinstance(parsed, Parsed):
        raise TypeError(f"{method} returned {parsed!r:.80}, not a Parsed")
    for action in (parsed.action, parsed.fallback_action):
        if not _is_plain(action):
            json.dumps(action)  # what is not JSON could not be journaled
    return parsed


def _is_plain(action: object, depth: int = 3) -> bool:
    """Whether an action is JSON for certain: a scalar or, as most are, a few levels of lists and dicts of scalars."""
    if type(action) is dict:
        return depth > 0 and all(type(key) is str and _is_plain(value, depth - 1) for key, value in action.items())
    if type(action) is list:
        return depth > 0 and all(_is_plain(item, depth - 1) for item in action)
    return type(action) in _PLAIN
