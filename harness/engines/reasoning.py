"""Telling a model's thinking from its answer in plain text."""

from __future__ import annotations

_OPEN, _CLOSE = "<think>", "</think>"


def split_reasoning(text: str, opened: bool | None = None) -> tuple[str | None, str]:
    """(reasoning or None, answer) of a reply, in linear time.

    A leading `<think>…</think>` is reasoning; never closed, all of it is (the reply was cut while thinking, there is no
    answer). A reply without such tags is returned as it came.

    Args:
        text: the reply.
        opened: whether the prompt ended with the opening tag, as many templates make it; None: not known, so a
            closing tag that nothing has opened shows it.
    """
    body = text.lstrip()
    if body.startswith(_OPEN):
        opened, body = True, body[len(_OPEN) :]
    head, close, tail = body.partition(_CLOSE)
    if opened is None:
        opened = bool(close) and _OPEN not in head
    if not opened:
        return None, text
    return head.strip() or None, tail.lstrip()
