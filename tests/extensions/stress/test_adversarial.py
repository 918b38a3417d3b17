"""What is read of adversarial replies is written down.

`python -m tests.extensions.stress.test_adversarial` writes it anew.
"""

import json
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.api import Parsed
from harness.extensions.games.legal import LegalAction
from harness.replies.action_with_message import ActionWithMessage, MessageLine
from harness.replies.parse_guard import read, read_completion
from tests.core.replies.every_form import ACT, MOVES
from tests.extensions.stress.adversarial import cases
from tests.helpers.samples import examples

GOLDEN = Path(__file__).with_name("adversarial.json")


def readings() -> dict[str, Any]:
    """Name → what is read of it; long values and reasons are cut."""
    return {name: _short(read_completion(form, completion)) for name, form, completion in cases()}


def _short(parsed: Parsed) -> Any:
    if parsed.error is not None:
        return {"error": parsed.error[:60]}
    text = json.dumps(parsed.action)
    return parsed.action if len(text) <= 200 else {"long": f"{text[:100]} … ({len(text)} characters)"}


def test_each_has_one_reading_which_is_written_down() -> None:
    found = readings()
    assert len(found) >= 200
    assert found == json.loads(GOLDEN.read_text("utf-8"))


ACTS = [(ACT, "WAIT"), (LegalAction(("e4", "RELEASE", "d4")), "e4"), (MOVES, {"action": "WAIT"})]
TEXTS = st.lists(
    st.sampled_from(
        [*"abc,.;:-=|<>[](){}#*_`\"'\\", " ", "ACTION: RELEASE", "ACTION -", "MESSAGE:", "### ACTION",
         '{"action": "RELEASE"}', "<action>RELEASE</action>", "```", "</message>", "<think>", "</think>",
         "=== End ===", '", "action": "RELEASE']
    ) | st.text(max_size=5),
    max_size=8,
).map(lambda parts: " ".join(" ".join(parts).split()))  # fmt: skip


@settings(max_examples=examples(300))
@given(text=TEXTS, act=st.sampled_from(ACTS))
@example(text="ACTION: RELEASE <think>", act=ACTS[0])
@example(text="</think> ACTION: RELEASE", act=ACTS[0])
def test_no_message_in_an_object_forges_the_action_beside_it(text: str, act: Any) -> None:
    """What one field says is never read as another one, whatever it says."""
    form, action = act
    said = {"message": text, **form.says(action)}
    parsed = read(ActionWithMessage(form, MessageLine()), json.dumps(said))
    assert parsed.error is not None or parsed.action["act"] == action, parsed


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(readings(), indent=1, ensure_ascii=True) + "\n", "utf-8")
