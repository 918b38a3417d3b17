"""Whether a text may hold a call of a tool, which costs next to nothing to say; `text_tool_calls` reads the calls."""

from __future__ import annotations

import re

from .characters import has_any

LEADS = (
    "<tool_call", "</tool_call", "<tool_call|>", "<|tool_call", "<|/tool_call", "<function", "</function", "<invoke",
    "</invoke", "<parameter", "</parameter", "<arg_", "</arg_", "<tool_name", "</tool_name", "<seed:t", "</seed:t",
    "<minimax:", "</minimax:", "<longcat", "</longcat", "<TOOLCALL", "</TOOLCALL", "<start_func", "<end_func",
    "[TOOL_CALLS", "[/TOOL_CALLS", "[ARGS", "<|python_", "<|tool▁", "<｜tool", "<｜DSML", "</｜DSML", "<|START_ACT",
    "<|END_ACT", "<|action_", "<|plugin", "```tool_", "<escape>", '<|"|>',
)  # fmt: skip
"""One of these is in each text that has an envelope, or the end of one."""
_SIGNS = ("<", "[TOOL", "[/TOOL", "[ARGS", "```tool_")
"""With one of these each of them begins; most replies have none."""
ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input", "kwargs", "params")
"""Under which key an object of JSON has the arguments of a call."""
_KEYS = tuple(f'"{key}"' for key in ARGUMENTS)
LINE = re.compile(
    r"^[ \t]*+(?:(?:[-*+•]|\d{1,3}[.)])[ \t]++)?`{0,2}+(?:\[[ \t]*+|print\()?(?:[A-Za-z_]\w{0,60}\.){0,4}"
    r"[A-Za-z_]\w{0,60}\((?=[ \t\n]*+(?:[A-Za-z_]\w{0,60}[ \t]*+=(?!=)|\)))",
    re.MULTILINE,
)
"""The beginning of a line that is a call in Python's syntax."""


def has_envelope(text: str) -> bool:
    """Whether a mark of an envelope may be in a text."""
    return has_any(text, _SIGNS) and has_any(text, LEADS)


def may_call(text: str) -> bool:
    """Whether a text may hold a call: in an envelope, as an object of JSON, or as a line of Python."""
    return has_envelope(text) or ("{" in text and has_any(text, _KEYS)) or calls_on_line(text)


def calls_on_line(text: str) -> bool:
    """Whether a line may be a call in Python's syntax."""
    bracket = text.find("(")
    return bracket >= 0 and LINE.search(text, text.rfind("\n", 0, bracket) + 1) is not None
