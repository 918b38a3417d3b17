"""Constrained decoding writes only what the reader reads, with all fields."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.extensions.games.actions import ActionForm, ActionParameter, Actions
from harness.extensions.yaml_tasks.contract import ActWithFields
from harness.replies import Labelled

BESIDE = (
    ActionParameter("confidence", "number", 0, 1),
    ActionParameter("rounds_left", "integer", -3, 12),
    ActionParameter("partner", "one_of", values=("Ann", "Bob B.", 3)),
)
ACTS = {
    "label": Labelled(("WAIT", "GO"), "ACTION", "WAIT"),
    "parameters": Actions((ActionForm("OFFER", (ActionParameter("price", "number", 0.5, 7.25),)), ActionForm("WAIT"))),
}


@pytest.mark.parametrize("place", [0, 3])
@pytest.mark.parametrize("act", ACTS)
@given(data=st.data())
def test_fields_beside_an_act_are_within_their_bounds(act: str, place: int, data: Any) -> None:
    form = ActWithFields(ACTS[act], BESIDE, place)
    text = data.draw(st.from_regex(re.compile(dict(form.constraint() or {})["regex"]), fullmatch=True))
    parsed = form.parse(text)
    assert parsed.error is None, text
    said = form.says(parsed.action)
    assert None not in [said[one.name] for one in BESIDE], text
    assert form.allows(parsed.action)
