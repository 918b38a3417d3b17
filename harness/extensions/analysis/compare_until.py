"""`harness compare --until decided`: two sides play the same cases in turns until it is known which is better."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from harness.api import RatioMetric
from harness.api.errors import DataError, Place, SpecError
from harness.cli.evaluate import planned, running
from harness.cli.output import show
from harness.cli.progress import Progress
from harness.config.plan import QUESTIONS, Plan, Survey, survey
from harness.evaluation.run import Run
from harness.evaluation.stages import execute
from harness.extensions.analysis.amount import Amount
from harness.extensions.stopping.block_progress import BlockProgress
from harness.extensions.stopping.covered_mean import Covered
from harness.extensions.stopping.decision import Decision, PairedDifference
from harness.extensions.stopping.first_blocks import FirstBlocks
from harness.extensions.stopping.until_options import HEADLINE
from harness.runtime.options import Options
from harness.runtime.run_json import default_folder, identity
from harness.runtime.session import session
from harness.tables import Cell, Column, HeadlineSpec, Row, Table

DECIDED: Final = "decided"
_UNTIL: Final = Place("--until")
_FIRST: Final = 32
_GROWTH: Final = 1.25
"""Episodes that each side plays first, and by how much a side's next turn takes it further."""
_OF_B: Final = ("model", "model_args", "gen_kwargs", "overrides")
_NOTE: Final = (
    "Errors, intervals and tests of tables take the number of episodes as fixed before, which it was not; "
    "`harness eval` plays on."
)


@dataclass
class _Side:
    """One contestant: what it plays, and where its run is.

    Attributes:
        letter: A or B.
        options: those of the command, as if this side alone were played.
    """

    letter: str
    options: argparse.Namespace
    folder: Path | None = None
    plan: Plan = field(init=False)
    survey: Survey = field(init=False)

    def __post_init__(self) -> None:
        self.plan = planned(self.options)
        self.survey = survey(self.plan)

    def play(self, how: Options, progress: Progress, rule: FirstBlocks) -> Run:
        """Play as far as the rule says."""
        if self.folder is None:
            own = how.output_path
            self.folder = own / self.letter.lower() if own else default_folder(self.plan, overwrite=False)
        on_score = progress.begin(f"{self.letter}: {self.plan.spec.name} · {self.plan.model}")
        return execute(planned(self.options), replace(how, output_path=self.folder), on_score, asked_for={"rule": rule})


def compare_until(options: argparse.Namespace) -> int:
    """Play both sides, print which is better, and where their runs are. Raises as `execute`."""
    _check(options)
    sides = _sides(options)
    how = running(argparse.Namespace(**{**vars(options), "resume": None}))
    name = options.metrics or HEADLINE
    covered = [Covered.of(side.plan, name, Place("--metrics")) for side in sides]
    if isinstance(covered[0].plugin, RatioMetric):
        message = f"{covered[0].title} is a ratio of sums, which has no difference for a case"
        raise SpecError(message, place=_UNTIL, hint="Name another metric: --metrics NAME.")
    margin = _margin(options.margin, covered[0]) if options.margin else None
    first, second = (BlockProgress(side.plan, side.survey.episodes, covered[0]) for side in sides)
    if first.blocks.ids != second.blocks.ids:
        raise DataError("the sides play other cases, or the same with another seed", hint=_SAME)
    difference = PairedDifference(covered[0], first.blocks, first.covered_ids, margin)
    better = _better(sides[0].plan, name, covered[0].metric)
    # Without a bar only how far both are is of interest, which each turn says.
    progress = Progress(options.quiet or not sys.stderr.isatty())
    with session():
        decision, runs = _play(sides, difference, how, progress, covered)
    sentence = difference.in_words(_names(sides), better) + _after(decision, len(first.blocks.ids), runs)
    reasons = (why for run in runs for why in run.headline.unread(run.scores).values())
    unread = [*dict.fromkeys(reasons)] if name == HEADLINE else []
    if unread:
        sentence = "nothing is known of the difference: too few turns were parsed"
    show([_table(difference, decision, sentence, unread)], options.format, "A against B", options.output)
    for side in sides:
        print(f"{side.letter}: {side.folder}", file=sys.stderr)
    return 0


def _better(plan: Plan, name: str, metric: str) -> Literal["higher", "lower"] | None:
    """Which numbers are better; None where only the spec's headline would say it, and this is about another metric."""
    if plan.spec.get("headline") is None and name != HEADLINE:
        return None
    headline = HeadlineSpec.of(plan.spec.data, plan.metrics)
    return headline.better if headline.metric == metric else None


_SAME: Final = "--set_b may change who plays and how, not what makes cases (task, matrix, limit, seed, repeats)."


def _check(options: argparse.Namespace) -> None:
    if options.until != DECIDED:
        raise SpecError(f"found {options.until!r:.40}", place=_UNTIL, hint=f"It takes one word: {DECIDED}.")
    if options.runs or options.label:
        hint = "Name a spec: --spec FILE --model A --model_b B; both sides are played."
        raise SpecError("runs are given, which were played before", place=_UNTIL, hint=hint)
    if options.where or options.published:
        name = "--where" if options.where else "--published"
        hint = "Choose conditions with --set matrix.…, or compare runs that are played."
        raise SpecError(f"{name} belongs to a comparison of runs", place=_UNTIL, hint=hint)
    if not options.spec:
        raise SpecError("no spec is given", place=_UNTIL, hint="--spec FILE --model A --model_b B")


def _margin(words: str, covered: Covered) -> float:
    """The difference below which the sides are alike, in the unit of the mean."""
    low, high = covered.bounds
    return Amount.read(words, "--margin").of(high - low, covered.title)


def _sides(options: argparse.Namespace) -> tuple[_Side, _Side]:
    """The contestants. Raises `SpecError` if they are the same, `DataError` if they have other cases."""
    given = {name: getattr(options, f"{name}_b") for name in _OF_B}
    if not any(given.values()):
        hint = "Say what B is: --model_b, --model_args_b, --gen_kwargs_b, --set_b PATH=VALUE."
        raise SpecError("both sides are the same", place=_UNTIL, hint=hint)
    other = {name: value for name, value in given.items() if value}
    if "model" in other:
        other.setdefault("model_args", "")
    other["overrides"] = [*options.overrides, *given["overrides"]]
    a, b = _Side("A", options), _Side("B", argparse.Namespace(**{**vars(options), **other}))
    if identity(a.plan) == identity(b.plan):
        raise SpecError("both sides are the same", place=_UNTIL, hint="Let B be another model, or change its spec.")
    if a.survey.cases[QUESTIONS] != b.survey.cases[QUESTIONS]:
        raise DataError("the sides are asked other questions", hint=_SAME)
    return a, b


def _names(sides: tuple[_Side, _Side]) -> list[str]:
    """The models; of one model what B has other than A."""
    one, other = (side.plan.model for side in sides)
    options = sides[1].options
    own = [*options.overrides_b, *filter(None, (options.model_args_b, options.gen_kwargs_b))]
    return [one, other if one != other else f"{other} with {', '.join(own)}"]


def _play(
    sides: tuple[_Side, _Side], difference: PairedDifference, how: Options, progress: Progress, covered: list[Covered]
) -> tuple[Decision, list[Run]]:
    """Play in turns, each a little further, until it is decided or all is played."""
    blocks = difference.blocks.ids
    episodes, done = sum(map(len, blocks)), 0
    decision = difference.decision

    def turn(count: int, so_far: str) -> list[Run]:
        runs = []
        for side, own in zip(sides, covered, strict=True):
            enough = f"{side.plan.model}: harness compare --until {DECIDED} ended the run. {so_far}. {_NOTE}"
            runs.append(side.play(how, progress, FirstBlocks(count, own, DECIDED, enough)))
        return runs

    with progress:
        while not decision.is_decided and done < len(blocks):
            further = max(math.ceil(_FIRST * len(blocks) / episodes), math.ceil(done * (_GROWTH - 1)))
            done = min(len(blocks), done + further)
            runs = turn(done, "It is not decided yet")
            a, b = ({score.id: score for score in run.scores} for run in runs)
            while not decision.is_decided and decision.blocks < done:
                decision = difference.add(a, b)
            if not sides[0].options.quiet:
                known = _interval(difference, decision) if decision.interval else "nothing is known yet"
                print(f"{done:,} of {len(blocks):,} blocks of episodes: {known}", file=sys.stderr)
        if decision.is_decided and done < len(blocks):
            runs = turn(decision.blocks, _interval(difference, decision))
    return decision, runs


def _interval(difference: PairedDifference, decision: Decision) -> str:
    low, high = decision.interval or (0.0, 0.0)
    title = difference.covered.title
    return f"{title} of B − A is in [{low:.4g}, {high:.4g}], a 95 % interval that holds however often one looks"


def _after(decision: Decision, blocks: int, runs: list[Run]) -> str:
    if not decision.is_decided:
        return f"; all {len(runs[0].scores):,} episodes are played"
    whole = f" ({decision.blocks:,} of {blocks:,} blocks)" if decision.blocks < blocks else ""
    return f" after {decision.pairs:,} pairs of episodes{whole}"


def _table(difference: PairedDifference, decision: Decision, sentence: str, unread: list[str]) -> Table:
    low, high = decision.interval or (None, None)
    one, other = decision.means
    gap = other - one if one is not None and other is not None else None
    n = decision.pairs
    cells = (Cell(one, n=n), Cell(other, n=n), Cell(gap, n=n, low=low, high=high), Cell(n, n=n))
    names: Mapping[str, str] = {"a": "A", "b": "B", "difference": "B − A"}
    columns = [Column({"statistic": key}, (name,), form="quantity") for key, name in names.items()]
    columns.append(Column({"statistic": "pairs"}, ("pairs",), form="count"))
    kind = "an asymptotic" if difference.is_asymptotic else "a"
    note = f"In brackets: {kind} 95 % interval that holds however often one looks (a confidence sequence)."
    metric = difference.covered.metric
    return Table(
        title=sentence[0].upper() + sentence[1:],
        row_labels=("metric",),
        column_labels=("statistic",),
        columns=tuple(columns),
        rows=(Row({"metric": metric}, (difference.covered.title,), cells, metric),),
        row_names=("Metric",),
        error="interval",
        digits=3,
        notes=(note, *unread),
    )
