"""The answers of a group in a picture: which of them are equal, how they read, and which are right."""

from __future__ import annotations

from collections.abc import Iterable

from harness.api import Action, Task
from harness.extensions.panels.panels import candidate
from harness.extensions.viewer.scenes import answer_of, brief, is_right
from harness.transcripts.view_api import Transcript


class Answers:
    """Groups equal answers; each group has a color, and reads as its first answer does.

    Attributes:
        colors: what `Panel`s compare answers by (`candidate`) → its color, from 0.
        words: the same key → the answer in words.
    """

    def __init__(self, transcript: Transcript, task: Task) -> None:
        assert transcript.case is not None
        self.transcript, self.task, self.case = transcript, task, transcript.case
        self.colors: dict[str, int] = {}
        self.words: dict[str, str] = {}
        self._right: dict[str, bool | None] = {}

    def key(self, answer: Action) -> str | None:
        """One text for all equal answers; None if there is none."""
        key = None if answer is None else candidate(self.task, self.case, answer)
        if key is not None and key not in self.colors:
            self.colors[key] = len(self.colors)
            self.words[key] = brief(answer, 40)
        return key

    def color(self, answer: Action) -> int | None:
        """The color of the answer."""
        return self.colors.get(self.key(answer) or "")

    def right(self, answer: Action) -> bool | None:
        """Whether it is right; None if there is no answer, or nothing quick can say."""
        key = self.key(answer)
        if key is not None and key not in self._right:
            self._right[key] = is_right(self.task, self.transcript, answer_of(answer))
        return None if key is None else self._right[key]

    def counts(self, answers: Iterable[Action]) -> dict[str, float]:
        """The answer in words → how many of these are equal to it."""
        counts: dict[str, float] = {}
        for answer in answers:
            if (key := self.key(answer)) is not None:
                counts[self.words[key]] = counts.get(self.words[key], 0) + 1
        return counts
