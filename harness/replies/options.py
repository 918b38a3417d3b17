"""The rule that all forms with options share: a single unambiguous option is read, in whatever frame it stands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeVar

from .aside import spoken
from .characters import BLANK, DECORATION, WRAPPING, end_of, first_word, last_line, markers
from .extract import stated
from .fields import json_fields
from .literals import masked

T = TypeVar("T")

KEYS = ("answer", "final_answer", "preferred_answer", "action", "choice", "option", "label", "decision")
_NOUNS = ("answer", "action", "choice", "option", "label", "decision", "choose", "pick", "select", "go with")
FIELDS = tuple(key.replace("_", " ") for key in KEYS)
_TAIL = 20_000
"""Characters at a reply's end that are searched."""
_ADDED = re.compile(
    r",?[ \t]+(?:but|because|since|as|though|although)\b|,[ \t]+I[ \t]+(?:think|guess|believe)\b", re.IGNORECASE
)
_CORRECT = re.compile(
    r"^[ \t>*_`-]{0,8}([^\n]{1,80}?)[*_`]{0,3}[ \t]+(?:is|must be|should be|seems)[ \t]+(?:the[ \t]+)?"
    r"(?:correct|right|best)(?:[ \t]+(?:answer|choice|option|label|action|one))?[.!*_ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_NAMED = r"(?:(?:the|my|our|final|correct|best|chosen)[ \t*_]+){0,4}(?:answer|action|choice|option|label|decision)"
_BOX = re.compile(r"\\boxed[ \t]*\{(?:\\text\w{0,2}\{)?([^{}]{1,300})\}")
_ANNOUNCED = re.compile(
    r"(?:^[ \t>#*_`-]{0,12}|(?<=[.!?:;,][ ]))"
    r"(?:(?:so|thus|therefore|hence|then|and|I[ \t]+(?:think|believe|guess)(?:[ \t]+that)?)[ \t,]+){0,2}"
    rf"(?:{_NAMED}[ \t*_`#]{{0,8}}"
    r"(?:[:：=|→–—-]{1,2}>?|[ \t]*+\n\s*+|(?<=#)|\b(?:is|must[ ]be|should[ ]be)\b[ \t]*:?(?:[ \t]*[a-z]{2,12}ly\b)?)"
    r"|I[ ](?:choose|pick|select|will[ ]go[ ]with|go[ ]with)\b:?)[ \t*_`]*+([^\n]{1,300})$",
    re.IGNORECASE | re.MULTILINE,
)
_LEAD = re.compile(r"(?:so|thus|therefore|hence)\b[ \t]*[,:]?[ \t]*", re.IGNORECASE)
_JOINED = re.compile(
    r"[\s*_`\"'”’()\]}$]{0,6}(?:,?[ \t]*\b(?:or|and|as well as)\b|[/|&]|(?P<weak>[,;+–-]))[\s,*_`\"'“‘(\[]{0,6}"
    r"(?:(?:or|and|else|maybe|perhaps|possibly|also|both|either|option|choice)\b[\s,*_`\"'“‘(\[]{0,6}){0,3}",
    re.IGNORECASE,
)
_ENDS = re.compile(r"[\s*_`\"'”’)\]}]{0,6}(?:[.,;:!?|/+]|\Z)|[ \t]*\n")
_JOINT = re.compile(r"(?<=[^\W\d_])[\s_-]+(?=[^\W\d_])")
"""What joins the words of an option, such as the underscore of GRAB_LEFT."""
MARKS = re.compile(rf"{DECORATION.pattern}(?:\\text\{{)?")


class OptionTable:
    """Finds options in text: the longest, between the borders of words ("Group 12" is not "Group 1", 1.0 not 1).

    Case is ignored, letter by letter, unless options differ in nothing else. The words of an option may be joined in
    any way: GRAB_LEFT, grab left, Grab-Left, GRABLEFT.

    Attributes:
        pattern: matches an option.
    """

    def __init__(self, by_name: Mapping[str, str]) -> None:
        """Take the names under which options are in text, and the options that they mean."""
        fold = len({" ".join(name.split()).casefold() for name in by_name}) == len(by_name)
        joined = Counter(_JOINT.sub("", name).casefold() for name in by_name)
        names = sorted(by_name, key=len, reverse=True)
        self._options = [by_name[name] for name in names]
        patterns = []
        for name in names:
            unique = joined[_JOINT.sub("", name).casefold()] == 1
            words = [r"\s+".join(map(re.escape, part.split())) for part in (_JOINT.split(name) if unique else [name])]
            patterns.append(r"[\s_\\-]{0,3}".join(words))
        any_of = f"(?:({')|('.join(patterns)}))" if patterns else "(?!)"
        self.pattern = re.compile(
            rf"(?<![^\W_])(?<!\w-)(?<!\d\.){any_of}(?![^\W_]|%|\.\d|[_'’-][^\W_])",
            re.IGNORECASE if fold else 0,
        )

    def named(self, match: re.Match[str]) -> str:
        """The option that a match of `pattern` means."""
        assert match.lastindex is not None  # each option is a group
        return self._options[match.lastindex - 1]

    def exactly(self, text: str) -> str | None:
        """The option that `text` is and nothing besides, but for marks around it."""
        for bare in (text.strip(), text.strip(WRAPPING + ",;:$")):
            if match := self.pattern.fullmatch(bare):
                return self.named(match)
        return None

    def after(self, text: str, start: int) -> str | None:
        """The option that follows `start` and marks there; None for one of several."""
        for marks in (MARKS, BLANK):
            match = self.pattern.match(text, end_of(marks, text, start))
            if match:
                return None if another_follows(text, match.end(), self.pattern) else self.named(match)
        return None


@lru_cache(maxsize=512)
def options_of(names: tuple[str, ...]) -> OptionTable:
    """The finder of these options."""
    return OptionTable({name: name for name in names})


def read_option(text: str, options: tuple[str, ...], marker: str | None) -> str | None:
    """The option after the last marker that one follows, outside of JSON objects before within them; else the whole
    text; else `plain_option`."""
    finder, text = options_of(options), spoken(text)

    def marked(where: str) -> str | None:
        option, hashes = None, (marker or "").startswith("#")
        for match in markers(where, marker) if marker else ():
            if not hashes or text.endswith("##", 0, _back_over_blanks(text, match.start())):
                option = finder.after(text, match.end()) or option
        return option

    lines = masked(text) if marker and "{" in text else text  # what a field of JSON says is not a line of the reply
    option = marked(lines) or finder.exactly(text) or plain_option(text, finder.exactly)
    return marked(text) if option is None and lines != text else option


def _back_over_blanks(text: str, end: int) -> int:
    while end and text[end - 1] in " \t*_`":
        end -= 1
    return end


def plain_option(
    text: str, exactly: Callable[[str], T | None], announced: Callable[[str], T | None] | None = None
) -> T | None:
    r"""The option that a reply gives in one of these frames, the first of them that has one; in each the last counts.

    1. a JSON object: `{"action": "WAIT"}`;
    2. an element, a heading, a dash, or a box (`stated`): `<answer>B</answer>`, `[ANSWER] B`, `\boxed{B}`;
    3. what announces it on its line, or the heading above it: `ACTION - WAIT`, `My answer is WAIT.`, `### Action` and
       on the next line `WAIT`;
    4. the last line, if it is exactly an option, and the line above it is not another one.

    Args:
        text: the reply.
        exactly: the option that a text is and nothing besides, but for marks around it; None if it is none.
        announced: the same for a text in the frames 1 to 3, where more may be read; None for `exactly`.
    """
    announced, text = announced or exactly, text[-_TAIL:]
    if "{" in text:
        values = [value for value in json_fields(text, KEYS).values() if isinstance(value, (str, int))]
        options = {option for value in values if (option := announced(str(value))) is not None}
        if len(options) == 1:
            return options.pop()
    option = stated(text, FIELDS, announced)
    if option is not None:
        return option
    for frame, words in ((_BOX, ("\\boxed",)), (_ANNOUNCED, _NOUNS), (_CORRECT, ("correct", "right", "best"))):
        first = first_word(text, words)
        begin = text.rfind("\n", 0, first) + 1
        for match in reversed(list(frame.finditer(text, begin)) if first >= 0 else []):
            said = match[match.lastindex or 0].strip()
            if (option := announced(said) or announced(_ADDED.split(said, maxsplit=1)[0])) is not None:
                return option
    line = last_line(text)
    bare = line[end_of(_LEAD, line, 0) :]
    option = exactly(bare) if len(bare) <= 300 else None
    above = last_line(text[: text.rindex(line)]) if option is not None else ""
    return None if exactly(above) not in (None, option) else option


def another_follows(text: str, end: int, option: re.Pattern[str], *, weak: bool = True) -> bool:
    """Whether what ends at `end` is one of several that are offered: "GRAB_LEFT or WAIT", "Yes/No".

    Args:
        text: where it is.
        end: where it ends.
        option: what finds another one.
        weak: whether one after a comma or the like must end there: "Yes, no doubt" offers one, "Yes, no" two.
    """
    joined = _JOINED.match(text, end)
    other = option.match(text, joined.end()) if joined else None
    return bool(joined and other and not (weak and joined["weak"] and not _ENDS.match(text, other.end())))
