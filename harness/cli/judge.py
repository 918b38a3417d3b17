"""`harness judge`."""

from __future__ import annotations

import argparse

from harness.cli.evaluate import interrupted, judge_engine, pairs
from harness.cli.output import show
from harness.cli.parser import JUDGING
from harness.cli.progress import SeveralProgress, notes
from harness.config.project import find
from harness.engines.sampling import normalise
from harness.errors import DataError, SpecError
from harness.evaluation import Run
from harness.judges import PairSide
from harness.judging import SAMPLING, plan_of, prefer
from harness.runtime.options import Options


def judge(options: argparse.Namespace) -> int:
    """A judge chooses between the answers of two runs, or of two parts of one."""
    one, two = _sides(options)
    engine = judge_engine(options, find())
    if engine is None:
        raise SpecError("no judge is given", hint="Say which engine judges: --judge vllm --judge_args pretrained=…")
    how = Options(**{name: getattr(options, name) for name in JUDGING})
    sampling = {**SAMPLING, **normalise(pairs(options.gen_kwargs, "--gen_kwargs"))}
    bars = SeveralProgress("judge of", options.quiet)
    try:
        with notes(options.quiet):
            tables = prefer(
                one,
                two,
                engine,
                prompt=options.prompt,
                reference=options.reference,
                repeats=options.repeats,
                sampling=sampling,
                options=how,
                on_judge=bars,
            )
    except KeyboardInterrupt:
        return interrupted("what was chosen is kept")
    finally:
        bars.close()
    show(tables, options.format, f"{two.name} against {one.name}", options.output)
    return 0


def _sides(options: argparse.Namespace) -> tuple[PairSide, PairSide]:
    """Two runs, or one and the values of a label."""
    count = len(options.runs)
    if count != (1 if options.label else 2):
        hint = "Give two run folders, or one and `--label LABEL A B`: the label's values on the two sides."
        there = "one run" if count == 1 else f"{count} runs"
        raise DataError(f"{there} and {'a' if options.label else 'no'} label: nothing to choose between", hint=hint)
    where = dict(entry.partition("=")[::2] for entry in options.where)
    runs = [Run.load(folder) for folder in options.runs]
    plans = [plan_of(run, run.spec, find()) for run in runs]
    if options.label:
        label, *values = options.label
        one, two = (PairSide(v, runs[0].folder, plans[0], {**where, label: v}, label) for v in values)
        return one, two
    names = [str(run.meta["model"]) for run in runs]
    if names[0] == names[1]:
        names = [run.folder.name if runs[0].folder.name != runs[1].folder.name else str(run.folder) for run in runs]
    one, two = (PairSide(*of, where) for of in zip(names, (r.folder for r in runs), plans, strict=True))
    return one, two
