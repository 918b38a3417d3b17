"""Replies of other models' families: what `foreign.jsonl` has, filled with values that a form can have.

Each line of the file is a way to write a reply: `kind` is what its prompt asked for, `template` the reply with
placeholders, `expect` whether a careful reader takes a value from it (`value`), none (`unread`), or either. `{V}`
stands for the value, `{W}` and `{X}` for others that are only mentioned, `{V1}` to `{V3}` for values in order, `{M}`
for a message and `{C}` for a confidence from 0 to 100. `value`, `message` and
`confidence` are what is meant where it is not that. `left` says why the forms read a style in another way, on purpose.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.api import Completion, Reply, as_text
from harness.replies import WrappedReply
from harness.replies.dropped_fields import dropped_fields
from harness.replies.parse_guard import read_completion

from .parse_verdicts import Trial, Verdict, folded, name_of
from .styles import Style

MESSAGE, CONFIDENCE = "P1: you take right.", 83
_NUMBERS = ("42", "17", "358", "77", "96")
_WORDS = ("Mount Kilimanjaro", "Lake Victoria", "Nile")


@dataclass(frozen=True, slots=True)
class Foreign:
    """A way to write a reply, as a line of the file says it."""

    id: str
    kind: str
    template: str
    expect: str
    options: Sequence[str] | Mapping[str, str] | None = None
    truncated: bool = False
    left: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)

    def filled(self, text: Any, values: Sequence[str]) -> Any:
        """A text, or what else is meant, with values in place of placeholders."""
        if isinstance(text, list):
            return [self.filled(one, values) for one in text]
        if not isinstance(text, str):
            return text
        text = text.replace("{M}", MESSAGE)
        text = text.replace("{C}", str(CONFIDENCE)) if self.kind == "answer_confidence" else text
        names = ("V1", "V2", "V3", "W", "X") if "{V1}" in self.template else ("V", "W", "X")
        for name, value in zip(names, values, strict=False):
            text = text.replace(f"{{{name}}}", value)
        return text

    def meant(self, values: Sequence[str]) -> list[Any]:
        """What may be read as the value."""
        if "value_any" in self.more:
            return [self.filled(one, values) for one in self.more["value_any"]]
        default: Any = list(values[:3]) if "{V1}" in self.template else values[0]
        return [self.filled(self.more.get("value", default), values)]

    @property
    def is_open(self) -> bool:
        """Whether any values can be filled in: it has placeholders, and no literal values beside them."""
        return "{V" in self.template and "value" not in self.more


@lru_cache(maxsize=1)
def foreign_styles() -> tuple[Foreign, ...]:
    """All lines of the file."""
    rows = map(json.loads, Path(__file__).with_name("foreign.jsonl").read_text("utf-8").splitlines())
    own = ("id", "kind", "template", "expect", "options", "truncated", "left", "note")
    return tuple(
        Foreign(
            row["id"], row["kind"], row["template"], row["expect"],
            options=row.get("options"), truncated=bool(row.get("truncated")),
            left=row.get("left", ""), more={key: value for key, value in row.items() if key not in own},
        )
        for row in rows
    )  # fmt: skip


def kind_of(form: Reply) -> str | None:
    """The kind of prompts that a form answers; None where the file has none such."""
    while isinstance(form, WrappedReply) and {one.name for one in form.fields} == {
        one.name for one in form.inner.fields
    }:
        form = form.inner
    schemas = {one.name: one.schema for one in form.fields}
    rest = schemas.keys() - {"message", "confidence"}
    if len(rest) != 1 or (name := next(iter(rest))) not in ("answer", "action", "ranking"):
        return None
    schema = schemas[name]
    if "message" in schemas:
        return "message_action" if "enum" in schema and name == "action" and len(schemas) == 2 else None
    if "confidence" in schemas:
        return "answer_confidence" if schema.get("type") in ("integer", "number") or "enum" in schema else None
    if name == "ranking":
        return "ranking"
    if "enum" in schema:
        return "letter" if all(len(str(one)) == 1 and str(one).isalpha() for one in schema["enum"]) else "choice"
    return {"integer": "integer", "number": "number", "array": "list"}.get(str(schema.get("type")))


def foreign_trials(form: Reply) -> Iterator[Trial]:
    """A form's replies in all styles of its kind that can be filled with its own values."""
    kind, values = kind_of(form), values_of(form)
    for style in foreign_styles() if kind is not None else ():
        if style.kind == kind and style.is_open and not style.left and len(set(values)) >= 3 and style.options is None:
            yield tried(form, style, values)


def values_of(form: Reply) -> tuple[str, ...]:
    """Values that a form can have, none a part of another one; () where it has too few."""
    schema = next((one.schema for one in form.fields if one.name in ("answer", "action")), {})
    if "enum" in schema:
        return _apart([as_text(one) for one in schema["enum"]])
    low, high = schema.get("minimum", 0), schema.get("maximum", 1000)
    own = {as_text(form.says(one).get("answer")) for one in form.examples} if schema.get("type") != "array" else set()
    if schema.get("type") in ("integer", "number"):
        return tuple(one for one in _NUMBERS if low <= int(one) <= high) or _apart(sorted(own))
    if schema.get("minItems") not in (None, 3):
        return ()
    return _NUMBERS if schema.get("type") == "array" else tuple(getattr(form, "candidates", ())) and _WORDS


def _apart(texts: Sequence[str]) -> tuple[str, ...]:
    kept: list[str] = []
    for text in texts:
        if not any(text.lower() in one.lower() or one.lower() in text.lower() for one in kept):
            kept.append(text)
    return tuple(kept)


def tried(form: Reply, style: Foreign, values: Sequence[str]) -> Trial:
    """Read a reply in a style, and compare it with what it means.

    Of a reply that means nothing, nothing may be read: "read" then says that this is so.
    """
    label = next((one.lead.strip(" #:*") for one in form.fields if one.name == "action"), "")
    template = style.template.replace("Answer:", f"{label}:") if label and style.kind == "choice" else style.template
    text = style.filled(template, values)
    completion = Completion(text, finish_reason="length" if style.truncated else "stop")
    parsed = read_completion(form, completion)
    own = Style(f"foreign {style.id}", style.expect == "value", lambda meant: None)
    meant = style.meant(values)
    if parsed.error is not None or parsed.action is None:
        verdict: Verdict = "read" if style.expect != "value" else "refused"
        return Trial(name_of(form), own, text, meant, parsed.error, verdict)
    said = form.says(parsed.action)
    act = next((said[name] for name in ("answer", "action", "ranking") if said.get(name) is not None), None)
    verdict = "read" if any(_same(act, one) for one in meant) and style.expect != "unread" else "misread"
    if verdict == "read":
        verdict = _beside(style, values, said, dropped_fields(form, completion, parsed))
    return Trial(name_of(form), own, text, meant, said, verdict)


def _beside(style: Foreign, values: Sequence[str], said: Mapping[str, Any], dropped: Sequence[str]) -> Verdict:
    """What became of the field beside the value. One that is counted as dropped is refused, not lost."""
    if style.kind == "message_action":
        name, default = "message", MESSAGE
        wanted = [
            style.filled(one, values) for one in style.more.get("message_any", [style.more.get("message", default)])
        ]
    elif style.kind == "answer_confidence":
        name, default = "confidence", str(CONFIDENCE)
        number = style.more.get("confidence", default)
        wanted = [None if number is None else float(number) / 100]
    else:
        return "read"
    got = said.get(name)
    got = None if got == "None" else got
    if any(_same(got, one or None) for one in wanted):
        return "read"
    if got is None:
        return "refused" if name in dropped or style.expect != "value" else "dropped"
    return "misread"


def _same(got: Any, meant: Any) -> bool:
    if isinstance(meant, Mapping):
        meant = meant.get("action", meant.get("ACTION"))
    if isinstance(meant, list):
        got = got.split(" > ") if isinstance(got, str) else got
        return isinstance(got, list | tuple) and len(got) == len(meant) and all(map(_same, got, meant))
    if got is None or meant is None:
        return got is meant
    return bool(folded(got) == folded(meant))
