"""Informed policies: they know the right answer, in order to simulate agents of a declared skill.

A run with an informed policy measures only the protocol around it. `harness.config.plan` finds out which agents they
play, and every score, table and run record is marked.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from harness.api import Case, Policy


class InformedPolicy(Policy):
    """An informed policy. Checks of plugins do not call `inform`; then the policy must do nothing.

    `label` describes the simulation in a few words, for tables; "" adds nothing.
    """

    uses_ground_truth: ClassVar[bool] = True
    label: str = ""

    @abstractmethod
    def inform(self, agent: str, case: Case, seed: int) -> None:
        """As `Policy.inform`; called again when a second run of the case begins."""
