"""What extensions have found out about an episode since it was played: the extension point `findings`.

An extension keeps it in a file of the run's folder. The viewer shows it beside the episode, and exports carry it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.extensions.transcripts.view_api import Transcript
from harness.manifests import Offer, offers


@dataclass(frozen=True, slots=True)
class TurnFinding:
    """What was found out about a turn.

    Attributes:
        words: in a few words, such as "decisive"; "" where it only has facts.
        facts: the same as plain data.
    """

    words: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found out about an episode.

    Attributes:
        title: what was looked for.
        text: what was found, in a sentence or two.
        turns: number of a turn → what was found out about it.
        shares: agent → its share of what the title says.
        facts: all of it as plain data.
    """

    title: str
    text: str
    turns: Mapping[int, TurnFinding] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


def kept(folder: Path) -> dict[str, Offer]:
    """Name → what reads the findings that the run in `folder` has; an extension is not imported for a run without."""
    return {name: offer for name, offer in offers("findings").items() if (folder / offer.value["file"]).is_file()}


def findings(folder: Path, transcript: Transcript) -> Iterator[tuple[str, Finding]]:
    """(name of the point, finding), of an episode of the run in `folder`; those that no longer hold are left out.

    What cannot be read is left out too: a transcript is shown without it.
    """
    for name, offer in kept(folder).items():
        try:
            found = [*offer.load_function()(folder, transcript)]
        except (UserError, OSError):
            continue
        for one in found:
            yield name, one
