"""`harness export`: a run in the form of another tool."""

from __future__ import annotations

import argparse

from harness import export as exports
from harness.results import Run


def export(options: argparse.Namespace) -> int:
    """Write a run's episodes and turns for another tool."""
    how = {"overwrite": options.overwrite, "repo": options.repo, "public": options.public}
    done = exports.export(Run.load(options.run), options.to, options.output, **how)
    print(done.summary)
    for file in done.files:
        print(f"wrote: {file}")
    if done.address is not None:
        print(f"uploaded: {done.address}")
    return 0
