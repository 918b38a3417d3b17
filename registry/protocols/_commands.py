"""Commands in fenced code blocks, one a block (MAS-Bench, Appendices D.1 and F.3):

```
send_message 3 the sum is 12
```
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from harness.api import Action, Parsed
from harness.extensions.networks.calls import Calls, Verb, filled_in
from harness.replies.call_marks import has_envelope
from harness.replies.characters import literal, valid
from harness.replies.patterns import lines
from harness.replies.strip_reasoning import without_thinking

FENCE = "```"
_TAG = re.compile(r"[^\n`]*\n")
_WORD = re.compile(r"\s*(\S+)[ \t]*")
UNKNOWN = "unknown command"
"""The error of a command whose name is none of the verbs'."""


def fenced(text: str) -> list[str]:
    r"""Return the contents of all closed fences, without the first line's tag and line breaks at the end.

    These are exactly the matches of the paper's expression ```` ```(?:[^\n`]*\n)?(.*?)``` ````, in linear time: a fence
    on one line works; text after an opening fence, on its line, is a tag and is lost if a line break follows; a fence
    that is never closed has no content.

    >>> fenced("First ```\nwait\n``` and ```text\nlist_files\n\n```")
    ['wait', 'list_files']
    """
    blocks, at = [], 0
    while (start := text.find(FENCE, at)) >= 0:
        tag = _TAG.match(text, start + 3)
        begin = tag.end() if tag else start + 3
        end = text.find(FENCE, begin)
        if end < 0:
            break
        blocks.append(text[begin:end].rstrip("\r\n"))
        at = end + 3
    return blocks


@dataclass(frozen=True, slots=True)
class Commands(Calls):
    """Any number of commands, in the order in which they are written. Text outside of fences is ignored, and so are
    fences within thinking (`<think>…</think>`). Calls in the format of a chat template for tools
    (`harness.replies.text_tool_calls`) count in place of fences.

    A command is its verb, then its arguments, each a word, then its body: all the rest, line breaks included. For a
    verb with `line`, the argument is the rest of the first line, and the body is the text below. The last argument of a
    verb without a body is all the rest.

    The action is that of `Calls`: a list of mappings {"call": name, argument: text, …}. An invalid command stays in the
    list with an "error" that says why. An unknown or empty command has the error `UNKNOWN` and its first line as the
    name. A text without a closed fence is an error. Commands beyond `limit` are counted, not kept: the last entry is
    then {"call": "", "skipped": number}.

    Attributes: those of `Calls`.
    """

    limit: int = 1000

    takes_empty_body: ClassVar[bool] = False

    def written(self, action: Action) -> str:
        """The commands, each in a fence of its own."""
        return "\n".join(f"{FENCE}\n{written(call, self.verbs)}\n{FENCE}" for call in action)

    def parse(self, text: str) -> Parsed:
        """The commands in `text`."""
        said = without_thinking(text)
        blocks, verbs = fenced(said), {verb.name: verb for verb in self.verbs}
        looks = not blocks or has_envelope(said)
        if looks and (written := [call for *_, calls in self._written(said, verbs) for call in calls]):
            skipped = [{"call": "", "skipped": len(written) - self.limit}] if len(written) > self.limit else []
            return Parsed([*written[: self.limit], *skipped])
        if not blocks:
            return Parsed(error="there is no command; write each one in a fenced code block of its own")
        calls: list[dict[str, Any]] = [_read(block, verbs) for block in blocks[: self.limit]]
        if len(blocks) > self.limit:
            calls.append({"call": "", "skipped": len(blocks) - self.limit})
        return Parsed(calls)

    def constraint(self) -> Mapping[str, Any] | None:
        """One to `limit` (at most a hundred) commands, each in a fence of its own."""
        if self.as_tools:
            return None
        one = "|".join(_pattern(verb, self._body(verb, "`")) for verb in self.verbs)
        return {"regex": f"(```\\n({one})\\n```\\n){{1,{min(self.limit, 100)}}}"}

    def _body(self, verb: Verb, without: str) -> str:
        """As for all calls; one that is not blank."""
        form = self._form_of(verb)
        return f"[^\\s`][^\\n`]{{0,{self.body - 1}}}" if form is None else lines(form, without)

    def _unknown(self, name: str, verbs: Mapping[str, Verb]) -> str:
        return UNKNOWN


def usage(verb: Verb) -> str:
    r"""The syntax of a command; `<…>` is required, `[…]` is optional.

    >>> usage(Verb("write_file", ("path",), "content", line=True))
    'write_file <path>\n<content>'
    """
    arguments = "".join(f" <{name}>" for name in verb.arguments) + "".join(f" [{name}]" for name in verb.optional)
    return verb.name + arguments + ("" if verb.body is None else f"\n<{verb.body}>" if verb.line else f" <{verb.body}>")


def written(call: Mapping[str, Any], verbs: Sequence[Verb]) -> str:
    """Return a call of one of the verbs as the text between fences that parses to it."""
    verb = next(verb for verb in verbs if verb.name == call["call"])
    words = [str(call[name]) for name in (*verb.arguments, *verb.optional) if call.get(name)]
    body = "" if verb.body is None else ("\n" if verb.line else " ") + str(call.get(verb.body, ""))
    return " ".join([verb.name, *words]) + body


def _read(block: str, verbs: Mapping[str, Verb]) -> dict[str, Any]:
    word = _WORD.match(block)
    verb = verbs.get(word[1].lower()) if word else None
    if verb is None or word is None:
        return {"call": valid(block.lstrip().split("\n", 1)[0].strip()[:120]), "error": UNKNOWN}
    rest = block[word.end() :]
    names = [*verb.arguments, *verb.optional]
    arguments: dict[str, str] = {}
    if verb.line:
        first, _, rest = rest.partition("\n")
        arguments[names[0]] = valid(first.strip())
    elif verb.body is None and names:
        *words, last = rest.split(None, len(names) - 1) if rest.strip() else [""]
        arguments = dict(zip(names, map(valid, map(str.strip, (*words, last))), strict=False))
    else:
        for name in names:
            if argument := _WORD.match(rest):
                arguments[name], rest = valid(argument[1]), rest[argument.end() :]
    if verb.body is not None:
        arguments[verb.body] = valid(rest if verb.line else rest.strip())
    if missing := next((name for name in verb.required if not arguments.get(name)), None):
        return {"call": verb.name, "error": f"{missing} is missing; write:\n{usage(verb)}"}
    body = () if verb.body is None else (verb.body,)
    return filled_in(verb, {"call": verb.name, **{name: arguments.get(name, "") for name in (*names, *body)}})


def _pattern(verb: Verb, body: str) -> str:
    arguments = "".join(" [^\\s`]{1,40}" for _ in verb.arguments)
    return literal(verb.name) + arguments + ("" if verb.body is None else ("\\n" if verb.line else " ") + body)
