"""The options of every command as Markdown, from the command line's own parser: the site's page on the commands."""

import argparse
import html
import re
from collections.abc import Mapping

from harness.cli.parser import parser

MARK = re.compile(r"<!-- options of (\w+) -->")


def commands() -> Mapping[str, argparse.ArgumentParser]:
    """Each command's name and its parser."""
    [action] = [action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)]
    return action.choices


def with_options(page: str) -> str:
    """The page with the options of a command in place of each mark `<!-- options of NAME -->`."""
    every = commands()
    return MARK.sub(lambda found: table(every[found[1]]), page)


def table(command: argparse.ArgumentParser) -> str:
    """A row per argument, in the order and with the words of `--help`."""
    rows = [f"Options of `{command.prog}`:", "", "| option | meaning |", "|---|---|"]
    for action in (action for group in command._action_groups for action in group._group_actions):
        if {"--help", "--debug"} & {*action.option_strings}:
            continue  # every command has them
        values = action.metavar or action.dest.upper()
        values = " ".join(values) if isinstance(values, tuple) else values
        tail = "" if action.nargs == 0 or not action.option_strings else f" {values}"
        names = [f"`{name}{tail}`" for name in action.option_strings] or [f"`{values}`"]
        text = html.escape((action.help or "").replace("%%", "%"), quote=False).replace("|", r"\|")
        rows.append(f"| {', '.join(names)} | {text} |")
    return "\n".join(rows)
