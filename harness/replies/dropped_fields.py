"""Fields that a reply has and of which nothing was read: `dropped_fields`."""

from __future__ import annotations

from collections.abc import Iterator

from harness.api import Completion, Parsed, Reply, ReplyField

from .extract import field_of, may_name
from .fields import Statement
from .parse_guard import guarded
from .strip_reasoning import strip_reasoning


def dropped_fields(form: Reply, completion: Completion, parsed: Parsed) -> tuple[str, ...]:
    """The names of the form's fields that a reply states and of which nothing is read, or of whose several values one.

    What an error of the reply names already is left out, and so are calls of forms that take no text.
    """
    text = completion.tool_calls[-1]["arguments"] if form.tools and completion.tool_calls else completion.text
    if not text or (form.tools and not form.takes_text):
        return ()
    return guarded("reply", form, lambda: tuple(_dropped(form, text, parsed)), lambda bug: ())


def _dropped(form: Reply, text: str, parsed: Parsed) -> Iterator[str]:
    fields = form.fields
    names = [one.name.replace("_", " ") for one in fields]
    text = strip_reasoning(text)  # which the form has just read, and which is remembered
    mentioned = may_name(text, names)
    if not any(mentioned):  # most
        return
    for one, name, is_mentioned in zip(fields, names, mentioned, strict=True):
        found = field_of(text, name) if is_mentioned else None
        if found is None or _is_nothing(found.value):  # most
            continue
        action = parsed.action if parsed.error is None else parsed.fallback_action
        said = None if action is None else form.says(action).get(one.name)
        read = not _is_nothing(said)
        if not read and parsed.error is not None and one.required:
            continue  # the reason of the error says it
        if not read or _is_other(one, said, found, field_of(found.without(text), name)):
            yield one.name


def _is_other(one: ReplyField, said: object, taken: Statement, left: Statement | None) -> bool:
    """Whether another statement of the field, after its name like the first, says something else that it can say."""
    if left is None or taken.inline != left.inline or _is_nothing(left.value):
        return False
    if isinstance(said, str) and left.value.strip() in said:  # a free text has all of its lines
        return False
    value, options = _bare(left.value), one.schema.get("enum")
    if options is not None and value not in {str(option).casefold() for option in options}:
        return False
    if one.schema.get("type") in ("number", "integer") and not any(char.isdigit() for char in value):
        return False
    return value != _bare(taken.value)


def _bare(value: object) -> str:
    return str(value).strip(" \t\r\n*_`\"'.,:[]()").casefold()


def _is_nothing(value: object) -> bool:
    """Whether a field says nothing, or that it says nothing."""
    return value is None or _bare(value) in ("", "none", "null", "n/a", "-")
