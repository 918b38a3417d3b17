"""The command line's parser, and the options of the core's commands. Imports next to nothing: `--help` is instant."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from harness.api.errors import UserError
from harness.api.version import __version__
from harness.cli import options as opt
from harness.cli.usage import Parser
from harness.plugins.manifests import offers


def kinds() -> dict[str, str]:
    """What `harness list` lists, and what each kind is."""
    of_plugins = {name: offer.value["help"] for name, offer in offers("kinds").items()}
    return {**of_plugins, "prompts": "sets of templates", "specs": "experiments, ready to run"}


def parser(given: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """The whole command line.

    Args:
        given: the words that are given. Only their command gets its options then, and those that extensions add to it
            only if some option is none of the core's. None: all of them.

    Options that are parsed have `function`, which loads the function of the command.
    """
    every = offers("commands")
    command = None if given is None else next((word for word in given if not word.startswith("-")), "")
    top = Parser(
        prog="harness",
        usage="harness COMMAND [options]",
        description="Evaluate groups of language models from YAML specs.",
        epilog=f"`harness COMMAND --help` describes a command.\n\n{_ending(every['eval'].value['examples'])}",
    )
    more = top.group("options")
    _add_help(more)
    more.add_argument("--version", action="version", version=f"harness {__version__}", help="print the version")
    names = top.add_subparsers(title="commands", required=True, metavar="COMMAND", prog="harness", parser_class=Parser)
    for name, offer in every.items():
        help, usage, ending = offer.value["help"], offer.value["usage"], _ending(offer.value.get("examples", ()))
        text = help[0].upper() + help[1:] + "."
        own = names.add_parser(name, needs=usage, help=help, description=text, epilog=ending)
        own.set_defaults(function=offer.load_function)
        own.words = given
        if command in (None, name):
            offer.load_function("options")(own)
            more = own.group("more")  # last, so that it comes last
            _add_help(more)
            more.add_argument("--debug", action="store_true", help="print full tracebacks, also those of plugins")
    return top


def _ending(examples: Sequence[str]) -> str:
    """The last part of a command's help: command lines that can be given as they are, where a server answers and
    labels.csv has labels of people. Tests run those of all commands in order, as they are in the manifests."""
    return "\n".join([f"example{'s' * (len(examples) > 1)}:", *map(_folded, examples)])


def _folded(line: str) -> str:
    """The line, indented; of a long one each option that would stand beyond 78 columns begins another line."""
    lines = [" "]
    for part in line.replace(" --", "\n--").replace(" -o", "\n-o").split("\n"):
        if len(lines[-1]) + len(part) < 76:
            lines[-1] += f" {part}"
        else:
            lines.append(f"      {part}")
    return " \\\n".join(lines)


def _add_help(group: argparse._ArgumentGroup) -> None:
    group.add_argument("-h", "--help", action="help", help="show this help")


def eval_options(command: Parser) -> None:
    """Of `harness eval`."""
    opt.add(command, "specs", *opt.SPEC[1:], *opt.MODEL)
    _added("eval", command)
    opt.add(command, *opt.RUNNING, *opt.TABLES)
    _added("eval", command, "stopping")
    _added("eval", command, "listeners")


def validate_options(command: Parser) -> None:
    """Of `harness validate`."""
    command.add_argument("specs", nargs="*", metavar="SPEC", help="files or names (default: every spec of the project)")
    command.add_argument("--spec", action="append", default=[], dest="more", metavar="SPEC", help="the same as SPEC")
    opt.add(command, "set", group="options")
    opt.add(command, "allow_code_execution")


def plan_options(command: Parser) -> None:
    """Of `harness plan`."""
    opt.add(command, *opt.SPEC, "explain")
    _added("options", command, "plans")
    opt.add(command, "allow_code_execution")


def show_options(command: Parser) -> None:
    """Of `harness show`."""
    opt.add(command, *opt.SPEC, "condition", "case", "repeat", "agent", "round", "allow_code_execution")


def list_options(command: Parser) -> None:
    """Of `harness list`."""
    text = f"{', '.join(kinds())} (default: the number of each)"
    command.add_argument("kind", nargs="?", metavar="KIND", choices=kinds(), help=text)
    for name, offer in offers("lists").items():
        text = f"tasks: {offer.value['help']}, whose names contain WORD"
        command.add_argument(f"--{name}", nargs="?", const="", metavar="WORD", help=text)
        for option, text in offer.value.get("folders", {}).items():
            command.add_argument(f"--{option}", action="append", default=[], metavar="DIR", help=f"--{name}: {text}")


def schema_options(command: Parser) -> None:
    """Of `harness schema`."""
    of_plugins = offers("kinds")
    command.add_argument("kind", nargs="?", metavar="KIND", choices=of_plugins, help=", ".join(of_plugins))
    command.add_argument("name", nargs="?", metavar="NAME", help="the plugin whose parameters to print")


def score_options(command: Parser) -> None:
    """Of `harness score`."""
    opt.add(command, "run", "allow_code_execution")
    opt.add(command, "sandbox", group="options")
    opt.add(command, *opt.TABLES)
    _added("score", command)
    opt.add(command, *opt.ASKING, "quiet", group="more, if a model is called")


def _added(name: str, command: Parser, point: str = "post_run") -> None:
    """Add the options of extensions to a command of the core: those that entries of a point have under a key. An
    extension that fails here adds none, with a warning."""
    if command.words is not None and opt.are_of_core(command.words):
        return
    for offer in offers(point).values():
        if name in offer.value:
            try:
                offer.load_function(name)(command)
            except Exception as error:
                from harness.plugins.missing_extensions import culprit

                if culprit(error) is None and not isinstance(error, UserError):
                    raise
                print(f"warning: the extension {offer.extension.name} adds no options: {error}", file=sys.stderr)


def report_options(command: Parser) -> None:
    """Of `harness report`."""
    opt.add(command, "runs", "table", "output", "plots", *opt.TABLES)
