"""`harness new leaderboard NAME`: a folder for a public repository that takes submissions."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from harness import __version__
from harness.api.errors import SpecError
from harness.config.project import find

from .pins import PINS, pin, write_pins


def finish(folder: Path, options: argparse.Namespace) -> Iterator[str]:
    """Pin the digests of its specs and the version of harness; yields what to try.

    Raises:
        SpecError, PluginError: a spec cannot be resolved.
    """
    if options.kind:
        raise SpecError("a leaderboard has no --kind", hint="Its specs are yours: change specs/ afterwards.")
    for path in (folder / "requirements.txt", folder / "README.md"):
        path.write_text(path.read_text("utf-8").replace("__VERSION__", __version__), "utf-8")
    specs = sorted(path.stem for path in (folder / "specs").glob("*.yaml"))
    write_pins(pin(specs, find(folder)), folder / PINS)
    yield "git init -b main && git add -A && git commit -m 'A leaderboard'"
    yield f"harness eval --spec {specs[0]} --model vllm --model_args pretrained=… --output_path results/mine"
    yield "harness submit results/mine -o submissions/mine.zip"
    yield f"harness verify submissions/mine.zip --pins {PINS}"
