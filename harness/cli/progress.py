"""How far a run is: a bar on a terminal; otherwise a plain line at every tenth, and every half minute."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass
from typing import Any, Self

from harness.api.printable import clean_name
from harness.cli.terminal import raw
from harness.tables import EpisodeScore


@dataclass
class EpisodeCount:
    """Episodes of a run: finished, those of them that failed, and how many there will be. `title`: what is played."""

    title: str = ""
    done: int = 0
    failed: int = 0
    total: int = 0


class Progress(logging.Handler):
    """Progress of runs, one after another, each from `begin` on.

    Within its `with` block what the harness logs is shown too: everything of interest, or warnings only. Those are
    lines above the bar; how far a run is (`harness.runtime.heartbeat`) stands beside it.

    Args:
        quiet: show no progress, and of what is logged warnings only.
        lines: lines also on a terminal, where a person answers: a bar would be drawn over the questions.

    Attributes:
        counts: one for each run that has begun.
    """

    def __init__(self, quiet: bool = False, lines: bool = False) -> None:
        super().__init__()
        self.quiet, self.lines = quiet, lines
        self.counts: list[EpisodeCount] = []
        self._title, self._only_lines = "", lines
        self._bar: Any = None

    def begin(self, title: str, lines: bool | None = None) -> Self:
        """The next run begins; returns what is called with its episodes. `lines`: of this run."""
        self._end_bar()
        self._title, self._only_lines = clean_name(title), self.lines if lines is None else lines
        self.counts.append(EpisodeCount(self._title))
        return self

    def __call__(self, score: EpisodeScore | None, total: int) -> None:
        """A finished episode, and the number there will be; first with None."""
        self.advance(None if score is None else score.error is not None, total)

    def advance(self, failed: bool | None, total: int) -> None:
        """An episode is done, whether it failed, and the number there will be; first with None."""
        count = self.counts[-1]
        count.total = total
        if failed is not None:
            count.done += 1
            count.failed += failed
        if self.quiet:
            return
        if sys.stderr.isatty() and not self._only_lines:
            self._show_bar(count)
        elif failed is None or count.done * 10 // total > (count.done - 1) * 10 // total:
            more = f", {count.failed} failed" if count.failed else ""
            print(f"{self._title}: {count.done}/{total} episodes{more}", file=sys.stderr, flush=True)

    def _show_bar(self, count: EpisodeCount) -> None:
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(total=count.total, desc=self._title, unit="episode", leave=False, file=raw(sys.stderr))
        if count.failed:
            self._bar.set_postfix_str(f"{count.failed} failed", refresh=False)
        self._bar.update(count.done - self._bar.n)

    def _end_bar(self) -> None:
        """Leave the terminal clean."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def emit(self, record: logging.LogRecord) -> None:
        """Show what a module of the harness logs."""
        if self._bar is not None and hasattr(record, "counts"):
            failed = self.counts[-1].failed
            self._bar.set_postfix_str(", ".join([*([f"{failed} failed"] if failed else []), record.counts]))
        elif "tqdm" in sys.modules:  # above any bar, also one of an engine
            sys.modules["tqdm"].tqdm.write(self.format(record), file=sys.stderr)
        else:
            print(self.format(record), file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        log = logging.getLogger("harness")
        self._level = log.level
        log.setLevel(logging.WARNING if self.quiet else logging.INFO)
        log.addHandler(self)
        return self

    def __exit__(self, *error: Any) -> None:
        self._end_bar()
        log = logging.getLogger("harness")
        log.removeHandler(self)
        log.setLevel(self._level)
