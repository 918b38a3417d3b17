"""Who listens to a run: `--neighbor` counts what comes through the wall."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.api import Move
from harness.cli.usage import Parser
from harness.runtime.listeners import HeardEpisode, RunListener


class Neighbor(RunListener):
    """Hears every move, and complains at the end."""

    def __init__(self) -> None:
        self.count = 0

    def move(self, episode: HeardEpisode, round_number: int, index: int, move: Move) -> None:
        self.count += 1

    def run_ended(self, finished: bool) -> Iterable[str]:
        yield f"The neighbor has heard {self.count} moves."


def from_arguments(arguments: Mapping[str, Any]) -> RunListener:
    """The listener that `neighbor` asks for."""
    return Neighbor()


def options(command: Parser) -> None:
    """Add the option to `harness eval`."""
    command.group("echo").add_argument("--neighbor", action="store_true", help="count the moves that are heard outside")
