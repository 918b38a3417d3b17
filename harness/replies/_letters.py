r"""Letters as answers: `(B)`, `**B**`, `B.`, never the "a" of a sentence or the "d" of "definitely"."""

from __future__ import annotations

import re
from functools import lru_cache

from ._options import another_follows

_WRAP = r"(?:\\(?:text|textbf|textit|mathrm|mathbf|boxed|fbox)\{|[\s*_`$\"'“‘:{]|\\[(\[])"
_FILL = (
    r"(?:(?i:[a-z]{2,20}ly|the|option|choice|letter|label|answer|most|therefore|thus|hence|indeed|then|now|also|correct|best"
    r"|one|category)\b[,:]?[ \t*_]{0,3}){0,5}"
)
_GOES_ON = re.compile(
    r"[ \t]+(?!(?:because|since|as|due|for|which|and|or|but|given|is|based|with|from|only|in|by|to|where|so|if)\b)[a-z]"
)
_UNSAID = re.compile(
    r"(?:\b(?:not|never|except|eliminate|exclude|reject|than)|n['’]t)(?:\W|\bbe\b|\boption\b|\bchoice\b)*$", re.I
)
_DENIED = re.compile(
    r"[)\]*_ \t]{0,4}(?:is|are|was|were|seems?)[ \t]+(?:not|wrong|incorrect|false|never|im\w+)\b", re.I
)


class Letters:
    """Finds one of some upper-case letters where it is meant as one."""

    def __init__(self, letters: str) -> None:
        one = f"[{re.escape(letters)}]"
        either = f"[{re.escape(letters + letters.lower())}]"
        self._stated = re.compile(
            rf"{_WRAP}{{0,12}}{_FILL}{_WRAP}{{0,12}}(?:[(\[][\s*_]{{0,3}}({either})[\s*_]{{0,3}}[)\]]|({one})(?!\w|['’]\w))"
        )
        self._other = re.compile(rf"[(\[*]{{0,3}}{one}(?!\w|['’]\w)|\(?{either}\)")
        self._or = re.compile(
            rf"[)\]]?[.:]?[^\n.;!?,()\[\]*]{{0,80}}\bor[ \t]+(?:option[ \t]+)?(?:[(\[*]{{1,2}}{one}[)\]*]|{one}[).:])"
        )
        self._alone = re.compile(
            rf"(?:(?:option|choice|letter)[ \t:]+)?[(\[]?[ \t]?({either})[ \t]?[)\]]?", re.IGNORECASE
        )
        self._leading = re.compile(
            rf"[*_`\s]{{0,4}}(?:[(\[]({either})[)\]]|({either})[).:](?!\w)|({one}),[ ]+(?:because|since|as)\b)"
        )
        self._small = re.compile(
            rf"{_WRAP}{{0,12}}{_FILL}{_WRAP}{{0,12}}([{re.escape(letters.lower())}])"
            r"[)\]}*_`$\"'”’. \t]{0,8}(?=\n|\Z)"
        )
        self._marked = re.compile(
            rf"[(\[]({one})[)\]]|\*\*\(?({one})[).:]?\*\*|\b(?i:option|choice)[ \t]+\*{{0,2}}({one})(?!\w)"
        )

    def stated(self, text: str) -> str | None:
        """The letter that `text` begins with, but for words like "definitely option"; None for one of several."""
        match = self._stated.match(text)
        if not match and (small := self._small.match(text)):  # "the answer is b"
            return small[1].upper()
        if not match or self._several(text, match.end()):
            return None
        bare = match[2] is not None and not re.search(r"[*`$\"'“‘{]$", text[: match.start(2)])
        if bare and match[2] in ("A", "I") and _GOES_ON.match(text, match.end()):
            return None
        return (match[1] or match[2]).upper()

    def alone(self, text: str, *, any_case: bool = False) -> str | None:
        """The letter, if `text` is nothing else but for marks around it."""
        bare = text[:80].strip(" \t\r\n*_`$\"'“”‘’.,;:!{}<>[]()")
        match = self._alone.fullmatch(bare) if len(text) <= 80 else None
        if not match or not (any_case or match[1].isupper()):
            return None
        return match[1].upper()

    def leading(self, text: str) -> str | None:
        """The letter that begins `text` as the label of what follows: "B. Paris"."""
        match = self._leading.match(text)
        if not match or self._several(text, match.end()):
            return None
        return (match[1] or match[2] or match[3]).upper()

    def marked(self, line: str) -> str | None:
        """The last letter in brackets, in bold, or called an option, that is neither denied nor one of several."""
        letter, several = None, False
        for match in self._marked.finditer(line):
            was, several = several, self._several(line, match.end())
            if was or several:
                letter = None
                continue
            before, after = line[max(match.start() - 30, 0) : match.start()], line[match.end() : match.end() + 30]
            if not _UNSAID.search(before) and not _DENIED.match(after):
                letter = match[1] or match[2] or match[3]
        return letter

    def _several(self, text: str, end: int) -> bool:
        """Whether the letter that ends at `end` is one of several: "A or B", "(A) Paris or (B) Rome"."""
        return another_follows(text, end, self._other, weak=False) or self._or.match(text, end) is not None


@lru_cache(maxsize=256)
def letters(which: str) -> Letters:
    """The finder of these letters."""
    return Letters(which)
