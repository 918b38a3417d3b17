"""Python programs: from a reply to program text, and from program text and prompt to a whole program."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from harness.api import Action, Parsed, Reply, ReplyField
from harness.replies.characters import valid
from harness.replies.literals import NoValueError, value_at
from harness.replies.strip_reasoning import without_thinking

from ._code_lines import Line, logical

_FENCE = re.compile(r"^([^\n`~]{0,400}+)(`{3,}+|~{3,}+)[ \t]*+([\w+#.-]*+)[^\n`]*+$", re.MULTILINE)
_MAX_FENCE_INDENT = 12
"""Blanks before a fence within a list; one that closes a block has nothing else before it."""
_PYTHON = {"", "python", "py", "python3", "python2", "py3", "ipython", "code", "text", "plaintext"}
_UNNAMED = {"", "code", "text", "plaintext"}
_KEYS = ("completion", "code", "answer", "solution")
_OBJECT = re.compile(r"^[ \t]*\{", re.MULTILINE)

_NAME = r"[^\W\d]\w*+"
_TARGET = rf"[(\[*]*+{_NAME}(?:\.{_NAME}|\[[^\]]{{0,200}}\])*+[)\]]*+"
_STATEMENT = re.compile(
    rf"""(?:
      (?:async[ ])?def[ ]+{_NAME}\s*\( | class[ ]+{_NAME}\s*[(:] | @{_NAME}
    | import[ ]+[\w., ]+$ | from[ ]+[\w.]+[ ]+import[ ]
    | (?:return|yield|raise|assert|del|global|nonlocal|await)\b(?![ ]*[.,:;]) | (?:pass|break|continue)\s*(?:\#|;|$)
    | (?:if|elif|while|for|with|async[ ]for|async[ ]with|except|match|case)\b.*[:(\[{{,\\]\s*(?:\#.*)?$
    | (?:if|while|for|with)\b.*:[ ]*(?:return|yield|raise|pass|break|continue|{_NAME}[ ]*[-+*/]?=)
    | (?:else|try|finally)\s*:
    | {_TARGET}(?:[ ]*,[ ]*{_TARGET})*+[ ]*(?::[ ]*[\w.]++(?:\[[^=]{{0,200}}\])?[ ]*)?
      (?:[-+*/%&|^@]|//|\*\*|<<|>>)?=(?!=)
    | {_NAME}(?:\.{_NAME})*+\(.*[)\]}},(\[{{:\\]\s*(?:\#.*)?$
    | \"\"\" | ''' | r\"\"\"
    )""",
    re.VERBOSE,
)
_ITEM = re.compile(r"[-*+•][ \t]|\d{1,3}[.)][ \t]|#{1,6}[ \t]")
_CODE_IN_PROSE = r"`[^`\n]{1,200}`"
_SENTENCE = re.compile(
    rf"(?:[-*+•#]++[ \t]++|\d{{1,3}}[.)][ \t]++)?[*_\"“(]*+(?:(?=[^ ]+[ ]+[^ ])"
    rf"(?:[A-Z]|{_CODE_IN_PROSE}(?=[ ]))(?:{_CODE_IN_PROSE}|[ ]\(|[^\W_]|[ ,;:.!?'’\")”*…–—-])*+(?<=[.:!?*)…])"
    r"|(?:Sure|Certainly|Explanation|Examples?|Usage|Notes?|Output|Solution)[*_:.!]*+)"
)
"""Prose, of which no single slip makes a line of code: it begins with a capital, has several words, ends with a mark,
and has no sign of code (but in backticks): neither an operator nor a bracket that follows a name."""
_INDENT = re.compile(r"\A[ \t]+")
_FUTURE = re.compile(r"^from __future__ import [^\n]+$", re.MULTILINE)
_RETURN = re.compile(r"(?:return|yield)\b")
_TOP = re.compile(r"(?:async )?def |class |@|import |from |if __name__|print\(")


@dataclass(frozen=True, slots=True)
class Code(Reply):
    """A Python program, or the continuation of one that the prompt began.

    The program is looked for in this order: a JSON object with the program as `completion`, `code`, `answer` or
    `solution`; a fenced block; the reply, without paragraphs of prose if the rest is a whole program. Of several blocks
    the last one that defines the entry point counts, because later blocks correct earlier ones. If none does (or it is
    unknown) the first one counts, because examples follow the program. Blocks in other languages count only if there
    are not others. Indentation is kept, because it distinguishes a body from a whole function: see `assemble`. No line
    of code is left out because it is broken: the task grades what the model wrote.

    Attributes:
        entry_point: the function that the task asks for, if known.
    """

    entry_point: str | None = None

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The program."""
        return (ReplyField("code"),)

    def written(self, action: Action) -> str:
        """The program in a fence."""
        return f"```python\n{action}\n```"

    @property
    def examples(self) -> tuple[Action, ...]:
        """A small program."""
        return (f"def {self.entry_point or 'f'}(x):\n    # twice\n    return x + x",)

    def parse(self, text: str) -> Parsed:
        """The program text, without blank lines around it. What is thought is no program."""
        text = _with_plain_breaks(without_thinking(text))
        program = _from_json(text)
        if program is None:
            program = self._from_fenced_block(text)
        elif _FENCE.search(program):
            program = self._from_fenced_block(program)
        if program is None:
            program = _without_prose(text, self.entry_point)
        code = _trimmed(program or "")
        return Parsed(code) if code else Parsed(error="no Python code was found; write it in one ```python block")

    def allows(self, action: Action) -> bool:
        """Any text."""
        return isinstance(action, str)

    def _from_fenced_block(self, text: str) -> str | None:
        blocks = _blocks(text)
        blocks = [block for block in blocks if block[0] in _PYTHON] or blocks
        bodies = [_from_json(body) or body for _, body in blocks]
        if self.entry_point:
            whole = [body for body in bodies if _defined(logical(body), self.entry_point) is not None]
            bodies = whole[-1:] or bodies
        return bodies[0] if bodies else None


def program_of(text: str) -> str | None:
    """Return the program of a message: its fenced Python blocks, one after another. None without one.

    Blocks that name no language count only if none names Python. Never raises; linear time.
    """
    blocks = _blocks(_with_plain_breaks(without_thinking(text)))
    named = [body for language, body in blocks if language in _PYTHON - _UNNAMED]
    bodies = [_trimmed(body) for body in named or (body for language, body in blocks if language in ("", "code"))]
    return "\n\n".join(body for body in bodies if body) or None


def _blocks(text: str) -> list[tuple[str, str]]:
    """(language, content) of every fenced block with something in it; the last one may be open."""
    blocks, opened = [], None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[2].startswith(opened[2]) and not fence[3] and _blank(fence[1]):
            blocks.append((opened, text[opened.end() + 1 : fence.start()]))
            opened = None
    if opened is not None:
        blocks.append((opened, text[opened.end() + 1 :]))
    return [
        (fence[3].lower(), _outdented(body, len(fence[1]) if _blank(fence[1]) else 0))
        for fence, body in blocks
        if body.strip()
    ]


def _blank(before: str) -> bool:
    return len(before) <= _MAX_FENCE_INDENT and not before.strip(" \t")


def _outdented(text: str, by: int) -> str:
    """A block within a list is indented as its fence is."""
    return re.sub(rf"^[ \t]{{1,{by}}}", "", text, flags=re.MULTILINE) if by else text


def _from_json(text: str) -> str | None:
    """The program in the first JSON object that starts a line, or None."""
    start = _OBJECT.search(text)
    if start is None:
        return None
    try:
        members, _ = value_at(text, start.end() - 1)
    except NoValueError:
        return None
    return next((members[key] for key in _KEYS if isinstance(members.get(key), str)), None)


def _without_prose(text: str, entry_point: str | None) -> str | None:
    """The text without its paragraphs of prose, if what is left is a whole program; a body stays as it is, since a
    line of it that is broken may look like anything. None if no line reads like code."""
    physical = text.split("\n")
    if not any(_STATEMENT.match(line.strip()[:2000]) for line in physical):
        return None
    dropped = {n for first, end in _paragraphs(text, physical) for n in range(first, end)}
    if dropped:
        rest = "\n".join(line for n, line in enumerate(physical) if n not in dropped)
        may_be_whole = entry_point in rest if entry_point else _TOP.search(rest)
        lines = logical(rest) if may_be_whole else []
        whole = _defined(lines, entry_point) is not None if entry_point else any(_TOP.match(x.text) for x in lines)
        return rest if whole else text
    return text


def _paragraphs(text: str, physical: list[str]) -> Iterator[tuple[int, int]]:
    """From where to where prose stands, from its first line at the margin to a blank one; never within a string."""
    inside = _within_strings(logical(text)) if '"""' in text or "'''" in text else frozenset[int]()
    first = 0
    for n, line in enumerate([*physical, ""]):
        if line.strip():
            continue
        margin = first < n and not physical[first][:1].isspace() and inside.isdisjoint(range(first, n))
        if margin and all(_SENTENCE.fullmatch(item) for item in _items(physical[first:n])):
            yield first, n
        first = n + 1


def _items(paragraph: list[str]) -> Iterator[str]:
    """A paragraph in one line; of a list each item."""
    item: list[str] = []
    for line in paragraph:
        if item and _ITEM.match(line):
            yield " ".join(item)
            item = []
        item.append(line.strip())
    yield " ".join(item)


def _with_plain_breaks(text: str) -> str:
    return valid(text).replace("\r\n", "\n").replace("\r", "\n")


def _trimmed(text: str) -> str:
    """`text` without blank lines around it and blanks at its end."""
    return re.sub(r"\A(?:[ \t]*\n)++", "", text).rstrip()


# ----------------------------------------------------------------------------------------- assemble


def assemble(prompt: str, code: str, entry_point: str) -> str:
    """Return a whole program from a prompt that ends within the function `entry_point`, and the text that continues or
    replaces it.

    A text that defines the function replaces it; whatever the prompt has before it (imports, helpers) stays. Any other
    text is the function's body, whatever its indentation: correct, missing on the first line, missing everywhere, or of
    another width. Text after a body at the margin stays there. Never raises; linear time.
    """
    code = _spaced(_trimmed(_with_plain_breaks(code)))
    lines = logical(code)
    definition = _defined(lines, entry_point)
    if definition is not None:
        return _replaced(prompt, _shifted(code, lines, -lines[definition].indent), entry_point)
    width = _body_width(prompt, entry_point)
    body = _body(code, lines, width) if lines else " " * width + "pass"
    return f"{prompt.rstrip()}\n{body}\n"


def _defined(lines: list[Line], entry_point: str) -> int | None:
    """Which line defines the function at the text's own margin."""
    name = re.escape(entry_point)
    pattern = re.compile(rf"(?:async[ \t]+)?def[ \t]+{name}[ \t]*[(\[]|{name}[ \t]*(?::[^=]*)?=(?!=)")
    margin = min((line.indent for line in lines), default=0)
    starts = [n for n, line in enumerate(lines) if line.indent == margin and pattern.match(line.text)]
    if not starts or (margin and not _TOP.match(lines[0].text)):
        return None
    # A body may define a function of that name within: then it returns beside it, or its first line was stripped.
    if any(line.indent == margin and _RETURN.match(line.text) for line in lines):
        return None
    block = [line.indent for line in takewhile(lambda line: line.indent > margin, lines[starts[0] + 1 :])]
    return starts[0] if not block or min(block) == block[0] else None


def _replaced(prompt: str, code: str, entry_point: str) -> str:
    lines = logical(prompt)
    definition = _defined(lines, entry_point)
    lines_before = prompt.split("\n")[: lines[definition].first if definition is not None else None]
    while lines_before and (not lines_before[-1].strip() or lines_before[-1].startswith("@")):
        lines_before.pop()
    future = _FUTURE.findall(code)  # these imports must come first
    rest = _FUTURE.sub("", code)
    return "\n".join([*future, *lines_before, "", "", rest, ""]) if lines_before else "\n".join([*future, rest, ""])


def _body_width(prompt: str, entry_point: str) -> int:
    """How far the prompt indents the function's body."""
    lines = logical(prompt)
    definition = _defined(lines, entry_point)
    after = lines[definition + 1 :] if definition is not None else []
    return next((line.indent for line in after if line.indent), 4)


def _body(code: str, lines: list[Line], width: int) -> str:
    level, length = _level(lines, width)
    physical = code.split("\n")
    physical[lines[0].first] = " " * level + physical[lines[0].first].lstrip(" ")
    tail = lines[length].first if length < len(lines) else len(physical)
    inside = _within_strings(lines)
    moved = [_moved(text, width - level, n in inside) for n, text in enumerate(physical[:tail])]
    return "\n".join([*moved, *physical[tail:]])


def _level(lines: list[Line], width: int) -> tuple[int, int]:
    """How far the body's own statements are indented, and how many lines belong to it.

    The first line's own blanks say little: replies lose them. The lines after it tell.
    """
    first, rest = lines[0], lines[1:]
    count = next((n for n, line in enumerate(rest) if not line.indent), len(rest))
    block, after = rest[:count], rest[count:]
    if not block:
        return (first.indent, 1) if first.indent else (0, _end_at_margin(lines))
    second, least = block[0].indent, min(line.indent for line in block)
    if not first.opens:
        level = second
    elif least < second:
        level = least
    elif first.indent:
        level = first.indent if first.indent < second else width
    else:  # all of it is one block: deeper than a body's means that the first line was stripped
        continued = bool(after) and not _TOP.match(after[0].text)
        level = width if second > width and not continued else 0
    return (level, 1 + count) if level else (0, _end_at_margin(lines))


def _end_at_margin(lines: list[Line]) -> int:
    """How many lines of a text at the margin are the body: what is defined after it returned is not."""
    returned = False
    for n, line in enumerate(lines):
        if not line.indent:
            if returned and _TOP.match(line.text):
                return n
            returned = returned or bool(_RETURN.match(line.text))
    return len(lines)


def _shifted(code: str, lines: list[Line], by: int) -> str:
    inside = _within_strings(lines)
    return "\n".join(_moved(text, by, n in inside) for n, text in enumerate(code.split("\n")))


def _within_strings(lines: list[Line]) -> frozenset[int]:
    """The physical lines that begin within a string."""
    return frozenset[int]().union(*(line.inside for line in lines))


def _moved(text: str, by: int, inside: bool) -> str:
    """One physical line with more or fewer blanks before it; a string's own lines stay as they are."""
    if inside or not by or not text.strip():
        return text
    return " " * by + text if by > 0 else text[min(-by, len(text) - len(text.lstrip(" "))) :]


def _spaced(code: str) -> str:
    """Indentation by tabs as blanks, four each, so that it fits the prompt's."""
    if "\t" not in code:
        return code
    inside = _within_strings(logical(code))
    lines = enumerate(code.split("\n"))
    return "\n".join(line if n in inside else _INDENT.sub(lambda m: m[0].expandtabs(4), line) for n, line in lines)
