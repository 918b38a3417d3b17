"""Styles of chat templates: thoughts in every dialect, and calls of tools written as text.

The marks are those of `harness.replies.dialects`; where each is documented stands there and in
`harness.replies.text_tool_calls`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from harness.api import as_text
from harness.replies import FreeText
from harness.replies.dialects import ELEMENTS, THOUGHTS

from .styles import Meant, Style

DRAFTS: dict[str, str] = {
    **{f"<{name}>": f"<{name}>\n{{}}\n</{name}>\n\n" for name in ELEMENTS},
    **{marks.opening: f"{marks.opening}{{}}{marks.closing}\n" for marks in THOUGHTS},
    "harmony": ("<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>"),
    "harmony without marks": "analysisWell, {}assistantfinal",
}
"""Dialect → what precedes a reply, with a place for what is thought."""
Arguments = Mapping[str, Any]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _named(name: str, arguments: Arguments, key: str = "arguments") -> str:
    return _json({"name": name, key: arguments})


def _each(form: str, arguments: Arguments) -> str:
    return "".join(form.replace("{k}", name).replace("{v}", as_text(value)) for name, value in arguments.items())


def _python(name: str, arguments: Arguments) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _gemma(quote: str) -> Callable[[str, Arguments], str]:
    def write(name: str, arguments: Arguments) -> str:
        said = (
            f"{key}:{quote}{value}{quote}" if isinstance(value, str) else f"{key}:{_json(value)}"
            for key, value in arguments.items()
        )
        return f"call:{name}{{{','.join(said)}}}"

    return write


_PARAMETERS = "<parameter={k}>\n{v}\n</parameter>\n"
_INVOKED = '<parameter name="{k}">{v}</parameter>\n'
_DSML = '<｜DSML｜parameter name="{k}" string="true">{v}</｜DSML｜parameter>\n'
_GLM = "<arg_key>{k}</arg_key>\n<arg_value>{v}</arg_value>\n"
CALLS: dict[str, Callable[[str, Arguments], str]] = {
    "Hermes": lambda n, a: f"<tool_call>\n{_named(n, a)}\n</tool_call>",
    "Qwen3-Coder": lambda n, a: f"<tool_call>\n<function={n}>\n{_each(_PARAMETERS, a)}</function>\n</tool_call>",
    "GLM-4.5": lambda n, a: f"<tool_call>{n}\n{_each(_GLM, a)}</tool_call>",
    "Anthropic": lambda n, a: (
        f'<function_calls>\n<invoke name="{n}">\n{_each(_INVOKED, a)}</invoke>\n</function_calls>'
    ),
    "MiniMax-M2": lambda n, a: (
        f'<minimax:tool_call>\n<invoke name="{n}">\n{_each(_INVOKED, a)}</invoke>\n</minimax:tool_call>'
    ),
    "Mistral": lambda n, a: f"[TOOL_CALLS][{_named(n, a)}]",
    "Mistral, with arguments": lambda n, a: f"[TOOL_CALLS]{n}[ARGS]{_json(a)}",
    "Llama 3": lambda n, a: f"<|python_tag|>{_named(n, a, 'parameters')}",
    "Llama 3, custom": lambda n, a: f"<function={n}>{_json(a)}</function>",
    "Llama 4": lambda n, a: f"<|python_start|>[{_python(n, a)}]<|python_end|>",
    "DeepSeek V3": lambda n, a: (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>{n}\n```json\n{_json(a)}\n```"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    "DeepSeek V3.2": lambda n, a: (
        f'<｜DSML｜function_calls>\n<｜DSML｜invoke name="{n}">\n{_each(_DSML, a)}'
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>"
    ),
    "Kimi K2": lambda n, a: (
        f"<|tool_calls_section_begin|><|tool_call_begin|>functions.{n}:0<|tool_call_argument_begin|>{_json(a)}"
        "<|tool_call_end|><|tool_calls_section_end|>"
    ),
    "harmony": lambda n, a: (
        "<|channel|>analysis<|message|>Let me see.<|end|><|start|>assistant<|channel|>commentary "
        f"to=functions.{n} <|constrain|>json<|message|>{_json(a)}<|call|>"
    ),
    "Command A": lambda n, a: (
        f"<|START_ACTION|>[{_json({'tool_call_id': '0', 'tool_name': n, 'parameters': a})}]<|END_ACTION|>"
    ),
    "InternLM": lambda n, a: f"<|action_start|><|plugin|>{_named(n, a, 'parameters')}<|action_end|>",
    "Phi-4-mini": lambda n, a: f"<|tool_call|>[{_named(n, a)}]<|/tool_call|>",
    "LFM2": lambda n, a: f"<|tool_call_start|>[{_python(n, a)}]<|tool_call_end|>",
    "Gemma 3": lambda n, a: f"```tool_code\nprint(default_api.{_python(n, a)})\n```",
    "Gemma 4": lambda n, a: f"<|tool_call>{_gemma('<|' + chr(34) + '|>')(n, a)}<tool_call|>",
    "FunctionGemma": lambda n, a: f"<start_function_call>{_gemma('<escape>')(n, a)}<end_function_call>",
    "pythonic": lambda n, a: f"[{_python(n, a)}]",
    "OpenAI": lambda n, a: _json(
        {"tool_calls": [{"id": "call_0", "type": "function", "function": {"name": n, "arguments": _json(a)}}]}
    ),
    "OpenAI, one function": lambda n, a: _json({"function_call": {"name": n, "arguments": _json(a)}}),
}
"""Format → a call of a tool (name, arguments) as models write it."""
PYTHON = frozenset(("Llama 4", "LFM2", "Gemma 3", "pythonic"))
"""Formats in Python's syntax, whose arguments have identifiers for names."""
BARE = frozenset(("pythonic", "OpenAI", "OpenAI, one function"))
"""Formats without an envelope, in which a free text may be meant as it is."""


def _draft(form: str) -> Callable[[Meant], str | None]:
    def write(meant: Meant) -> str | None:
        if meant.other == meant.action:
            return None
        return form.replace("{}", meant.form.written(meant.other)) + meant.asked

    return write


def _call(name: str) -> Callable[[Meant], str | None]:
    def write(meant: Meant) -> str | None:
        calls = written_in(name, meant.form, meant.action)
        return calls if meant.has_json or {"calls"} == set(meant.said) or isinstance(meant.form, FreeText) else None

    return write


def written_in(name: str, form: Any, action: Any) -> str | None:
    """An action as a call in a format, by the form's own tools or as arguments of a tool `reply`; None if the format
    does not apply."""
    if isinstance(form, FreeText):
        return None if name in BARE else CALLS[name]("reply", {"answer": action})
    said = {key: value for key, value in form.says(action).items() if value is not None}
    if set(said) == {"calls"}:
        calls = [(call["name"], json.loads(call["arguments"])) for call in form.calls_of(action)]
        return "\n".join(CALLS[name](tool, given) for tool, given in calls)
    applies = name not in PYTHON or all(key.isidentifier() for key in said)
    return CALLS[name]("reply", said) if said and applies else None


DIALECTS: tuple[Style, ...] = (
    *(Style(f"another one thought: {name}", True, _draft(form)) for name, form in DRAFTS.items()),
    *(Style(f"a call as text: {name}", True, _call(name)) for name in CALLS),
)
"""The styles."""
