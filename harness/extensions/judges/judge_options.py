"""The options `--judge …` of commands, and the engine that they name. Imports next to nothing."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from harness.api.errors import Place, SpecError, UserError
from harness.cli.usage import Parser

if TYPE_CHECKING:
    from harness.api import Engine
    from harness.config.project import Project


def of_eval(command: Parser) -> None:
    """The options of `harness eval`."""
    add(command.group("judge (default: the judges that the spec's metrics name)"))


def of_score(command: Parser) -> None:
    """The options of `harness score`."""
    asking = command.group("judge (without --judge, no model is called)")
    add(asking, nargs="?", const="spec")
    text = "parameters of a metric of the judge, added to the run, such as name=correct,prompt=judges/correctness"
    asking.add_argument("--judge_metric", metavar="K=V,…", help=text)


def add(group: argparse._ActionsContainer, **optional: str) -> None:
    """--judge and --judge_args."""
    text = "replaces the judges that the spec names: vllm, openai, mock or an engine of the project"
    group.add_argument("--judge", metavar="ENGINE", help=text, **optional)  # type: ignore[arg-type]
    group.add_argument("--judge_args", default="", metavar="K=V,…", help="the judge's arguments")


def engine_of(judge: Engine | str | None, arguments: str | Mapping[str, Any] | None, project: Project) -> Engine | None:
    """The judge that is given: an engine, or the name of one with its arguments, on the command line as a text.

    Raises:
        SpecError, PluginError: there is no such engine, or its arguments do not fit it.
    """
    from harness.cli.evaluate import pairs
    from harness.config import resolve

    if isinstance(arguments, str):
        arguments = pairs(arguments, "--judge_args")
    if not judge:
        if arguments:
            raise SpecError("--judge_args without an engine", hint="Say which: --judge vllm, --judge openai, …")
        return None

    def place(*path: Hashable) -> Place:
        return Place("--judge" if path in ((), ("use",)) else "--judge_args")

    return resolve.given_engine("judge", judge, arguments, project, place)


@contextlib.contextmanager
def mistakes_at(option: str) -> Iterator[None]:
    """Place mistakes of a spec without a file at an option."""
    try:
        yield
    except UserError as error:
        if error.place is not None and error.place.file.startswith("<"):
            error.place = Place(option)
        raise
