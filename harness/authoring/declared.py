"""Tasks whose cases and grades are expressions of a spec. `harness validate` proves such a spec with drawn cases."""

from __future__ import annotations

from harness.api import Case, Outcome


class DeclaredTask:
    """Marks a task that a spec declares, beside its base class (`harness.authoring.networks`, `sharded`, `worlds`)."""

    def solution(self, case: Case) -> Outcome | None:
        """Return an outcome that solves the case; None where only a search could find one."""
        return None
