"""`harness judge`."""

from __future__ import annotations

import argparse

from harness.cli.evaluate import interrupted, judge_engine, pairs
from harness.cli.output import show
from harness.cli.parser import JUDGING
from harness.cli.progress import SeveralProgress, notes
from harness.cli.sides import two_sides
from harness.config.project import find
from harness.engine_api import AsksPeople
from harness.engines.sampling import normalise
from harness.errors import SpecError
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
    bars = SeveralProgress("judge of", options.quiet, lines=isinstance(engine, AsksPeople))
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
    one, two = two_sides(options, "to choose between")
    plan = plan_of(one.run, one.run.spec, find())
    other = plan if two.run is one.run else plan_of(two.run, two.run.spec, find())
    return (
        PairSide(one.name, one.run.folder, plan, one.where, one.label),
        PairSide(two.name, two.run.folder, other, two.where, two.label),
    )
