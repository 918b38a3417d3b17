"""Protocols with parameters that are estimated beforehand, on questions they are never evaluated on.

`harness fit` plays `questioning()` on the calibration rows, hands what was played to `fit`, and writes what that gives
to the file `calibration`; an evaluation reads the file, checks it, and hands it to `adopt`. See
`harness.config.calibration`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.api import Action, Case, Facts, Move, Protocol, Task


@dataclass(frozen=True)
class Played:
    """A calibration question, and what was answered.

    Attributes:
        task, case: the question.
        batches: the moves of the protocol that `questioning` named.
        right: whether an answer is right.
    """

    task: Task
    case: Case
    batches: Sequence[Sequence[Move]]
    right: Callable[[Action], bool]


class Fitted(Protocol):
    """A protocol whose parameters come from a file. Without one it plays with defaults that favour nobody."""

    calibration: str | None = None

    @abstractmethod
    def members(self, case: Case) -> tuple[str, ...]:
        """The seats that the parameters are about."""

    @abstractmethod
    def questioning(self) -> Mapping[str, Any]:
        """The protocol, as a spec writes it, that asks the agents on calibration rows: nobody hears anybody."""

    @abstractmethod
    def fit(self, played: Sequence[Played]) -> Facts:
        """The parameters, as JSON."""

    @abstractmethod
    def adopt(self, parameters: Facts) -> None:
        """Take parameters over. Raises `PluginError` for those that cannot be used."""
