"""What is read of a run's `errors.jsonl` again, and what is taken out of it before scoring."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

from harness.api.errors import DataError, Place

from .files import no_link, no_pipe


def forget_scoring(folder: Path) -> None:
    """Take out of a run's `errors.jsonl` what grading and measuring raised: both are about to be done again.

    Raises `DataError`.
    """
    for path in folder.glob("errors*.jsonl"):
        try:
            _forget_scoring(path)
        except (OSError, UnicodeError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise DataError(f"cannot be read: {why or error}", place=Place(str(path)), hint="Remove it.") from None


def _forget_scoring(path: Path) -> None:
    with open(path, encoding="ascii", opener=no_pipe) as file:
        lines = file.readlines()
    others = [line for line in lines if not re.match(r'\{"stage": "(grade|metric )', line)]
    if not others:
        path.unlink()
    elif len(others) < len(lines):
        with open(path, "w", encoding="ascii", opener=no_link) as file:
            file.write("".join(others))


def tracebacks(folder: Path) -> Iterator[str]:
    """The different tracebacks in a run's `errors.jsonl` and those of its workers, each once."""
    texts = set()
    for path in sorted(folder.glob("errors*.jsonl")):
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace", opener=no_pipe) as lines:
            for line in lines:
                with contextlib.suppress(ValueError, TypeError, AttributeError):  # a torn last line
                    text = json.loads(line).get("traceback")
                    if text is not None and text not in texts:
                        texts.add(text)
                        yield str(text)
