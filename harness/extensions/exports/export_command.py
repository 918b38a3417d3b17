"""`harness export`: a run in the form of another tool."""

from __future__ import annotations

import argparse

from harness.cli.usage import Parser
from harness.evaluation.load_run import load_run
from harness.extensions import exports
from harness.plugins.manifests import offers

_OF_FORMS = (
    "dataset",
    "task_id",
    "kind",
    "where",
    "reward",
    "agent",
    "group",
    "holdout",
    "keep_duplicates",
    "trace_content",
)


def export(options: argparse.Namespace) -> int:
    """Write a run's episodes and turns for another tool."""
    how = {"overwrite": options.overwrite, "repo": options.repo, "public": options.public}
    run, *others = map(load_run, options.run)
    how |= {name: getattr(options, name) for name in _OF_FORMS}
    done = exports.export(run, options.to, options.output, runs=tuple(others), **how)
    print(done.summary)
    for file in done.files:
        print(f"wrote: {file}")
    if done.address is not None:
        print(f"uploaded: {done.address}")
    return 0


def options(command: Parser) -> None:
    """The options of `harness export`."""
    command.add_argument("run", nargs="+", metavar="RUN", help="the run's folder; chat: or those of several")
    forms = [*offers("exports")]
    command.add_argument("--to", required=True, choices=forms, metavar="FORM", help=", ".join(forms))
    text = "the folder to write to (default: export/FORM in the run's folder)"
    command.add_argument("-o", "--output", metavar="FOLDER", help=text)
    command.add_argument("--overwrite", action="store_true", help="replace an earlier export")
    command.add_argument("--repo", metavar="USER/NAME", help="hub: upload the run as this data set")
    command.add_argument("--public", action="store_true", help="hub: make a new data set public")
    command.add_argument("--dataset", metavar="USER/NAME", help="eval_results: the benchmark's data set on the hub")
    command.add_argument("--task_id", metavar="ID", help="eval_results: the task in that data set (default: default)")
    text = "otel: with what models read and wrote"
    command.add_argument("--trace_content", action="store_true", default=None, help=text)
    chat = command.group("conversations to train on (chat)")
    text = "sft (default: whole conversations), replies (each with its prompt), or pairs of replies: dpo, kto"
    chat.add_argument("--kind", metavar="KIND", help=text)
    text = "only episodes for which this holds, of metrics and labels: 'solved == 1'"
    chat.add_argument("--where", metavar="EXPRESSION", help=text)
    chat.add_argument("--reward", metavar="METRIC", help="what an episode is worth (default: the headline's metric)")
    chat.add_argument("--agent", action="append", metavar="AGENT", help="only what this agent replied; repeatable")
    chat.add_argument("--group", action="append", metavar="GROUP", help="only agents of this group; repeatable")
    text = "sft, replies: write a row as often as it was played (default: once)"
    chat.add_argument("--keep_duplicates", action="store_true", default=None, help=text)
    text = "refuse to train on a case of this spec or run; repeatable"
    chat.add_argument("--holdout", action="append", metavar="SPEC|RUN", help=text)
