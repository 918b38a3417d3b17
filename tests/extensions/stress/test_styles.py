"""Every form reads what a stand-in model means, in whatever style it writes; none misreads or loses a part of it."""

from collections import Counter

import pytest

from harness.api import Reply
from harness.extensions.stress.parse_verdicts import Trial, counts, is_exact, trials
from harness.extensions.stress.styles import STYLES
from harness.replies.parse_guard import read
from tests.core.replies.every_form import FORMS

WITHOUT_FIELDS = {"filtered", "raw text", "pattern"}
"""Forms that read what other packages, or patterns of a spec, define."""
EXACT = {"integers"}
"""Read as a paper says, to the letter."""
TRIED = [
    name for name, (form, _) in FORMS.items()
    if not is_exact(form) and name not in WITHOUT_FIELDS | EXACT
]  # fmt: skip


def failed(found: list[Trial], *verdicts: str) -> list[tuple[str, str, object, object]]:
    return [(one.style.name, one.text, one.meant, one.got) for one in found if one.verdict in verdicts]


@pytest.mark.parametrize("name", FORMS)
def test_a_form_reads_what_it_writes(name: str) -> None:
    form = FORMS[name][0]
    assert bool(form.examples) == (name not in WITHOUT_FIELDS)
    for action in form.examples:
        parsed = read(form, form.written(action))
        assert (parsed.error, parsed.action) == (None, action)
        assert form.allows(action) and set(form.says(action)) <= {field.name for field in form.fields}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", TRIED)
def test_every_style_is_read_as_it_is_meant(name: str) -> None:
    found = [*trials(FORMS[name][0])]
    assert failed(found, "misread", "dropped") == []
    totals: Counter[str] = sum(counts(found).values(), Counter())
    assert totals["plain read"] >= 0.97 * totals["plain"], failed(found, "refused")


def test_there_are_many_styles_and_most_are_plain() -> None:
    assert len({style.name for style in STYLES}) == len(STYLES) >= 40
    assert sum(style.plain for style in STYLES) >= 40


class Deaf(Reply):
    """Reads the first word, whatever it is: the table must show it."""

    options = ("left", "right")

    @property
    def fields(self):  # type: ignore[no-untyped-def]
        return FORMS["action"][0].fields

    def parse(self, text: str):  # type: ignore[no-untyped-def]
        from harness.api import Parsed

        return Parsed("left")


def test_a_form_that_misreads_is_seen() -> None:
    row = counts(trials(Deaf()))["Deaf"]
    assert row["misread"] > 20 and row["read"] > 20
