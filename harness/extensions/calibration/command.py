"""`harness fit`."""

from __future__ import annotations

import argparse

from harness.cli import options as opt
from harness.cli.evaluate import check_gen_kwargs, load, pairs, place, running
from harness.cli.progress import Progress, notes
from harness.cli.usage import Parser
from harness.config import resolve
from harness.config.project import find
from harness.engine_api import Engine
from harness.errors import SpecError
from harness.extensions.calibration.fit import fit as fitted


def fit(options: argparse.Namespace) -> int:
    """Play the calibration rows and write the parameters that the spec names."""
    project = find()
    arguments = pairs(options.model_args, "--model_args")
    if arguments and options.model is None:
        raise SpecError("--model_args without --model", hint="Say which engine: --model vllm, --model openai, …")

    limit, options.limit, options.repeats = options.limit, None, None  # of the calibration rows, not of the evaluation
    loaded = load(options)

    def model() -> Engine | None:
        return resolve.engine({"use": options.model, **arguments}, project, place) if options.model else None

    if options.gen_kwargs:
        check_gen_kwargs(options, resolve.plan(loaded, project, model()))
    bars: list[Progress] = []

    def progress(name: str) -> Progress:
        bars.append(Progress(name, quiet=options.quiet))
        return bars[-1]

    try:
        with notes(options.quiet):
            files = fitted(
                loaded,
                project,
                model,
                options=running(options),
                limit=limit,
                on_score=progress,
            )
    finally:
        for bar in bars:
            bar.close()
    for file, questions in files.items():
        print(f"{file}: fitted on {questions} questions")
    return 0


def options(command: Parser) -> None:
    """The options of `harness fit`."""
    opt.add_spec(command, repeats=False)
    opt.add_model(command)
    opt.add_running(command)
