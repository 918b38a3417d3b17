"""What `harness plan` says besides: `--encores N`, how many calls so many encores take."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from harness.checks.estimate import Estimate
from harness.cli.usage import Parser
from harness.config.plan import Plan


def options(command: Parser) -> None:
    """The option that asks for it; the manifest names it under `parameters`."""
    command.add_argument("--encores", type=int, metavar="N", help="count the calls of so many encores")


def encores(options: argparse.Namespace, plan: Plan, figures: Estimate) -> Iterable[str]:
    """The lines below a plan, given its options and what it takes."""
    yield f"encores         {options.encores * figures.calls:,} calls more"
