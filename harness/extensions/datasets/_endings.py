"""The last line of a reply that names a letter in plain words: "So B.", "B is correct.", "I go with (C)."."""

from __future__ import annotations

import re

_MAX_CHARS = 2_000
"""Characters at the end of the last line that are read."""


def _words(text: str) -> str:
    """An expression for one of the words or phrases, which stand apart, in any case."""
    return f"(?i:{'|'.join(text.split())})".replace("_", " ")


_NOUN = r"(?i:(?:(?:option|choice|letter|answer|alternative|statement)[ \t]*:?[ \t]*)?)"
_LEAD = _words(
    "so thus therefore hence then finally overall consequently clearly obviously ultimately accordingly definitely only"
    " okay ok yes and final in_(?:conclusion|short|summary|sum) to_(?:conclude|sum_up) as_a_result all_in_all"
    " by_(?:process_of_)?elimination"
)
_NAMED = _words(
    "a ans key pick guess vote verdict conclusion decision response result solution selection selected letter chosen"
    " (?:(?:correct|right|best|final|chosen)_)?(?:answer|option|choice|pick) correct final best"
)
_IS = r"(?:\b(?i:is|are|be|remains|equals|seems|appears|its)|(?<=\w)['’][sS])"
_SURELY = _words(
    "to_be clearly definitely the my our most likely probably only therefore thus then indeed obviously surely"
    " certainly just simply single final"
)
_CHOOSE = _words(
    "(?:choos|pick|select|suggest|favou?r|prefer|submit|answer|guess|mark|conclud|endors|vot)(?:e|es|ing|ed)? chose"
    " bet_on say think believe (?:go|going|went|stick|sticking|left)_with (?:vote|voting|opt|opting|go|going)_for"
    " settled?_(?:on|for) (?:lean|leaning|incline|inclined)_(?:to|towards?) confident_in (?:points?|pointing|leads?)_to"
    " (?:narrows?|comes?|boils?)_(?:it_)?down_to leaves?(?:_us)?(?:_with)? supports? makes_it matches means"
)
_CORRECT = (
    rf"(?:(?i:is|must be|should be|has to be|would be|will be|seems|appears|looks)(?:[ \t]+{_SURELY})*[ \t]+"
    + _words("correct right best true answer choice pick one accurate appropriate valid likely solution response")
    + r"\b(?![ \t]+(?i:only|if|or)\b)|(?i:it[ \t]+is|wins|the (?:correct|right|best) (?:answer|choice|option|one))\b"
    r"|(?i:fits|remains|works|holds|applies|matches)(?=[ \t]*[.!,]|[ \t]*$|[ \t]+(?i:best|here|the)))"
)
_ADDED = _words(
    "I_(?:think|believe|guess|suppose|['’]?d_say|would_say|am_(?:sure|confident)) because since as for_sure definitely"
    " clearly obviously of_course final(?:_answer)?"
)
_BEGINS = r"(?:^|(?<=[.!?;,:][ ]))[ \t>*_#`-]*+"
_ENDS = (
    r"(?=[.!,;:]{0,3}[*_`]{0,3}[ \t]*$|,[ \t]+[A-Z]\w+(?:[ ]\w+){0,3}[.!]?[ \t]*$|[ \t]*[-–—(:][ \t]*\S|[.][ \t]+[A-Z]"
    r"|(?<=[)\]])[ \t]+\S|[,;.]?[ \t]+(?i:rather|instead|over|not|but|although|though"
    r"|because|since|as|given|for|based|due|I|with)\b)"
)
_DENIED = re.compile(
    r"(?<!\w)(?:"
    + _words(
        "not never neither nor cannot without(?!_(?:a_|any_)?doubt) except unlike than instead_of rules?_out ruled_out"
        " eliminat(?:e|es|ed|ing) exclud\\w* reject\\w* discard\\w* wrong incorrect false"
        " if whether either both or unless"
    )
    + r")\b|n['’]t\b"
)
_CLAUSE = re.compile(r"[.!?;][ \t]|,[ \t]+(?:so|thus|therefore|hence|then|but|which)\b", re.IGNORECASE)


class Endings:
    """Finds one of some upper-case letters that a line states.

    Args:
        letters: the letters.
    """

    def __init__(self, letters: str) -> None:
        any_of = rf"([{re.escape(letters)}])(?![\w'’]|-\w)[ ]?[)\]}}*_`\"'”’$]{{0,5}}"
        opening = r"[(\[{*_`\"'“‘$]{0,5}[ ]?(?<!\w)"
        one, lead = rf"{opening}(?<!-){any_of}", rf"(?:(?:{_LEAD}|(?i:my|the|our))[ \t,:]+)*"
        frames = (
            # Ans: B, Correct answer - B, A: B
            rf"{_BEGINS}{lead}{_NAMED}[*_ \t]{{0,5}}"
            rf"(?:[:：=→⇒]|[-–—]+|(?<=(?i:ans))\.)>?[ \t]*{_NOUN}{opening}{any_of}{_ENDS}",
            # So B. Therefore (B). By elimination, option B
            rf"{_BEGINS}{_LEAD}[ \t*_]*[,:]?[ \t]+{_NOUN}{one}{_ENDS}",
            # It is B. The only one left is option B. That's B.
            rf"{_IS}(?:[ \t]+{_SURELY})*[ \t]*:?[ \t]+{_NOUN}{one}{_ENDS}",
            # I'd go with B. Choose B. Everything points to B.
            rf"\b{_CHOOSE}(?:[ \t]+(?i:that|it|is|it is|it['’]s|on|for|the))*[ \t]*:?[ \t]+{_NOUN}{one}{_ENDS}",
            # B is correct. Option B must be the best answer. B it is.
            rf"(?:^|(?<=[ ,(*:])){_NOUN}{one}[ \t]*{_CORRECT}",
            # → B. ✓ (B)
            rf"^[ \t]*(?:[✓✔✅☑→⇒∴➡=>\ufe0f]|->)+[ \t]*{_NOUN}{one}{_ENDS}",
            # B, I think. B - Rome
            rf"^[ \t>*_-]*{_NOUN}{one}(?:,?[ \t]+{_ADDED}\b|[ \t]+[-–—][ \t]|[ \t]+\()",
        )
        self._listed = re.compile(
            rf"(?<![\w'’])[{re.escape(letters)}][)\]*_.]{{0,4}}(?:[ \t]*[,;/"
            rf"|&]|[ \t]+(?:and|or))+[ \t(\[*_]*(?:(?:and|or)[ \t(\[*_]+)?$"
        )
        self._frames = [re.compile(frame) for frame in frames]

    def read(self, line: str) -> tuple[str, int] | None:
        """(letter, its end) of the last statement in a line; None if there is none, or if its clause denies it."""
        begin = max(0, len(line) - _MAX_CHARS)
        found = [match for frame in self._frames for match in frame.finditer(line, begin)]
        if not found:
            return None
        last = max(found, key=lambda match: match.start(1))
        clauses = [match.end() for match in _CLAUSE.finditer(line, begin, last.start(1))]
        if self._listed.search(line[begin : last.start(1)]):  # "A, B, C, and D"
            return None
        denied = _DENIED.search(line, clauses[-1] if clauses else begin, last.start(1))
        return None if denied else (last[1], last.end(1))
