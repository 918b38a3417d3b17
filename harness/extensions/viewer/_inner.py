"""Inner calls as pages show them: what an agent's program asked its model in a turn, loaded when they are opened.

They are shown as the journal has them, each with the messages that no earlier call had: a turn costs no more than its
own lines, however long its conversation is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness.api import Completion
from harness.engines.usage import billed
from harness.runtime.prompt_reader import signature
from harness.storage import Line, completion_of
from harness.storage.inner_calls import DROPPED
from harness.tables.cost import Prices, usd_of
from harness.transcripts.moves import from_journal

from ._recording import Recording
from ._transcripts import Cutter, cut, usd_json

AT_ONCE: Final = 50
"""Calls that a page gets at once."""
_FIELDS: Final = ("finish_reason", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "latency")


def calls_of(recording: Recording, number: int) -> list[Line]:
    """The lines of the inner calls of a turn, by its number in the episode; none for one that has no move. `dropped`
    says whether the program went another way before. Raises `DataError`."""
    batches, end, _ = recording.read()
    turns = from_journal(recording.episode, batches, end, None).turns
    if not 0 <= number < len(turns):
        return []
    calls: dict[tuple[int, int], Line] = {}
    for line in recording.inner_lines(turns[number].agent, turns[number].index):
        if line["k"] != DROPPED:
            calls[line["r"], line["n"]] = {**line, "dropped": False}
            continue
        for n in line["n"]:
            calls[line["r"], n]["dropped"] = True
    return [calls[place] for place in sorted(calls)]


def inner_json(calls: Sequence[Line], offset: int, meta: Mapping[str, Any], prices: Prices) -> dict[str, Any]:
    """Some of the calls: each with the messages that are new to it.

    Args:
        calls: those of a turn, in order.
        offset: how many of them to leave out.
        meta, prices: the run's record, and what its models cost.
    """
    cutter, cuts = Cutter(), dict[str, int]()
    models = {one.get("engine"): one.get("model") for one in (meta.get("inner") or {}).values()}
    offset = max(0, offset)
    shown = [_call(call, models, prices, cutter, cuts) for call in calls[offset : offset + AT_ONCE]]
    return {"total": len(calls), "calls": shown, "cuts": cuts}


def _call(
    call: Line, models: Mapping[Any, Any], prices: Prices, cutter: Cutter, cuts: dict[str, int]
) -> dict[str, Any]:
    ask, name, answer, model = call["ask"], _name(call), _answer(call), str(models.get(call["model"], call["model"]))

    def short(part: str, text: str | None) -> str | None:
        return None if text is None else str(cut(cutter, f"{name}.{part}", text, cuts)["text"])

    base = ask.get("same")
    texts = [{"role": role, "text": short(f"message.{n}", text)} for n, (role, text) in enumerate(_texts(ask))]
    return {
        "name": name,
        "model": model,
        **{part: call[short_name] for part, short_name in (("attempt", "r"), ("number", "n"))},
        "start": call.get("try", 0),
        "earlier": 0 if base is None else base[3],
        "base": None if base is None else {"index": base[0], "attempt": base[1], "number": base[2]},
        "index": call["i"],
        "messages": texts,
        "tools": short("tools", _tools(ask)),
        "settings": cutter.value(ask["sampling"]) if ask.get("sampling") else None,
        "reply": None if answer is None else short("reply", answer.shown),
        "reasoning": None if answer is None else short("reasoning", answer.reasoning),
        **{field: None if answer is None else getattr(answer, field) for field in _FIELDS},
        **usd_json(None if answer is None else usd_of(billed(answer), prices.get(model))),
        "error": short("error", call.get("error")),
        "error_kind": call.get("error_kind"),
        "dropped": call["dropped"],
    }


def inner_part(calls: Sequence[Line], part: str) -> str | None:
    """One text of a call, whole: `inner.ATTEMPT.NUMBER.` and `reply`, `reasoning`, `error`, `tools`, `message.N`."""
    call = next((call for call in calls if part.startswith(f"{_name(call)}.")), None)
    if call is None:
        return None
    kind, _, number = part[len(_name(call)) + 1 :].partition(".")
    if kind == "message":
        texts = _texts(call["ask"])
        known = number.isdecimal() and len(number) < 10 and int(number) < len(texts)
        return texts[int(number)][1] if known else None
    answer = _answer(call)
    whole = {"error": call.get("error"), "tools": _tools(call["ask"])}
    whole |= {"reply": answer.shown, "reasoning": answer.reasoning} if answer is not None else {}
    return whole.get(kind)


def _name(call: Line) -> str:
    return f"inner.{call['r']}.{call['n']}"


def _answer(call: Line) -> Completion | None:
    return completion_of(call["call"]) if "call" in call else None


def _texts(ask: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(role, text) of its new messages; of a text that was to be continued, that."""
    if ask.get("text") is not None:
        return [("text", str(ask["text"]))]
    return [(str(one.get("role", "")), _text(one)) for one in ask.get("messages", ())]


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    text = content if isinstance(content, str) else "" if content is None else json.dumps(content, ensure_ascii=False)
    calls = [_tool_call(one) for one in message.get("tool_calls") or () if isinstance(one, dict)]
    return Completion(text, tool_calls=calls or None).shown


def _tool_call(call: Mapping[str, Any]) -> dict[str, str]:
    """A call of a tool, in the harness's shape or in that of an API."""
    inner = call.get("function")
    own = inner if isinstance(inner, dict) else call
    return {"id": "", "name": str(own.get("name", "")), "arguments": str(own.get("arguments", ""))}


def _tools(ask: Mapping[str, Any]) -> str:
    return "\n".join(map(_signature, ask.get("tools") or ()))


def _signature(tool: Mapping[str, Any]) -> str:
    """As for other tools; these are the program's, and may be anything."""
    try:
        return signature(tool)
    except (KeyError, TypeError, AttributeError):
        return json.dumps(tool, ensure_ascii=False, default=str)
