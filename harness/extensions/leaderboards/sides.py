"""The two sides of `harness compare` and `harness judge`: two runs, or one and two values of a label."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from harness.cli.usage import Parser
from harness.errors import DataError
from harness.results import Run


@dataclass(frozen=True)
class RunPart:
    """A run, or the part of one that has these labels.

    Attributes:
        name: the model's, or the folder's if both sides have the same model; the label's value.
        run: the run.
        where: label → value of the episodes that count.
        label: the label whose values are the two sides; None for two runs.
    """

    name: str
    run: Run
    where: dict[str, str]
    label: str | None = None


def two_sides(options: argparse.Namespace, purpose: str) -> tuple[RunPart, RunPart]:
    """The sides that the options name. Raises `DataError` if they name one or three; `purpose` is what needs two."""
    count = len(options.runs)
    if count != (1 if options.label else 2):
        hint = "Give two run folders, or one and `--label LABEL A B`: the label's values on the two sides."
        there = "one run" if count == 1 else f"{count} runs"
        raise DataError(f"{there} and {'a' if options.label else 'no'} label: nothing {purpose}", hint=hint)
    where = dict(entry.partition("=")[::2] for entry in options.where)
    runs = [Run.load(folder) for folder in options.runs]
    if options.label:
        label, *values = options.label
        one, two = (RunPart(value, runs[0], {**where, label: value}, label) for value in values)
        return one, two
    models = [str(run.meta["model"]) for run in runs]
    folders = [run.folder.name or str(run.folder) for run in runs]
    paths = [str(run.folder) for run in runs]
    names = next((names for names in (models, folders) if names[0] != names[1]), paths)
    return RunPart(names[0], runs[0], where), RunPart(names[1], runs[1], where)


def add_sides(command: Parser, example: str) -> None:
    """--label and --where: two parts of one run, and which episodes of two; `example`: of --label."""
    text = f"two values of a label of one run, such as --label {example}"
    command.add_argument("--label", nargs=3, metavar=("LABEL", "A", "B"), help=text)
    text = "only these episodes; repeatable"
    command.add_argument("--where", action="append", default=[], metavar="LABEL=VALUE", help=text)
