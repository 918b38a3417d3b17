"""Telling a model's thinking from its answer in plain text."""

from __future__ import annotations

from harness.replies.dialects import ELEMENTS, THOUGHTS, thought_of_channels

_OPEN, _CLOSE = "<think>", "</think>"
_UNASKED = ("think", "thinking", "thought", "longcat_think", "reasoning")
"""Elements that models open a reply with by themselves. The other `ELEMENTS` are asked for by prompts, which read
them."""
_PAIRS = tuple((f"<{name}>", f"</{name}>") for name in ELEMENTS if name in _UNASKED) + tuple(
    (marks.opening, marks.closing) for marks in THOUGHTS
)
_OPENED_BY_TEMPLATES = tuple(
    (opening, closing) for opening, closing in _PAIRS if opening != "<reasoning>" and not closing[0].isalpha()
)


def split_reasoning(text: str, opened: bool | None = None) -> tuple[str | None, str]:
    """(reasoning or None, answer) of a reply, in linear time.

    A leading `<think>…</think>` is reasoning, and so is what other models' marks hold there (`[THINK]`, `<reasoning>`,
    the channel `analysis` of harmony, …: `harness.replies.dialects`). Never closed, all of it is: the reply was cut
    while thinking, and there is no answer. A reply without such marks is returned as it came.

    Args:
        text: the reply.
        opened: whether the prompt ended with the tag `<think>`, as many templates make it; None: not known, so a
            closing mark that nothing has opened shows it.
    """
    body = text.lstrip()
    if not opened:
        for opening, closing in _PAIRS:
            if body.startswith(opening):
                thought, _, answer = body[len(opening) :].partition(closing)
                return thought.strip() or None, answer.lstrip()
        if (channels := thought_of_channels(body)) is not None:
            thought, answer = channels
            return thought.strip() or None, answer.lstrip()
    elif body.startswith(_OPEN):
        body = body[len(_OPEN) :]
    if opened is None:
        found = [(body.find(closing), opening, closing) for opening, closing in _OPENED_BY_TEMPLATES]
        ends = [(at, closing) for at, opening, closing in found if at >= 0 and opening not in body[:at]]
        if not ends:
            return None, text
        at, closing = min(ends)
        return body[:at].strip() or None, body[at + len(closing) :].lstrip()
    if not opened:
        return None, text
    head, _, tail = body.partition(_CLOSE)
    return head.strip() or None, tail.lstrip()
