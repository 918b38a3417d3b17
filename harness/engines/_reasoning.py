"""Telling a model's thinking from its answer in plain text."""

from __future__ import annotations

_OPEN, _CLOSE = "<think>", "</think>"


def split_reasoning(text: str, opened: bool = False) -> tuple[str | None, str]:
    """(reasoning or None, answer) of a reply, in linear time.

    A leading `<think>…</think>` is reasoning; never closed, all of it is (the reply was cut while thinking, there is no
    answer). Many templates write the opening tag into the prompt: then `opened` says so, or the closing tag alone does.
    A reply without such tags is returned as it came.
    """
    body = text.lstrip()
    if body.startswith(_OPEN):
        opened, body = True, body[len(_OPEN) :]
    head, close, tail = body.partition(_CLOSE)
    if not opened and (not close or _OPEN in head):
        return None, text
    return head.strip() or None, tail.lstrip()
