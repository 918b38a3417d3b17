"""Tables of the same question asked of several samples: their means, and how far the samples are apart."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from harness.tables import Cell, Row, Table


def spread(samples: Sequence[Table], notes: tuple[str, ...]) -> Table:
    """One table of all samples': each number's mean, and the standard deviation of the samples around it.

    Args:
        samples: a table each, with the same columns. A row that a table lacks is 0 in it. A table of counts without
            rows says 0 of all; another one says nothing.
        notes: of the new table.
    """
    known = [table for table in samples if table.rows or table.columns[0].form == "count"] or samples[:1]
    rows = dict.fromkeys(row.names for table in known for row in table.rows)
    keys = {row.names: row.key for table in known for row in table.rows}
    own = [{row.names: [cell.value or 0.0 for cell in row.cells] for row in table.rows} for table in known]
    columns = known[0].columns
    found = []
    for names in rows:
        numbers = zip(*(one.get(names, [0.0] * len(columns)) for one in own), strict=True)
        cells = tuple(Cell(statistics.fmean(n), n=len(n), std=statistics.pstdev(n)) for n in numbers)
        found.append(Row(keys[names], names, cells))
    return replace(
        known[0],
        columns=tuple(replace(column, form="quantity") for column in columns),
        rows=tuple(found),
        error="std",
        error_style="plus_minus",
        notes=notes,
    )
