"""`harness list tasks --lm_eval`."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.api.printable import clean

from . import task_index


def lm_eval(options: argparse.Namespace) -> int:
    """Print the names that the task `lm_eval` takes: name, output type or what else it is, file."""
    lines = task_index.listed(options.lm_eval, [Path(folder).expanduser() for folder in options.include_path])
    width = min(60, max(len(name) for name, _, _ in lines))
    for name, what, file in lines:
        print(f"{clean(name):<{width}}  {what:<22}  {clean(file)}")
    return 0
