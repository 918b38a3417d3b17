"""`harness plan --detect 3%`: what it takes to tell two models apart by so much, and what that costs."""

from __future__ import annotations

import argparse
import itertools
import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from harness.api.errors import DataError, SpecError
from harness.checks.estimate import MAX_PRICES, Estimate
from harness.cli.usage import Parser
from harness.config.plan import Plan, problem_digest
from harness.config.user_prices import prices_of
from harness.evaluation.load_run import load_run
from harness.extensions.analysis.amount import Amount
from harness.extensions.games.tournaments.results import RESULTS, games_of
from harness.report import render
from harness.tables import Cell, Column, EpisodeScore, HeadlineSpec, Row, Table
from harness.tables.axis import meets
from harness.tables.cost import usd_digits
from harness.tables.notes import clusters_in_words
from harness.tables.scores import bounds_of, numbers
from harness.tables.table import NumberForm

from .sample_size import REPEATS, DealSpread, Spread, least_gap, of_games, of_scores, units_needed, worst

MAX_REPEATS: Final = 1000


def options(command: Parser) -> None:
    """`--detect` and what belongs to it."""
    group = command.group("how much is enough")
    text = "say how many cases and repeats tell two models apart by so much: 3%% of a metric's range, or in its unit"
    group.add_argument("--detect", metavar="AMOUNT", help=text)
    text = "with --detect: take what varies from this finished run; repeatable, two models say most"
    group.add_argument("--run", dest="detect_runs", action="append", default=[], metavar="RUN", help=text)
    text = "with --detect: the power of the test (default: 0.8)"
    group.add_argument("--power", dest="detect_power", type=float, metavar="P", help=text)


@dataclass(frozen=True, slots=True)
class _Size:
    """How a plan grows.

    Attributes:
        cases: cases of a condition now (deals of a pairing).
        conditions: how many conditions are played.
        per_case: units of the headline for one case of each condition.
        per_unit: episodes of a unit in one repeat.
        step: the numbers of episodes are multiples of it, or about; near 0 if they may be any.
    """

    cases: int
    conditions: int
    per_case: float
    per_unit: float
    step: float


def detected(options: argparse.Namespace, plan: Plan, figures: Estimate) -> Iterator[str]:
    """The lines that `--detect` adds to a plan.

    Raises:
        SpecError, DataError: for an amount or a power that is none, and for runs that do not say what varies.
    """
    if not options.detect:
        name = "--run" if options.detect_runs else "--power"
        raise SpecError(f"{name} without --detect", hint="Say how much: --detect 3%.")
    power = 0.8 if options.detect_power is None else options.detect_power
    if not 0.5 <= power < 1:
        raise SpecError(f"--power {power:g} is not from 0.5 to 1", hint="A test has a power of 0.8 by convention.")
    amount = Amount.read(options.detect, "--detect")
    headline = HeadlineSpec.of(plan.spec.data, plan.metrics)
    is_games = "tournament" in plan.spec.data
    scores = _scores(options.detect_runs, headline, is_games=is_games)
    deals = _deals(plan, scores) if is_games else None
    if is_games:
        spread = deals.spread if deals else Spread(0.0, 1.0, separable=False, shared=0.0)
        width, step = 2.0, 1.0
    else:
        spread, width, step = _spread(headline, scores)
    difference = amount.of(width if not is_games else 1.0, headline.name)
    size = _size(plan, figures, headline, is_games, step)
    table = _table(plan, figures, spread, size, difference, power)
    what = "points" if is_games else headline.name
    notes = [*_notes(spread, size, headline, options.detect_runs, deals, plan), *table.notes]
    yield ""
    title = f"To tell two models apart by {amount} in {what}: power {power:g} at 0.05, the models on the same cases"
    yield render(replace(table, title=title, notes=tuple(notes)), "text", 100).rstrip("\n")


def _scores(folders: Sequence[str], headline: HeadlineSpec, *, is_games: bool) -> list[EpisodeScore]:
    """The episodes of all runs; models of equal names in several runs are several models.

    Raises:
        DataError: if older scores do not say which episodes of several conditions or runs ask the same.
    """
    found: list[EpisodeScore] = []
    older: str | None = None
    kinds = set[tuple[str, bool]]()
    for i, folder in enumerate(folders):
        run = load_run(folder)
        kinds |= {(score.condition, bool(score.problem)) for score in run.scores}
        if not all(score.problem for score in run.scores):
            older = older or folder
        for score in run.scores:
            labels = {**score.labels, "model": f"{i} {score.model}"} if len(folders) > 1 else score.labels
            found.append(replace(score, labels=labels))
    if older is not None and len(kinds) > 1 and not is_games and not headline.table.cluster:
        message = f"{older} was scored by an older version: it does not say which of its cases are the same"
        raise DataError(message, hint=f"First score it again: harness score {shlex.quote(older)}.")
    return found


def _spread(headline: HeadlineSpec, scores: Sequence[EpisodeScore]) -> tuple[Spread, float, float]:
    """How differences of the headline vary, how far two of its numbers can be apart, and how close different ones."""
    metric = headline.metrics[headline.metric]
    low, high = bounds_of(metric, scores, headline.metric)
    width = high - low
    selected = [score for score in scores if meets(score.labels, headline.table.where)]
    if scores:
        spread = of_scores(selected, headline.metric, headline.table.cluster)
        if spread is None:
            raise DataError(
                f"the runs do not say how {headline.metric} varies", hint="It takes two cases with a number, or more."
            )
        if not spread.variance(1):
            raise DataError(f"{headline.metric} does not vary in the runs", hint="Take the run of another model.")
        return spread, width, least_gap(numbers(selected, headline.metric))
    if not math.isfinite(width):
        hint = "Give a finished run of this spec or one like it: --run results/NAME."
        raise DataError(f"{headline.metric} has no bounds, so nothing says how it varies", hint=hint)
    return worst(width), width, width


def _deals(plan: Plan, scores: Sequence[EpisodeScore]) -> DealSpread | None:
    if not scores:
        return None
    results = plan.spec.data["tournament"].get("results", RESULTS)
    found = of_games(games_of(scores, results))
    if found is None or not found.spread.variance(1):
        raise DataError("the runs have no games of two contestants that do not all end alike", hint="See --run.")
    return found


def _size(plan: Plan, figures: Estimate, headline: HeadlineSpec, is_games: bool, step: float) -> _Size:
    conditions = max(1, figures.conditions)
    cases = max(1, round(figures.episodes / conditions / plan.repeats))
    if is_games:
        seatings = 2 if plan.spec.data["tournament"].get("rotate_seats", True) else 1
        return _Size(cases, conditions, 1.0, seatings, step)
    covered = [c for c in plan.conditions if meets({**c.labels, "model": ""}, _of_conditions(headline, c.labels))]
    chosen = len(covered) or 1
    cluster = headline.table.cluster
    if "episode" in cluster:
        return _Size(cases, conditions, chosen, 1.0, step)
    if not cluster:
        first = [(c, case) for c in covered for case, _ in itertools.islice(plan.cases(c), 1)]
        apart = len({(problem_digest(c.task, case), case.id) for c, case in first}) or 1
        return _Size(cases, conditions, apart, chosen / apart, step)
    return _Size(cases, conditions, 1.0, chosen, step)


def _of_conditions(headline: HeadlineSpec, labels: Any) -> dict[str, tuple[str, ...]]:
    """The part of `where:` that conditions meet or not; the rest is about cases."""
    return {label: values for label, values in headline.table.where.items() if label in labels}


def _table(plan: Plan, figures: Estimate, spread: Spread, size: _Size, difference: float, power: float) -> Table:
    """A row for each number of repeats: how many cases it takes then, and what these cost."""
    prices = dict(itertools.islice(prices_of(plan.spec.data).items(), MAX_PRICES))
    is_games = "tournament" in plan.spec.data
    names: dict[str, tuple[str, NumberForm]] = {
        "repeats": ("repeats", "count"),
        "cases": ("deals a pairing" if is_games else "cases a condition", "count"),
        "episodes": ("games in all" if is_games else "episodes a model", "count"),
        "calls": ("calls", "count"),
        "input": ("tokens in", "count"),
        "output": ("tokens out", "count"),
        **{f"usd {name}": (f"USD with {name}", "plain") for name in prices},
    }
    rows, costs = list[Row](), list[float]()
    for repeats in sorted({*REPEATS, plan.repeats}) if spread.separable else [1]:
        cases = _cases(spread, size, difference, repeats, power)
        times = cases * repeats / (size.cases * plan.repeats)
        tokens = [math.ceil(count * times) for count in (figures.input_tokens, figures.output_tokens)]
        grown = replace(figures, input_tokens=tokens[0], output_tokens=tokens[1])
        usd = [grown.cost(price) for price in prices.values()]
        costs += usd
        numbers = [repeats, cases, cases * repeats * size.conditions, math.ceil(figures.turns * times), *tokens, *usd]
        rows.append(Row({"plan": str(len(rows) + 1)}, (), tuple(Cell(x, n=None) for x in numbers)))
    columns = tuple(Column({"statistic": key}, (title,), form=form) for key, (title, form) in names.items())
    notes = tuple(_within(spread, size, difference, power, plan))
    digits = usd_digits(min(costs, default=1.0))
    return Table("", (), ("statistic",), columns, tuple(rows), digits=digits, notes=notes)


def _cases(spread: Spread, size: _Size, difference: float, repeats: int, power: float) -> int:
    episodes = repeats * size.per_unit
    step = size.step / (episodes if spread.rest else 1)  # the mean of equal numbers is one of them
    units = units_needed(difference, spread.variance(episodes), power, step)
    return max(1, math.ceil(units / size.per_case))


def _within(spread: Spread, size: _Size, difference: float, power: float, plan: Plan) -> Iterator[str]:
    """Whether the cases that the spec has are enough, with more repeats."""
    if not spread.separable:
        return
    low, high = 0, MAX_REPEATS
    what = "deals a pairing" if "tournament" in plan.spec.data else "cases a condition"
    has = f"With the spec's {size.cases:,} {what}"
    if _cases(spread, size, difference, high, power) > size.cases:
        yield f"{has} no number of repeats is enough: it takes more cases."
        return
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _cases(spread, size, difference, middle, power) <= size.cases else (middle, high)
    yield f"{has} it takes {high:,} repeats; it has {plan.repeats:,}."


def _notes(
    spread: Spread, size: _Size, headline: HeadlineSpec, runs: Sequence[str], deals: DealSpread | None, plan: Plan
) -> Iterator[str]:
    if "tournament" in plan.spec.data:
        if deals is not None:
            off = deals.seat_half
            ends = "" if off is None else f" (95 % interval {deals.seat - off:+.2g} to {deals.seat + off:+.2g})"
            yield (
                f"By {deals.games:,} games of {deals.deals:,} deals in {', '.join(runs)}: points of one contestant "
                f"less those of the other vary with a standard deviation of {math.sqrt(spread.unit):.2g} among deals "
                f"and {math.sqrt(spread.rest):.2g} among games of a deal. The first seat has {deals.seat:+.2g} points "
                f"more{ends}; seats are exchanged, so that this cancels."
            )
        else:
            yield "No run says how games vary: this is for games without draws, whose deals decide nothing."
        yield "Points: the share of points of one less that of the other. Each deal is played in every seating."
        return
    if not runs:
        yield (
            "No run says how numbers vary: this is for the most that they can, half of them at each end"
            f"{', all episodes of an observation at the same one' * (size.per_unit > 1)}, and for models that have "
            "nothing in common. A run of one model (--run RUN) says more, runs of two most."
        )
    else:
        parts = f"{math.sqrt(spread.unit):.2g} among cases and {math.sqrt(spread.rest):.2g} among repeats of a case"
        if not spread.separable:
            parts = f"{math.sqrt(spread.unit):.2g} among cases of one episode each; runs with repeats tell these apart"
        yield f"By {', '.join(runs)}: differences of two models vary with a standard deviation of {parts}."
        if spread.shared is None:
            half = f" (if they share half, {math.sqrt(spread.unit / 2):.2g} among cases)" if spread.separable else ""
            yield f"One model was seen: this is for two that have nothing in common{half}. A second run says more."
    if "episode" in headline.table.cluster:
        yield "Every episode is an observation: a repeat counts as much as a case."
    elif headline.table.cluster:
        yield f"One observation: {clusters_in_words(headline.table)}."
