"""`harness register`: a line a benchmark."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.api.errors import UserError
from harness.api.printable import clean_name
from harness.cli.usage import Parser

from . import register as registers
from .register import Listing


def options(command: Parser) -> None:
    """The options of `harness register`."""
    command.add_argument("folder", metavar="FOLDER", help="the register: one YAML file a benchmark")
    text = "first add what the card of this repository certifies, at its newest commit"
    command.add_argument("--add", metavar="CHECKOUT", help=text)
    text = "add only this spec of the card; repeatable"
    command.add_argument("--spec", action="append", default=[], metavar="NAME", help=text)
    text = "fetch each pinned card with git, and compare it"
    command.add_argument("--fetch", action="store_true", help=text)


def register(options: argparse.Namespace) -> int:
    """List a register; 0 if every entry is right, 1 if one is not."""
    folder = Path(options.folder)
    if options.add:
        for path in registers.write(registers.entries_of(Path(options.add), options.spec), folder):
            print(f"wrote: {path}")
    found = [*registers.read(folder)]
    names = [len(one.name) for one in found if isinstance(one, Listing)]
    wrong = 0
    for one in found:
        try:
            if isinstance(one, UserError):
                raise one
            state = _state(one) if options.fetch else ""
            print(f"{one.name:{max(names)}}  {one.spec}  {one.repository} {one.commit[:12]}{state}")
        except UserError as error:
            wrong += 1
            place = "" if error.place is None else f"{error.place}: "
            print(clean_name(f"{place}{error.message}"), file=sys.stderr)
    right = len(found) - wrong
    print(f"{right} benchmark{'' if right == 1 else 's'}" + (f", {wrong} wrong" if wrong else ""))
    return int(bool(wrong))


def _state(entry: Listing) -> str:
    data = registers.fetched(entry)
    return clean_name(f"  certified {str(data.get('date'))[:10]}, harness {str(data.get('harness'))[:20]}")
