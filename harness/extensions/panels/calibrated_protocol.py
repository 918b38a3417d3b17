"""Protocols with calibrated parameters, estimated on questions that the evaluation never asks.

`harness calibrate` plays `calibration_protocol()` on the calibration rows, passes the results to `fit`, and writes the
parameters to the file `calibration`. An evaluation reads the file, checks it, and passes them to `load_parameters`. See
`harness.extensions.panels.calibration_files`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.api import Action, Case, Facts, Move, Protocol, Task

if TYPE_CHECKING:
    from harness.config.plan import Plan


@dataclass(frozen=True)
class CalibrationEpisode:
    """A calibration question, and the moves of the agents that answered it.

    Attributes:
        task, case: the question.
        batches: the moves of the protocol that `calibration_protocol` named.
        right: answer → whether it is right.
    """

    task: Task
    case: Case
    batches: Sequence[Sequence[Move]]
    right: Callable[[Action], bool]


class CalibratedProtocol(Protocol):
    """A protocol whose parameters come from a file. Without a file it uses defaults that favor no agent."""

    calibration: str | None = None

    @classmethod
    def prepare(cls, plan: Plan) -> Mapping[str, str]:
        """Read the files that protocols of this class name, and load their parameters (`files.load_parameters`)."""
        from .calibration_files import load_parameters  # what only such runs need

        return load_parameters(plan, cls)

    @abstractmethod
    def members(self, case: Case) -> tuple[str, ...]:
        """The agents that the parameters are about."""

    @abstractmethod
    def calibration_protocol(self) -> Mapping[str, Any]:
        """The protocol, as in a spec, that asks the agents the calibration rows. In it agents do not see one another's
        replies.
        """

    @abstractmethod
    def fit(self, episodes: Sequence[CalibrationEpisode]) -> Facts:
        """Return the parameters, as JSON."""

    @abstractmethod
    def load_parameters(self, parameters: Facts) -> None:
        """Load parameters. Raises `PluginError` if they are unusable."""
