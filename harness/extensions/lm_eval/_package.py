"""The installed package: whether it is there, new enough, and quiet."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import logging
import re
from collections.abc import Iterator
from pathlib import Path

from harness.api.errors import SetupError

OLDEST = (0, 4, 12)
"""The first version whose `TaskManager.load` gives tasks and groups as flat mappings."""


def version() -> str:
    """The version of the installed package. Raises `SetupError` if it is missing or too old; imports nothing."""
    hint = 'pip install "mas-eval-harness[lm-eval]"'
    try:
        installed = importlib.metadata.version("lm_eval")
    except importlib.metadata.PackageNotFoundError:
        raise SetupError("lm-eval's tasks need the package lm_eval", hint=hint) from None
    if tuple(map(int, re.findall(r"\d+", installed)[:3])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        message = f"lm_eval {installed} is too old: tasks are loaded with {oldest} and later"
        raise SetupError(message, hint=hint.replace("install", "install --upgrade"))
    return installed


def folder() -> Path:
    """The folder with the package's own tasks. Raises `SetupError` as `version`."""
    version()
    spec = importlib.util.find_spec("lm_eval")
    if spec is None or spec.origin is None:
        raise SetupError("the package lm_eval cannot be imported", hint='pip install "mas-eval-harness[lm-eval]"')
    return Path(spec.origin).parent / "tasks"


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Keep the package's notes, and the progress bars of `datasets`, off the terminal."""
    import datasets

    log, bars = logging.getLogger("lm_eval"), not datasets.utils.is_progress_bar_enabled()
    before = log.level
    log.setLevel(logging.CRITICAL)
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        log.setLevel(before)
        if not bars:
            datasets.enable_progress_bars()
