"""A rule that ends a run: `--breath 3` lets the voice give out after three episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.api import Facts, SetupError
from harness.cli.usage import Parser
from harness.config.plan import Job, Plan, episode_id
from harness.runtime.stopping import StoppingRule
from harness.tables import EpisodeScore


class Breath(StoppingRule):
    """Ends a run once its first episodes have ended, however long others take.

    Args:
        count: how many.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._ended: set[str] = set()

    def begin(self, plan: Plan, episodes: Sequence[Job]) -> None:
        self.order = episodes
        self._first = frozenset(episode_id(*job) for job in episodes[: self._count])

    def add(self, score: EpisodeScore) -> None:
        self._ended.add(score.id)
        if self._first <= self._ended:
            self.counted, self.reached = self._first, f"out of breath after {self._count} episodes"

    def record(self) -> Facts:
        enough = f"Out of breath: only the first {self._count} episodes were said again."
        return {"by": "breath", "at": self._count, "enough": enough}


def from_arguments(arguments: Mapping[str, Any]) -> StoppingRule:
    """The rule that `breath` asks for."""
    count = int(arguments["breath"])
    if count < 1:
        raise SetupError(f"--breath {count}: a breath lasts for one episode at least")
    return Breath(count)


def options(command: Parser) -> None:
    """Add the option to `harness eval`."""
    command.group("echo").add_argument("--breath", type=int, metavar="N", help="stop after N episodes")
