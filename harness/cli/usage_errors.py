"""Mistakes of a command line in words. Loaded for messages alone."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence
from typing import Any

from harness.api.errors import near
from harness.plugins.habits import of_option
from harness.plugins.missing_extensions import bringer
from harness.plugins.renamed import COMMANDS, OPTIONS, new_word

MISSING = "the following arguments are required: "


def unknown_option(name: str, options: Sequence[str]) -> str:
    """What to say of an option that a command does not have. `options`: those that it has."""
    bare = name.removeprefix("--")
    advice = new_word(name, options, OPTIONS) or bringer(bare, "options", "lists") or of_option(bare)
    if advice is None:
        long_options = [option for option in options if option.startswith("--")]
        close = " or ".join(difflib.get_close_matches(name, long_options, n=3, cutoff=0.65))
        advice = f"Did you mean {close}?" if close else None
    return f"unknown option {name}{f'. {advice}' if advice else ''}"


def unknown_value(action: argparse.Action, value: Any) -> str:
    """What to say of a value, or a command, that is none of an argument's choices."""
    choices = [str(choice) for choice in action.choices or ()]
    name = action.metavar if isinstance(action.metavar, str) else action.dest
    what = "command" if isinstance(action, argparse._SubParsersAction) else name.lower()
    where = f"{action.option_strings[0]}: " if action.option_strings else ""
    renamed = new_word(str(value), choices, COMMANDS) if what == "command" else None
    advice = renamed or bringer(str(value), f"{what}s") or near(str(value), choices)
    return f"{where}there is no {what} {value!r}. {advice}"


def in_words(message: str, required: Sequence[argparse.Action] = ()) -> str:
    """A message of argparse as this command line says it. `required`: the options that must be given."""
    missing = message.removeprefix(MISSING)
    if missing == message:
        return message.removeprefix("argument ")
    teach = {
        "COMMAND": "",
        "--spec": ": the name or file of one; `harness list specs` names those that there are",
    }
    names = missing.split(", ")
    listed = f"{', '.join(names[:-1])} and {names[-1]} are" if len(names) > 1 else f"{missing} is"
    lacking = [one for one in required if one.choices and "/".join(one.option_strings) in names]
    kinds = [f"{one.option_strings[0]} takes {', '.join(map(str, one.choices or ()))}" for one in lacking]
    return "; ".join([f"{listed} missing{teach.get(missing, '')}", *kinds])
