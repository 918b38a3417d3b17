"""The interface of tasks: cases, what agents see of them, and how answers are graded."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .episode import Case, Outcome, Turn
from .reply import Action, Facts, Reply

if TYPE_CHECKING:
    pass

Grading = Literal["quick", "slow", "executes"]


@dataclass(frozen=True, slots=True)
class Statistic:
    """A number, its standard error (None below two observations) and the number of observations."""

    value: float | None
    stderr: float | None
    n: int


class Task(ABC):
    """A family of cases and their grading. Fields are YAML parameters.

    The base class decides which protocols can play it: a `QuestionTask`, a `NetworkTask`, a `SteppedTask`
    (`harness.extensions`), or this one for protocols that need nothing more.

    `grades` and `grading` are constants of the class (`grades = ("solved",)`), or properties if they depend on
    parameters.
    """

    wanted: tuple[str, ...] = ()  # those of `optional_grades` that metrics of the spec need: `grades` has them too

    @property
    def grades(self) -> tuple[str, ...]:
        """The names that `grade` returns; metrics need them."""
        return ()

    @property
    def optional_grades(self) -> tuple[str, ...]:
        """Names that `grade` returns only if a metric needs them (`wanted`), such as texts beside right answers."""
        return ()

    @property
    def grading(self) -> Grading:
        """How `grade` runs.

        "slow" runs in a thread of its own. "executes" does so too and runs programs that models wrote, which needs
        `--allow_code_execution`.
        """
        return "quick"

    def stands_in(self, folder: Path) -> None:
        """Receive the folder of the spec, to which paths in it are relative; by default a task ignores it."""

    def looks_in(self, roots: Sequence[Path]) -> None:
        """Receive the folders from which relative paths of data count, the working directory first: the first that has
        the file decides. By default a task ignores them."""

    @abstractmethod
    def cases(self, limit: int | None, seed: int) -> Iterable[Case]:
        """Yield the first `limit` cases (all if None), always the same ones for a seed."""

    def example(self) -> Case:
        """Return a small case that needs no data and no heavy package. `validate` renders prompts with it."""
        return next(iter(self.cases(1, 0)))

    def inputs(self, seed: int) -> Sequence[str]:
        """Lines about the content of the user's own files. A run prints them first, so that misread files show."""
        return ()

    @abstractmethod
    def context(self, case: Case, agent: str) -> Facts:
        """The agent's context: the only facts that it starts with. Never the target."""

    def secrets(self, case: Case) -> Facts:
        """Values that no agent may find in its context, by name: by default the right answer."""
        return {} if case.target is None else {"target": case.target}

    @abstractmethod
    def reply(self, case: Case, agent: str) -> Reply:
        """The form of the agent's final answer."""

    @abstractmethod
    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, Any]:
        """Return a value for every name in `grades`. It must be total: defined for every outcome.

        A value is a number, None, or the JSON value that a `CorpusMetric` keeps of the episode.
        """

    def canonical(self, case: Case, action: Action) -> str:
        """One text for all equal answers; votes count by it. By default the answer as JSON."""
        return json.dumps(action, sort_keys=True)

    def question_text(self, case: Case) -> str:
        """The question of a case, if it is a text. The draws of a policy that uses the ground truth depend on it."""
        return ""

    def ordinary(self) -> Callable[[Turn], Action] | None:
        """A player whose episodes have ordinary length, for estimates; None if idle agents play the longest
        episodes."""
        return None

    def misfit(self, needed: type[Task]) -> str | None:
        """Why a protocol that needs `needed` cannot play these cases, for the spec's author; None if it can."""
        return None if isinstance(self, needed) else f"{type(self).__name__} is not a {needed.__name__}"
