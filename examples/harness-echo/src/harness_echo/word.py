"""A command: `harness echo WORD`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from harness.cli.usage import Parser


def options(command: Parser) -> None:
    """The options of the command."""
    command.add_argument("word", metavar="WORD", help="what to say twice")


def echo(options: argparse.Namespace) -> int:
    """Print the word twice. Returns the exit code."""
    print(f"{options.word} {options.word}")
    return 0
