"""What `harness validate` reads of local data: all that a run would, as far as that is quick."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from harness.api.errors import Place, UserError
from harness.config.plan import Plan

from .task import DatasetTask

MAX_BYTES: Final = 10_000_000
"""Bytes of files, of all conditions together, up to which they are read whole."""


def check_data(plays: Sequence[tuple[Plan, Place]]) -> Iterator[str | UserError]:
    """Yield the first mistake in the data of each task, and a line for data that are too large to be read whole.

    Data on the hub are not looked at: checks download nothing.
    """
    plan, room, large = plays[0][0], MAX_BYTES, dict[str, None]()
    for task in {id(one.task): one.task for one in plan.conditions}.values():
        try:
            if not isinstance(task, DatasetTask) or not (files := task.local_files):
                continue
            size = sum(file.stat().st_size for file in files)
            if size > room and plan.limit is None:
                large |= dict.fromkeys(map(str, files))
                continue
            room -= size
            for _ in task.cases(plan.limit, plan.seed):
                pass
        except UserError as error:
            yield error
    if large:
        names = ", ".join(large)
        yield f"warning: only the first row was read of {names}: more than {MAX_BYTES:,} bytes would take long"
