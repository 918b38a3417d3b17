"""What follows a run: the metric `loudness` gets its numbers once the episodes are scored.

The metric names it by `measured_by = "echo"`; `--echo 5`, or `harness.evaluate(…, echo=5)`, says how loud.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.api import SetupError, SpecError
from harness.evaluation.post_run import Play, PostRun

if TYPE_CHECKING:
    from harness import Run
    from harness.cli.usage import Parser
    from harness.config.plan import Plan
    from harness.config.project import Project
    from harness.runtime.options import Options


def options(command: Parser) -> None:
    """The option of `harness eval`."""
    command.add_argument("--echo", metavar="N", help="how loud")


class Volume(PostRun):
    """Gives every episode its loudness."""

    def __init__(self, loudness: float = 3.0) -> None:
        self.loudness = loudness

    @classmethod
    def from_arguments(cls, project: Project, arguments: Mapping[str, Any]) -> Volume:
        """As loud as `echo` says; a text on the command line."""
        try:
            return cls(float(arguments["echo"]))
        except ValueError:
            raise SpecError(f"--echo takes a number, found {arguments['echo']!r}") from None

    @classmethod
    def again(cls, run: Run) -> Run:
        """A run that was graded again has no loudness until `harness eval` gives it one."""
        return run

    @classmethod
    def lines(cls, run: Run) -> Iterable[str]:
        """What to print below the tables."""
        return ["echo: said again"]

    @classmethod
    def score(cls, folder: str, options: Any) -> Run:
        """The manifest has no `score`: `harness score` has no option that would ask for it."""
        raise SetupError("echo follows a run only")

    def plans(self, plan: Plan) -> list[tuple[Plan, int, str]]:
        """Nothing more is played."""
        return []

    def check(self, plan: Plan, cases: Mapping[str, str], options: Options) -> None:
        """Refuse what cannot be said."""
        if self.loudness < 0:
            raise SpecError(f"--echo {self.loudness:g}: nothing is that quiet")

    def is_waiting(self, run: Run) -> bool:
        """Whether something is left to do."""
        return True

    def run(self, done: Run, plan: Plan, options: Options, play: Play, began: float) -> Run:
        """The run with the loudness of each episode."""
        scores = [replace(score, numbers={**score.numbers, "loudness": self.loudness}) for score in done.scores]
        return replace(done, scores=scores)
