"""`harness convert`: a spec for a task of another harness."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.api.errors import DataError, UserError
from harness.api.printable import clean
from harness.cli.usage import Parser
from harness.config import project, resolve, spec
from harness.engines.mock import Mock
from harness.extensions.lm_eval.convert import convert as converted_from


def convert(options: argparse.Namespace) -> int:
    """Write the spec, and say line by line what it cannot say. 1 if something was left out."""
    *source, task = options.names
    if source not in ([], ["lm_eval"]):
        raise DataError(f"cannot convert {' '.join(options.names)}", hint="Give one task: harness convert lm_eval TASK")
    converted = converted_from(task, [Path(folder) for folder in options.include_path])
    text = converted.text(task)
    if options.output:
        try:
            with Path(options.output).open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise DataError(f"cannot write {options.output}: {error.strerror}") from None
        print(f"written: {options.output}")
    else:
        print(clean(text), end="")
    for note in converted.notes:
        print(clean(str(note)), file=sys.stderr)
    complete = converted.complete
    try:
        found = project.builtin()
        resolve.plan(spec.parse(dict(converted.spec), found), found, Mock())
    except UserError as error:
        print(f"{task}: the spec cannot be played yet: {clean(error.message)}", file=sys.stderr)
        complete = False
    return 0 if complete else 1


def options(command: Parser) -> None:
    """The options of `harness convert`."""
    text = "a task, group or tag of lm-eval by name (extra lm-eval), or a task's YAML file"
    command.add_argument("names", nargs="+", metavar="lm_eval TASK", help=text)
    text = "a folder with more tasks; repeatable"
    command.add_argument("--include_path", action="append", default=[], metavar="FOLDER", help=text)
    text = "write the spec to a file instead of printing it"
    command.add_argument("-o", "--output", metavar="FILE", help=text)
