"""Words of YAML, manifests and the command line that have another name now. Loaded for messages alone.

A key is looked up where it is unknown: it is an old name if one of its new names is a key of that place. So an old name
that still means something elsewhere (`samples` of lm-eval's tasks, `error` of an episode) is left alone there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

SINCE: Final = "0.7.0"
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    # of specs
    "calls": ("reply_via",),
    "constrained": ("structured_output",),
    "fit": ("calibrate",),
    "share_calls": ("dedupe_calls",),
    # of values of the matrix
    "like": ("inherits",),
    # of tables, their groups of rows, and the headline
    "beside": ("also_show",),
    "cell": ("metrics", "metric"),
    "cells": ("metrics",),
    "error": ("uncertainty",),
    "loss": ("relative_drop",),
    "split": ("relabel",),
    # of tasks and protocols
    "hears": ("topology",),
    "samples": ("instances",),
    "scored": ("scoring",),
    "unstated": ("default_confidence",),
    # of manifests
    "after": ("post_run",),
}
"""Old name of a key → what it is called now, by the place where it stands."""
VALUES: Final[Mapping[str, str]] = {"tools": "tool_calls"}
"""The same of values."""
COMMANDS: Final[Mapping[str, str]] = {"fit": "calibrate"}
"""The same of commands."""
OPTIONS: Final[Mapping[str, str]] = {
    "--forms_only": "--parse_only",
    "--least": "--min_parse_rate",
    "--one_engine_at_a_time": "--sequential_engines",
    "--readers": "--parsers",
}
"""The same of options. An option is looked up where it is unknown, as a key is."""


def new_key(name: str, known: Collection[str]) -> str | None:
    """What to say of an unknown key that is the old name of one of the known ones; None if it is not.

    >>> new_key("split", ["title", "relabel"]), new_key("split", ["title"])
    ('`split:` is called `relabel:` since 0.7.0.', None)
    """
    new = next((new for new in KEYS.get(name, ()) if new in known), None)
    return None if new is None else f"`{name}:` is called `{new}:` since {SINCE}."


def new_word(name: str, known: Collection[str], names: Mapping[str, str]) -> str | None:
    """The same of a value, a command or an option. `names`: one of the tables above."""
    new = names.get(name)
    return f"`{name}` is called `{new}` since {SINCE}." if new in known else None
