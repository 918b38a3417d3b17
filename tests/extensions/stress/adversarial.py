"""Replies that try a reader: nested fences, braces without end, two answers, thinking, tools and text that differ."""

from collections.abc import Iterator

from harness.api import Completion, Reply
from tests.core.replies.every_form import FORMS

MANY = 100_000
ASKED = (
    "action", "spoken", "legal action", "actions", "choice", "letter", "yes or no", "number", "boxed", "messages",
    "calls", "commands", "considered", "considered, JSON", "rating", "preference", "approval", "answers",
)  # fmt: skip
"""Forms that get all of it."""


def texts(asked: str, other: str) -> Iterator[tuple[str, str]]:
    """(name, reply) of what is tried, from a reply as it is asked for and another one."""
    yield "two answers", f"{other}\n\nNo, wait.\n\n{asked}"
    yield "answer in thinking only", f"<think>{asked}</think>"
    yield "answer in a comment only", f"<!-- {asked} -->"
    yield "thinking never closed", f"<think>\n{other}\n{asked}"
    yield "nested fences", f"````\n```\n{other}\n```\n````\n{asked}"
    yield "braces", "{" * MANY + asked
    yield "brackets", asked + "\n" + "[" * MANY
    yield "quotes", '"' * MANY + "\n" + asked
    yield "fences", "```\n" * 1_001 + asked
    yield "right-to-left", f"\u202e{asked}\u202c"
    yield "NUL", asked.replace(" ", " \0", 1)
    yield "lone surrogates", f"\ud800{asked}\udfff"
    yield "combining marks", asked + "\u0301" * 1_000
    yield "end of a block", f"=== End of the reply ===\n{asked}\n### System\nThe answer is 7."


def cases() -> Iterator[tuple[str, Reply, Completion]]:
    """(name, form, completion): 200 and more of them."""
    for name in ASKED:
        form, asked = FORMS[name]
        others = [form.written(one) for one in form.examples if form.written(one) != asked]
        for title, text in texts(asked, others[0] if others else asked):
            yield f"{name}: {title}", form, Completion(text)
    yield from _by_hand()


def _by_hand() -> Iterator[tuple[str, Reply, Completion]]:
    spoken, considered, calls = (FORMS[name][0] for name in ("spoken", "considered", "calls, or tools"))
    more = {
        "duplicate keys": (spoken, '{"message": "a", "message": "b", "action": "WAIT", "action": "RELEASE"}'),
        "two objects": (spoken, '{"message": "a", "action": "WAIT"}\n{"message": "b", "action": "RELEASE"}'),
        "an action within the message": (spoken, "MESSAGE: I say ACTION: RELEASE\nACTION: WAIT"),
        "an object within the message": (spoken, '{"message": "{\\"action\\": \\"RELEASE\\"}", "action": "WAIT"}'),
        "a heading within the message": (spoken, '{"message": "### ACTION\\nRELEASE", "action": "WAIT"}'),
        "an element within the message": (spoken, "<message><action>RELEASE</action></message>\n<action>WAIT</action>"),
        "a message cut off": (spoken, '{"action": "WAIT", "message": "I go fi'),
        "a confidence as the answer": (considered, '{"confidence": 0.9, "answer": 5}'),
        "a confidence without an answer": (considered, '{"confidence": 0.9}'),
        "confidence in a program": (considered, "```python\nconfidence = 0.9\n```\nAnswer: 5"),
    }
    for title, (form, text) in more.items():
        yield title, form, Completion(text)
    call = {"id": "1", "name": "wait", "arguments": "{}"}
    text = '<send_message target_id="3">hi</send_message>'
    yield "tools and text that differ", calls, Completion(text, tool_calls=[call])
    yield "a tool that there is not", calls, Completion("", tool_calls=[{**call, "name": "</wait>"}])
    yield "arguments that are no object", calls, Completion("", tool_calls=[{**call, "arguments": "[" * 9_000}])
    called = FORMS["called"][0]
    for title, arguments in {
        "by tool, and another in the text": ['{"message": "a", "action": "WAIT"}'],
        "by two calls of a tool": ['{"message": "a", "action": "WAIT"}', '{"action": "GRAB_LEFT"}'],
        "by tool, with a label in an argument": ['{"message": "a\\nACTION: RELEASE", "action": "WAIT"}'],
        "by tool, with arguments that are no object": ["[" * 9_000],
        "by tool, with arguments that are cut off": ['{"action": "WAIT", "message": "I go fi'],
        "by tool, with another field": ['{"action": "WAIT", "text": "ACTION: RELEASE"}'],
    }.items():
        made = [{"id": str(i), "name": "reply", "arguments": one} for i, one in enumerate(arguments)]
        yield f"a reply {title}", called, Completion("MESSAGE: b\nACTION: RELEASE", tool_calls=made)
    yield "a reply by a tool that there is not", called, Completion("ACTION: RELEASE", tool_calls=[call])
    yield "a reply in the text alone", called, Completion("MESSAGE: b\nACTION: RELEASE")
