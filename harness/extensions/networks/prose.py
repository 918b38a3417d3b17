"""Words and lists of numbers that a reply gives in prose, behind a label or without one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.replies.characters import last_line
from harness.replies.conclusions import concluding, is_plain
from harness.replies.json_fields import json_fields
from harness.replies.mentions import Stated
from harness.replies.statements import declines, labelled

_ADDED = re.compile(
    r"[ \t]*(?:[ \t]\((?:not|also|because|since|see|i\.e|e\.g|the|as|which|known|formerly|it)\b.*"
    r"|[ \t][–—-]{1,2}[ \t].*"
    r"|,?[ \t]+(?:because|since|as it|as the|which)\b.*|,[ \t]+(?:not|but not|as)\b.*)$"
)
_FOOTNOTE = re.compile(r"\[\^\w{1,8}\]")
_SENTENCE = re.compile(r"(?i:the|it|this|that|my)\b(?:[ \t][a-z]+){0,6}[ \t](?:is|was|are|were)[ \t]+(.+)")
_QUOTED = re.compile(
    r"[\s*_`]*[\"“]([^\"“”\n]{1,80}?)[.!,]?[\"”][.!,*_`]*"
    r"(?=[ \t]+(?:[A-Z]|(?:and[ \t]not|not|but|because|since|as)\b)|[ \t]*$)"
)
_OFFERS = re.compile(r"(?i:(?:^|\s)either\s.*\sor\s|^(?:it )?(?:could|might|may) be\b|\?$)")
_AROUND = "# \t\r\n*_`$.。\"'“”‘’「」『』«»,;!"


def words_of(line: str, announced: bool) -> Stated[str]:
    """The words that a line says behind a label, without a reason in brackets or behind a dash."""
    line = _FOOTNOTE.sub("", line) if "[^" in line else line
    for _ in range(2):
        line = re.sub(r"\\(?:text\w{0,2}|mathrm|boxed)\{([^{}]*)\}", r"\1", line)
    if (member := json_fields(line, ("answer",)).get("answer") if line.startswith("{") else None) is not None:
        line = str(member)
    if (quoted := _QUOTED.match(line)) is not None:  # 'the answer is "Nile." Here is why'
        line = quoted[1]
    bare = _ADDED.sub("", line.strip(_AROUND)).strip(_AROUND + "[]<>") if announced else ""
    if (sentence := _SENTENCE.fullmatch(bare)) is not None:
        bare = sentence[1].strip(_AROUND)
    bare = "".join(
        char for char in bare.replace("**", "") if char.isprintable() and not 0x2600 <= ord(char) <= 0x1FAFF
    ).strip()
    if not bare or not any(map(str.isalnum, bare)):
        return Stated(None, True)
    return Stated(None if declines(bare) or _OFFERS.search(bare) else bare, False)


def only_words(text: str) -> str | None:
    """What a text without a label says: a few words that are all of it or its last line below one that leads to it,
    else the only words in bold or quotes of its last sentence; None if that leaves a doubt."""
    *above, last = [line for line in text.strip().split("\n") if line.strip(" \t*_`-")] or [""]
    bare = words_of(last, True).value or ""
    leads = not above or (len(above) == 1 and above[0].rstrip(" *_`").endswith((":", "：")))
    if leads and len(bare) <= _MAX_CHARS and len(bare.split()) <= _MAX_WORDS and not _CLAUSE.search(bare):
        return None if last.rstrip(" *_`").endswith(("?", ":")) else bare or None
    sentence = concluding(last, lambda said: _MARKED.search(said) is not None) or ""
    found = list(_MARKED.finditer(sentence))
    words = {match[1] or match[2] for match in found}
    before = sentence[: found[0].start()] if found else ""
    if len(words) != 1 or not is_plain(before) or not _STATES.search(before):
        return None
    return words.pop().strip(_AROUND)


_MAX_WORDS, _MAX_CHARS = 6, 60
"""Of a reply that is an answer without saying so."""
_CLAUSE = re.compile(
    r"[.!?;:][ \t]|[ \t][/|→⇒][ \t]|(?i:^(?:perhaps|maybe|possibly|probably|either)\b)|[{}\"“”]|(?i:^(?:i|we"
    r"|it|you|they|there|this|that|please|sorry|thanks?|hello|hi|ok(?:ay)?"
    r"|sure|waiting|not|none"
    r"|understood|received|noted)\b|\b(?:is|are|was|were|has|have|had|will|or|calls?|says?|said)\b|['’](?:s|m"
    r"|ll|re|t)[ \t])"
)
"""What makes of a few words a sentence, not an answer."""
_MARKED = re.compile(r"\*\*([^*\n]{1,80})\*\*|[\"“]([^\"“”\n]{1,80})[\"”]")
_STATES = re.compile(
    r"(?i:\b(?:is|was|are|were|be|as|suggests?|means?|calls?|called|named|in|to|by|with)|[:=→–—-])[ \t]*$"
)


def lists_of(text: str) -> Iterator[str]:
    """Lists of numbers that a text gives: what an answer's label is followed by, in brackets, with commas between or
    a line each; else the brackets of its last line, if these are the only ones there."""
    text = _CHECKED.sub(r"\1", _UNCHECKED.sub("", text)) if "[" in text else text
    text = text.replace("\\left", "").replace("\\right", "").replace("，", ",").replace("、", ",")
    lines = [*labelled(text)][:1] or [
        line
        for line in (last_line(text), text.strip().split("\n", 1)[0])
        if concluding(line, lambda said: _REST.search(said) is not None) is not None
    ]
    for line in lines:
        found = _BRACKETS.findall(line)
        if len(found) == 1 and not _OTHER_LIST.search(line):
            yield found[0]
        elif not found and (many := _NUMBERED.fullmatch(line.strip(" *_`$."))):
            yield f"[{re.sub(r'[, ]+and[ ]+', ', ', many[0])}]"
    below = [match[1] for match in _ITEM.finditer(text)]
    if len(below) > 1 and not any(map(_BRACKETS.search, lines)) and not _REST.search(_ITEM.sub("", text)):
        yield f"[{', '.join(below)}]"


_CHECKED = re.compile(r"^([ \t]*[-*•][ \t]+)\[[xX]\][ \t]+", re.MULTILINE)
_UNCHECKED = re.compile(r"^[ \t]*[-*•][ \t]+\[ \][^\n]*\n?", re.MULTILINE)
"""Boxes of a list of tasks."""
_BRACKETS = re.compile(r"\[[^\[\]\n]*\]")
_OTHER_LIST = re.compile(r"\b(?:or|not|either)\b[^\[]*\[|\.\.\.|…")
_NUMBERED = re.compile(r"[-−]?\d+(?:\.\d+)?(?:,[ ]?(?:and[ ])?[-−]?\d+(?:\.\d+)?|[ ]and[ ][-−]?\d+(?:\.\d+)?)+")
_ITEM = re.compile(
    r"^[ \t]*(?:(?:[-*•☑✅✓✔]|\d{1,3}[.)])[ \t]+(?:\[[xX]\][ \t]+)?"
    r"|[^\W\d][^\d\n:]{0,40}:[ \t]+)[*_`$]*([-−]?\d+(?:\.\d+)?)[*_`$]*"
    r"(?:[:,][ \t][^\d\n]*|[ \t]+[(–—-][^\d\n]*)?[ \t]*$",
    re.MULTILINE,
)
"""A line of a list that gives a number, with its mark or name before it, and a remark without numbers behind it."""
_REST = re.compile(r"\d")
