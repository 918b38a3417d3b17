"""`harness submit` and `harness verify`."""

from __future__ import annotations

import argparse
import shlex
import tempfile
from pathlib import Path

from harness.api.errors import DataError, SpecError
from harness.api.printable import clean_name
from harness.cli import options as opt
from harness.cli.evaluate import engine_of
from harness.cli.usage import Parser
from harness.config.project import find
from harness.evaluation.load_run import load_run
from harness.plugins import approvals
from harness.report.provenance import ended_early

from .archive import pack, unpack
from .check import CLAIMED, Verification
from .check import verify as checked


def submit_options(command: Parser) -> None:
    """The options of `harness submit`."""
    command.add_argument("run", metavar="RUN", help="the run's folder")
    command.add_argument("-o", "--output", metavar="FILE", help="the file to write (default: RUN.zip)")
    command.add_argument("--author", metavar="NAME", help="who submits it")


def submit(options: argparse.Namespace) -> int:
    """Write the submission of a finished run."""
    run = load_run(options.run)
    if (enough := ended_early(run.meta)) is not None:
        raise DataError(f"{run.folder} was not played whole: {enough}", hint="Play the rest, then submit it.")
    target = Path(options.output or f"{run.folder.resolve().name}.zip")
    if target.is_dir():
        raise DataError(f"{target} is a folder", hint="Give -o the name of a file.")
    about = {"spec": run.meta["spec"], "model": run.meta["model"], "author": options.author}
    names = pack(run.folder, target, {key: value for key, value in about.items() if value})
    print(f"wrote: {target} ({target.stat().st_size:,} bytes: {', '.join(names)})")
    print(f"check it as others will: harness verify {shlex.quote(str(target))}")
    return 0


def verify_options(command: Parser) -> None:
    """The options of `harness verify`."""
    command.add_argument("run", metavar="RUN", help="a run's folder, or a file of `harness submit`")
    group = command.group("asking again")
    group.add_argument("--ask", type=opt.whole(1), default=0, metavar="N", help="ask N calls, drawn at random, again")
    group.add_argument("--model", metavar="ENGINE", help="the engine to ask, as in `harness eval`")
    group.add_argument("--model_args", default="", metavar="K=V,…", help="the engine's arguments")
    group.add_argument("--seed", type=opt.whole(0), default=0, metavar="N", help="of the draw: choose one of your own")
    opt.add(command, "allow_code_execution", "sandbox")


def verify(options: argparse.Namespace) -> int:
    """Check a run; 0 if it is consistent at least, 1 if something differs."""
    model = engine_of(options)
    if (model is None) != (not options.ask):
        missing = "--ask N" if model is not None else "--model"
        raise SpecError(f"{missing} is missing", hint="Asking again takes both: --ask 50 --model vllm …")
    source = Path(options.run)
    with tempfile.TemporaryDirectory() as place, approvals.allowing(options.allow_code_execution):
        folder = source
        if source.is_file():
            folder = Path(place) / "run"
            folder.mkdir()
            unpack(source, folder)
        how = {"calls": options.ask, "seed": options.seed, "sandbox": options.sandbox}
        verdict = checked(folder, find(), model=model, **how)
    print(report(options.run, verdict))
    return int(verdict.level == CLAIMED)


def report(name: str, verdict: Verification) -> str:
    """What `harness verify` prints."""
    lines = [f"{name}: {verdict.level}"]
    for title, found in (("holds", verdict.confirmed), ("differs", verdict.differences), ("note", verdict.remarks)):
        lines += [f"  {title}: {line}" for line in found]
    return "\n".join(map(clean_name, lines))
