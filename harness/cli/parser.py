"""The command line's parser, and the commands of the core. Imports next to nothing, so that `--help` is instant."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from typing import Any, Final

from harness import __version__
from harness.cli import options as opt
from harness.cli.commands import SERVER, Command, commands
from harness.cli.usage import Parser
from harness.errors import UserError
from harness.manifests import offers

KINDS = {
    "tasks": "cases, and how answers are graded",
    "protocols": "which agent acts when, and what it observes",
    "channels": "how messages of agents reach other agents",
    "policies": "scripted agents",
    "prompts": "sets of templates",
    "metrics": "what is measured in an episode",
    "engines": "sources of replies: models in this process, servers, stand-ins",
    "views": "how an episode is drawn",
    "specs": "experiments, ready to run",
}


def parser(command: str | None = None) -> argparse.ArgumentParser:
    """The whole command line.

    Args:
        command: the command that is given; only it gets its options then. None: all of them.

    Options that are parsed have `function`, which loads the function of the command.
    """
    every = commands()
    top = Parser(
        prog="harness",
        usage="harness COMMAND [options]",
        description="Evaluate groups of language models from YAML specs.",
        epilog=f"`harness COMMAND --help` says more of each.\n\n{every['eval'].ending}",
    )
    more = top.group("options")
    opt.add_help(more)
    more.add_argument("--version", action="version", version=f"harness {__version__}", help="print the version")
    names = top.add_subparsers(title="commands", required=True, metavar="COMMAND", prog="harness", parser_class=Parser)
    for name, one in every.items():
        text = one.help[0].upper() + one.help[1:] + "."
        own = names.add_parser(name, needs=one.usage, help=one.help, description=text, epilog=one.ending)
        own.set_defaults(function=one.run)
        if command in (None, name):
            one.options(own)
            more = own.group("more")  # last, so that it stands last
            opt.add_help(more)
            more.add_argument("--debug", action="store_true", help="print whole tracebacks, also those of plugins")
    return top


def _eval(command: Parser) -> None:
    opt.add_spec(command)
    opt.add_model(command)
    _added("eval", command)
    opt.add_running(command)
    opt.add_format(command)


def _validate(command: Parser) -> None:
    command.add_argument("specs", nargs="*", metavar="SPEC", help="files or names (default: every spec of the project)")
    command.add_argument("--spec", action="append", default=[], dest="more", metavar="SPEC", help="the same")
    opt.add_changes(command)
    opt.add_permission(command)


def _plan(command: Parser) -> None:
    opt.add_spec(command)
    command.add_argument("--explain", action="store_true", help="print the stages of the run, and what flows on")
    opt.add_permission(command)


def _show(command: Parser) -> None:
    opt.add_spec(command)
    command.add_argument("--condition", metavar="ID", help="which condition (default: the first)")
    command.add_argument("--case", metavar="ID", help="show prompts of this case: its id or its number from 0")
    command.add_argument("--repeat", type=int, metavar="N", help="which repeat of the case, from 0 (default: 0)")
    command.add_argument("--agent", metavar="NAME", help="whose prompts (default: the first agent)")
    command.add_argument("--round", type=int, metavar="N", help="up to the agent's N-th turn, from 0 (default: all)")
    opt.add_permission(command)


def _list(command: Parser) -> None:
    kinds = f"{', '.join(KINDS)} (default: how many of each)"
    command.add_argument("kind", nargs="?", metavar="KIND", choices=KINDS, help=kinds)
    for name, offer in offers("lists").items():
        text = f"tasks: {offer.value['help']}, whose names have WORD in them"
        command.add_argument(f"--{name}", nargs="?", const="", metavar="WORD", help=text)
        for option, text in offer.value.get("folders", {}).items():
            command.add_argument(f"--{option}", action="append", default=[], metavar="DIR", help=f"--{name}: {text}")


def _schema(command: Parser) -> None:
    kinds = [kind for kind in KINDS if kind not in ("prompts", "specs")]
    command.add_argument("kind", nargs="?", metavar="KIND", choices=kinds, help=", ".join(kinds))
    command.add_argument("name", nargs="?", metavar="NAME", help="the plugin whose parameters to print")


def _score(command: Parser) -> None:
    command.add_argument("run", metavar="RUN", help="the run's folder")
    opt.add_permission(command)
    opt.add_run_options(command, "sandbox")
    opt.add_format(command)
    _added("score", command)
    more = command.group("more, where something is asked")
    opt.add_run_options(more, *opt.ASKING)
    more.add_argument("--quiet", action="store_true", help="no progress, only tables and errors")


def _added(name: str, command: Parser) -> None:
    """The options that extensions add to a command of the core; one that fails at it adds none, and says so."""
    for offer in offers("after").values():
        if name in offer.value:
            try:
                offer.load_function(name)(command)
            except Exception as error:
                from harness.installed import culprit

                if culprit(error) is None and not isinstance(error, UserError):
                    raise
                print(f"warning: the extension {offer.extension.name} adds no options: {error}", file=sys.stderr)


def _report(command: Parser) -> None:
    opt.add_runs(command)
    opt.add_table(command)
    opt.add_output(command)
    command.add_argument("--plots", metavar="DIR", help="also draw the spec's figures into this folder")
    opt.add_format(command)


def _new(command: Parser) -> None:
    text = "a folder that does not exist yet, or is empty; or: task NAME"
    command.add_argument("names", nargs="+", metavar="FOLDER", help=text)
    command.add_argument("--kind", metavar="KIND", help="of a task: network, sharded, world or questions")


def _core(run: str, options: Callable[[Parser], None], text: str, usage: str, *examples: str) -> Command:
    module, function = run.split(":")

    def load() -> Callable[[Any], int]:
        loaded: Callable[[Any], int] = getattr(importlib.import_module(f"harness.cli.{module}"), function)
        return loaded

    return Command(text, usage, load, options, examples)


CORE: Final[dict[str, Command]] = {
    "eval": _core(
        "evaluate:evaluate",
        _eval,
        "run a spec and print its tables",
        "--spec FILE",
        "harness eval --spec agentsnet_quick --output_path results/scripted",
        f"harness eval --spec agentsnet_quick --model openai --model_args {SERVER} --output_path results/qwen",
    ),
    "validate": _core(
        "inspect:validate",
        _validate,
        "check specs without running anything",
        "[SPEC …]",
        "harness validate agentsnet_quick",
    ),
    "plan": _core(
        "inspect:plan",
        _plan,
        "say how many episodes, calls and tokens a spec will take",
        "--spec FILE",
        "harness plan --spec agentsnet_quick",
    ),
    "show": _core(
        "show:show",
        _show,
        "print the resolved spec, or the exact prompt of a turn",
        "--spec FILE",
        "harness show --spec agentsnet_quick --case 0 --round 1",
    ),
    "list": _core("listing:listing", _list, "list what there is, with one line each", "[KIND]", "harness list specs"),
    "schema": _core(
        "listing:schema",
        _schema,
        "print the JSON Schema of specs, or of a plugin",
        "[KIND [NAME]]",
        "harness schema tasks agentsnet/coloring",
    ),
    "score": _core(
        "results:score",
        _score,
        "recompute a run's metrics from its journal, with no model",
        "RUN",
        "harness score results/scripted",
    ),
    "report": _core(
        "results:report",
        _report,
        "print runs' tables again, or all about them as one page",
        "RUN [RUN …]",
        "harness report results/scripted --format html -o report.html",
    ),
    "new": _core(
        "new:new",
        _new,
        "start a project that works at once, or a task in YAML in it",
        "FOLDER",
        "harness new my_project",
    ),
}
