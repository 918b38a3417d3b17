"""`harness compare`: two runs, case by case."""

from __future__ import annotations

import argparse
import sys

from harness.api.errors import DataError
from harness.cli import options as opt
from harness.cli.output import show
from harness.cli.usage import Parser
from harness.config.project import find
from harness.evaluation.load_run import load_run
from harness.extensions.analysis.against_published import as_published
from harness.extensions.analysis.amount import Amount
from harness.extensions.analysis.compared_runs import comparison_of
from harness.extensions.analysis.run_pair import add_sides, two_sides


def compare(options: argparse.Namespace) -> int:
    """Two runs, or two parts of one, case by case; with --until two sides that play until it is decided."""
    if options.until is not None:
        from harness.extensions.analysis.compare_until import compare_until

        return compare_until(options)
    if any(getattr(options, f"{name}_b") for name in ("model", "model_args", "gen_kwargs", "overrides")):
        raise DataError("a side B is described that nothing plays", hint="--until decided plays both of a --spec.")
    margin = Amount.read(options.margin, "--margin") if options.margin else None
    if options.published:
        return _published(options, margin)
    if not options.runs and options.spec:
        raise DataError("no run is given", hint="Give two run folders, or --until decided, which plays both sides.")
    a, b = two_sides(options, "to compare")
    chosen = {*(entry.partition("=")[0] for entry in options.where), *(options.label or ())[:1]}
    found = comparison_of(a, b, find(), options.metrics and options.metrics.split(","), chosen, margin)
    if found.unchecked:
        print(found.unchecked, file=sys.stderr)
    tables = found.tables[1:] if options.format == "csv" else found.tables
    show(tables, options.format, f"{b.name} against {a.name}", options.output)
    return 0


def _published(options: argparse.Namespace, margin: Amount | None) -> int:
    """A run against the figures that papers have published of a model."""
    if len(options.runs) != 1 or options.label:
        raise DataError("--published compares one run with a paper", hint="Give one run folder, and no --label.")
    run = load_run(options.runs[0])
    tables = as_published(run, options.published, margin)
    show(tables, options.format, f"{run.spec.name}: as published?", options.output)
    return 0


def compare_options(command: Parser) -> None:
    """The options of `harness compare`."""
    command.add_argument("runs", nargs="*", metavar="RUN", help="two runs; or one, with --label")
    add_sides(command, "protocol P2P SFS")
    text = "these metrics (default: the headline, the metrics beside it, and those of the first table)"
    command.add_argument("--metrics", metavar="NAME,…", help=text)
    text = "test whether differences are smaller than this: 3%% of a metric's range, or a number in the headline's unit"
    command.add_argument("--margin", metavar="AMOUNT", help=text)
    text = "compare one run with the figures that its spec's papers have of this model"
    command.add_argument("--published", metavar="MODEL", help=text)
    opt.add(command, "output", "format")
    _add_until(command)


def _add_until(command: Parser) -> None:
    """The options of `--until decided`, which plays both sides."""
    own = "both sides, played until it is decided"
    group = command.group(own)
    text = "play --spec with both sides in turns, until one is better, or they differ by less than --margin: decided"
    group.add_argument("--until", metavar="decided", help=text)
    group.add_argument("--spec", metavar="FILE", help="the spec that both play")
    opt.add(command, *opt.SPEC[1:], *opt.MODEL, group=own)
    for name, what in {"model": "E", "model_args": "K=V,…", "gen_kwargs": "K=V,…"}.items():
        group.add_argument(f"--{name}_b", metavar=what, default="", help=f"--{name} of B (default: as A)")
    text = "as --set, of B alone; repeatable"
    group.add_argument("--set_b", action="append", default=[], metavar="PATH=VALUE", dest="overrides_b", help=text)
    opt.add(command, *(name for name in opt.RUNNING if name != "resume"), group=f"{own}: how")
