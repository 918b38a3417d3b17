"""Token ids in journals: of a prompt only what does not repeat the agent's call before it.

The prompt of a conversation's next turn holds all that came before it, so prompts written whole would grow with the
square of the conversation. A call's `prompt_ids_shared` says how many ids at the beginning of its prompt are those of
the call before it, prompt and reply; `prompt_token_ids` then holds the others.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from harness.api import Completion

SHARED = "prompt_ids_shared"
TOKEN_FIELDS = ("prompt_token_ids", "token_ids", "logprobs")
"""Fields of a completion that hold something for each token."""
Call = dict[str, Any]


class PromptIds:
    """The ids of the last call of each conversation, in the order in which lines are written or read.

    `key` names the conversation: in a journal the episode and the agent, whose fresh conversations may share their
    beginning too. A process that continues a journal begins with a new object, so its first prompts are whole, and no
    line depends on one of another process.
    """

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[int, ...]] = {}

    def shorten(self, key: Hashable, calls: Sequence[Call], *, keep: bool = True) -> None:
        """Leave out of these calls, in place, what their prompts repeat.

        Args:
            key: the conversation.
            calls: the calls of one line.
            keep: whether later lines follow these calls; False for a line that another one repeats.
        """
        last = self._last.get(key, ())
        for call in calls:
            if (prompt := call.get("prompt_token_ids")) is None:
                continue
            whole = tuple(prompt)
            if shared := _common(last, whole):
                call[SHARED], call["prompt_token_ids"] = shared, whole[shared:]
            last = whole + tuple(call.get("token_ids") or ())
            if keep:
                self._last[key] = last

    def restore(self, key: Hashable, calls: Sequence[Call], *, keep: bool = True) -> None:
        """The inverse of `shorten`. Raises `ValueError` for calls that do not follow those before them."""
        last = self._last.get(key, ())
        for call in calls:
            if (prompt := call.get("prompt_token_ids")) is None:
                continue
            shared = call.pop(SHARED, 0)
            if type(shared) is not int or not 0 <= shared <= len(last):
                raise ValueError(f"{SHARED} is {shared!r:.40}, and the call before has {len(last)} ids")
            call["prompt_token_ids"] = whole = last[:shared] + tuple(prompt)
            last = whole + tuple(call.get("token_ids") or ())
            if keep:
                self._last[key] = last

    def copy(self) -> PromptIds:
        """The same, for lines that follow apart from each other."""
        other = PromptIds()
        other._last = dict(self._last)
        return other

    def forget(self, key: Hashable) -> None:
        """No more calls of this conversation follow."""
        self._last.pop(key, None)


def completion_of(call: Mapping[str, Any]) -> Completion:
    """A call's JSON as a completion; its prompt's ids are None where the call before it was not restored.

    Raises `TypeError` for what is none.
    """
    if "token_ids" not in call and "prompt_token_ids" not in call and "logprobs" not in call:
        return Completion(**call)  # nearly all of them
    fields: Call = {name: tuple(value) if name in TOKEN_FIELDS else value for name, value in call.items()}
    if fields.pop(SHARED, None) is not None:
        fields["prompt_token_ids"] = None
    return Completion(**fields)


def fields_of(answer: Completion) -> Call:
    """What there is of a completion, as JSON takes it."""
    return {name: value for name in Completion.__slots__ if (value := getattr(answer, name)) is not None}


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many ids at the beginning of both are the same; in time linear in that number."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while low < high - 1:  # the first `low` are the same, the first `high` are not
        middle = (low + high) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
    return low
