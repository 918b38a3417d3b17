"""What became of a reply: read as it was meant, refused, misread, or read in part."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness.api import Parsed, Reply, as_text
from harness.replies import WrappedReply
from harness.replies.parse_guard import read

from .dialects import DIALECTS
from .styles import STYLES, Meant, Style

Verdict = Literal["read", "refused", "misread", "dropped"]
VERDICTS: tuple[Verdict, ...] = ("read", "refused", "misread", "dropped")


@dataclass(frozen=True, slots=True)
class Trial:
    """A reply in one style, and what was read of it.

    Attributes:
        form: the name of the form.
        style: the style.
        text: the reply.
        meant, got: what it says field by field, as it was meant and as it was read (an error: the reason).
        verdict: what became of it.
    """

    form: str
    style: Style
    text: str
    meant: Any
    got: Any
    verdict: Verdict


def name_of(form: Reply) -> str:
    """The types of a form and those that it wraps: AnswerWithConfidence(Letter)."""
    own, inner = type(form).__name__, getattr(form, "inner", None) or getattr(form, "act", None)
    if isinstance(form, WrappedReply) and own in ("Ballot", "ShortReply", "WrappedReply"):
        return name_of(form.inner)
    own = f"{own}, reference" if getattr(form, "parsing", "") == "reference" else own
    return f"{own}({name_of(inner)})" if isinstance(inner, Reply) else own


def is_exact(form: Reply) -> bool:
    """Whether a form reads as a benchmark's own code does, quirks included (`parsing: reference`)."""
    inner = [getattr(form, name, None) for name in ("inner", "act", "line")]
    return getattr(form, "parsing", "") == "reference" or any(isinstance(one, Reply) and is_exact(one) for one in inner)


def trials(form: Reply, styles: Sequence[Style] = (*STYLES, *DIALECTS), most: int = 6) -> Iterator[Trial]:
    """Every example of a form (`most` of many) in every style."""
    examples = [*form.examples]
    examples = examples[:: max(1, len(examples) // most)][:most]
    for i, action in enumerate(examples):
        meant = Meant(form, action, examples[(i + 1) % len(examples)])
        for style in styles:
            text = style.write(meant)
            if text is not None:
                yield tried(meant, style, text)


def tried(meant: Meant, style: Style, text: str, parsed: Parsed | None = None) -> Trial:
    """Read a reply, unless that is done, and compare it with what it means."""
    form = meant.form
    parsed = read(form, text) if parsed is None else parsed
    said = _plain(meant.said)
    if parsed.error is not None:
        return Trial(name_of(form), style, text, said, parsed.error, "refused")
    got = _plain({} if parsed.action is None else form.says(parsed.action))
    return Trial(name_of(form), style, text, said, got, _verdict(said, got))


def _verdict(meant: dict[str, Any], got: dict[str, Any]) -> Verdict:
    if meant == got:
        return "read"
    lost = {name for name in meant if name not in got}
    if all(got.get(name) == meant.get(name) for name in {*meant, *got} - lost):
        return "dropped"
    return "misread"


def _plain(said: Any) -> dict[str, Any]:
    """What is said, so that it can be compared: blanks, case and marks around it make no difference."""
    return {name: folded(value) for name, value in said.items() if value is not None and folded(value) != "none"}


def folded(value: Any) -> Any:
    """A value so that it can be compared: numbers as numbers, texts without blanks, case and marks around them."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return json.dumps(value, sort_keys=True)
    if isinstance(value, (int, float)):
        return float(value)
    bare = " ".join(as_text(value).split()).strip("*_`\"'“”.$ ").casefold()
    try:
        return float(bare)
    except ValueError:
        return bare


def counts(trials: Iterable[Trial]) -> dict[str, Counter[str]]:
    """Form → how many replies were read, refused, misread and dropped, and under "plain" and "plain read" those whose
    style leaves no doubt."""
    table: dict[str, Counter[str]] = {}
    for one in trials:
        row = table.setdefault(one.form, Counter())
        row[one.verdict] += 1
        row["plain"] += one.style.plain
        row["plain read"] += one.style.plain and one.verdict == "read"
    return table
