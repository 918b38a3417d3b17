"""The task `parroting`, whose replies need an engine that repeats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness_echo.repetition import Repetition

from harness.api import Case, Facts, Outcome, plugin
from harness.extensions.panels.questions import Question, QuestionTask


@plugin
class Parroting(QuestionTask):
    """Say a word again.

    Attributes:
        words: how many words there are.
    """

    words: int = 3

    grades = ("score",)

    def cases(self, limit: int | None, seed: int) -> Iterator[Case]:
        """Yield a case a word."""
        for number in range(self.words if limit is None else min(limit, self.words)):
            word = "cuckoo" + "o" * number
            yield Case(word, ("bird",), target=word)

    def context(self, case: Case, agent: str) -> Facts:
        """What the prompt shows."""
        return {"question": self.question_of(case).text, "instruction": "Answer with the word alone."}

    def secrets(self, case: Case) -> Facts:
        """None: the word to say is in the question."""
        return {}

    def question_of(self, case: Case) -> Question:
        """The question."""
        return Question(f"Say {case.target}")

    def reply(self, case: Case, agent: str) -> Repetition:
        """The form of the answer."""
        return Repetition(str(case.target))

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, Any]:
        """1 for the word, else 0."""
        return {"score": float(outcome.answers.get("bird") == case.target)}
