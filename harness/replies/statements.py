"""Where a reply says what its answer is: after a label, in a box, on its last line."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence

from .characters import WRAPPING, beginning_with, end_of, last_line

_ELSEWHERE = (
    *("答案", "答え", "回答", "解答", "正解", "정답", "답", "antwort", "réponse", "respuesta", "risposta", "resposta"),
    *("ответ", "odpowiedź", "cevap", "svar", "vastaus", "đáp án", "jawaban", "الجواب", "الإجابة", "उत्तर", "תשובה"),
)
"""The word "answer" in other languages."""
LABEL = re.compile(
    r"(?:(?<![^\W_])(?<![^\W_]_)|(?<=final_)(?<![^\W_]final_)(?<![^\W_]_final_)(?<![\"']final_))(?<![\"'])"
    r"(?:answer|result)"
    r"(?:[ \t](?:to|of|for|choice|option|letter|label)\b[^.:\n=]{0,60}?|[ \t]\([^()\n]{1,40}\))?"
    r"[ \t*_`]{0,5}(?:[:：=]|(?<=[ \t*_`])(?:is|should be|must be|would be)(?![\w']))[ \t*_`]*[:：]?"
    rf"|(?:{'|'.join(_ELSEWHERE)})(?:[ \t](?:finale?|définitive"
    rf"|final))?[ \t*_`】\])]{{0,5}}(?:[:：]|(?<=[】\]])|应该?是|应为|是|为|は|은|는|ist|est|es|è|é)[ \t*_`]*[:：]?"
    rf"|[故应]选[ \t*_`]*[:：]?",
    re.IGNORECASE,
)
"""What announces an answer: "Answer:", "final_answer:", "the answer is", "**Answer:**", "answer to the question is"."""
LABEL_WORDS = ("answer", "result", "故选", "应选", *_ELSEWHERE)
"""What it begins with."""
WINDOW = 500
"""Characters after a label that are read."""
MAX_LABELS = 200
"""Labels that are looked behind, from the last one back: a text of nothing but labels would be read `WINDOW` times."""
_LEADS = 3
"""Lines below a label that may lead to its value."""
_GAP = re.compile(
    r"[ \t*_`#>|]*(?:\n[ \t]*(?:`{3,}\w*|~{3,}|\$\$|\\\[|[-*_=|: \t]{3,})?[ \t]*(?=\n))*"
    r"(?:\n[\s>#|]*(?:[-*•–—+▪‣◦●·→][ \t]+)?)?[ \t*_`#>|]*"
)
"""What may stand between a label and its value: marks, the opening of a fence, a rule, and before a line below the mark
of a list. A dash on the label's own line may be a minus sign."""
_BOXES = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])[ \t]*|\\.|[{}]", re.DOTALL)
_BARE_BOX = re.compile(r"\\frac[ \t]*\d{2}|\\(?!boxed|fbox)[A-Za-z]+|[^\s$\\{}]+")


_CANNOT = r"(?:(?:do|did|can|could)(?: not|n['’]?t)|cannot|can['’]?t|(?:am |was )?(?:not able|unable) to)"
_VERBS = "know|say|tell|answer|identify|help|assist|comply|choose|solve|determine|decide|find|be sure|work|give|provide"
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
    text: str, label: re.Pattern[str] = LABEL, words: Sequence[str] = LABEL_WORDS
) -> Iterator[re.Match[str]]:
    """The last `MAX_LABELS` labels, the last one first; each label begins with one of `words`."""
    return reversed(deque(beginning_with(words, label, text), MAX_LABELS))


def labelled(text: str) -> Iterator[str]:
    """What follows each label, the last one first (`line_behind`)."""
    yield from (line_behind(text, match.end())[1] for match in last_labels(text))


def line_behind(text: str, end: int) -> tuple[int, str]:
    """What a label that ends at `end` is followed by, and where it begins: the rest of the label's line if that says
    anything, else the first line below that does; at most `WINDOW` characters. A line that ends with a colon only leads
    to the next one."""
    for _ in range(_LEADS):
        end = end_of(_GAP, text, end)
        line = text[end : end + WINDOW].split("\n", 1)[0]
        if not line.rstrip(" \t*_`").endswith((":", "：")) or len(line) == WINDOW:
            break
        end += len(line)
    return end, line.strip()


_LEAD = re.compile(
    r"(?:(?:so|thus|therefore|hence|then|finally|overall|it is|this is|we get)\b[ \t]*[,:]?[ \t]*)+", re.IGNORECASE
)


def endings(text: str) -> Iterator[str]:
    """What a reply says at its end, without marks: after labels, in boxes, on its last line; the last one first."""
    yield from (one.strip(" \t\r\n*_`$.") for one in labelled(text) if "\\boxed" not in one)
    yield from (one.strip("$ ") for _, one in reversed(boxes(text)))
    line = last_line(text).strip(" \t\r\n*_`$.")
    yield line[end_of(_LEAD, line, 0) :].strip(" \t\r\n*_`$.")


FAREWELL = re.compile(
    r"[\s>*_`#(]*(?:let me know|i hope|hope (?:this|that|it)|feel free|thank|thanks|have a |please (?:let"
    r"|feel|note)|good luck"
    r"|is there anything|if you (?:have|need|want|would)|cheers|best regards|happy to|end of|end$|done\b"
    r"|that['’]?s (?:it|all)"
    r"|that is all|over\b|\[?/?(?:end|eof)\b)",
    re.IGNORECASE,
)
"""How a line begins that only says good-bye."""
_REASON = re.compile(
    r"[\s>*_`#-]*(?:short |brief |my )?(?:explanation|reason(?:ing|s)?|rationale|justification|note|notes"
    r"|why|check|proof"
    r"|verification|working|steps?|confidence|source|because|since|as a check|to verify|(?:let me "
    r"|to )?double[- ]check)\b"
    r"[^:：\n]{0,40}(?:[:：]|[*_]+[ \t]*$|[ \t]-|$)|[\s>*_`#(-]*(?:because|since|i chose this because)\b",
    re.IGNORECASE,
)
_FROM_END = 12
"""Lines at a reply's end that may only say good-bye, or explain."""


def last_statement(text: str) -> str:
    """The last line of a reply that says anything, without what only says good-bye ("I hope this helps.") or, below
    another line, only explains in one line ("Reason: …")."""
    end = len(text)
    first = line = last_line(text)
    for _ in range(_FROM_END):
        if not line or not (FAREWELL.match(line) or _REASON.match(line)):
            break
        end = text.rindex(line, 0, end)
        line = last_line(text[:end])
    return line or first


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
