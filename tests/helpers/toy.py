"""The toy project: its spec, run with any engine, and what a run leaves behind."""

from pathlib import Path
from typing import Any

import harness
from harness.config.project import find

TOY = find(Path(__file__).parent.parent / "toy")


def run(folder: Path, model: Any = None, overrides: tuple[str, ...] = (), **more: Any) -> harness.Run:
    """Evaluate the spec `toy`: two conditions of four cases."""
    return harness.evaluate("toy", model, overrides=overrides, output_path=folder, project=TOY, **more)


def results(folder: Path) -> dict[str, bytes]:
    """The files that must be the same however a run came about."""
    return {name: (folder / name).read_bytes() for name in ("scores.jsonl", "results.json", "tables.md")}
