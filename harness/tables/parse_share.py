"""Which share of the turns of models was parsed: a number of a model that says nothing means nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from harness.storage import UNANSWERED

from .scores import EpisodeScore

DEFAULT_MIN_READ: Final = 0.5
"""The share of turns that must be parsed where a spec says nothing else (`headline: {min_read: …}`)."""


@dataclass(frozen=True, slots=True)
class ParseShare:
    """What became of the turns in which models were asked.

    Attributes:
        asked: how many there were; 0 where policies played.
        answered: those with an answer, readable or not.
        failed: kind of error → those that ended without an action.
    """

    asked: int
    answered: int
    failed: Counter[str]

    @classmethod
    def of(cls, scores: Iterable[EpisodeScore]) -> ParseShare:
        """Those of all models in these episodes together."""
        counts: Counter[str] = Counter()
        for score in scores:
            for turns in score.turns.values():
                counts.update(turns)
        return cls.counted(counts)

    @classmethod
    def counted(cls, counts: Mapping[str, int]) -> ParseShare:
        """Of the counts that a score has of a model's turns (`EpisodeScore.turns`)."""
        failed = Counter({kind: count for kind, count in counts.items() if kind not in ("asked", "answered") and count})
        asked = counts.get("asked", 0)
        # A turn may be answered first, unreadably, and its last request fail: it counts as one that failed.
        answered = min(counts.get("answered", 0), asked - sum(failed[kind] for kind in UNANSWERED))
        return cls(asked, answered, failed)

    @property
    def read(self) -> int:
        """Turns that were answered, and whose answer was read."""
        return self.asked - self.failed.total()

    @property
    def share(self) -> float | None:
        """The share of turns that were parsed; None where no model was asked."""
        return self.read / self.asked if self.asked else None


def by_model(scores: Iterable[EpisodeScore]) -> dict[str, ParseShare]:
    """Model, by the label of its episodes → what became of its turns."""
    groups: dict[str, list[EpisodeScore]] = {}
    for score in scores:
        groups.setdefault(score.model, []).append(score)
    return {model: ParseShare.of(own) for model, own in groups.items()}


def by_named_model(scores: Iterable[EpisodeScore]) -> dict[str, ParseShare]:
    """Name of a model in the spec, of which an episode may have several → what became of its turns."""
    turns: dict[str, Counter[str]] = {}
    for score in scores:
        for name, counts in score.turns.items():
            turns.setdefault(name, Counter()).update(counts)
    return {name: ParseShare.counted(counts) for name, counts in turns.items()}


def in_percent(part: int, whole: int) -> str:
    """A share in percent; never 100 % or 0 % for what is not all or nothing."""
    share = 100 * part / whole if whole else 0.0
    return f"{min(max(share, 0.1), 99.9):.1f} %" if 0 < part < whole else f"{share:.0f} %"
