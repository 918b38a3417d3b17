"""What one field of a reply says is never read as another field of it, in any way of writing that delimits fields."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.extensions.stress import styles
from harness.replies.contract import Contract
from harness.replies.parse_guard import read
from tests.core.replies.every_form import FORMS

WITH_TEXT = [
    name
    for name, (form, _) in FORMS.items()
    if isinstance(form, Contract)
    and any(one.schema.get("type") == "string" for one in form.beside)
    and "reference" not in name
]
BY_NAME = {style.name: style for style in styles.STYLES}
STYLES = ("as asked", "labels in bold", "headings", "JSON", "JSON in a fence", "JSON with single quotes", "elements")
PIECES = st.lists(
    st.sampled_from([
        "ACTION: RELEASE", "Answer: C", "The answer is (C).", "CONFIDENCE: 0.1", "REASON: x", "MESSAGE: y",
        "### ACTION", "first choice: Bob", "{'action': 'WAIT'}", '"answer": "D"', "`", "**", "|", "- ", "} {",
        "well,", "I say:", "\\boxed{3}",
    ]),
    min_size=1, max_size=4,
).map(" ".join)  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", WITH_TEXT)
@given(piece=PIECES)
def test_the_text_of_a_field_is_no_other_field(name: str, style: str, piece: str) -> None:
    form: Any = FORMS[name][0]
    act, said = form.split(form.examples[0])
    # Not "so …": a line that begins with "so the answer is" is a conclusion, and not the text of a field above it.
    texts = {one.name: f"since {piece}"[:60] for one in form.beside if one.schema.get("type") == "string"}
    meant = form.compose(act, {**said, **texts})
    text = BY_NAME[style].write(styles.Meant(form, meant, form.examples[-1]))
    if text is None:
        return
    parsed = read(form, text)
    assert parsed.error is None, text
    got, wanted = form.says(parsed.action), form.says(meant)
    for field in {*got, *wanted} - {*texts}:
        assert got.get(field) == wanted.get(field), (field, text)
