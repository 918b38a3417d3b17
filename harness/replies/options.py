"""The rule that all forms with options share: a single unambiguous option is read, in whatever frame it stands."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeVar

from .answers import answer_at, places_of, plain
from .characters import ASIAN, BLANK, DECORATION, WRAPPING, end_of, first_word, last_line
from .conclusions import MEMBER, SPEAKER, concluding, is_plain
from .extract import stated
from .json_fields import json_fields
from .mentions import UNDECIDED, Mention, Stated, behind_verbs, denied, free, stated_in
from .statements import WINDOW
from .strip_reasoning import strip_reasoning

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
_LABELS = (
    *("action", "choice", "decision", "option", "label", "move", "wahl", "décision", "decisión", "entscheidung"),
    *("决定", "选择", "行动", "行動"),
)
_VERDICTS = (
    *("vote", "verdict", "winner", "category", "class", "classification", "selection", "pick", "preference"),
    *("conclusion", "prediction", "judgment", "judgement", "outcome", "ruling"),
)
LABELS = (
    (
        re.compile(
            rf"(?<![^\W_])(?:(?:{'|'.join(_LABELS)})"
            r"[ \t*_`]{0,5}(?:[:：=]|(?<=[ \t*_`])(?:is|would be|must be)(?![\w']))[ \t*_`]*[:：]?"
            rf"|(?:{'|'.join(_VERDICTS)})[ \t*_`]{{0,5}}[:：=][ \t*_`]*)",
            re.IGNORECASE,
        ),
        (*_LABELS, *_VERDICTS),
    ),
)
"""What announces an option, besides the labels of all answers."""
_MAX_OPTIONS = 100
"""Options of a line that are looked at."""
_FILL = (
    r"(?:the|my|our|an?|this|it|it['’]?s|that|is|are|be|to|i|we|you|he|she|they|should|will|would|must"
    r"|can|shall|['’]ll|am|go|with|for|take"
    r"|choose|pick|select|option|choice|answer|label|letter|group|action|move|decision|category|class|now"
    r"|then|so|thus|therefore"
    r"|hence|definitely|probably|clearly|likely|most|best|just|simply|only|final|play|do|say|vote|lean"
    r"|prefer|please|let['’]?s|us"
    r"|round|turn|colou?r|number|role|side)"
)
_BEGINS = re.compile(
    rf"{DECORATION.pattern}(?:(?:\\text\w{{0,2}}\{{|{_FILL}\b){DECORATION.pattern}(?:[,.][ \t]*)?)*[*_`\"'“„(\[<]*",
    re.IGNORECASE,
)
"""What may precede an option with which a line begins: marks and fillers."""
_ENDS_CLAUSE = re.compile(
    r"[*_`\"'”’)\]}$]{0,4}(?:\s*+(?:[.,;:!)(\n]|[–—-]{1,2}(?=\s)|\Z)|\s+(?:because|since|as|for|so|but|instead"
    r"|rather|not|over|here|this|due|given"
    r"|although|though|even|it[ ]is|is[ ](?:the[ ]|my[ ])?(?:correct|right|best|answer|choice))\b)",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\bsuch as\b|\?[\s*_`\"']*$|\b(?:cannot|can['’]t|unable|not sure|unsure|whether|if)\b", re.IGNORECASE
)
_NEGATED = re.compile(
    r"(?:\b(?:not|never|neither|nor|wouldn|cannot|if|such as|e\.g\.|agents?|players?|opponents?|others?"
    r"|their|his|her|your|p\d|neighbou?rs?)\b"
    r"|n['’]t)[^.;]{0,30}$|\w(?:action|answer|choice)[\s*_`]*[:：=][\s*_`]*$",
    re.IGNORECASE,
)
"""What makes of an option at the end of a line one that is not stated: denied, someone else's, an example."""
_OPEN = re.compile(
    r"\b(?:anything|everything|any|all|either|one|some|none)[ \t]+(?:but|except|of|other than|one)\b"
    r"|\b(?:otherwise|depends|depending|unless)\b",
    re.IGNORECASE,
)
"""What leaves open which option is meant: "anything but red", "red if it rains, otherwise blue"."""
THEN = re.compile(r"[\s*_`\"'”’)\]]{0,12},?[ \t]*(?:and[ \t]+)?(?:then|afterwards|next|followed by)\b", re.IGNORECASE)
_GOES_ON = re.compile(
    r"[ \t]+(?!(?:because|since|as|due|for|which|and|or|but|given|is|was|based|with|from|only|in|by|to"
    r"|where|so|if|rather|instead|not|over"
    r"|fits|seems|must)\b)[a-z]"
)
_NO_LONGER = re.compile(
    r"[ \t]+(?!(?:because|since|as|but|for|given|under|based|due|so|when|if|not|it|he|she|they|we|i|you"
    r"|this|that|these|instead|rather"
    r"|those|there|the|an?|in|on|by|to|is|was|are|were|and|or|even|though|although|with)\b)\w",
    re.IGNORECASE,
)
"""What follows a "no" that continues: "no evidence", "no longer", "no clue"."""


def _is_marked(line: str, match: re.Match[str]) -> bool:
    """Whether a letter stands in brackets, quotes or bold, or before a closing bracket or full stop."""
    return line[: match.start()].endswith(("(", "[", "*", "`", '"', "“", "'", "$", "{", "„")) or line[
        match.end() :
    ].startswith((")", "]", "*", ":"))


_LEAD = re.compile(r"(?:so|thus|therefore|hence)\b[ \t]*[,:]?[ \t]*", re.IGNORECASE)
_JOINED = re.compile(
    r"(?:[ \t]\([^()\n]{1,12}%\))?"
    r"[\s*_`\"'”’()\]}$]{0,6}(?:,?[ \t]*\b(?:or|and|as well as)\b|[/|&]|(?P<weak>[,;+–-]))[\s,*_`\"'“‘(\[]{0,6}"
    r"(?:(?:or|and|else|rather|maybe|perhaps|possibly|also|both|either|option|choice)\b[\s,*_`\"'“‘(\[]{0,6}){0,3}",
    re.IGNORECASE,
)
_ENDS = re.compile(r"[\s*_`\"'”’)\]}]{0,6}(?:[.,;:!?|/+]|\Z)|[ \t]*\n")
_QUOTES = ("*", "`", '"', "'", "“", "”", "„", "‘", "’", "(", ")", "_")
_PARTICLES = frozenset(("yes", "no", "none", "true", "false", "all", "both", "any", "other", "left", "right"))
"""Options that are words of any sentence."""
_CALLED = re.compile(
    r"(?<!\w)(?:(?:option|choice|answer|letter|label)|(?:it['’]s|that['’]s|is) an?(?: \w+)?)[ \t*_`\"'“(]{1,4}$",
    re.IGNORECASE,
)
_JOINT = re.compile(r"(?<=[^\W\d_])[\s_-]+(?=[^\W\d_])")
"""What joins the words of an option, such as the underscore of GRAB_LEFT."""
_NUMBERS = re.compile(
    r"(?<!\w)(\d{1,9})[ \t*_`\"']{0,4}(?:\bor\b|\band\b|[/&])[ \t*_`\"']{0,4}(?:[^\W\d_]{1,20}[ \t]{1,4}){0,2}(\d{1,9})"
    r"[ \t*_`\"')]{0,6}(?=[.,;:!?]|$)",
    re.IGNORECASE,
)
"""Two numbers that are offered together: "1 or 2", "Group 1 and Group 2"."""
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
        self._numbered = all(name.isdecimal() for name in names)
        any_of = f"(?:({')|('.join(patterns)}))" if patterns else "(?!)"
        other = ASIAN if all(map(str.isascii, names)) else ""
        letter = rf"(?-i:[^\W_{other}])"  # without case: with it, `re` takes 5 ms to fold 30,000 Asian signs
        self.pattern = re.compile(
            rf"(?<!{letter})(?<!\w-)(?<!\d\.){any_of}(?!{letter}|%|\.\d|[_'’-][^\W_])",
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

    def mentions(self, line: str) -> list[Mention[str]]:
        """The options that a line mentions. A single letter counts where it stands alone as a capital, or is marked."""
        found = []
        for match in itertools.islice(self.pattern.finditer(line), _MAX_OPTIONS):
            word = match[0]
            if word in ("a", "A", "I") and _GOES_ON.match(line, match.end()):
                continue
            if len(word) == 1 and word.isalpha() and not _is_marked(line, match):
                is_item = match.start() == 0 and line[1:3] == ". "
                if (
                    word.islower()
                    and not is_item
                    and line.strip(WRAPPING + ",;:") != word
                    and match.end() < len(line.rstrip(WRAPPING))
                ):
                    continue
            if word.lower() == "no" and _NO_LONGER.match(line, match.end()):
                continue
            found.append(Mention(*match.span(), self.named(match)))
        return found

    def read(self, line: str, announced: bool = True) -> Stated[str]:
        """The option that a line states, by the rules of `harness.replies.mentions`. A line that no label announces
        states one only where it is an option and nothing besides, begins with one before a mark or ends with one behind
        its verb."""
        line = line[: 4 * WINDOW] if announced else line[-4 * WINDOW :]
        if (option := self.exactly(line)) is not None:
            return Stated(option, False)
        if line.startswith("{") and (members := json_fields(line, KEYS)):
            return self.read(str(next(iter(members.values()))))
        mentions = self.mentions(line)
        if announced:
            if _OPEN.search(line) and mentions:
                return Stated(None, False)
            said = stated_in(line, mentions, lambda before: _BEGINS.fullmatch(before) is not None)
            first = next((one for one in mentions if one.value == said.value), None)
            offers = _NUMBERS.finditer(line) if self._numbered and first is not None else ()
            if any(pair[1] != pair[2] and said.value in pair.groups() for pair in offers):
                return Stated(None, False)  # "1 or 2", of which one is no option
            if first is not None and THEN.match(line, first.end) and len({one.value for one in mentions}) > 1:
                return Stated(None, False)
            return said
        if not mentions or UNDECIDED.search(line) or MEMBER.match(line):
            return Stated(None, not mentions)
        first = mentions[0]
        if not _ASKS.search(line) and not line[: first.start].strip(WRAPPING) and _ENDS_CLAUSE.match(line, first.end):
            kept = free(line, mentions)
            if SPEAKER.fullmatch(line[: first.end].strip(WRAPPING)) and line[first.end : first.end + 1] in (":", ","):
                return Stated(None, False)
            if not denied(line, first):
                return Stated(first.value if kept and kept[0] is first else None, False)
        sentence = concluding(line, lambda said: bool(self.mentions(said)))
        return Stated(None, False) if sentence is None else self._concluded(sentence)

    def _concluded(self, line: str) -> Stated[str]:
        """The option that a sentence states behind its verb, or that is the only one in it."""
        mentions = self.mentions(line)
        kept = free(line, mentions)
        for tail in behind_verbs(line):
            at = len(line) - len(tail)
            lead = _BEGINS.match(line, at)
            ahead = next((one for one in mentions if lead is not None and at <= one.start <= lead.end()), None)
            if ahead is None or not _BEGINS.fullmatch(line, at, ahead.start):
                continue
            if ahead not in kept or not _ENDS_CLAUSE.match(line, ahead.end) or _NEGATED.search(line[:at]):
                return Stated(None, False)
            return Stated(ahead.value, False)
        others = [one for one in mentions if denied(line, one)]
        if len({one.value for one in mentions if one not in others}) != 1 or not kept or _OPEN.search(line):
            return Stated(None, False)
        begin = max((one.end for one in others if one.start < kept[-1].start), default=0)
        if not is_plain(line[begin : kept[-1].start]):
            return Stated(None, False)
        return Stated(kept[0].value if any(self._is_named(line, one) for one in kept) else None, False)

    def _is_named(self, line: str, one: Mention[str]) -> bool:
        """Whether a mention is written as the option is, and is no word or letter of the sentence itself."""
        word = line[one.start : one.end]
        if SPEAKER.fullmatch(word):
            return False
        marked = line[: one.start].endswith(_QUOTES) and line[one.end :].startswith(_QUOTES)
        if len(word) < 2 or word.lower() in _PARTICLES:
            return marked or bool(_CALLED.search(line[: one.start]))
        return marked or any(char.isupper() or not char.isalpha() for char in word) or one.value == word


@lru_cache(maxsize=512)
def options_of(names: tuple[str, ...]) -> OptionTable:
    """The finder of these options."""
    return OptionTable({name: name for name in names})


def read_option(text: str, options: tuple[str, ...], marker: str | None, *names: str) -> str | None:
    """The option that a reply states (`answer_of`), behind the marker if it has one; else by `plain_option`.

    `names` are further names of fields that hold it.
    """
    finder, text = options_of(options), strip_reasoning(text)
    if (option := finder.exactly(text)) is not None:
        return option
    fields = tuple(dict.fromkeys((*names, *FIELDS)))
    text = plain(text)
    places = places_of(text, finder.read, marker, fields, LABELS)
    option = None if places else plain_option(text, finder.exactly, lambda said: finder.read(said).value)
    return option or answer_at(text, places, finder.read)


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
