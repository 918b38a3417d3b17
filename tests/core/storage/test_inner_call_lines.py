"""Lines of inner calls: a prompt that begins like an earlier one is written down from where it differs."""

from __future__ import annotations

from typing import Any

import pytest

from harness.api import Completion, InnerRequest, TurnId
from harness.storage.inner_calls import InnerWriter

TURN = TurnId("episode", "agent", 0, 0)
FIRST: list[dict[str, Any]] = [{"role": "user", "content": "hello"}]
MORE: list[dict[str, Any]] = [*FIRST, {"role": "assistant", "content": "hi"}]


@pytest.mark.parametrize("kinds", [(list, tuple), (tuple, list)], ids=["list then tuple", "tuple then list"])
@pytest.mark.parametrize(("second", "written"), [(FIRST, []), (MORE, MORE[1:])], ids=["same", "longer"])
def test_a_conversation_is_the_same_in_any_sequence(kinds: tuple[Any, Any], second: Any, written: Any) -> None:
    writer = InnerWriter("engine")
    lines = [
        writer.line(TURN, number, 0, InnerRequest("chat", "m", kind(messages)), 1, Completion("x"))
        for number, (kind, messages) in enumerate(zip(kinds, (FIRST, second), strict=True))
    ]
    assert lines[1]["ask"]["same"] == [0, 0, 0, 1]
    assert list(lines[1]["ask"]["messages"]) == written
