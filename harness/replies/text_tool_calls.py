"""Calls of tools that a model writes as text, in the formats of chat templates: `calls_in`.

Loaded for such texts alone: `call_marks` says whether a text may be one.

A server that knows a model's format takes such calls out of its text; where it does not, they are the reply. Every
format is an envelope (`ENVELOPES`) around one of a few kinds of bodies: JSON, elements, Python.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from .call_marks import ARGUMENTS, LINE, calls_on_line, has_envelope
from .literals import NoValueError, objects, value_at


class Envelope(NamedTuple):
    """What a format puts around its calls; regular expressions, and where it is documented."""

    opening: str
    closing: str
    documented: str


_PARSERS = "github.com/sgl-project/sglang, srt/function_call"
_BAR = "[|｜]"
ENVELOPES: tuple[Envelope, ...] = (
    Envelope("<tool_call>", "</tool_call>", f"Hermes, Qwen, GLM-4.5: {_PARSERS}/hermes_detector.py"),
    Envelope("<tool_calls>", "</tool_calls>", f"Jamba, Hunyuan, Ernie: {_PARSERS}/hunyuan_detector.py"),
    Envelope("<function_call>", "</function_call>", "huggingface.co/ibm-granite/granite-20b-functioncalling"),
    Envelope("<function_calls>", "</function_calls>", "docs.anthropic.com, Tool use; Olmo 3"),
    Envelope("<seed:tool_call>", "</seed:tool_call>", "huggingface.co/ByteDance-Seed/Seed-OSS-36B-Instruct"),
    Envelope("<minimax:tool_call>", "</minimax:tool_call>", f"MiniMax-M2: {_PARSERS}/minimax_m2.py"),
    Envelope("<longcat_tool_call>", "</longcat_tool_call>", f"LongCat: {_PARSERS}/longcat_detector.py"),
    Envelope("<TOOLCALL>", "</TOOLCALL>", "Nemotron: huggingface.co/nvidia, chat template"),
    Envelope(r"<\|tool_call\|>", r"<\|/tool_call\|>", "huggingface.co/microsoft/Phi-4-mini-instruct; Granite"),
    Envelope(r"<\|tool_call>", r"<tool_call\|>", f"Gemma 4: {_PARSERS}/gemma4_detector.py"),
    Envelope("<start_function_call>", "<end_function_call>", "FunctionGemma: ai.google.dev, its formatting"),
    Envelope(r"\[TOOL_CALLS\]", r"\[/TOOL_CALLS\]", f"Mistral: {_PARSERS}/mistral_detector.py"),
    Envelope(r"<\|python_tag\|>", r"<\|eom_id\|>", f"Llama 3: {_PARSERS}/llama32_detector.py"),
    Envelope(r"<\|python_start\|>", r"<\|python_end\|>", f"Llama 4: {_PARSERS}/pythonic_detector.py"),
    Envelope(
        rf"<{_BAR}tool[▁_]calls[▁_]begin{_BAR}>", rf"<{_BAR}tool[▁_]calls[▁_]end{_BAR}>",
        f"DeepSeek V3 and R1: {_PARSERS}/deepseekv3_detector.py, deepseekv31_detector.py",
    ),
    Envelope(
        "<｜DSML｜function_calls>", "</｜DSML｜function_calls>",
        f"DeepSeek V3.2: {_PARSERS}/deepseekv32_detector.py",
    ),
    Envelope(
        r"<\|tool_calls_section_begin\|>", r"<\|tool_calls_section_end\|>",
        f"Kimi K2: {_PARSERS}/kimik2_detector.py",
    ),
    Envelope(r"<\|START_ACTION\|>", r"<\|END_ACTION\|>", f"Command A: {_PARSERS}/cohere_command4_detector.py"),
    Envelope(r"<\|action_start\|>", r"<\|action_end\|>", f"InternLM 2: {_PARSERS}/internlm_detector.py"),
    Envelope(r"<\|tool_call_start\|>", r"<\|tool_call_end\|>", f"LFM2: {_PARSERS}/lfm2_detector.py"),
    Envelope(r"```tool_(?:code|call)[ \t]*\n", "```", "Gemma 3: ai.google.dev, Function calling with Gemma"),
    Envelope(r"(?=<invoke[ >])", "</invoke>(?!\\s*<invoke)", "docs.anthropic.com, Tool use"),
    Envelope(
        r"(?=<function=\w)", "</function>(?!\\s*<function=)",
        f"Llama 3, Qwen3-Coder: {_PARSERS}/qwen3_coder_detector.py",
    ),
)  # fmt: skip
"""The formats; calls in the JSON of chat completions and calls in Python on a line have no envelope."""
_OPENING = re.compile("|".join(f"(?P<e{i}>{one.opening})" for i, one in enumerate(ENVELOPES)))
_CLOSING = [re.compile(one.closing) for one in ENVELOPES]
_STRAY = re.compile(
    "|".join(mark for one in ENVELOPES for mark in one[:2] if "(?" not in mark and "```" not in mark)
    + r"|</?(?:arg_key|arg_value|parameters?|invoke|function|tool_name)(?:[= ][^<>]{0,100})?>"
    rf"|<{_BAR}tool[▁_](?:call|calls)?[▁_]?(?:begin|end|sep|argument_begin){_BAR}>|<\|plugin\|>|\[ARGS\]"
    r"|<\|tool_call_(?:begin|end|argument_begin)\|>|</?｜DSML｜[^<>]{0,100}>|<escape>|<\|\"\|>"
)
"""Marks of formats that are left where nothing can be read."""


class TextToolCall(NamedTuple):
    """A call: the tool's name ("" if none is given), argument → value, and values without a name."""

    name: str
    arguments: dict[str, Any]
    unnamed: tuple[Any, ...] = ()

    @property
    def values(self) -> dict[str, Any]:
        """Its arguments; the only value without a name has the tool's."""
        return {self.name: self.unnamed[0], **self.arguments} if len(self.unnamed) == 1 else self.arguments

    @property
    def as_object(self) -> str:
        """The one form in which replies' readers see calls: JSON with name and arguments; a name alone, if there are
        none."""
        said = self.values
        if not said:
            return self.name
        named = self.name and not self.unnamed
        return json.dumps({"name": self.name, "arguments": said} if named else said, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Written:
    """Calls that one place of a text writes; none where what an envelope holds cannot be read.

    Attributes:
        calls: the calls, in order.
        start, end: the place.
        enclosed: whether an envelope says that these are calls.
        body: what the envelope holds.
    """

    calls: tuple[TextToolCall, ...]
    start: int
    end: int
    enclosed: bool
    body: str = ""


@lru_cache(maxsize=64)
def calls_in(text: str) -> tuple[Written, ...]:
    """The calls that a text writes, from left to right. Linear.

    Outside of envelopes: objects of JSON as in chat completions, and lines of Python whose arguments all have names, or
    that are lists of calls: `[reply(message="I wait", action="WAIT")]`. A function in mathematics is no call.
    """
    found = list(_enclosed(text)) if has_envelope(text) else []
    bare = [*_bare_objects(text)] if "{" in text and any(f'"{key}"' in text for key in ARGUMENTS) else []
    bare += [*_bare_lines(text)] if calls_on_line(text) else []
    spans, taken = sorted([*found, *bare], key=lambda one: (one.start, -one.end)), 0
    kept = []
    for one in spans:
        if one.start >= taken:
            kept.append(one)
            taken = one.end
    return tuple(kept)


def as_objects(text: str) -> str:
    """`text` with each call as a JSON object (`TextToolCall.as_object`), and an envelope with nothing that can be read
    without its marks."""
    calls = calls_in(text)
    if not calls:
        return _without_strays(text) if has_envelope(text) else text
    parts, at = list[str](), 0
    for one in calls:
        said = "\n".join(call.as_object for call in one.calls)
        parts += [text[at : one.start], said or one.body]
        at = one.end
    whole = "".join([*parts, text[at:]])
    return _without_strays(whole) if has_envelope(whole) else whole


def without_calls(text: str) -> tuple[str, tuple[TextToolCall, ...]]:
    """`text` without the calls that are in envelopes, nor their marks, and these calls."""
    if not has_envelope(text):
        return text, ()
    parts, at, calls = list[str](), 0, list[TextToolCall]()
    for one in calls_in(text):
        if one.enclosed:
            bare = " ".join(call.name for call in one.calls if not call.values)
            parts += [text[at : one.start], bare if one.calls else one.body]
            at, calls = one.end, [*calls, *one.calls]
    return _without_strays("".join([*parts, text[at:]])), tuple(calls)


def _without_strays(text: str) -> str:
    """`text` without marks of calls that enclose nothing; what a JSON object says stays as it is."""
    spans = [(start, end) for start, end, _ in objects(text)] if "{" in text else []

    def instead(mark: re.Match[str]) -> str:
        at = bisect_right(spans, (mark.start(), len(text))) - 1
        return mark[0] if at >= 0 and mark.start() < spans[at][1] else ""

    return _STRAY.sub(instead, text)


def _enclosed(text: str) -> Iterator[Written]:
    unclosed, at = set[int](), 0
    opening = _OPENING.search(text, at)
    while opening is not None:
        kind = int((opening.lastgroup or "e0")[1:])
        closing = None if kind in unclosed else _CLOSING[kind].search(text, opening.end())
        if closing is None:
            unclosed.add(kind)
        begin = opening.end()
        following = _OPENING.search(text, max(begin, opening.start() + 1)) if closing is None else None
        stop = closing.start() if closing else following.start() if following else len(text)
        at = closing.end() if closing else stop
        body = text[begin : at if opening.end() == opening.start() else stop]
        if (calls := _read(body, _pythonic_first(opening[0]))) or body.strip():
            yield Written(calls, opening.start(), at, True, body)
        opening = following or _OPENING.search(text, max(at, opening.start() + 1))


def _pythonic_first(opening: str) -> bool:
    return opening.startswith("```") or "python_start" in opening or "tool_call_start" in opening


def _read(body: str, pythonic: bool = False) -> tuple[TextToolCall, ...]:
    """The calls in what an envelope holds."""
    if "invoke" in body and (found := tuple(_invoked(body))):
        return found
    if "<function=" in body and (found := tuple(_functions(body))):
        return found
    if "arg_key>" in body:
        return tuple(_keyed(body.replace("longcat_arg_", "arg_")))
    if (name := _NAME_ALONE.fullmatch(body)) is not None:
        return (TextToolCall(name[1], {}),)
    if pythonic and (found := tuple(_python(body))):
        return found
    return tuple(_named_objects(body)) or tuple(_json_calls(body)) or tuple(_python(body))


# ---------------------------------------------------------------------------------------------------- elements
_DSML = r"(?:｜DSML｜)?"
_INVOKE = re.compile(rf"<{_DSML}invoke(?:\s+name=\"?([\w.-]{{1,100}})\"?)?[^<>]{{0,100}}>")
_PARAMETER = re.compile(rf"<{_DSML}parameter\s+name=\"?([\w .-]{{1,100}})\"?[^<>]{{0,100}}>")
_TOOL_NAME = re.compile(r"<tool_name>\s{0,9}([\w.-]{1,100})\s{0,9}</tool_name>")
_ANY_ELEMENT = re.compile(r"<([\w-]{1,100})>")
_FUNCTION = re.compile(r"<function=\"?([\w.-]{1,100})\"?>?")
_FUNCTION_PARAMETER = re.compile(r"<parameter=\"?([\w .-]{1,100})\"?>")
_KEY = re.compile(r"<arg_key>\s{0,9}([^<]{1,100}?)\s{0,9}</arg_key>\s{0,9}<arg_value>")
_NAME = re.compile(r"\s*+([\w.-]{1,100})")
_NAME_ALONE = re.compile(r"\s*+([A-Za-z_][\w.-]{0,99})\s*+")


def _invoked(body: str) -> Iterator[TextToolCall]:
    """`<invoke name="reply"><parameter name="message">…</parameter></invoke>`, and the form before it."""
    for begin, stop, name in _segments(body, _INVOKE):
        part = body[begin:stop]
        if name:
            closing = f"</{'｜DSML｜' if '｜DSML｜parameter' in part else ''}parameter>"
            yield TextToolCall(name, dict(_elements(part, _PARAMETER, closing)))
        elif (tool := _TOOL_NAME.search(part)) is not None:
            _, _, given = part.partition("<parameters>")
            yield TextToolCall(tool[1], dict(_elements(given, _ANY_ELEMENT, "</{}>")))


def _functions(body: str) -> Iterator[TextToolCall]:
    """`<function=reply><parameter=message>…</parameter></function>`, or with JSON in place of parameters."""
    for begin, stop, name in _segments(body, _FUNCTION):
        part = body[begin:stop]
        given = dict(_elements(part, _FUNCTION_PARAMETER, "</parameter>"))
        if not given:
            given = next((value for _, _, value in objects(part)), {})
        yield TextToolCall(name, given)


def _keyed(body: str) -> Iterator[TextToolCall]:
    """`reply<arg_key>message</arg_key><arg_value>…</arg_value>`."""
    name = _NAME.match(body)
    yield TextToolCall(name[1] if name else "", dict(_elements(body, _KEY, "</arg_value>")))


def _segments(body: str, opening: re.Pattern[str]) -> Iterator[tuple[int, int, str]]:
    """What is behind each opening, up to the next one."""
    found = list(opening.finditer(body))
    ends = [*(match.start() for match in found[1:]), len(body)][: len(found)]
    for match, end in zip(found, ends, strict=True):
        yield match.end(), end, match[1] or ""


def _elements(part: str, opening: re.Pattern[str], closing: str) -> Iterator[tuple[str, str]]:
    """(name, text) of each element; one that is never closed ends before the next one."""
    at, unclosed = 0, set[str]()
    while (match := opening.search(part, at)) is not None:
        close = closing.format(match[1])
        end = -1 if close in unclosed else part.find(close, match.end())
        if end < 0:
            unclosed.add(close)
            following = opening.search(part, match.end())
            end = following.start() if following else min(len(part), _tag_from(part, match.end()))
        yield match[1].strip(), part[match.end() : end].strip("\r\n")
        at = max(end, match.end())


def _tag_from(part: str, at: int) -> int:
    found = part.find("</", at)
    return len(part) if found < 0 else found


# -------------------------------------------------------------------------------------------------------- JSON
_NAMES = ("name", "tool_name", "tool", "function", "recipient_name")
_OTHERS = frozenset(("id", "type", "index", "call_id", "tool_call_id"))
_WRAPPERS = ("tool_calls", "function_call", "tool_call", "function", "tool_uses")
_LEAD = re.compile(
    r"(?:function\s{0,3}<[|｜]tool[▁_]sep[|｜]>\s{0,3})?(?:call:)?(?:functions?\.)?([A-Za-z_][\w.-]{0,99}+)(?::\d{1,6})?\s{0,9}"
    r"(?:<\|tool_call_argument_begin\|>|<[|｜]tool[▁_]sep[|｜]>|(?:\[CALL_ID\][\w-]{1,60})?\[ARGS\])?\s{0,9}"
    r"(?:```(?:json)?\s{0,9})?(?=\{)"
)
_QUOTED = re.compile(r"(<escape>|<\|\"\|>)((?:(?!\1).)*+)\1", re.DOTALL)


def _named_objects(body: str) -> Iterator[TextToolCall]:
    """`reply{…}`, with what formats put between name and arguments."""
    if body.lstrip()[:1] in ("{", "["):
        return
    if "<escape>" in body or '<|"|>' in body:
        body = _QUOTED.sub(lambda quoted: json.dumps(quoted[2], ensure_ascii=False), body)
    at, budget = 0, 2 * len(body) + 4096
    while budget > 0 and (lead := _LEAD.search(body, at)) is not None:
        try:
            value, at = value_at(body, lead.end())
        except NoValueError as error:
            budget, at = budget - max(1, error.at - lead.end()), lead.end()
            continue
        if isinstance(value, dict):
            yield TextToolCall(lead[1], value)


def _json_calls(body: str) -> Iterator[TextToolCall]:
    for _, _, value in objects(body):
        yield from _shaped(value) or ([TextToolCall("", value)] if value else [])


def _shaped(value: dict[str, Any], depth: int = 4) -> list[TextToolCall]:
    """The calls that an object is, by the names of chat completions or others': {"name": "reply", "arguments": {…}};
    none if it has other keys."""
    for key in _WRAPPERS:
        inner = value.get(key)
        if isinstance(inner, (dict, list)) and depth:
            items = inner if isinstance(inner, list) else [inner]
            return [call for one in items if isinstance(one, dict) for call in _shaped(one, depth - 1)]
    name = next((key for key in _NAMES if isinstance(value.get(key), str)), None)
    given = next((key for key in ARGUMENTS if key in value), None)
    if name is None or not value.keys() <= {name, given, *_OTHERS}:
        return []
    arguments = value[given] if given else {}
    if isinstance(arguments, str):
        arguments = next((one for _, _, one in objects(arguments)), None) if arguments.strip() else {}
    return (
        [TextToolCall(value[name].removeprefix("functions."), arguments or {})]
        if isinstance(arguments, dict | None)
        else []
    )


def _bare_objects(text: str) -> Iterator[Written]:
    for start, end, value in objects(text):
        if calls := _shaped(value):
            if not any(key in value for key in ARGUMENTS) and not any(key in value for key in _WRAPPERS):
                continue  # an object with a name and no arguments may be anything
            yield Written(tuple(calls), start, end, False)


# ------------------------------------------------------------------------------------------------------ Python
_CALLED = re.compile(r"(?:print\(\s{0,9})?(?:[A-Za-z_]\w{0,60}\.){0,4}([A-Za-z_]\w{0,60})\(")
_KEYWORD = re.compile(r"\s*+([A-Za-z_]\w{0,60})\s{0,9}=(?!=)")
_SPACE = re.compile(r"\s*+")
_REST = re.compile(r"[)\] \t;`]*+$", re.MULTILINE)
_MAX_ARGUMENTS = 200


def _python(body: str) -> Iterator[TextToolCall]:
    """Calls in Python's syntax, wherever they are in what an envelope holds."""
    at, budget = 0, 2 * len(body) + 4096
    while budget > 0 and (called := _CALLED.search(body, at)) is not None:
        try:
            call, at = _python_call(body, called)
        except NoValueError as error:
            budget, at = budget - max(1, error.at - called.start()), called.end()
            continue
        yield call


def _python_call(text: str, called: re.Match[str]) -> tuple[TextToolCall, int]:
    """The call that begins there, and where it ends. Raises `NoValueError`."""
    named, unnamed, at = dict[str, Any](), list[Any](), _skip(text, called.end())
    while text[at : at + 1] != ")":
        keyword = _KEYWORD.match(text, at)
        value, at = value_at(text, keyword.end() if keyword else at)
        if keyword:
            named[keyword[1]] = value
        else:
            unnamed.append(value)
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != ")" or len(named) + len(unnamed) > _MAX_ARGUMENTS:
            raise NoValueError(at)
    return TextToolCall(called[1], named, tuple(unnamed)), at + 1


def _bare_lines(text: str) -> Iterator[Written]:
    """Lines that are calls with named arguments only, or lists of calls."""
    at, budget = 0, 2 * len(text) + 4096
    while budget > 0 and (line := LINE.search(text, at)) is not None:
        at, calls = line.end(), list[TextToolCall]()
        start = _SPACE.match(text, line.start()).end()  # type: ignore[union-attr]
        called = _CALLED.search(text, start, line.end())
        place = start
        is_list = "[" in text[start : called.start()] if called else False
        try:
            while called is not None:
                call, place = _python_call(text, called)
                calls.append(call)
                follows = _skip(text, place)
                called = _CALLED.match(text, _skip(text, follows + 1)) if text[follows : follows + 1] == "," else None
        except NoValueError as error:
            budget -= max(1, error.at - line.start())
            continue
        rest = _REST.match(text, place)
        if rest is None or any(call.unnamed for call in calls):
            continue
        if not is_list and not all(call.arguments for call in calls):
            continue  # `wait()` alone is for forms that know their calls
        at = rest.end()
        yield Written(tuple(calls), start, at, False)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def only_text(calls: Sequence[TextToolCall], names: Sequence[str]) -> str | None:
    """The text that calls say: what the last one gives under one of these names, else its only text; None if there is
    none."""
    for call in reversed(calls):
        folded = {key.strip().casefold(): value for key, value in call.values.items()}
        texts = [value for value in folded.values() if isinstance(value, str)]
        said = next((folded[name] for name in names if name in folded), texts[0] if len(texts) == 1 else None)
        if said is not None:
            return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return None
