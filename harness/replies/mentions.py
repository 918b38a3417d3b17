"""Which of the values that a line mentions is the one that it states, and what a line says behind its verb.

All forms read by these rules what stands behind a label, and a reply's last line:

- a value with which the line begins is the one; what follows it is explanation, unless it offers another value
  ("A, B, or C") or takes this one back ("7? No");
- else the only value that is neither denied ("not 7", "instead of 7") nor offered among others;
- else the value behind the verb of the line's last clause ("the total is 42", "I choose 42").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from .statements import declines

T = TypeVar("T")

_NEAR = 60
"""Characters before and behind a value in which words deny it."""
_MARKS = r"[\s*_`\"'“”‘’()\[\]{}$]"
_DENIED_BEFORE = re.compile(
    r"(?:(?<![^\W_])(?:not|never|neither|nor|cannot|except|excluding|without|unlike|instead[ \t]of"
    r"|rather[ \t]than|than"
    r"|as[ \t]opposed[ \t]to|versus|vs\.?|rul(?:ed?|ing)[ \t]out"
    r"|(?<!vote[ \t]to[ \t])(?<!voting[ \t]to[ \t])eliminat(?:e[sd]?|ing)|retract(?:s|ed|ing)?|exclud(?:e[sd]?|ing)"
    r"|reject(?:s|ed|ing)?|discard(?:s|ed|ing)?|avoid(?:s|ed|ing)?|at[ \t](?:least|most)|up[ \t]to)(?!\w)"
    r"|n['’]t(?!\w))"
    r"(?:[\W_]|(?<!\w)(?:be|being|an?|the|really|option|choice|answer|number|just|simply|also|with|for|to|go|pick"
    r"|choose|select|say|my|earlier|previous|first|initial)(?!\w))*"
    r"(?:(?<=[ \t])(?!(?:so|thus|hence|then|but|therefore|and|or|it|this|that|which)[ \t])[^\W\d_]{1,20}[ \t]{1,4})?$",
    re.IGNORECASE,
)
_DENIED_BEHIND = re.compile(
    rf"{_MARKS}{{0,6}}(?:"
    r"(?:is|are|was|were|seems?|looks?|would[ \t]be|can[ \t]be|should[ \t]be|must[ \t]be|has[ \t]to[ \t]be|being)[ \t]+"
    r"(?:(?:clearly|obviously|definitely|certainly|also|just|simply|already|surely)[ \t]+)?"
    r"(?:not|never|too|wrong|incorrect|false|im\w+|taken|ruled[ \t]out|eliminated|excluded|out)(?!\w)"
    r"|(?:is|are|was|were|does|do|did|ca|could|wo|would|should)n['’]t(?!\w)"
    r"|(?:cannot|can[ \t]not|can['’]t|does[ \t]not|do[ \t]not|did[ \t]not|fails)(?!\w))",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    rf"{_MARKS}{{0,6}}(?:\?|[.,;:!–—-]*[ \t]*(?:no|nope|wait|oops|sorry|scratch[ \t]that|correction|strike[ \t]that"
    r"|hmm+|on[ \t]second[ \t]thought|i[ \t]mean(?:t)?|or[ \t]rather)(?=[ \t]*(?:[.,;:!–—-]|$)))",
    re.IGNORECASE,
)
"""What follows a value that is asked about, or taken back."""
_JOINED = re.compile(
    r"(?:[ \t]\([^()\n]{1,12}%\))?"
    rf"{_MARKS}{{0,6}}(?:(?:[,;/|&+]|\bor\b|\band\b|\bas[ \t]well[ \t]as\b|\bversus\b"
    rf"|\bvs\b\.?)[\s,*_`\"'“‘(\[$]{{0,6}})+(?:[^\W\d]\w{{0,12}}[ \t]*=[\s$]*)?"
    r"(?:(?:or|and|else|rather|maybe|perhaps|possibly|also|both|either|even|option|choice|the|number|letter|answer)\b"
    r"[\s,*_`\"'“‘(\[$]{0,6}){0,3}",
    re.IGNORECASE,
)
_BETWEEN = 60
"""Characters that may stand between two values that are offered together."""
_STRONG = re.compile(r"[/|&]|\b(?:or|and|as[ \t]well[ \t]as|versus|vs)\b", re.IGNORECASE)
_ENDS = re.compile(rf"{_MARKS}{{0,6}}(?:[.,;:!?|/+]|$|\b(?:or|and)\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Mention(Generic[T]):
    """A value, and where in a line it stands."""

    start: int
    end: int
    value: T


def free(line: str, mentions: Sequence[Mention[T]], weak: bool = True) -> list[Mention[T]]:
    """The mentions that are neither denied, taken back, nor offered among others.

    Args:
        line: where they stand.
        mentions: in order.
        weak: whether a value after a comma is offered only if it ends there: "Yes, no doubt" offers one value.
    """
    kept, joined = [], False
    for one, after in zip(mentions, [*mentions[1:], None], strict=True):
        before_joined, joined = joined, after is not None and offered(line, one, after, weak)
        if not (before_joined or joined or denied(line, one)):
            kept.append(one)
    return kept


def offered(line: str, one: Mention[T], after: Mention[T], weak: bool = True) -> bool:
    """Whether two neighboring mentions are offered together: "A or B", "A, B", "either A or B"."""
    if one.value == after.value or after.start - one.end > _BETWEEN:
        return False
    between = line[one.end : after.start]
    joint = _JOINED.fullmatch(between)
    if joint is None:
        return False
    return bool(_STRONG.search(between)) or not weak or _ENDS.match(line, after.end) is not None


def denied(line: str, one: Mention[T]) -> bool:
    """Whether a mention says what the value is not, or is taken back."""
    return bool(
        _DENIED_BEFORE.search(line[max(0, one.start - _NEAR) : one.start])
        or _DENIED_BEHIND.match(line, one.end)
        or _TAKEN_BACK.match(line, one.end)
    )


_BUT = re.compile(r"(?<!\w)(?:but|while|whereas|though)(?!\w)|;", re.IGNORECASE)
"""What opposes a value to another one behind it."""
UNDECIDED = re.compile(
    r"\b(?:I|we)[ \t](?:cannot|can['’]t|can[ \t]not|do[ \t]not|don['’]t)[ \t](?:say|tell|know|decide|determine)\b"
    r"|\bdepends[ \t]on\b|\bhard[ \t]to[ \t]say\b|\btorn[ \t]between\b"
    r"|\b(?:is|are|seems?|would[ \t]be)[ \t](?:also[ \t](?:possible|plausible|defensible)"
    r"|(?:possible|plausible|defensible)[ \t,]+(?:too|as[ \t]well))\b",
    re.IGNORECASE,
)
"""What a line says, with no label before it, that decides for no value."""
_NONE = re.compile(
    r"(?<!\w)(?:(?:there|it)[ \t](?:is|was|are|were|seems)[ \t](?:to[ \t]be[ \t])?(?:no(?!\w)|im\w+"
    r"|not[ \t](?:possible|clear|known|given|enough|determin\w+))"
    r"|no[ \t](?:valid[ \t]|possible[ \t]|such[ \t])?(?:solution|answer|way|option|combination)|impossible"
    r"|(?:cannot|can['’]?t|could[ \t]?n[o'’]t|unable[ \t]to|not[ \t]possible[ \t]to)[ \t]"
    r"(?:be[ \t])?(?:determine|obtain|find|found|make|made|tell|say|reach|solve|get))",
    re.IGNORECASE,
)
"""What says, before a value, that there is none: "There is no solution to obtain 17"."""


_SURELY = (
    r"(?:(?:therefore|thus|then|hence|indeed|simply|just|only|exactly|definitely|clearly|obviously|certainly|surely"
    r"|probably|most|likely|now|also|still|precisely|approximately|about|roughly|around)\b[ \t,]*)*"
)
_VERB = re.compile(
    r"(?:(?<!\w)(?:is|are|was|were|be|been|equals?|equal[ \t]to|gives?|gave|yields?|makes?|leaves?"
    r"|becomes?|remains?|totals?"
    r"|comes?[ \t](?:out[ \t])?(?:to|at)|amounts?[ \t]to|adds?[ \t]up[ \t]to|works?[ \t]out[ \t](?:to|as)"
    r"|results?[ \t]in"
    r"|choos(?:e|ing)|chose|pick(?:ed|ing)?|select(?:ed|ing)?|get|got|obtain|find|found|conclude|answer|say|submit"
    r"|go(?:ing)?[ \t](?:with|for)|settled?[ \t](?:on|for)|vot(?:e|ing)(?:[ \t]for|[ \t]to[ \t](?:eliminate"
    r"|remove|eject|exile|expel|kick|lynch|execute|banish))?|goes[ \t]to|opt[ \t]for"
    r"|decided?[ \t](?:on"
    r"|for)|take)(?!\w)"
    r"|(?<=[,;][ \t])so(?=[ \t])|(?<=[?.!][ \t])(?:no|nope|rather|instead)[ \t]*[,.:;–—-]+(?=[ \t])"
    r"|(?<=\w)['’]s(?=[ \t])|[:：=→⇒≈➡]|[-=]+>)[ \t]*:?[ \t]*(?:that[ \t]+)?" + _SURELY,
    re.IGNORECASE,
)
"""What a clause says its value with."""
_LEAD = re.compile(
    r"[\s>*_`#•–—-]*(?:(?:so|thus|therefore|hence|then|finally|overall|altogether|consequently|accordingly|ultimately"
    r"|in[ \t](?:conclusion|short|summary|total|sum|all)|to[ \t](?:conclude|sum[ \t]up)"
    r"|as[ \t]a[ \t]result|and)\b[\s,:*_`]*)+",
    re.IGNORECASE,
)


_REASON = re.compile(
    r"(?<!\w)(?:because|since|given[ \t]that|now[ \t]that|even[ \t]though|although)(?!\w)", re.IGNORECASE
)


_CLAUSE = re.compile(r"[,;:.(–—]")


def behind_verbs(line: str) -> Iterable[str]:
    """What a line says behind its verbs, from the last one to the first, then behind words such as "therefore"."""
    verbs = [match for match in _VERB.finditer(line) if line[match.end() :].strip()]
    reason = _REASON.search(line, verbs[0].end()) if verbs else None
    if reason is not None:  # "I pick red since both chose green": what the reason says is no statement
        verbs = [match for match in verbs if match.end() <= reason.start()]
    yield from (line[match.end() :] for match in reversed(verbs))
    if (lead := _LEAD.match(line)) is not None:
        yield line[lead.end() :]


@dataclass(frozen=True, slots=True)
class Stated(Generic[T]):
    """What a line states.

    Attributes:
        value: the value; None if there is none, or no single one.
        is_open: whether the line says nothing of any value, so that another place may state it.
    """

    value: T | None
    is_open: bool


def stated_in(
    line: str,
    mentions: Sequence[Mention[T]],
    begins: Callable[[str], bool],
    weak: bool = True,
    alone: bool = True,
) -> Stated[T]:
    """What a line states by the rules above.

    Args:
        line: what stands behind a label.
        mentions: the values in it, in order.
        begins: whether a value behind this text is the one with which the line begins: it has marks and fillers only.
        weak: as in `free`.
        alone: whether a single value is stated without a verb.
    """
    if not mentions:
        return Stated(None, True)
    kept = free(line, mentions, weak)
    first = mentions[0]
    if begins(line[: first.start]) and not (kept and _DENIED_BEFORE.search(line[: first.start])):
        return Stated(first.value if kept and kept[0] is first else None, False)
    if _NONE.search(line, 0, first.start) or declines(_CLAUSE.split(line[: first.start], maxsplit=1)[0]):
        return Stated(None, False)
    values = {repr(one.value): one.value for one in kept}
    if len(values) == 1 and alone:
        return Stated(kept[0].value, False)
    starts = {one.start: one for one in kept}
    for tail in behind_verbs(line):
        at = len(line) - len(tail)
        following = next((start for start in starts if start >= at - 1), None)  # a blank may begin a number
        if following is not None and begins(line[at:following]):
            end = starts[following].end
            if any(one.value != starts[following].value and _BUT.search(line, end, one.start) for one in kept):
                return Stated(None, False)
            return Stated(starts[following].value, False)
    return Stated(None, False)
