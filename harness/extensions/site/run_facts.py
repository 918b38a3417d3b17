"""What a run's page says of the run, by its own record: what was played, and how to play it again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from harness.api.run_files import SPEC
from harness.extensions.charts.page_record import command
from harness.extensions.submissions.archive import stated_author
from harness.report.citation import facts
from harness.report.provenance import who_answered
from harness.storage.files import no_pipe

from .content import PlayedRun

_MAX_SPEC_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Record:
    """A run's record.

    Attributes:
        facts: what was played, by name.
        command: the command that made it; None if Python made it.
        again: a command that plays its spec again.
        notes: what servers said of who answered, and what else a reader must know.
        spec: the content of spec.yaml; None if there is none.
    """

    facts: Mapping[str, str]
    command: str | None
    again: str
    notes: tuple[str, ...]
    spec: str | None


def record(played: PlayedRun, author: str | None) -> Record:
    """The record of a run. `author`: who publishes it, unless its submission says who submitted it."""
    run = played.run
    known = facts(run.meta, played.scores.id, played.scores.cost, stated_author(run.folder) or author)
    known = {name: value for name, value in known.items() if value not in ("–", "none")}
    models = "" if run.meta.get("policies_only") else " --model …  # the model above"
    spec = _spec(played)
    name = SPEC if spec is not None else str(played.benchmark.name)
    again = f"harness eval --spec {shlex.quote(name)}{models}"
    return Record(known, command(run.meta), again, tuple(who_answered(run.meta)), spec)


def _spec(played: PlayedRun) -> str | None:
    try:
        with open(played.run.folder / SPEC, "rb", opener=no_pipe) as file:
            data = file.read(_MAX_SPEC_BYTES + 1)
    except OSError:
        return None
    return None if len(data) > _MAX_SPEC_BYTES else data.decode("utf-8", "replace")
