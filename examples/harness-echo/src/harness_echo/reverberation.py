"""Findings: what `echo.json` in a run's folder says of an episode, on its page and in exports.

The file maps ids of episodes to how often a sound came back. A run without the file costs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from harness.transcripts.view_api import Finding, Transcript

FILE = "echo.json"


def found(folder: Path, transcript: Transcript) -> Iterator[Finding]:
    """Yield what is known about the episode."""
    counts = json.loads((folder / FILE).read_text("utf-8"))
    if isinstance(count := counts.get(transcript.id), int):
        yield Finding(title="Reverberation", text=f"The sound came back {count} times.", facts={"count": count})
