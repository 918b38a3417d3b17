"""What people who know another harness's command line give, and what it is called here. Loaded for messages alone.

`habits.toml` has the words. They are wrong whether or not the extension is there that plays that harness's tasks.
"""

from __future__ import annotations

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
    return _sentence(_words("engines").get(name))


def _sentence(advice: str | None) -> str | None:
    return advice and f"{advice}."
