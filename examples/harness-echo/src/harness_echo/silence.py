"""A check: `harness validate` refuses a spec whose description says nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.api import Place, SpecError

if TYPE_CHECKING:
    from harness.config.plan import Plan


def silent(plays: Sequence[tuple[Plan, Place]]) -> Iterator[SpecError | str]:
    """Yield mistakes, and lines to print. The first plan is the spec's own; plans that follow it come after."""
    spec = plays[0][0].spec
    description = str(spec.get("description") or "")
    if description and not description.strip(" ."):
        yield SpecError("description: it says nothing", place=spec.place("description"))
    elif spec.get("twice"):
        yield "every condition is played twice"
