"""`harness judge`."""

from __future__ import annotations

import argparse

from harness.api.errors import SpecError
from harness.cli import options as opt
from harness.cli.evaluate import interrupted, pairs
from harness.cli.output import show
from harness.cli.progress import Progress
from harness.cli.usage import Parser
from harness.config.project import find
from harness.engines.sampling import normalize
from harness.extensions.analysis.run_pair import add_sides, two_sides
from harness.extensions.judges.judge_plans import plan_of
from harness.extensions.judges.judge_runs import SAMPLING, prefer
from harness.extensions.judges.pairs import PairSide
from harness.runtime.options import Options

from .judge_options import add, engine_of


def judge(options: argparse.Namespace) -> int:
    """A judge chooses between the answers of two runs, or of two parts of one."""
    one, two = _sides(options)
    engine = engine_of(options.judge, options.judge_args, find())
    if engine is None:
        raise SpecError("no judge is given", hint="Say which engine judges: --judge vllm --judge_args pretrained=…")
    how = Options(**{name: getattr(options, name) for name in opt.ASKING})
    sampling = {**SAMPLING, **normalize(pairs(options.gen_kwargs, "--gen_kwargs"))}
    try:
        with Progress(options.quiet, lines=engine.asks_people) as bars:
            tables = prefer(
                one,
                two,
                engine,
                prompt=options.prompt,
                reference=options.reference,
                repeats=options.repeats,
                sampling=sampling,
                options=how,
                on_more=bars.begin,
            )
    except KeyboardInterrupt:
        return interrupted("what was chosen is kept")
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


def options(command: Parser) -> None:
    """The options of `harness judge`."""
    command.add_argument("runs", nargs="+", metavar="RUN", help="two runs; or one, with --label")
    add_sides(command, "protocol single vote")
    asking = command.group("judge")
    add(asking)
    text = "its prompt set (default: judges/pairwise)"
    asking.add_argument("--prompt", default="judges/pairwise", metavar="SET", help=text)
    asking.add_argument("--reference", action="store_true", help="let it see the task's right answers")
    text = "ask it N times in each order; the more frequent choice counts"
    asking.add_argument("--repeats", type=opt.whole(1), default=1, metavar="N", help=text)
    asking.add_argument("--gen_kwargs", default="", metavar="K=V,…", help="its sampling (default: temperature=0)")
    opt.add(command, *opt.ASKING, "quiet", group="judge")
    opt.add(command, "output", "format")
