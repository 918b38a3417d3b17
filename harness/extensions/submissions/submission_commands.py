"""`harness submit` and `harness verify`."""

from __future__ import annotations

import argparse
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.api.errors import DataError, Place, SetupError, SpecError
from harness.api.printable import clean_name
from harness.api.run_files import META
from harness.cli import options as opt
from harness.cli.evaluate import engine_of
from harness.cli.usage import Parser
from harness.config.project import find
from harness.evaluation.load_run import load_run
from harness.plugins import approvals
from harness.plugins.approvals import NotApprovedError
from harness.plugins.refusals import advice
from harness.runtime.run_schema import ended_by_rule, read_meta

from .archive import pack, unpack
from .check import CLAIMED, Verification
from .check import verify as checked
from .ended_run import rule_of
from .pins import read_pins, unpinned


def submit_options(command: Parser) -> None:
    """The options of `harness submit`."""
    command.add_argument("run", metavar="RUN", help="the run's folder")
    command.add_argument("-o", "--output", metavar="FILE", help="the file to write (default: RUN.zip)")
    command.add_argument("--author", metavar="NAME", help="who submits it")


def submit(options: argparse.Namespace) -> int:
    """Write the submission of a finished run."""
    run = load_run(options.run)
    if (end := ended_by_rule(run.meta)) is not None:
        rule_of(end)
    target = Path(options.output or f"{run.folder.resolve().name}.zip")
    if target.is_dir():
        raise DataError(f"{target} is a folder", hint="Give -o the name of a file.")
    about = {"spec": run.meta["spec"], "model": run.meta["model"], "author": options.author}
    about["ended"] = end["enough"] if end is not None else None
    names = pack(run.folder, target, {key: value for key, value in about.items() if value})
    print(f"wrote: {target} ({target.stat().st_size:,} bytes: {', '.join(names)})")
    if end is not None:
        print(clean_name(end["enough"]))
    print(f"check it as others will: harness verify {shlex.quote(str(target))}")
    return 0


def verify_options(command: Parser) -> None:
    """The options of `harness verify`."""
    command.add_argument("run", metavar="RUN", help="a run's folder, or a file of `harness submit`")
    text = "take only runs of the specs, with the digests, that this file lists"
    command.add_argument("--pins", metavar="FILE", help=text)
    text = "keep the run of a submission in this new folder if it is consistent"
    command.add_argument("-o", "--output", metavar="FOLDER", help=text)
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
    pins = read_pins(Path(options.pins)) if options.pins else None
    kept = _refused_unless_new(options.output, source) if options.output else None
    with tempfile.TemporaryDirectory() as place, approvals.allowing(options.allow_code_execution):
        folder = source
        if source.is_file():
            folder = Path(place) / "run"
            folder.mkdir()
            unpack(source, folder)
        how = {"model": model, "calls": options.ask, "seed": options.seed, "sandbox": options.sandbox}
        if pins is not None and (why := unpinned(read_meta(folder / META), pins, Path(options.pins))) is not None:
            verdict = Verification(differences=[why])
        else:
            verdict = _checked(folder, source, how)
        if kept is not None and verdict.level != CLAIMED:
            _keep(folder, kept)
    print(report(options.run, verdict))
    return int(verdict.level == CLAIMED)


def _checked(folder: Path, source: Path, how: Mapping[str, Any]) -> Verification:
    """What a check of a run finds; it is unpacked if its folder is not the source. Raises as `check.verify`."""
    try:
        return checked(folder, find(), **how)
    except NotApprovedError as error:
        if folder == source:
            raise
        hint = "A submission may read what the spec of its name reads here. " + advice(error.needed, None, record=False)
        raise SetupError(error.message, place=Place(str(source)), hint=hint) from None


def _refused_unless_new(output: str, source: Path) -> Path:
    """Where a run is to be kept. Raises `DataError` if something is there, or the run is a folder already."""
    target = Path(output)
    if not source.is_file():
        raise DataError(f"{source} is no file of `harness submit`", hint="--output is for what such a file holds.")
    if target.exists() or target.is_symlink():
        raise DataError(f"{target} exists already", hint="Choose a new folder for --output.")
    return target


def _keep(folder: Path, target: Path) -> None:
    """Copy a run to its place, whole or not at all. Raises `DataError`."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".verified-", dir=target.parent) as place:
            shutil.copytree(folder, Path(place) / "run")
            (Path(place) / "run").rename(target)
    except OSError as error:
        raise DataError(f"cannot write {target}: {error.strerror or error}") from None


def report(name: str, verdict: Verification) -> str:
    """What `harness verify` prints."""
    lines = [f"{name}: {verdict.level}"]
    for title, found in (("holds", verdict.confirmed), ("differs", verdict.differences), ("note", verdict.remarks)):
        lines += [f"  {title}: {line}" for line in found]
    return "\n".join(map(clean_name, lines))
