r"""Backslashes in JSON strings that a model wrote: `\n` is a line break, the one in `\nabla` is not.

JSON wants every backslash of LaTeX doubled; models forget. `{"answer": "\frac{1}{2}"}` is then even valid JSON, with a
form feed in it, and `\text` has a tab. Which is meant is decided by the word that follows the backslash.
"""

from __future__ import annotations

import re

from .characters import valid

_SEQUENCE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|[A-Za-z]+|.|\Z)", re.DOTALL)
_UNICODE = re.compile(r"u[0-9a-fA-F]{4}")
_SIMPLE = {'"': '"', "'": "'", "/": "/"}
_CONTROL = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}

_COMMANDS = """
nabla ncong nearrow neg neq newcommand newline nexists ngeq nleq noindent nolimits nonumber norm normalsize not notin
nparallel nprec nsim nsubset nsubseteq nsucc nsupset nvdash nwarrow
tag tan tanh tau tbinom text textbf textit textmd textnormal textrm textsc textsf textstyle texttt textup tfrac theta
therefore thickapprox thicksim tilde times triangle triangleleft triangleq triangleright twoheadrightarrow
"""
_LATEX = frozenset(_COMMANDS.split())
r"""Commands that begin like `\n` and `\t`. Those whose rest is an English word (`\nless`) are not here."""
_UNSURE = frozenset(("ne", "ni", "nmid", "nu", "to", "top"))
r"""Such commands that may as well be a line break or a tab and a short name: `\ne = 2`."""
_SIGN = re.compile(r"[$^]|\\[(\[{]")
_CODE = re.compile(
    r"\\n[ \t]{2}|\b(?:def|return|import|class|elif|print|assert)\b|\\t(?:if|for|return|while)\b|==|\+="
    r"|\\n(?:e|i|u)[ ]{0,2}(?:=|\+=|\(|\[|:)"
)


def unescape(text: str) -> str:
    r"""The content of a JSON string as it was meant. Linear in the length of `text`.

    The rules, for a backslash and what follows it:

    1. `\"`, `\'`, `\/` and `\uXXXX` with four hexadecimal digits are as in JSON;
    2. `\b`, `\f`, `\r` before a letter are LaTeX (`\beta`, `\frac`, `\rho`): models write no backspace, form feed or
       return before a letter. Not before a letter they are as in JSON;
    3. `\n` and `\t` are LaTeX if the whole word is a known command (`\nabla`, `\times`), else a line break and a tab
       (`\nreturn`). A short name that could be both (`\ne`, `\to`) is LaTeX unless the string looks like code, or has
       other line breaks or tabs so written and no sign of LaTeX;
    4. any other word (`\sqrt`) or mark (`\(`, `\,`) is LaTeX;
    5. `\\` is one backslash; but in a string that has LaTeX by rules 2 to 4, so that nothing in it is doubled, two
       backslashes that precede no letter are the end of a row and stay two.

    >>> unescape(r"\frac{1}{2}"), unescape(r"\\frac{1}{2}"), unescape(r"x = 1\nreturn x")
    ('\\frac{1}{2}', '\\frac{1}{2}', 'x = 1\nreturn x')
    """
    if "\\" not in text:
        return text
    bodies = [m[0][1:] for m in _SEQUENCE.finditer(text)]
    sure = any(map(_command, bodies))
    control = any(body[:1] in ("n", "t") and body not in _LATEX | _UNSURE for body in bodies)
    unsure = not _CODE.search(text) and (sure or not control or bool(_SIGN.search(text)))
    raw = sure or (unsure and not _UNSURE.isdisjoint(bodies))

    def meant(match: re.Match[str]) -> str:
        body = match[0][1:]
        if body == "\\":
            after = text[match.end() : match.end() + 1]
            return "\\\\" if raw and not after.isalpha() else "\\"
        if body in _SIMPLE:
            return _SIMPLE[body]
        if _UNICODE.fullmatch(body):
            return chr(int(body[1:], 16))
        if _command(body) or (unsure and body in _UNSURE) or body[:1] not in _CONTROL:
            return "\\" + body
        return _CONTROL[body[0]] + body[1:]

    return valid(_SEQUENCE.sub(meant, text))


def _command(body: str) -> bool:
    """Whether what follows a single backslash is surely a command of LaTeX."""
    if not body[:1].isalpha() or _UNICODE.fullmatch(body):
        return False
    return len(body) > 1 if body[0] in "bfr" else body in _LATEX if body[0] in "nt" else True
