"""`harness export`: a run in the form of another tool."""

from __future__ import annotations

import argparse

from harness import export as exports
from harness.evaluation import Run


def export(options: argparse.Namespace) -> int:
    """Write a run's episodes and turns for another tool."""
    done = exports.export(Run.load(options.run), options.to, options.output, overwrite=options.overwrite)
    print(done.summary)
    for file in done.files:
        print(f"wrote: {file}")
    return 0
