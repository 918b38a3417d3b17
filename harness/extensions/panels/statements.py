"""Where a reply says what its answer is: after a label, in a box, on its last line."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence

from harness.replies.characters import WRAPPING, beginning_with, end_of, last_line

LABEL = re.compile(
    r"(?:(?<![^\W_])(?<![^\W_]_)|(?<=final_)(?<![^\W_]final_)(?<![^\W_]_final_)(?<![\"']final_))(?<![\"'])"
    r"(?:answer|result)"
    r"(?:[ \t](?:to|of|for|choice|option|letter|label)\b[^.:\n=]{0,60}?)?"
    r"[ \t*_`]{0,5}(?:[:：=]|(?<=[ \t*_`])(?:is|should be|must be|would be)(?![\w']))[ \t*_`]*[:：]?",
    re.IGNORECASE,
)
"""What announces an answer: "Answer:", "final_answer:", "the answer is", "**Answer:**", "answer to the question is"."""
LABEL_WORDS = ("answer", "result")
"""What it begins with."""
WINDOW = 500
"""Characters after a label that are read."""
MAX_LABELS = 200
"""Labels that are looked behind, from the last one back: a text of nothing but labels would be read `WINDOW` times."""
_GAP = re.compile(r"[\s*_`#>-]*\n[\s*_`#>]*")
_BOXES = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])[ \t]*|\\.|[{}]", re.DOTALL)
_BARE_BOX = re.compile(r"\\frac[ \t]*\d{2}|\\(?!boxed|fbox)[A-Za-z]+|[^\s$\\{}]+")


_CANNOT = r"(?:(?:do|did|can|could)(?: not|n['’]?t)|cannot|can['’]?t|(?:am |was )?(?:not able|unable) to)"
_VERBS = "know|say|tell|answer|solve|determine|decide|find|be sure|work|give|provide"
_DECLINED = re.compile(
    r"(?:(?:(?:i['’]?m )?sorry|well|honestly|unfortunately|so|but)\b[, ]*)*(?:as an? [^.:=]{1,80}?[, )]+)?(?:"
    r"(?:i|we)(?:['’]m| am| are| was)? (?:(?:really|just|simply) )?"
    rf"(?:(?:have|had|see|find) no (?:idea|clue|answer)|{_CANNOT} (?:really )?(?:{_VERBS})\b.*"
    r"|(?:not (?:sure|certain)|unsure|uncertain|sorry|lost|stuck)\b.*)"
    r"|(?:there (?:is|was) )?no (?:idea|clue|comment|(?:final )?answer)"
    r"(?: (?:(?:was|is) )?(?:found|given|possible|available|known|yet))?"
    r"|n\.?[ ]?/[ ]?a\.?|n\.a\.?|(?-i:NA)|not (?:applicable|available|known|sure|given|answered)"
    r"|unknown|unsure|undecided|idk|dunno|tbd|todo|null|nil|nan|sorry\b.*)",
    re.IGNORECASE | re.DOTALL,
)


def declines(text: str) -> bool:
    """Whether a short text only says that there is no answer: "I have no idea", "No answer", "N/A", "unknown"."""
    bare = " ".join(re.sub(r"\\(?:text\w{0,2}|mathrm)\b|[{}$]", " ", text[:300]).split()).strip(WRAPPING + ",;:?-–—")
    return _DECLINED.fullmatch(bare) is not None


def last_labels(
    text: str, label: re.Pattern[str] = LABEL, words: Sequence[str] = LABEL_WORDS, begin: int = 0
) -> Iterator[re.Match[str]]:
    """The last `MAX_LABELS` labels from `begin` on, the last one first; each label begins with one of `words`."""
    return reversed(deque(beginning_with(words, label, text, begin), MAX_LABELS))


def labelled(text: str) -> Iterator[str]:
    """What follows each label, the last one first: the rest of its line, or the next line with text; at most
    `WINDOW` characters."""
    for match in last_labels(text):
        start = end_of(_GAP, text, match.end())
        yield text[start : start + WINDOW].split("\n", 1)[0].strip()


_LEAD = re.compile(
    r"(?:(?:so|thus|therefore|hence|then|finally|overall|it is|this is|we get)\b[ \t]*[,:]?[ \t]*)+", re.IGNORECASE
)


def endings(text: str) -> Iterator[str]:
    """What a reply says at its end, without marks: after labels, in boxes, on its last line; the last one first."""
    yield from (one.strip(" \t\r\n*_`$.") for one in labelled(text) if "\\boxed" not in one)
    yield from (one.strip("$ ") for _, one in reversed(boxes(text)))
    line = last_line(text).strip(" \t\r\n*_`$.")
    yield line[end_of(_LEAD, line, 0) :].strip(" \t\r\n*_`$.")


def boxes(text: str) -> list[tuple[int, str]]:
    r"""Start and content of every outermost closed `\boxed{…}` and `\fbox{…}`, and of `\boxed 5`. One pass."""
    if "\\" not in text or ("\\boxed" not in text and "\\fbox" not in text):
        return []
    spans: list[tuple[int, int, int]] = []  # where a box starts, and its content from where to where
    opened: list[tuple[int, int]] = []  # for each brace: where its box starts or -1, where its content starts
    box = -1
    for match in _BOXES.finditer(text, text.find("\\")):
        token = match[0]
        if token == "{":
            opened.append((box, match.end()))
        elif token == "}" and opened:
            start, content = opened.pop()
            if start >= 0:
                while spans and spans[-1][0] > start:
                    spans.pop()
                spans.append((start, content, match.start()))
        box = -1
        if token.startswith(("\\boxed", "\\fbox")):
            box = match.start()
            bare = _BARE_BOX.match(text, match.end())
            if bare:
                spans.append((box, *bare.span()))
    return [(start, text[begin:end].strip()) for start, begin, end in spans]
