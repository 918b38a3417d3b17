"""What people who know another harness's command line give, and what it is called here. Loaded for messages alone.

`habits.toml` has the words. They are wrong whether or not the extension is there that plays that harness's tasks.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

SHARES: Final = "A share of all cases is not possible: give how many."
"""What to say of a `--limit` below 1."""


def _words(kind: str) -> dict[str, Any]:
    words: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))[kind]
    return words


def of_option(name: str) -> str | None:
    """What stands in place of such an option; None for others. `name`: without dashes."""
    return _sentence(_words("options").get(name))


def of_engine(name: str) -> str | None:
    """What stands in place of such a model; None for others."""
    words = _words("engines")
    prefix = re.match(r"\w+[:/]", name)  # as other tools write an engine and its model
    return _sentence(words.get(name) or (words.get(prefix[0]) or words.get(prefix[0][:-1]) if prefix else None))


def _sentence(advice: str | None) -> str | None:
    return advice and f"{advice}."
