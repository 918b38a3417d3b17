"""The last resort: what a reply says in its last sentence, where no label, box, heading or field states its answer.

A sentence states a value only if it leaves no doubt: it asks nothing, allows for no other case, and speaks for its
author alone. What a sentence leaves open, no earlier one settles.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from .characters import WRAPPING
from .mentions import UNDECIDED
from .statements import FAREWELL

_MAX_CHARS = 2_000
"""Characters at a line's end that are looked at."""
_BREAK = re.compile(r"(?<=[.!?…。！？])[\"'”’»*_`)\]]{0,4}(?:[ \t]+(?=[\W_]{0,6}[^\W\d_a-z])|(?<=[。！？])|\n+)")
"""What ends a sentence: a mark, before what does not begin with a small letter."""
_SHORT = re.compile(r"[\W_]*(?:\w{1,4}[\W_]*)?")
"""What is no sentence of its own before a mark: "B.", "1.", "ans.", "No."."""
_ABBREVIATION = re.compile(
    r"(?<![^\W_])(?:[a-z]|dr|Mr|Mrs|Ms|St|No|vs|approx|ca|ans|opt|fig|eq|e\.g|i\.e|etc)\.$", re.I
)
OPEN = re.compile(
    r"\?[\s*_`\"'”’)\]]*$|^[\W_]*(?:error|assuming|suppose|supposing|in[ \t](?:the|this|that)[ \t](?:\w+[ \t])?case"
    r"|if[ \t]not)(?!\w)"
    r"|(?<!\w)(?<!even[ \t])(?<!as[ \t])(?:if|unless)(?![ \t]we(?!\w))(?!\w)"
    r"|(?<![^\W_])(?:could|might|may)(?![\w'])"
    r"|(?<![^\W_])(?:whether|unknown|undetermined|undecided|unclear|insufficient|inconclusive)(?!\w)"
    r"|(?<![^\W_])(?:I|we)(?:['’]ll|[ \t]will)[ \t](?:wait|hold[ \t]off|think|check|decide)(?!\w)"
    r"|(?<![^\W_])(?:am|are|['’]m|['’]re|still)[ \t]waiting(?!\w)"
    r"|(?<![^\W_])(?:I|we)(?:['’]ve)?(?:[ \t]have)?(?:n['’]t|[ \t]not)(?:[ \t]yet)?[ \t](?:yet|decided|chosen|locked"
    r"|settled|made|received|heard|seen|finished)"
    r"|(?<![^\W_])(?:I|we)[ \t]do(?:n['’]t|[ \t]not)[ \t](?:yet[ \t])?(?:have|know|see)(?!\w)"
    r"|(?<![^\W_])(?:would|will|we|I)[ \t](?:also[ \t])?need(?![ \t]to[ \t](?:add|subtract|multiply|divide))(?!\w)"
    r"|(?<![^\W_])(?:cannot|can['’]t|can[ \t]not|could[ \t]not|unable[ \t]to|(?:not|im)[ \t]?possible"
    r"(?:[ \t]for[ \t]\w+)?[ \t]to|(?:hard|difficult|tough)[ \t]to|no[ \t]way[ \t]to|not[ \t]enough)"
    r"[ \t](?:\w+[ \t]){0,2}?(?:be[ \t])?(?:say|tell|know|determin\w+|decid\w+|answer\w*|identif\w+|estimat\w+"
    r"|give|given"
    r"|provid\w+|find|found|solv\w+|choos\w+|separat\w+|conclud\w+|calculat\w+|comput\w+|help|assist|compare|rank|pick)"
    r"|(?<![^\W_])(?:not|n['’]t)[ \t](?:been[ \t])?(?:provid\w+|given|specif\w+|mention\w*|available|applicable"
    r"|stat(?:e|ed)|known|clear|determined|settled|decided|enough|correct|right)(?!\w)"
    r"|(?<![^\W_])no[ \t](?:such|valid|correct|clear|single|definite|definitive|information|answer|solution|way)(?!\w)"
    r"|(?<![^\W_])(?:so[ \t]far|for[ \t]now|as[ \t]of[ \t]now|at[ \t]the[ \t]moment|tentative(?:ly)?|pending"
    r"|please[ \t](?!note)"
    r"(?:\w+[ \t])?(?:send|tell|share|confirm|provide|give|let|say|reply|respond|choose|pick|take|use))(?!\w)"
    r"|(?<![^\W_])(?:\d{1,3}|two|three|several|multiple|many|both|various)[ \t](?:\w+[ \t])?(?:possible"
    r"|possibilities|answers"
    r"|solutions|options|candidates|values)(?!\w)",
    re.IGNORECASE,
)
"""What leaves the answer open, whatever verb says it."""
_DOUBT = re.compile(
    r"(?<![^\W_])(?:if|otherwise|assuming|suppose|supposing|provided[ \t]that|depend(?:s|ing)"
    r"|maybe|perhaps|possibly|presumably|supposedly|potentially|ideally|likewise|currently|already|previously"
    r"|earlier|initially|your[ \t](?:number|value|answer|move|colou?r|action|choice|pick|vote|turn|share)|at[ \t]first"
    r"|not|never|neither|nor|no|none|nothing|without|unlike|instead|except|false|wrong|incorrect"
    r"|would[ \t](?:have[ \t]been|not|mean|imply|require)|should[ \t]have|guess|sure|uncertain|unsure|confus\w+"
    r"|e\.g|for[ \t](?:example|instance)|such[ \t]as|or|either|anyone|someone|anybody|somebody)(?!\w)"
    r"|n['’]t(?!\w)"
    r"|(?<![^\W_])you[ \t](?:can|could|should|must|would|will|take|pick|choose|go|play|said|say|have|are)(?!\w)",
    re.IGNORECASE,
)
"""What makes of a value in a sentence, without a verb that states it, one of several cases."""
_OTHERS = re.compile(
    r"(?<![^\W_])(?:he|she|they|others?|some|many|people|you|sources?|documents?|opponents?|(?:agent|player"
    r"|participant|p)"
    r"[ \t_-]?#?\w{1,3}|[^\W\d_]{1,20}[ \t_-]?#?\d{1,3})[ \t](?:(?:has|have|had|will|also|still|is|are|was)[ \t])?"
    r"(?:say|sa(?:ys|id|ying)|claim|think|thought|propos|suggest|report|believ|announc|argu|insist|answer|guess|prefer)"
    r"\w*(?!\w)"
    r"|(?<![^\W_])(?:(?:agent|player|participant|philosopher|opponent)(?:[ \t_-]?#?\w{1,3})?|p\d{1,2}|you)[ \t]"
    r"(?:(?:has|have|had|will|also|still|is|was)[ \t])?(?:cho(?:se|os)|pick|vot|want|pla[yn]|go|tak|us)\w*"
    r"|(?<![^\W_])(?:(?:agent|player|participant|philosopher|opponent)(?:[ \t_-]?#?\w{1,3})?|p\d{1,2})['’]s?(?!\w)"
    r"|(?<![^\W_])(?:others?|many|some|most|people|everyone|someone)[ \t](?:\w+[ \t]){0,2}(?:cho(?:se|ose)"
    r"|pick|vote|select)\w*"
    r"|^[\s*_#>\[\"'-]*(?:(?:agent|player|participant|philosopher|robot)[ \t_-]?#?\w{1,3}|p\d{1,2}),"
    r"|(?<![^\W_])(?:the|my|an)[ \t](?:other|others|another|opponent|neighbou?r|partner|rival)s?[ \t](?:\w+[ \t])?"
    r"(?:did|does|do|has|have|had|holds?|held|will|is|are|was|were)(?!\w)"
    r"|^[\s*_#>\[\"'-]*(?:(?:agent|player|participant|philosopher|opponent|robot)\b[^:\n]{0,12}"
    r"|[^\W\d_]{1,20}[ \t_-]?#?\d{1,3})[ \t*_]*:",
    re.IGNORECASE,
)
"""What another one says or does."""
_CUT = re.compile(r"(?:(?<=\s)[=+×*/–-]|[=+×(,:]|(?<![^\W_])(?:the|a|an|is|are|and|or|of|to|in|for|must|that|with))$")
"""How a sentence ends that was cut off."""
_WRAPPING = WRAPPING.replace(".", "").replace("!", "")
_REJECTS = re.compile(r"^[\W_]*(?:no|nope|rather|instead)[ \t]*[,.:;–—-]+[ \t]*", re.IGNORECASE)
_NOTE = re.compile(
    r"[\W_]{0,9}+(?:(?:however|but|also)\b[ \t,]*)?(?:please[ \t](?:note|be[ \t]aware|keep|remember)|note[ \t]that"
    r"|keep[ \t]in[ \t]mind"
    r"|it(?:['’]s|[ \t]is|[ \t]should[ \t]be)[ \t](?:also[ \t])?(?:important|worth|crucial"
    r"|essential)?[ \t]?(?:to[ \t])?"
    r"(?:not(?:e|ed|ing)|remember(?:ing)?|mention(?:ing)?|keep[ \t]in[ \t]mind))(?!\w)",
    re.IGNORECASE,
)
"""What only comments on an answer before it."""
_DECLARES = re.compile(
    r"(?:^|(?<=[,;:][ ]))[\W_]{0,9}+(?:(?:so|thus|therefore|hence|then|ok(?:ay)?|and|now|this[ \t](?:round|turn"
    r"|time))\b[ \t,]*)*"
    r"(?:I(?:['’]m|[ \t]am)[ \t](?:now[ \t])?(?:taking|playing|choosing|picking|submitting|moving|voting"
    r"|bidding|offering"
    r"|locking[ \t]in|going[ \t](?:with|for)|sticking[ \t](?:with|to)|committ\w+[ \t]to)"
    r"|I(?:['’]ll|[ \t]will)?[ \t](?:take|play|choose|pick|select|submit|move|vote|bid|offer|lock[ \t]in"
    r"|go[ \t](?:with|for)"
    r"|stick[ \t](?:with|to)|commit[ \t]to)"
    r"|my[ \t](?:final[ \t])?(?:move|choice|pick|vote|bid|offer|decision|answer|guess|action"
    r"|selection)[ \t](?:is|remains|stays))(?!\w)",
    re.IGNORECASE,
)
"""With what a reply says what its author does."""


SPEAKER = re.compile(
    r"(?:agent|player|participant|philosopher|robot|person|speaker|user|model|p)[ \t_-]?#?\w{1,2}", re.IGNORECASE
)
"""Who may be only spoken to or of: an option that is one is stated behind a verb alone."""
MEMBER = re.compile(r"[\s{\[,]*[\"'][^\"'\n]{1,60}[\"'][ \t]*:")
"""How a line of JSON begins, whose keys say what its values are."""


def sentences(line: str) -> Iterator[str]:
    """The sentences of a line, the last one first. Linear."""
    line = line[-_MAX_CHARS:]
    ends, begin = [], 0
    for match in _BREAK.finditer(line):
        if not (_SHORT.fullmatch(line, begin, match.start()) or _ABBREVIATION.search(line, begin, match.start())):
            ends.append(match.end())
            begin = match.end()
    stop = len(line)
    for begin in (*reversed(ends), 0):
        if said := line[begin:stop].strip():
            yield said
        stop = begin


def concluding(line: str, mentions: Callable[[str], bool]) -> str | None:
    """The sentence of a line that states a value: the last one that says what its author does, else the last one that
    mentions a value. None if there is none, or if that one or a later one leaves the answer open or is cut off."""
    said = list(sentences(line))
    for sentence in said:
        if _DECLARES.search(sentence) and is_plain(sentence) and not OPEN.search(sentence) and mentions(sentence):
            return sentence
    for i, sentence in enumerate(said):
        if len(said) > 1 and (FAREWELL.match(sentence) or _NOTE.match(sentence)):
            continue
        if OPEN.search(sentence) or UNDECIDED.search(sentence) or _OTHERS.search(sentence):
            return None
        if mentions(sentence):
            rejected = i + 1 < len(said) and said[i + 1].endswith("?")  # "Green? No, red."
            sentence = _REJECTS.sub("", sentence) if rejected else sentence
            return None if _CUT.search(sentence.rstrip(_WRAPPING)) else sentence
        if i == 0 and len(said) > 1 and sentence[-1:].isalnum():
            return None  # the end of a reply that was cut off
    return None


def first_sentence(line: str) -> str:
    """The sentence with which a line begins."""
    if _BREAK.search(line) is None:  # as most
        return line
    *_, first = sentences(line[:_MAX_CHARS]) if line.strip() else (line,)
    return first


def is_plain(sentence: str) -> bool:
    """Whether a sentence speaks of one case: then a single value in it is the one that it states, with no verb."""
    return _DOUBT.search(sentence) is None
