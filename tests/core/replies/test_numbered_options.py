"""Options that are numbers: the noun before a number is not judged, and what a line denies or offers is none."""

from __future__ import annotations

import pytest

from harness.replies import Choice

MARKER = "### Final Answer ###"
NOUNS = ("", "Group ", "group ", "Value ", "the value ", "Room ", "option ")
BIT = Choice(("0", "1"), MARKER)
ROOMS = Choice(tuple("12345"), MARKER)


@pytest.mark.parametrize("noun", NOUNS)
@pytest.mark.parametrize("between", [" ", "\n", ": "])
def test_a_single_number_is_read_whatever_its_noun(noun: str, between: str) -> None:
    """A form does not know the nouns of its task: "Room 3" answers which room, "Value 1" which value. AgentsNet asks
    for "0" or "1" alone; `score --parsers all` shows what the strict rule reads."""
    for said in (f"{noun}1", f"{noun}1.", f"**{noun}1**", f"{noun}1 (4 neighbors agree)", f"{noun}1, not {noun}0"):
        assert BIT.parse(f"We agree.\n{MARKER}{between}{said}").action == "1", said


@pytest.mark.parametrize("noun", NOUNS)
@pytest.mark.parametrize("form", [BIT, ROOMS])
def test_a_denied_or_offered_number_is_not_read(noun: str, form: Choice) -> None:
    """The other number need not be an option: "1 or 7" leaves the answer open where the options are 0 and 1."""
    for denial in ("not", "instead of", "rather than", "anything but", "never"):
        assert form.parse(f"{MARKER}\n{denial} {noun}1").action is None, denial
    for joint in (" or ", " and ", "/", " & "):
        for pair in ((1, 7), (7, 1)):
            said = f"{noun}{pair[0]}{joint}{noun}{pair[1]}"
            assert form.parse(f"{MARKER}\n{said}").action is None, said
