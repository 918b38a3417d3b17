"""Named calls in a text: `<send_message target_id="3">the sum is 12</send_message>` `<wait/>`."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

from harness.api import Action, Facts, Parsed, Reply, ReplyField
from harness.replies.arguments import parameters
from harness.replies.characters import is_placeholder, literal, valid
from harness.replies.dialects import END, NEVER_CLOSED, of_channels
from harness.replies.literals import read
from harness.replies.patterns import lines
from harness.replies.text_tool_calls import TextToolCall, calls_in
from harness.replies.thoughts import CLOSINGS, FIRST_SIGNS, MARKS, OPENINGS, THINKING, Thinking

from .quoted_calls import Mentions
from .tools import arguments_of, schema

_ATTRIBUTE = re.compile(r"([\w-]{1,40})\s{0,20}=\s{0,20}(?:\"([^\"<>]*+)\"|'([^'<>]*+)'|([^\s\"'<>]++))")
_MAX_NAME_CHARS = 120
_TAG = re.compile(
    rf"(?=[{FIRST_SIGNS}])(?:(?P<mark>{MARKS})|(?P<ended>{END.pattern})"
    r"|<\s{0,3}(?P<close>/\s{0,3})?(?P<name>[A-Za-z]\w{0,60})(?P<attributes>(?:\s[^<>]*+|/)?)>)"
    r"|^[ \t]*+(?:(?:[-*+•]|\d{1,3}[.)])[ \t]++)?`{0,2}+(?P<function>[A-Za-z]\w{0,60})\((?P<given>[^\n]*)\)`{0,2}+"
    r"[ \t]*+;?[ \t]*+$",
    re.MULTILINE,
)
"""A tag, a call as a function on a line of its own: `submit_result(959)`, a mark of thinking or of an end."""
_FIELDS = (ReplyField("calls", "", {"type": "array"}),)
EXAMPLE = "7"
"""What arguments and bodies of example calls say."""
_KEYWORD = re.compile(r"\s*([A-Za-z_]\w{0,60})\s*=(?!=)\s*")
_GIVEN = re.compile(r"\s*+(\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|[^,]*+)\s*+(?:,|\Z)")


@dataclass(frozen=True, slots=True)
class Verb:
    """A call that an agent can make.

    Attributes:
        name: the element's name.
        arguments: required attributes.
        body: the name of the text between the tags; None for a call without one, such as `<wait/>`.
        optional: attributes that may be missing; they are then "".
        line: for a command in a fence: its argument takes the rest of the first line, and the body starts on the next.
    """

    name: str
    arguments: tuple[str, ...] = ()
    body: str | None = None
    optional: tuple[str, ...] = ()
    line: bool = False

    @property
    def usage(self) -> str:
        """The syntax of the call."""
        attributes = "".join(f' {name}="…"' for name in (*self.arguments, *self.optional))
        return f"<{self.name}{attributes}{'/>' if self.body is None else f'>{self.body}</{self.name}>'}"

    def written(self, call: Mapping[str, Any]) -> str:
        """A call as an element."""
        given = ((name, call.get(name)) for name in (*self.arguments, *self.optional))
        attributes = "".join(f' {name}="{value}"' for name, value in given if value)
        if self.body is None:
            return f"<{self.name}{attributes}/>"
        return f"<{self.name}{attributes}>{call.get(self.body, '')}</{self.name}>"

    @property
    def required(self) -> tuple[str, ...]:
        """The arguments that a call must have, its body among them."""
        return self.arguments if self.body is None else (*self.arguments, self.body)


@dataclass(frozen=True, slots=True)
class Calls(Reply):
    """Any number of calls, in the order in which they are written. Other text is ignored.

    The action is a list of mappings {"call": name, argument: text, …}. An invalid call stays in the list with an
    "error" that says why, so that the protocol can report it to the agent; so does text in the form of a call with an
    unknown name. A text without any call is an error. An argument may also be an element of its own between the tags.
    A verb may also be written as a function on a line of its own: `submit_result(959)`, `send_message(3, "hi")`, or as
    any model writes calls of tools (`harness.replies.text_tool_calls`): `<tool_call>{"name": "wait"}</tool_call>`.
    Calls beyond `limit` are counted, not kept: the last entry is then {"call": "", "skipped": number}.

    What is thought (`<think>`, `<thinking>`, …) or only mentioned (in backticks or quotes within a sentence, on a line
    that begins with >, in a comment) is not a call. In backticks, quotes or a fence of its own a call is one.

    Attributes:
        verbs: the calls that an agent can make.
        limit: how many calls are kept.
        rest: the name of a verb without arguments that does nothing.
        body: how many characters constrained decoding allows in a body. Parsing has no such bound.
        as_tools: whether a model is offered the verbs as tools instead of writing them; its text is then not read.
        answer: the form of what the verb `answered_by` says in its body, where it has several fields: a tool takes each
            as an argument, and decoding keeps to its lines.
    """

    verbs: tuple[Verb, ...]
    limit: int = 100
    rest: str = "wait"
    body: int = 200
    as_tools: bool = False
    answer: Reply | None = None
    answered_by: str = "submit_result"

    takes_empty_body: ClassVar[bool] = True

    @property
    def noop(self) -> Action:
        """The call that does nothing."""
        return [{"call": self.rest}]

    def allows(self, action: Action) -> bool:
        """A list of at most `limit` calls, each with exactly the arguments that its verb needs."""
        verbs = {verb.name: verb for verb in self.verbs}
        return (
            isinstance(action, list)
            and len(action) <= self.limit
            and all(isinstance(call, Mapping) and _complete(call, verbs.get(call.get("call", ""))) for call in action)
        )

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The calls."""
        return _FIELDS

    def written(self, action: Action) -> str:
        """The calls, one a line."""
        verbs = {verb.name: verb for verb in self.verbs}
        return "\n".join(verbs[call["call"]].written(call) for call in action)

    @property
    def examples(self) -> tuple[Action, ...]:
        """Each call alone, and all of them."""
        each = [{"call": verb.name, **dict.fromkeys((*verb.required, *verb.optional), EXAMPLE)} for verb in self.verbs]
        for call, verb in zip(each, self.verbs, strict=True):
            if (form := self._form_of(verb)) is not None and form.examples:
                call[str(verb.body)] = form.written(form.examples[0])
        return (*([call] for call in each), each[: self.limit])

    def parse(self, text: str) -> Parsed:
        """The calls in `text`."""
        text = of_channels(text)
        verbs = {verb.name: verb for verb in self.verbs}
        calls: list[dict[str, Any]] = []
        skipped = at = aside = spoken_from = 0
        unclosed: set[str] = set()
        after: dict[str, int] = {}  # name of thinking → calls before its last element ended
        thinking, mentions = Thinking(text), Mentions(text)
        written = deque(self._written(text, verbs))
        while True:
            match = _TAG.search(text, at)
            while written and written[0][0] < at:
                written.popleft()
            if written and (match is None or written[0][0] <= match.start()):
                start, at, some = written.popleft()
                if mentions.end(start, at) is not None:
                    aside += 1
                    continue
                kept = some[: self.limit - len(calls)]
                calls, skipped = [*calls, *kept], skipped + len(some) - len(kept)
                continue
            if match is None:
                break
            at, name = match.end(), (match["name"] or match["function"] or "").lower()
            verb = verbs.get(name)
            if match["ended"]:
                if calls or text[spoken_from : match.start()].strip():
                    break
                spoken_from = at
                continue
            if match["mark"] or (verb is None and name in THINKING):
                name = match["mark"] or name
                if name in OPENINGS or not (match["close"] or match["mark"]):
                    end = None if (match["attributes"] or "").endswith("/") else thinking.end(name, at)
                    at, aside = (at, aside) if end is None else (end, aside + 1)
                    after[name] = len(calls)
                elif name in after and name not in NEVER_CLOSED:  # of an element within one of the same name
                    calls, aside = calls[: after[name]], aside + (len(calls) > after[name])
                elif (name in CLOSINGS or name in NEVER_CLOSED) and not mentions.end(*match.span()):
                    calls, skipped, aside = [], 0, aside + bool(calls)  # all before it was thinking
                spoken_from = at
                continue
            if match["close"] or (verb is None and (match["function"] or not _like_a_call(name))):
                continue
            mentioned, content = mentions.end(*match.span()), None
            if mentioned is None and verb is not None and match["name"]:
                content, at = self._end(text, name, at, match["attributes"].rstrip(), unclosed)
                mentioned = mentions.end(match.start(), at) if at > match.end() else None
            if mentioned is not None:
                at, aside = mentioned, aside + 1
            elif len(calls) >= self.limit:
                skipped += 1
            elif verb is None:
                calls.append({"call": name, "error": f"there is no {name}; there are: {', '.join(verbs)}"})
            elif match["function"]:
                calls.append(filled_in(verb, _of_function(verb, match["given"])))
            else:
                calls.append(filled_in(verb, _read(verb, match["attributes"].rstrip(), content)))
        if skipped:
            calls.append({"call": "", "skipped": skipped})
        if not calls:
            where = " outside of thinking and quotations" if aside else ""
            return Parsed(error=f"no call was found{where}; write one or more of: {self._usages()}")
        return Parsed(calls)

    def _written(self, text: str, verbs: Mapping[str, Verb]) -> Iterator[tuple[int, int, list[dict[str, Any]]]]:
        """(start, end, calls) of each place that writes calls as models write calls of tools. What is in no envelope is
        a call only if it names verbs."""
        for one in calls_in(text):
            known = all(call.name.lower() in verbs for call in one.calls)
            if one.calls and (known or (one.enclosed and any(_like_a_call(call.name) for call in one.calls))):
                yield one.start, one.end, [self._of_written(call, verbs) for call in one.calls]

    def _of_written(self, call: TextToolCall, verbs: Mapping[str, Verb]) -> dict[str, Any]:
        """A written call as one of a tool; values without a name have those of the verb's arguments, in order."""
        verb = verbs.get(call.name.lower())
        expected = (*verb.required, *verb.optional) if verb else ()
        unnamed = zip((name for name in expected if name not in call.arguments), call.unnamed, strict=False)
        given = json.dumps({**call.arguments, **dict(unnamed)}, ensure_ascii=False)
        return self._read_call({"name": call.name, "arguments": given}, verbs)

    @property
    def tools(self) -> tuple[Facts, ...]:
        """The verbs, if `as_tools`. An argument is a text; those of an answer with several fields are these fields."""
        if not self.as_tools:
            return ()
        forms = {verb.name: form for verb in self.verbs if (form := self._form_of(verb)) is not None}
        return tuple(
            {**tool, "parameters": parameters(forms[tool["name"]])} if tool["name"] in forms else tool
            for tool in _tools(self.verbs)
        )

    @property
    def with_tools(self) -> Calls:
        """The verbs as tools."""
        return self if self.as_tools else replace(self, as_tools=True)

    @property
    def most_calls(self) -> int:
        """As many as are kept."""
        return self.limit

    def says(self, action: Action) -> Facts:
        """The calls; of an answer with several fields these, however it is written."""
        if not action or self.answer is None:
            return Reply.says(self, action)
        stated = [{"call": call["call"], **said} if (said := self._answered(call)) else call for call in action]
        return Reply.says(self, stated)

    def calls_of(self, action: Action) -> tuple[Facts, ...]:
        """The calls, each with its arguments; what is no call of a verb is left out."""
        calls = []
        for call in action or ():
            verb = next((verb for verb in self.verbs if verb.name == call.get("call") and "error" not in call), None)
            if verb is None:
                continue
            values = self._answered(call) or {name: value for name, value in call.items() if name != "call"}
            calls.append({"name": verb.name, "arguments": json.dumps(values, ensure_ascii=False)})
        return tuple(calls)

    def parse_calls(self, calls: Sequence[Facts]) -> Parsed:
        """The calls of tools. An argument that is not text counts as its JSON: a list as `[1, 2]`."""
        verbs = {verb.name: verb for verb in self.verbs}
        actions = [self._read_call(call, verbs) for call in calls[: self.limit]]
        if len(calls) > self.limit:
            actions.append({"call": "", "skipped": len(calls) - self.limit})
        if not actions:
            return Parsed(error=f"no tool was called; there are: {', '.join(verbs)}")
        return Parsed(actions)

    def constraint(self) -> Mapping[str, Any] | None:
        """One to `limit` calls, one per line."""
        if self.as_tools:
            return None
        one = "|".join(_pattern(verb, self._body(verb, "<>")) for verb in self.verbs)
        return {"regex": f"(({one})\\n){{1,{self.limit}}}"}

    def _answered(self, call: Facts) -> dict[str, Any]:
        """The fields of the answer that a call submits; none where it has no such fields, or they cannot be read."""
        verb = next((verb for verb in self.verbs if verb.name == call.get("call") and "error" not in call), None)
        form = None if verb is None else self._form_of(verb)
        if verb is None or form is None:
            return {}
        parsed = form.parse(str(call.get(str(verb.body), "")))
        said = form.says(parsed.action) if parsed.error is None else {}
        return {name: value for name, value in said.items() if value is not None}

    def _form_of(self, verb: Verb) -> Reply | None:
        """The form of what a verb says, if it has several fields."""
        return self.answer if verb.name == self.answered_by and verb.body is not None else None

    def _body(self, verb: Verb, without: str) -> str:
        """A regular expression for a verb's body, without these characters."""
        form = self._form_of(verb)
        return f"[^{without}\\n]{{1,{self.body}}}" if form is None else lines(form, without)

    def _read_call(self, call: Facts, verbs: Mapping[str, Verb]) -> dict[str, Any]:
        name = " ".join(valid(call["name"][:_MAX_NAME_CHARS]).split())
        verb = verbs.get(name.lower())
        if verb is None:
            return {"call": name or "?", "error": self._unknown(name, verbs)}
        given = arguments_of(call["arguments"])
        if isinstance(given, str):
            return {"call": verb.name, "error": given}
        if self._form_of(verb) is not None and set(given) != {verb.body}:  # read as a reply with these fields is
            given = {str(verb.body): call["arguments"]} if given else {}
        expected = (*verb.required, *verb.optional)
        values = {one: valid(given.get(one, "")) for one in expected}
        values = {one: value if verb.line and one == verb.body else value.strip() for one, value in values.items()}
        for one in verb.required:
            if not values[one] and not (one == verb.body and one in given and self.takes_empty_body):
                return {"call": verb.name, "error": f"{one} is missing; {verb.name} needs {', '.join(verb.required)}"}
        return filled_in(verb, {"call": verb.name, **values})

    def _usages(self) -> str:
        """The syntax of all calls: of one alone, weak models would make that one."""
        return ", ".join(verb.usage for verb in self.verbs)

    def _unknown(self, name: str, verbs: Mapping[str, Verb]) -> str:
        """What is wrong with a call of a tool that there is not."""
        return f"there is no {name}; there are: {', '.join(verbs)}"

    def _end(self, text: str, name: str, at: int, attributes: str, unclosed: set[str]) -> tuple[str | None, int]:
        """What comes between the tags (None without a closing one), and where the call ends."""
        if attributes.endswith("/"):
            return "", at
        if name in unclosed:  # there is no closing tag after an earlier place, so none after this
            return None, at
        tag = _own_tag(name).search(text, at)
        if tag is None:
            unclosed.add(name)
            return None, at
        if not tag[1]:  # the next call of the same name begins: this one was never closed
            return None, tag.start()
        return text[at : tag.start()], tag.end()


@lru_cache(maxsize=64)
def _tools(verbs: tuple[Verb, ...]) -> tuple[Facts, ...]:
    return tuple({"name": verb.name, "parameters": schema(verb.required, verb.optional)} for verb in verbs)


def filled_in(verb: Verb, call: dict[str, Any]) -> dict[str, Any]:
    """A call, or why it is none: what it must say is a copy of what the prompt has in that place."""
    copied = next((name for name in verb.required if _is_copied(verb, name, str(call.get(name, "")))), None)
    if copied is None or "error" in call:
        return call
    return {"call": verb.name, "error": f"{copied} is missing: write your own in place of {call[copied].strip()}"}


def _is_copied(verb: Verb, name: str, value: str) -> bool:
    """Whether a value is the prompt's: a placeholder, `<path>` for a path, or the name of the body between its tags."""
    value = value.strip()
    return is_placeholder(value) or value == f"<{name}>" or (name == verb.body and value == name)


def _complete(call: Mapping[str, Any], verb: Verb | None) -> bool:
    return verb is not None and {"call", *verb.required} <= set(call) <= {"call", *verb.required, *verb.optional}


def _read(verb: Verb, attributes: str, content: str | None) -> dict[str, Any]:
    arguments = {
        m[1].lower(): valid(m[2] or m[3] or m[4] or "") for m in _ATTRIBUTE.finditer(attributes.removesuffix("/"))
    }
    if content is None and verb.body is not None:
        return {"call": verb.name, "error": f"</{verb.name}> is missing; write {verb.usage}"}
    content = content or ""
    expected = [*verb.required, *verb.optional]
    inside = content.lstrip()
    if inside.startswith("<"):
        for name in expected:
            _, opened, after = inside.partition(f"<{name}>")
            value, closed, _ = after.partition(f"</{name}>")
            if opened and closed:
                arguments.setdefault(name, valid(value.strip()))
    missing = [name for name in verb.arguments if not arguments.get(name)]
    if verb.body is not None and attributes.endswith("/"):
        missing += [verb.body] if verb.body not in arguments else []  # an empty text is one only between tags
    elif verb.body is not None:
        arguments.setdefault(verb.body, valid(content.strip()))
    if missing:
        return {"call": verb.name, "error": f"{missing[0]} is missing; write {verb.usage}"}
    return {"call": verb.name, **{name: arguments.get(name, "") for name in expected}}


def _of_function(verb: Verb, given: str) -> dict[str, Any]:
    """The call whose arguments are in brackets, by name or in order; the last of them takes all the rest."""
    expected = [*verb.required, *verb.optional]
    left, values = list(expected), dict[str, str]()
    while left and given.strip():
        keyword = _KEYWORD.match(given)
        name = keyword[1] if keyword and keyword[1] in left else left[0]
        given = given[keyword.end() :] if keyword and keyword[1] in left else given
        left.remove(name)
        one = _GIVEN.match(given) if left else None
        value, given = (one[1], given[one.end() :]) if one else (given, "")
        text = read(value)
        values[name] = valid(text if isinstance(text, str) else value.strip())
    missing = [name for name in verb.required if not values.get(name) and (name != verb.body or name not in values)]
    if missing or given.strip():
        what = f"{missing[0]} is missing" if missing else f"{given.strip()[:40]!r} is too much"
        return {"call": verb.name, "error": f"{what}; write {verb.usage}"}
    return {"call": verb.name, **{name: values.get(name, "") for name in expected}}


def _like_a_call(name: str) -> bool:
    """Names of calls have several parts; <b> and <think> are something else."""
    return "_" in name.strip("_")


def _pattern(verb: Verb, body: str) -> str:
    attributes = "".join(f' {literal(name)}="[^"<>\\n]{{1,40}}"' for name in verb.arguments)
    if verb.body is None:
        return f"<{verb.name}{attributes}/>"
    return f"<{verb.name}{attributes}>{body}</{verb.name}>"


@lru_cache(maxsize=256)
def _own_tag(name: str) -> re.Pattern[str]:
    """The closing tag (group 1 is its slash), or the beginning of another opening one."""
    return re.compile(rf"<\s{{0,3}}(?:(/)\s{{0,3}}{re.escape(name)}\s{{0,3}}>|{re.escape(name)}[\s/>])", re.IGNORECASE)
