"""Everybody names the same letter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from harness.api import Case, Facts, Outcome, Parsed, Range, Reply, Task, plugin


@dataclass(frozen=True, slots=True)
class Letter(Reply):
    letters: tuple[str, ...]

    @property
    def options(self) -> tuple[str, ...]:
        return self.letters

    def parse(self, text: str) -> Parsed:
        word = text.strip()
        return Parsed(word) if word in self.letters else Parsed(error=f"say one of {', '.join(self.letters)}")

    def constraint(self) -> Mapping[str, object]:
        return {"choice": list(self.letters)}


@plugin
class Pick(Task):
    """Everybody must name the same letter."""

    grades = ("agreed",)

    agents: Annotated[int, Range(ge=1, le=50)] = 3
    letters: Literal["ab", "abc"] = "ab"
    cases_made: int = 4
    broken: Literal["", "cases", "context", "grade"] = ""
    data_dir: str | None = None

    def cases(self, limit: int | None, seed: int) -> Iterable[Case]:
        count = self.cases_made if limit is None else min(limit, self.cases_made)
        for i in range(count):
            yield self._case(i)

    def example(self) -> Case:
        return self._case(0)

    def _case(self, i: int) -> Case:
        if self.broken == "cases":
            raise RuntimeError("no cases today")
        names = tuple(f"S{k}" for k in range(self.agents))
        return Case(id=f"c{i}", agents=names, public={"number": i}, target="a", labels={"number": i})

    def context(self, case: Case, agent: str) -> Facts:
        if self.broken == "context" and agent == "S1":
            raise RuntimeError("no context for S1")
        return {"name": agent, "number": case.public["number"]}

    def reply(self, case: Case, agent: str) -> Reply:
        return Letter(tuple(self.letters))

    def grade(self, case: Case, outcome: Outcome) -> dict[str, float | None]:
        if self.broken == "grade":
            raise RuntimeError("cannot grade")
        results = {str(outcome.answers.get(s)) for s in case.agents if s not in case.unscored}
        return {"agreed": float(len(results) == 1 and results <= set(self.letters))}
