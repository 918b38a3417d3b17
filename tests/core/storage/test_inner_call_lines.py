"""Lines of inner calls: a prompt that begins like an earlier one is written down from where it differs."""

from __future__ import annotations

from typing import Any

import pytest

from harness.api import Completion, InnerRequest
from harness.storage.inner_calls import InnerCall, InnerWriter

FIRST: list[dict[str, Any]] = [{"role": "user", "content": "hello"}]
MORE: list[dict[str, Any]] = [*FIRST, {"role": "assistant", "content": "hi"}]


def call(number: int, ask: InnerRequest) -> InnerCall:
    return InnerCall("episode", "agent", 0, 0, number, 0, "engine", ask, 1, Completion("x"), None, None, ask.digest)


@pytest.mark.parametrize("kinds", [(list, tuple), (tuple, list)], ids=["list then tuple", "tuple then list"])
@pytest.mark.parametrize(("second", "written"), [(FIRST, []), (MORE, MORE[1:])], ids=["same", "longer"])
def test_a_conversation_is_the_same_in_any_sequence(kinds: tuple[Any, Any], second: Any, written: Any) -> None:
    writer = InnerWriter()
    lines = [
        writer.line(call(number, InnerRequest("chat", "m", kind(messages))))
        for number, (kind, messages) in enumerate(zip(kinds, (FIRST, second), strict=True))
    ]
    assert lines[1]["ask"]["same"] == [0, 0, 0, 1]
    assert list(lines[1]["ask"]["messages"]) == written
