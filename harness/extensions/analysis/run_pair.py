"""The two sides of `harness compare` and `harness judge`: two runs, or one and two values of a label."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.api.errors import DataError, near
from harness.cli.usage import Parser
from harness.evaluation.load_run import load_run
from harness.evaluation.run import Run
from harness.extensions.games.tournaments.tournament import LABELS as TOURNAMENT
from harness.tables import EpisodeScore, text


@dataclass(frozen=True)
class RunPart:
    """One side of a comparison: a run, or the part of one that has these labels.

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

    @functools.cached_property
    def scores(self) -> Sequence[EpisodeScore]:
        """The episodes that count. Raises `DataError` if there is none."""
        return part(self.run.scores, self.where, self.run.folder.name if self.label else self.name)

    def swept(self) -> dict[str, dict[str, str]]:
        """Label of the matrix, or of a tournament → condition → value, over the conditions of the episodes."""
        conditions = {score.condition: score for score in self.scores}
        labels: dict[str, dict[str, str]] = {}
        for variant in self.run.spec.variants():
            if variant.id in conditions:
                for label, value in variant.labels.items():
                    labels.setdefault(label, {})[variant.id] = text(value)
        if "tournament" in self.run.spec.data:  # each variant has a condition for every pairing and seating
            for label in (*self.run.spec.get("matrix", {}), *TOURNAMENT):
                found = {name: text(one.labels[label]) for name, one in conditions.items() if label in one.labels}
                labels |= {label: found} if found else {}
        labels.pop(self.label or "", None)
        return labels


def two_sides(options: argparse.Namespace, purpose: str) -> tuple[RunPart, RunPart]:
    """The sides that the options name. Raises `DataError` if they name one or three; `purpose` is what needs two."""
    count = len(options.runs)
    if count != (1 if options.label else 2):
        hint = "Give two run folders, or one and `--label LABEL A B`: the label's values on the two sides."
        there = "one run" if count == 1 else f"{count} runs"
        raise DataError(f"{there} and {'a' if options.label else 'no'} label: nothing {purpose}", hint=hint)
    where = dict(entry.partition("=")[::2] for entry in options.where)
    runs = [load_run(folder) for folder in options.runs]
    if options.label:
        label, first, second = options.label
        return two_parts(runs[0], label, first, second, where)
    return two_runs(runs[0], runs[1], where)


def two_parts(
    run: Run, label: str, first: str, second: str, where: Mapping[str, str] | None = None
) -> tuple[RunPart, RunPart]:
    """Two values of a label of one run as sides; `where` as in `RunPart`."""
    one, two = (RunPart(value, run, {**(where or {}), label: value}, label) for value in (first, second))
    return one, two


def two_runs(a: Run, b: Run, where: Mapping[str, str] | None = None) -> tuple[RunPart, RunPart]:
    """Two runs as sides, by the first of model, folder and path in which they differ; `where` as in `RunPart`."""
    runs, chosen = (a, b), dict(where or {})
    models = [str(run.meta["model"]) for run in runs]
    folders = [run.folder.name or str(run.folder) for run in runs]
    paths = [str(run.folder) for run in runs]
    names = next((names for names in (models, folders) if names[0] != names[1]), paths)
    return RunPart(names[0], a, chosen), RunPart(names[1], b, chosen)


def add_sides(command: Parser, example: str) -> None:
    """--label and --where: two parts of one run, and which episodes of two; `example`: of --label."""
    text = f"two values of a label of one run, such as --label {example}"
    command.add_argument("--label", nargs=3, metavar=("LABEL", "A", "B"), help=text)
    text = "only these episodes; repeatable"
    command.add_argument("--where", action="append", default=[], metavar="LABEL=VALUE", help=text)


def part(scores: Iterable[EpisodeScore], where: Mapping[str, str], name: str) -> list[EpisodeScore]:
    """The episodes whose labels have these values.

    Raises:
        DataError: if there is none, naming the values there are.
    """
    kept = list(scores)
    for label, value in where.items():
        there = {text(score.labels.get(label)) for score in kept if label in score.labels}
        if not there:
            labels = {label for score in kept for label in score.labels}
            raise DataError(f"no episode of {name} has the label {label!r}", hint=near(label, labels))
        kept = [score for score in kept if text(score.labels.get(label)) == value]
        if not kept:
            raise DataError(f"no episode of {name} has {label} {value!r}", hint=near(value, there))
    return kept
