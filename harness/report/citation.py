"""What must be known of a run to cite it, or to run it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from harness.report.provenance import limit_of, mapping, players_of, sampling_of, spec_of
from harness.tables import Row, Table, text

TITLE: Final = "Where these numbers come from"
_DIGEST: Final = 12  # characters of a digest


def facts(meta: Mapping[str, Any], folder: Path | str, cost: str, author: str | None) -> dict[str, str]:
    """What must be known of a run to cite it or to run it again, by name.

    Args:
        meta: the content of run.json.
        folder: where the run is.
        cost: what it cost, in words.
        author: who stands for the numbers, if that is known.
    """
    spec, git = spec_of(meta), mapping(meta, "git")
    prompts = mapping(mapping(meta, "identity"), "prompts")
    commit = text(git.get("commit")) + (" (with changes)" if git.get("dirty") else "")
    found = {
        "author": author or "–",
        "date": f"{_time(meta.get('start'))} to {_time(meta.get('end'))}",
        "model": players_of(meta),
        "harness": text(mapping(meta, "versions").get("harness")),
        "commit": commit,
        "spec": f"{text(meta.get('spec'))}, digest {text(meta.get('spec_digest'))[:_DIGEST]}",
        "prompts": ", ".join(f"{name} {text(digest)[:_DIGEST]}" for name, digest in prompts.items()) or "–",
        "sampling": sampling_of(meta),
        "seed": text(spec.get("seed", 0)),
        "limit": limit_of(spec),
        "repeats": text(spec.get("repeats", 1)),
        "cost": cost,
        "run": str(folder),
    }
    return {name: value.replace("\n", " ") for name, value in found.items()}


def as_table(runs: Sequence[tuple[str, Mapping[str, str]]]) -> Table:
    """A table of texts: of each run, by its name, what `facts` says; a row a fact."""
    rows = [
        Row({"run": name, "what": what, "value": value}, (name, what, value), ())
        for name, known in runs
        for what, value in known.items()
    ]
    return Table(TITLE, ("run", "what", "value"), (), (), tuple(rows), row_names=("Run", "", ""))


def _time(when: Any) -> str:
    """A time of run.json without the parts of a second; what is no time stays as it is."""
    try:
        return datetime.fromisoformat(when).isoformat(" ", "seconds")
    except (TypeError, ValueError):
        return text(when)
