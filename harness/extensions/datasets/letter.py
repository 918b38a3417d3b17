"""The letter of an option in a multiple-choice question."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_uppercase
from typing import Any

from harness.api import Action, Parsed, Reply, ReplyField
from harness.extensions.datasets.negations import singles
from harness.replies.answers import answer_at, places_of, plain
from harness.replies.characters import ASIAN, WRAPPING
from harness.replies.conclusions import OPEN, concluding, first_sentence, is_plain
from harness.replies.mentions import Mention, Stated, denied
from harness.replies.options import another_follows, plain_option
from harness.replies.statements import WINDOW, last_statement
from harness.replies.strip_reasoning import strip_reasoning

from ._endings import Endings

_END = rf"(?![^\W{ASIAN}]|['’]\w)"
"""What ends a letter: no other one, but for those of scripts without blanks between words."""
_WRAP = r"(?:\\(?:text|textbf|textit|mathrm|mathbf|boxed|fbox)\{|[\s*_`$\"'“‘:{]|\\[(\[])"
_FILL = (
    r"(?:(?i:[a-z]{2,20}ly|the|option|choice|letter|label|answer|most|therefore|thus|hence|indeed|then"
    r"|now|also|correct|best"
    r"|one|category)\b[,:]?[ \t*_]{0,3}){0,5}"
)
_GOES_ON = re.compile(
    r"[ \t]+(?!(?:because|since|as|due|for|which|and|or|but|given|is|based|with|from|only|in|by|to|where"
    r"|so|if)\b)[a-z]"
)
_MARKED = ("*", "`", "$", '"', "'", "“", "‘", "{")
_REFERS = re.compile(
    r"(?<!\w)(?:in|see|per|from|under|figure|fig\.?|table|statement|group|equation|clause|section|part|step|case)"
    r"[ \t*_]*$",
    re.IGNORECASE,
)
"""What makes of a letter behind it the name of something else: "as noted in (B)"."""
_CHOSEN = re.compile(r"(?<!\w)(?:(?:option|choice)[ \t]+is|I (?:choose|pick|select)|go with)(?!\w)", re.IGNORECASE)
_CHOOSES = ((_CHOSEN, ("option", "choice", "i choose", "i pick", "i select", "go with")),)
_TEX = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\{([^{}]*)\}")
_SIGNS = re.compile(r"[#\u2190-\u2bff\ufe0f\U0001f300-\U0001faff]+")
"""Marks of headings, arrows, and pictures."""
_MAX_OPTIONS = 200
"""Options of a reply that are looked at."""
_MAX_CHARS = 20 * WINDOW
"""Characters of a line or reply that are compared with the options' texts."""
_ASKED = re.compile(r"(?i:answer is)[ \t:]{0,3}[*_]{0,3}\(?[A-Z](?!\w)")


@dataclass(frozen=True, slots=True)
class Letter(Reply):
    r"""The letter of one of up to 26 options. The action is the upper-case letter.

    The rules; of 1 and 2 the last match in the reply counts, then 3, then 4:

    1. a statement: "answer is (B)", "Answer: B", "the correct option is B", "\boxed{B}", with a few words between
       ("is definitely B"); also with the option's own text instead of the letter ("Answer: Paris");
    2. the last line, if it is the letter alone (B, (B), **B.**), or the letter with its option's text, or if it states
       one in plain words: "So B.", "B is the correct answer.", "Ans: B", "I'd go with B, but I am not sure";
    3. the last (B), **B** or "option B" in the last line that is not denied ("not (B)", "(B) is wrong"); in a reply of
       one line also the letter with which it begins ("B. Because …");
    4. the option's text, exactly, as the whole reply or its last line.

    Between rules 2 and 3, a clear statement in another way counts: in a JSON object, an element `<answer>B</answer>`,
    on a line of its own (`plain_option`). Only upper-case letters that stand alone count, except for `(b)` after a
    label, a `b` that ends the line there, `\boxed{b}`, and a reply that is only the letter; an A or I that continues as
    a sentence ("is A proton") is a word. A statement that names several ("B or C") or denies one ("is not B") is none,
    and neither is one of several at the end ("both (A) and (B)").

    Attributes:
        choices: the options' texts in order, or their number if texts do not matter.
        work: whether constrained decoding leaves room for work before the answer. Free text is parsed in the same way.
    """

    choices: tuple[str, ...] | int
    work: bool = True

    def __post_init__(self) -> None:
        count = self.choices if isinstance(self.choices, int) else len(self.choices)
        if not 1 <= count <= 26:
            raise ValueError(f"a letter can stand for 1 to 26 options, not {self.choices!r:.80}")

    @property
    def options(self) -> tuple[str, ...]:
        """The letters."""
        return tuple(ascii_uppercase[: self.choices if isinstance(self.choices, int) else len(self.choices)])

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The letter."""
        return (ReplyField("answer", "The answer is", {"enum": list(self.options)}),)

    def written(self, action: Action) -> str:
        """As the prompt asks for it."""
        return f"The answer is ({action})."

    def parse(self, text: str) -> Parsed:
        """The letter that `text` states."""
        choices = () if isinstance(self.choices, int) else self.choices
        letter = letters("".join(self.options), choices).read(text)
        if letter is not None:
            return Parsed(letter)
        span = f"{self.options[0]} to {self.options[-1]}"
        return Parsed(error=f"no answer was found; end with 'The answer is (X).', X one letter from {span}")

    def well_formed(self, text: str) -> bool:
        """Whether it says "The answer is (X)"."""
        return _ASKED.search(strip_reasoning(text)) is not None

    def constraint(self) -> Mapping[str, Any]:
        """Any work, if there is room for it, then "The answer is (X)." at the end."""
        free = r"(.|\n)*" if self.work else ""
        return {"regex": rf"{free}The answer is \([{self.options[0]}-{self.options[-1]}]\)\."}


class Letters:
    """Finds one of some upper-case letters where it is meant as one, or the text of an option.

    Args:
        letters: the letters.
        texts: the options' texts in plain form, and the letters that they mean.
    """

    def __init__(self, letters: str, texts: Mapping[str, str]) -> None:
        self._texts = texts
        one = f"[{re.escape(letters)}]"
        either = f"[{re.escape(letters + letters.lower())}]"
        self._statement = re.compile(
            rf"{_WRAP}{{0,12}}{_FILL}{_WRAP}{{0,12}}(?:[(\[][\s*_]{{0,3}}({either})[\s*_]{{0,3}}[)\]]|({one}){_END})"
        )
        self._other = re.compile(rf"[(\[*]{{0,3}}{one}{_END}|\(?{either}\)")
        self._single = re.compile(rf"(?<![\w'’-]){one}(?![\w'’-])(?!(?<=[AI])[ \t]+[a-z])")
        self._or = re.compile(
            rf"[)\]]?[.:]?[^\n.;!?,()\[\]*]{{0,80}}\bor[ \t]+(?:option[ \t]+)?(?:[(\[*]{{1,2}}{one}[)\]*]|{one}[).:])"
        )
        # The letter is not folded: İ and ı would be I, and the sign of Kelvin K.
        self._only = re.compile(rf"(?i:(?:option|choice|letter)[ \t:]+)?[(\[]?[ \t]?({either})[ \t]?[)\]]?")
        self._endings = Endings(letters)
        self._beginning = re.compile(
            rf"[*_`\s]{{0,4}}(?:[(\[]({either})[)\]]|({either})[).:](?!\w)|({one}),[ ]+(?:because|since|as)\b)"
        )
        self._small = re.compile(
            rf"{_WRAP}{{0,12}}{_FILL}{_WRAP}{{0,12}}([{re.escape(letters.lower())}])"
            r"[)\]}*_`$\"'”’. \t]{0,8}(?=\n|\Z)"
        )
        item = rf"[ \t>*_`-]{{0,6}}[(\[]?({one})[)\].:](?!\w)"
        self._item, self._listed = re.compile(f"^{item}", re.MULTILINE), re.compile(rf"(?:[,;]|(?<=\s)(?=[(\[])){item}")
        self._dash = re.compile(rf"[*_`#\s]{{0,6}}(?:(?i:option)[ ])?({one})[*_`]{{0,3}}[ \t]+[–—-][ \t]")
        self._marks = re.compile(
            rf"[(\[]({one})[)\]]|\*\*\(?({one})[).:]?\*\*|\b(?i:option|choice)[ \t]+\*{{0,2}}({one})(?!\w)"
        )

    def read(self, text: str) -> str | None:
        """The letter that a reply states, by the rules of `Letter`."""
        text = plain(strip_reasoning(text))
        if places := places_of(text, self._line, also=_CHOOSES):
            return answer_at(text, places, self._line)
        line = last_statement(text)[-_MAX_CHARS:]
        sentence = concluding(line, self._mentions) or ""
        letter = (
            self._alone(line, any_case=text.strip() == line)
            or self._labelled_text(line)
            or self._ending(sentence)
            or plain_option(text, self._exactly, self._announced)
            or self._opening(text)
            or self._only_marked(sentence)
        )
        return letter or self._texts.get(_plain(text[:_MAX_CHARS])) or self._texts.get(_plain(line))

    def _mentions(self, sentence: str) -> bool:
        """Whether a sentence names a letter, even if it does not state it."""
        return any(found.search(sentence) for found in (self._single, self._marks)) or bool(
            self._endings.read(sentence)
        )

    def _ending(self, sentence: str) -> str | None:
        """The letter that a last sentence states in plain words."""
        ending = self._endings.read(sentence)
        if ending is None or self._several(sentence, ending[1]):
            return None
        letter, end = ending
        return None if denied(sentence, Mention(end - 1, end, letter)) else letter

    def _only_marked(self, sentence: str) -> str | None:
        """The only letter of a last sentence that is in brackets, in bold, or called an option."""
        found = list(singles(self._marks, sentence, self._several))
        if len({match[match.lastindex or 0] for match in found}) != 1 or self._endings.read(sentence) is not None:
            return None
        start = found[-1].start()
        if _REFERS.search(sentence, 0, start):
            return None
        begin = max((match.end() for match in self._marks.finditer(sentence, 0, start)), default=0)
        return found[-1][found[-1].lastindex or 0] if is_plain(sentence[begin:start]) else None

    def _opening(self, text: str) -> str | None:
        """The letter of the option with which a reply begins, where no other one begins a line or a part of it."""
        first, _, rest = text.strip().partition("\n")
        letter = self._alone(_SIGNS.sub("", first), any_case=False) if rest else None
        letter = letter or self._leading(first) or self._dashed(first)
        if letter is None or len(first) > _MAX_CHARS or OPEN.search(first_sentence(first)):
            return None
        others = {match[1] for match in itertools.islice(self._item.finditer(text), _MAX_OPTIONS)}
        others |= {match[1] for match in self._listed.finditer(first)}
        return letter if others <= {letter} else None

    def _dashed(self, line: str) -> str | None:
        """The letter before a dash and what it stands for: "B - Rome"."""
        match = self._dash.match(line)
        return match[1] if match else None

    def _line(self, line: str, announced: bool) -> Stated[str]:
        """The letter that a line states."""
        if not announced:
            letter = self._alone(line, any_case=False) or self._labelled_text(line) or self._ending(line)
            return Stated(letter, letter is None)
        line = _TEX.sub(r"\1", line[:WINDOW]).strip()
        for bare in (line, line.strip("$ \t")):
            if (letter := self._texts.get(_plain(bare)) or self._alone(bare, any_case=True)) is not None:
                return Stated(letter, False)
        letter = self._stated(line) or self._leading(line)
        match = self._statement.match(line)
        if letter is None:
            return Stated(None, match is None or (match[2] in ("A", "I") and not self._several(line, match.end())))
        end = line.upper().find(letter, 0 if match is None else max(0, match.end() - 2)) + 1
        other = self._texts.get(_plain(line[end:].lstrip(")].:-– *")))
        if other not in (None, letter) or denied(line, Mention(end - 1, end, letter)):
            return Stated(None, False)
        return Stated(letter, False)

    def _exactly(self, text: str) -> str | None:
        return self._alone(text, any_case=True) or self._texts.get(_plain(text)) or self._labelled_text(text)

    def _announced(self, text: str) -> str | None:
        return self._exactly(text) or self._leading(text)

    def _labelled_text(self, line: str) -> str | None:
        """The letter of a line such as "B. Paris", if Paris is B's text."""
        letter = self._leading(line[:_MAX_CHARS])
        _, _, rest = line[:_MAX_CHARS].partition(letter or "\n")
        return letter if self._texts.get(_plain(rest.lstrip(")].:"))) == letter else None

    def _stated(self, text: str) -> str | None:
        """The letter that `text` begins with, but for words like "definitely option"; None for one of several."""
        match = self._statement.match(text)
        if not match and (small := self._small.match(text)):  # "the answer is b"
            return small[1].upper()
        if not match or self._several(text, match.end()):
            return None
        goes_on = match[2] in ("A", "I") and _GOES_ON.match(text, match.end())
        if goes_on and not text[: match.start(2)].removesuffix("\n").endswith(_MARKED):
            return None
        return (match[1] or match[2]).upper()

    def _alone(self, text: str, *, any_case: bool = False) -> str | None:
        """The letter, if `text` is nothing else but for marks around it."""
        bare = text[:80].strip(" \t\r\n*_`$\"'“”‘’.,;:!{}<>[]()")
        match = self._only.fullmatch(bare) if len(text) <= 80 else None
        if not match or not (any_case or match[1].isupper()):
            return None
        return match[1].upper()

    def _leading(self, text: str) -> str | None:
        """The letter that begins `text` as the label of what follows: "B. Paris"."""
        match = self._beginning.match(text)
        if not match or self._several(text, match.end()) or text.startswith("?", match.end()):
            return None
        if (
            match[2] in ("A", "a")
            and text[match.end() - 1] == ":"
            and (other := self._alone(text[match.end() :], any_case=True))
        ):
            return other  # "A: b" is short for "Answer: b"
        return (match[1] or match[2] or match[3]).upper()

    def _several(self, text: str, end: int) -> bool:
        """Whether the letter that ends at `end` is one of several: "A or B", "(A) Paris or (B) Rome"."""
        return another_follows(text, end, self._other, weak=False) or self._or.match(text, end) is not None


@lru_cache(maxsize=512)
def letters(which: str, choices: tuple[str, ...] = ()) -> Letters:
    """The finder of these letters; a text counts if only one option has it, and if it is not a letter itself."""
    plain = [_plain(choice) for choice in choices]
    return Letters(
        which,
        {
            text: letter
            for text, letter in zip(plain, ascii_uppercase, strict=False)
            if plain.count(text) == 1 and len(text) > (1 if text.isalpha() else 0)
        },
    )


def _plain(text: str) -> str:
    return " ".join(text.strip(WRAPPING + ",;:$").split()).casefold()
