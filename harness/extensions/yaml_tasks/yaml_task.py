"""Tasks whose cases and grades are expressions of a spec. `harness validate` proves such a spec with drawn cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from harness.api import Case, Facts, Outcome, Protocol

_HEADLINE_GRADES = ("solved", "score", "success", "partial")


class YamlTask:
    """Marks a task that a spec declares, beside its base class (`NetworkTask`, `ShardedTask`, `SteppedTask`).

    Class attributes:
        prompts: the prompt set for a spec that names none.
    """

    prompts: ClassVar[str]

    if TYPE_CHECKING:

        @property
        def grades(self) -> tuple[str, ...]: ...

    def spec_defaults(self, protocol: type[Protocol]) -> Facts:
        """The standard prompt set, and as metrics the grades that say how well it went: all where none is usual."""
        shown = [name for name in _HEADLINE_GRADES if name in self.grades] or self.grades
        metrics = [{"use": "grade", "of": name, "name": name} for name in shown]
        return {"prompts": self.prompts, "metrics": [*metrics, "parse_failures", "engine_errors"]}

    def secrets(self, case: Case) -> Facts:
        """What the base class keeps secret, and each value of a target with several: all of such a target is hidden."""
        secrets: Facts = super().secrets(case)  # type: ignore[misc]
        if not secrets or not isinstance(case.target, Mapping):
            return secrets
        return {**secrets, **{name: value for name, value in case.target.items() if value is not None}}

    def solution(self, case: Case) -> Outcome | None:
        """Return an outcome that solves the case; None if only a search could find one."""
        return None
