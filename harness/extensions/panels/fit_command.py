"""`harness calibrate`."""

from __future__ import annotations

import argparse

from harness.cli import options as opt
from harness.cli.evaluate import check_gen_kwargs, engine_of, load, running
from harness.cli.progress import Progress
from harness.cli.usage import Parser
from harness.config import resolve
from harness.config.project import find
from harness.extensions.panels.fit import fit as fitted


def fit(options: argparse.Namespace) -> int:
    """Play the calibration rows and write the parameters that the spec names."""
    project = find()
    limit, options.limit, options.repeats = options.limit, None, None  # of the calibration rows, not of the evaluation
    loaded = load(options)
    if options.gen_kwargs:
        check_gen_kwargs(options, resolve.plan(loaded, project, engine_of(options)))
    with Progress(options.quiet) as bars:
        files = fitted(
            loaded,
            project,
            lambda: engine_of(options),
            options=running(options),
            limit=limit,
            on_score=bars.begin,
        )
    for file, questions in files.items():
        print(f"{file}: fitted on {questions} questions")
    return 0


def options(command: Parser) -> None:
    """The options of `harness calibrate`."""
    opt.add(command, *(name for name in opt.SPEC if name != "repeats"), *opt.MODEL, *opt.RUNNING)
