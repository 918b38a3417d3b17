"""`harness export`: a run in the form of another tool."""

from __future__ import annotations

import argparse

from harness.cli.usage import Parser
from harness.evaluation.load_run import load_run
from harness.extensions import exports
from harness.plugins.manifests import offers


def export(options: argparse.Namespace) -> int:
    """Write a run's episodes and turns for another tool."""
    how = {"overwrite": options.overwrite, "repo": options.repo, "public": options.public}
    how |= {"dataset": options.dataset, "task_id": options.task_id}
    done = exports.export(load_run(options.run), options.to, options.output, **how)
    print(done.summary)
    for file in done.files:
        print(f"wrote: {file}")
    if done.address is not None:
        print(f"uploaded: {done.address}")
    return 0


def options(command: Parser) -> None:
    """The options of `harness export`."""
    command.add_argument("run", metavar="RUN", help="the run's folder")
    forms = [*offers("exports")]
    command.add_argument("--to", required=True, choices=forms, metavar="FORM", help=", ".join(forms))
    text = "the folder to write to (default: export/FORM in the run's folder)"
    command.add_argument("-o", "--output", metavar="FOLDER", help=text)
    command.add_argument("--overwrite", action="store_true", help="replace an earlier export")
    command.add_argument("--repo", metavar="USER/NAME", help="hub: upload the run as this data set")
    command.add_argument("--public", action="store_true", help="hub: make a new data set public")
    command.add_argument("--dataset", metavar="USER/NAME", help="eval_results: the benchmark's data set on the hub")
    command.add_argument("--task_id", metavar="ID", help="eval_results: the task in that data set (default: default)")
