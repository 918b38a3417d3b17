"""Tables of several samples: means over all of them, whatever one of them has not."""

from fractions import Fraction
from typing import Any

from harness.extensions.blame.blame_tables import Blame
from harness.extensions.blame.blame_verdict import BlameVerdict
from harness.extensions.replay.simulation import Deviation

LAST = Deviation(2, 1, ("S0", 1), "say")
BLAMED = BlameVerdict("e", "blamed", Fraction(0), Fraction(1), (LAST,), single=True)
NOT_BLAMED = BlameVerdict("e", "no_better", Fraction(0), Fraction(0))


def blame(*samples: BlameVerdict) -> Blame:
    """What was found in the episode `e` by each sample."""
    run: Any = None
    first, *further = (Blame(run, "another sample", "agreed", (one,), {"e": {"S0": "default"}}) for one in samples)
    return Blame(run, first.by, first.metric, first.verdicts, first.roles, further=tuple(further))


def test_a_sample_that_blames_nobody_counts_in_the_mean_of_episodes() -> None:
    [row] = next(table for table in blame(NOT_BLAMED, BLAMED).tables if table.row_names == ("Round",)).rows
    assert (row.names, row.cells[0].value, row.cells[0].n) == (("1",), 0.5, 2)


def test_messages_of_one_sample_alone_have_a_table() -> None:
    sent = BlameVerdict("e", "blamed", Fraction(0), Fraction(1), (LAST,), messages={0: Fraction(1, 2), 1: Fraction(0)})
    for samples in ((NOT_BLAMED, sent), (sent, NOT_BLAMED)):
        table = blame(*samples).tables[-1]
        assert [row.names for row in table.rows] == [("e", "0")] and table.rows[0].cells[0].value == 0.5


def test_a_message_counts_in_every_sample_however_many_matter_more_in_one() -> None:
    few, many = (
        BlameVerdict("e", "blamed", Fraction(0), Fraction(1), (LAST,), messages=dict.fromkeys(range(n), Fraction(1)))
        for n in (1, 30)
    )
    few.messages[29] = Fraction(5)  # type: ignore[index]
    table = blame(many, few).tables[-1]
    assert (table.rows[0].names, table.rows[0].cells[0].value) == (("e", "29"), 3)
    assert len(table.rows) == 20 and table.notes[-1] == "Not shown: 10 more."
