"""An executor: `--executor canon` plays in this process, and says in run.json that voices entered one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.api import Facts
from harness.runtime.executors import Executor, Local

if TYPE_CHECKING:
    from harness.runtime.runner import Work


@dataclass(kw_only=True)
class Canon(Executor):
    """Voices enter one by one. Fields are `--executor_args`.

    Attributes:
        voices: how many.
    """

    voices: int = 2

    async def play(self, work: Work) -> None:
        """Play the episodes that are left."""
        await Local().play(work)

    def report(self) -> Facts:
        """What run.json says about it."""
        return {"voices": self.voices}
