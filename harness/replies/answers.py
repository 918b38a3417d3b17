"""Where a reply says what its answer is, and which of several places counts: the one rule of all forms with an answer.

What follows the label is the answer: the first line that says anything. Places, from the strongest:

1. the label that was asked for (`### Final Answer ###`);
2. a label that begins its line ("Answer:", "**Final answer**" and a line below it), a box, an element, a field of JSON;
3. "the answer is …" within a sentence;
4. where none of these says anything: the last line, if that is nothing but an answer, or its last sentence, if that
   leaves no doubt (`conclusions`); else a first line that is nothing but an answer, above paragraphs.

Of the strongest kind the last one counts, unless two with nothing between them say different things, which states
neither. What stands behind the one that counts is explanation, unless it takes it back: then the reply states none.
What a reply runs on with after its answer (another question, another speaker's turn) is no part of it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Generic, TypeVar

from .characters import WRAPPING, last_line, markers
from .conclusions import first_sentence
from .extract import ANSWER, field_of
from .literals import masked, objects
from .mentions import Stated
from .statements import (
    LABEL,
    LABEL_WORDS,
    MAX_LABELS,
    WINDOW,
    boxes,
    last_labels,
    last_statement,
    line_behind,
)

T = TypeVar("T")
Read = Callable[[str, bool], Stated[T]]
"""What a form reads of a line; the second argument says whether a label announces it."""

ASKED, LINE, PROSE = 3, 2, 1
_TEX = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathit)\s*\{([^{}]*)\}")
_STRUCK = re.compile(r"~~[^~\n]{1,300}~~")
_PLAIN = str.maketrans("（）［］【】｛｝＜＞：．＝，＊", "()[][]{}<>:.=,*")
_RUN_ON = re.compile(
    r"^[ \t>#*_`\[]{0,6}(?:question|problem|exercise|example|human|user|system|input|q"
    r"|(?:agent|player|participant)[ \t]?\w{1,12}"
    r"|<\|?im_start\|?>[ \t]*\w*)[ \t]*\d{0,4}[*_`\]]{0,3}[ \t]*[:：]",
    re.IGNORECASE | re.MULTILINE,
)
_OTHER_LABEL = re.compile(
    r"(?<!\w)(?:long(?:er)?|detailed|full|draft|initial|first|tentative|preliminary|previous|earlier"
    r"|wrong|incorrect|old|your"
    r"|their|his|her|possible|naive|intuitive|sub|partial|intermediate|common|alternative|alternate|other|another|no)"
    r"[ \t*_-]*$",
    re.IGNORECASE,
)
"""What makes of a label behind it one of another answer: "Draft answer:", "Long answer:"."""
_IF = re.compile(r"(?<!\w)(?:if|unless|whether|had|suppose|assuming|otherwise|then)(?!\w)", re.IGNORECASE)
_LAST_LABEL = re.compile(r"(?<!\w)(?:final|corrected|revised|updated|new|correct|my)[ \t*_]*$", re.IGNORECASE)
_TAKES_BACK = re.compile(
    r"(?:^|(?<=[.!?;:)\n*_>-]))[\s*_`>(–—-]{0,12}(?:(?:oh|ah|hmm+|but|and|so|well)[,.!… ]*)?"
    r"(?:wait|actually|no(?=[,.:;!–—-]|[ ]wait)|nope|oops|sorry|correction|corrected|scratch[ \t]that"
    r"|strike[ \t]that|hold[ \t]on|hmm+"
    r"|on[ \t](?:second[ \t]thought|reflection|closer)|i[ \t](?:made|realize|misread|miscounted|forgot|was[ \t]wrong"
    r"|take[ \t]that[ \t]back|now[ \t]think|change[ \t]my|meant?)|my[ \t](?:mistake|bad)|that(?:['’]s"
    r"|[ \t]is|[ \t]was)[ \t]"
    r"(?:wrong|not[ \t]right|incorrect|a[ \t]mistake)|(?:edit|erratum|update|revised)[ \t]*[:：]|apologies)(?!\w)",
    re.IGNORECASE,
)
"""What takes back what was said before it."""
_INSTEAD = re.compile(
    r"\b(?:change (?:that|it|this|my \w+) to|should (?:have been|rather be)|make (?:that|it)|i meant?"
    r"|lower that to|raise that to)\b",
    re.IGNORECASE,
)
_CONFIRMED = re.compile(
    r"(?:that|it|this|answer|which|all|everything|result)(?:['’]s|\b[^.\n]{0,20}\b(?:is|stands|holds"
    r"|checks|looks))\b[^.\n]{0,20}"
    r"(?:right|correct|fine|good|out|consistent|true|okay|ok)\b|confirm|\b(?:answer|it|that) (?:still )?stands|✓|✔|✅",
    re.IGNORECASE,
)
"""What confirms a value after a second look."""
_AROUND = " \t*_`#>-•:：=()[]"
PLACEHOLDER = re.compile(
    r"[\s*_`\"'“]*(?:<[^<>\d\n]{1,60}>|\[[^\[\]\d\n]{1,60}\]|\{[^{}\d\n\"':]{1,60}\}|_{3,}|\.{3,}"
    r"|…)[\s*_`\"'”.]*(?=$|[\"”'’])"
)
_ASKED_ABOUT = re.compile(r"[^.!?\n]{1,80}\?")
"""What follows "the answer is" in a question: "The answer is 42? No."."""
_NUMBERED = re.compile(
    r"(?!(?:step|round|turn|try|attempt|draft|version|part|phase|iteration)\b)([^\W\d_]+)[ \t_#-]{0,2}\d{1,3}\b"
)
"""A label that begins with one of several speakers."""
_WORD = re.compile(r"\w{2}")
_EXAMPLE = re.compile(r"\b(?:example|for instance|e\.g\.|would have been|format|such as|template)\b", re.IGNORECASE)
"""What makes of an object behind it on its line one that is only mentioned."""
_GIVEN = frozenset((*ANSWER, "final_answer", "action", "choice", "label", "decision"))
"""Keys of which two objects must not say different things."""
_BEFORE = 60
"""Characters before a label that say what label it is."""


@dataclass(frozen=True, slots=True)
class AnswerPlace(Generic[T]):
    """A place where a reply states an answer.

    Attributes:
        start: where its label begins.
        end: where what stands there ends.
        rank: its strength.
        label: what announces it.
        line: what stands there.
        stated: what the form reads of the line.
    """

    start: int
    end: int
    rank: int
    label: str
    line: str
    stated: Stated[T]


def plain(text: str) -> str:
    """`text` with ASCII brackets and colons in place of wide ones, and without what is struck through."""
    text = text if text.isascii() else text.translate(_PLAIN)
    text = without_examples(text) if text.count("{") > 1 else text
    return _STRUCK.sub("", text) if "~~" in text else text


def without_examples(text: str) -> str:
    """`text` without JSON objects that a sentence calls an example; without any, if the last two, with nothing between
    them, give different answers. Linear."""
    found = list(objects(text)) if text.count("{") > 1 else []
    if len(found) < 2:
        return text
    mentioned = {(begin, end) for begin, end, _ in found if _EXAMPLE.search(_line_before(text, begin))}
    meant = [one for one in found if one[:2] not in mentioned]
    if len(meant) > 1:
        (_, end, first), (begin, _, second) = meant[-2:]
        if not text[end:begin].strip(",;\n\r\t ") and any(
            key in second and second[key] != first[key] for key in first if key.strip().casefold() in _GIVEN
        ):
            return masked(text, [one[:2] for one in found])
    return masked(text, [*mentioned]) if meant and mentioned else text


def answer_of(
    text: str,
    read: Read[T],
    *,
    marker: str | None = None,
    also: Sequence[tuple[re.Pattern[str], tuple[str, ...]]] = (),
) -> T | None:
    """The answer that a reply states by the rules above; None if it states none.

    Args:
        text: the reply, without its thinking.
        read: what the form makes of a line.
        marker: the label that the prompt asks for.
        also: further labels, each with the words with which it begins.
    """
    text = plain(text)
    return answer_at(text, places_of(text, read, marker, ANSWER, also), read)


def answer_at(text: str, places: Sequence[AnswerPlace[T]], read: Read[T]) -> T | None:
    """The answer that `answer_of` takes from the places of a text (`places_of`); from its last line if it has none."""
    if (value := _before_question(text, read)) is not None:
        return value
    if not places:
        return _at_end(text, read)
    rank = max(place.rank for place in places)
    chosen = _chosen(text, [place for place in places if place.rank == rank])
    if chosen is None:
        return None
    for place in places:  # "The answer is (A). No wait, the answer is (C)."
        if place.start > chosen.start and _TAKES_BACK.search(text, chosen.start, place.start):
            chosen = place
    return chosen.stated.value if not _taken_back(text, chosen, read) else _corrected(text, chosen, read)


def _before_question(text: str, read: Read[T]) -> T | None:
    """The answer that is the first line of a reply and all of it, before another question."""
    line, _, rest = text.lstrip().partition("\n")
    is_all = rest != "" and len(line) <= _SHORT_LINE_CHARS and _RUN_ON.match(rest.lstrip()) is not None
    return read(line.strip(), False).value if is_all else None


def places_of(
    text: str,
    read: Read[T],
    marker: str | None = None,
    names: tuple[str, ...] = ANSWER,
    also: Sequence[tuple[re.Pattern[str], tuple[str, ...]]] = (),
) -> list[AnswerPlace[T]]:
    """The places that say something of an answer, without what the reply runs on with. The arguments are those of
    `answer_of`."""
    found = [one for one in _asked_places(text, read, marker) if not one.stated.is_open] if marker else []
    if found and found[-1].rank == ASKED and _ends_text(text, found[-1]) and not _goes_on(text, found[-1]):
        return found  # nothing weaker counts, as in most replies that do as they are asked
    found += [one for one in _labelled_places(text, read, also) if not one.stated.is_open]
    found.sort(key=_start)
    if not _is_last_line(text, found):
        found += [one for one in _field_places(text, read, names) if not one.stated.is_open]
        found.sort(key=_start)
    return _without_run_on(text, found)


_start = attrgetter("start")
_DASH = re.compile(r"[-=–—|→]")


def _ends_text(text: str, place: AnswerPlace[T]) -> bool:
    """Whether nothing follows what stands at a place."""
    return place.end >= len(text.rstrip())


def _goes_on(text: str, place: AnswerPlace[T]) -> bool:
    """Whether the reply may run on with something else, or take a place back on its own line."""
    is_word = place.line.replace("_", "").isalnum()  # as most are, and a word says nothing besides
    return run_on(text) is not None or (not is_word and _TAKES_BACK.search(text, place.start) is not None)


def run_on(text: str, begin: int = 0) -> re.Match[str] | None:
    """The first line from `begin` on with which another question begins, or the turn of someone else."""
    at = begin if begin == 0 else text.find("\n", begin - 1) + 1
    while at or begin == 0:
        if (match := _RUN_ON.match(text, at)) is not None:
            return match
        begin, at = 1, text.find("\n", at) + 1
    return None


def _is_last_line(text: str, places: list[AnswerPlace[T]]) -> bool:
    """Whether the place that counts is the last line of a plain reply: a field would have to begin behind it."""
    if not places or "{" in text or "<" in text:
        return False
    rank = max(place.rank for place in places)
    last = [place for place in places if place.rank == rank][-1]
    if _DASH.search(text, last.start, last.end - len(last.line)):  # "Answer = 5" is a field too
        return False
    is_line = rank >= LINE and _ends_text(text, last) and text.find("\n", last.start, last.end) < 0
    return is_line and run_on(text) is None


def is_settled(text: str, marker: str, read: Read[T]) -> bool:
    """Whether what the last marker is followed by stands: neither beside another value of the same label, with no word
    between, nor taken back below. For forms with a grammar of their own for what stands behind their label."""
    found = deque(markers(text, marker), 2)
    places = [place for match in found if not (place := _place(text, match, ASKED, read)).stated.is_open]
    if not places or (len(places) < 2 and not _TAKES_BACK.search(text, places[0].end)):
        return True
    chosen = _chosen(text, places)
    return chosen is not None and not _taken_back(text, chosen, read)


def _asked_places(text: str, read: Read[T], marker: str) -> Iterator[AnswerPlace[T]]:
    """Behind the label that was asked for."""
    has_hashes = marker.startswith("#")
    for match in deque(markers(text, marker), MAX_LABELS):
        before = _line_before(text, match.start())
        if has_hashes:
            if not before.rstrip(" \t*_`").endswith("##"):
                continue
            before = before.rstrip("#* _`\t")
        if _OTHER_LABEL.search(before):
            continue
        yield _place(text, match, ASKED if _begins_line(before) else LINE if has_hashes else PROSE, read)


def _labelled_places(
    text: str, read: Read[T], also: Sequence[tuple[re.Pattern[str], tuple[str, ...]]]
) -> Iterator[AnswerPlace[T]]:
    """Behind all other labels, and in boxes."""
    for label, words in ((LABEL, LABEL_WORDS), *also):
        for match in last_labels(text, label, words):
            before = _line_before(text, match.start())
            if _OTHER_LABEL.search(before) or (_IF.search(before) and not _is_colon(match[0])):
                continue
            is_colon = _is_colon(match[0])
            is_line = _begins_line(before) if is_colon else not before.strip(_AROUND + "Tthe")
            is_line = is_line or (is_colon and _LAST_LABEL.search(before) is not None)
            yield _place(text, match, LINE if is_line else PROSE, read, is_sentence=not is_colon)
    for start, content in boxes(text)[-MAX_LABELS:]:
        line = _TEX.sub(r"\1", content[:WINDOW])
        yield AnswerPlace(start, text.find(content, start) + len(content), LINE, "box", line, read(line, True))


def _field_places(text: str, read: Read[T], names: tuple[str, ...]) -> Iterator[AnswerPlace[T]]:
    """In the field of one of these names, where that is not behind a label."""
    field = field_of(text, *names)
    if field is not None and not field.inline:
        line = field.value.strip(" \t\r\n|")
        line = line if line[:1] in "[{" else line_behind("\n" + line, 0)[1]
        yield AnswerPlace(field.start, field.end, LINE, "field", line, read(line, True))


def _place(text: str, label: re.Match[str], rank: int, read: Read[T], *, is_sentence: bool = False) -> AnswerPlace[T]:
    begin, line = line_behind(text, label.end())
    line = first_sentence(line) if is_sentence else line
    is_asked = is_sentence and _ASKED_ABOUT.match(line) is not None
    stated: Stated[T] = Stated(None, True) if is_asked or PLACEHOLDER.match(line) else read(line, True)
    before = _line_before(text, label.start())
    name = (before + label[0]).casefold().strip(_AROUND)
    return AnswerPlace(label.start(), begin + len(line), rank, name, line, stated)


def _line_before(text: str, at: int) -> str:
    """What precedes a place on its line, at most `_BEFORE` characters."""
    return text[max(0, at - _BEFORE) : at].rpartition("\n")[2]


def _is_colon(label: str) -> bool:
    return label.rstrip(" \t*_`").endswith((":", "：", "=")) or label.startswith("#")


def _begins_line(before: str) -> bool:
    """Whether what precedes a label on its line is marks, or words of the label itself: "My final answer:"."""
    return not before.strip(" \t>*_`#-•([|0123456789.)") or (
        len(before) <= 40
        and re.fullmatch(
            r"[\s>*_`#•(\[|-]*(?:(?:so|thus|therefore|hence|my|the|our|final|short|correct|best|and|corrected"
            r"|revised|updated|new)\b[\s*_,]*)+",
            before,
            re.IGNORECASE,
        )
        is not None
    )


def _without_run_on(text: str, places: list[AnswerPlace[T]]) -> list[AnswerPlace[T]]:
    """The places before what a reply runs on with: a question or speaker below the first answer, with an answer too."""
    if len(places) < 2:
        return places
    first = min(places, key=lambda place: place.start)
    following = run_on(text, first.end)
    return [place for place in places if following is None or place.start < following.start()]


def _chosen(text: str, places: list[AnswerPlace[T]]) -> AnswerPlace[T] | None:
    """The last place; None if the one before it says something else, with no word between."""
    places = sorted(places, key=lambda place: place.start)
    last = places[-1]
    if (named := _NUMBERED.match(last.label)) is not None:  # "Philosopher 1 ACTION: …" and "Philosopher 2 ACTION: …"
        others = [one for one in places if (other := _NUMBERED.match(one.label)) and other[1] == named[1]]
        if len({one.label for one in others}) > 1 and any(one.stated.value != last.stated.value for one in others):
            return None
    for one in reversed(places[:-1]):
        if one.stated.value == last.stated.value or last.start < one.end or one.label != last.label:
            continue
        between = text[one.end : last.start]
        if "```" not in between and not _WORD.search(LABEL.sub("", between)[: 2 * WINDOW].replace("boxed", "")):
            return None
        break
    return last


def _taken_back(text: str, place: AnswerPlace[T], read: Read[T]) -> bool:
    """Whether what stands below a place takes its value back, and says another one."""
    end = text.find("\n", place.end)
    rest = text[end : end + 20 * WINDOW] if end >= 0 else ""
    match = _TAKES_BACK.search(rest)
    if match is None:
        return False
    if _INSTEAD.search(rest, match.start()):
        return True
    if _CONFIRMED.search(rest, match.start()):
        return False
    lines = [line for line in rest[match.start() :].split("\n") if line.strip()][:6]
    values = [said for line in lines if not (said := read(line.strip(), True)).is_open]
    return any(said.value != place.stated.value for said in values)


def _corrected(text: str, place: AnswerPlace[T], read: Read[T]) -> T | None:
    """The answer that a last line alone gives below one that was taken back."""
    line = last_line(text)
    said = read(line, False)
    return said.value if len(line.strip(WRAPPING)) <= _SHORT_LINE_CHARS else None


_REMARK = re.compile(r"[ \t][–—-][ \t]+[^\W\d].*")
_ALONE = 3
"""Words of a first line that may be an answer and nothing besides."""
_SHORT_LINE_CHARS = 40
"""Characters of a line that may be an answer and nothing besides."""


_EXPLANATION = re.compile(
    r"\n[\s*_`#>-]{0,12}(?:explanation|reason(?:ing|s)?|rationale|justification|note|why|because|since"
    r"|details)\b[^:：\n]{0,30}(?:[:：]|[*_]+[ \t]*\n|\n)",
    re.IGNORECASE,
)


_IS_ITEM = re.compile(r"[\s>*_-]*\d{1,3}[.)][ \t]+[^\W\d]")
"""A line of a list with numbers."""


def _at_end(text: str, read: Read[T]) -> T | None:
    """What the last line says, or the line above an explanation; else the first one of a reply, if it is an answer."""
    explained = _EXPLANATION.search(text)
    if explained is not None and text[: explained.start()].strip():
        said = read(last_line(text[: explained.start()]), False)
        if said.value is not None:
            return said.value
    line = last_statement(text)
    said = read(line, False)
    if said.value is None and "\n\n" in text.strip():  # an answer alone, and paragraphs that explain it
        first, _, below = text.strip().partition("\n")
        first = _REMARK.sub("", first)  # "B - Rome"
        is_alone = below.startswith("\n") and len(first) <= _SHORT_LINE_CHARS and len(first.split()) <= _ALONE
        return read(first.strip(" #*_`"), False).value if is_alone else None
    if said.value is None or "\n" not in text:
        return said.value
    above = last_line(text[: text.rindex(line)])
    if (
        len(above) <= _SHORT_LINE_CHARS
        and not _IS_ITEM.match(above)
        and "=" not in above
        and read(above, False).value not in (None, said.value)
    ):
        return None  # two lines, each with an answer
    return said.value
