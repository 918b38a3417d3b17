"""How far a run is: a bar on a terminal; otherwise a plain line at every tenth, and every half minute."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator
from typing import Any

from harness.cli.terminal import raw
from harness.printable import clean_name
from harness.tables import EpisodeScore


class Progress:
    """Called with every finished episode and the number there will be; first with None.

    `lines` also on a terminal, where a person answers: a bar would be drawn over the questions.
    """

    def __init__(self, title: str, quiet: bool = False, lines: bool = False) -> None:
        self.title, self.quiet, self.lines = clean_name(title), quiet, lines
        self.done = self.failed = self.total = 0
        self._bar: Any = None

    def __call__(self, score: EpisodeScore | None, total: int) -> None:
        self.total = total
        if score is not None:
            self.done += 1
            self.failed += score.error is not None
        if self.quiet:
            return
        if sys.stderr.isatty() and not self.lines:
            self._show_bar()
        elif score is None or self.done * 10 // total > (self.done - 1) * 10 // total:
            failed = f", {self.failed} failed" if self.failed else ""
            print(f"{self.title}: {self.done}/{total} episodes{failed}", file=sys.stderr, flush=True)

    def _show_bar(self) -> None:
        if self._bar is None:
            from tqdm import tqdm

            _drawn.append(self)
            self._bar = tqdm(total=self.total, desc=self.title, unit="episode", leave=False, file=raw(sys.stderr))
        if self.failed:
            self._bar.set_postfix_str(f"{self.failed} failed", refresh=False)
        self._bar.update(self.done - self._bar.n)

    def show(self, counts: str) -> None:
        """Show what else there is to count beside the bar."""
        if self._bar is not None:
            self._bar.set_postfix_str(", ".join([*([f"{self.failed} failed"] if self.failed else []), counts]))

    def close(self) -> None:
        """Leave the terminal clean."""
        if self._bar is not None:
            _drawn.remove(self)
            self._bar.close()
            self._bar = None


_drawn: list[Progress] = []
"""The bars that are being drawn."""


class SeveralProgress:
    """Progress of runs, one after another: called with a name, gives what is called with its episodes.

    Within its `with` block what the harness logs is shown too (`notes`); the terminal is clean after it.
    """

    def __init__(self, quiet: bool = False, lines: bool = False) -> None:
        self.quiet, self.lines = quiet, lines
        self._open: Progress | None = None
        self._notes = notes(quiet)

    def __call__(self, name: str, lines: bool | None = None) -> Progress:
        self._close()
        self._open = Progress(name, self.quiet, self.lines if lines is None else lines)
        return self._open

    def __enter__(self) -> SeveralProgress:
        self._notes.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._close()
        self._notes.__exit__(*error)

    def _close(self) -> None:
        if self._open is not None:
            self._open.close()


class _Notes(logging.Handler):
    """What the harness's modules log, a line each, above a bar that is being drawn."""

    def emit(self, record: logging.LogRecord) -> None:
        if _drawn and hasattr(record, "counts"):
            _drawn[-1].show(record.counts)
            return
        text = self.format(record)
        if "tqdm" in sys.modules:
            from tqdm import tqdm

            tqdm.write(text, file=sys.stderr)
        else:
            print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def notes(quiet: bool = False) -> Iterator[None]:
    """Within this context, show what the harness logs: everything of interest, or warnings only."""
    log, handler = logging.getLogger("harness"), _Notes()
    before = log.level
    log.setLevel(logging.WARNING if quiet else logging.INFO)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
