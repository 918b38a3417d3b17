"""The exceptions that the harness raises on purpose, in one tree.

    HarnessError
    ├── UserError            a mistake of the user: printed without a traceback, exit code 2
    │   ├── SpecError        a YAML document is malformed or not allowed
    │   │   └── CombinedSpecError  several such mistakes at once
    │   ├── PluginError      a plugin is missing, broken, or has wrong parameters
    │   ├── PromptError      a template does not compile or render
    │   ├── DataError        data or results cannot be read or written
    │   │   ├── NotPreparedError  what a protocol reads before a run is missing, or is about other agents
    │   │   └── StorageError the journal can no longer be written: the run stops and can be resumed
    │   └── SetupError       a package, server, model or file that the run needs is missing
    ├── BudgetSpentError     the run's budget is used up: its episode waits for a later run
    └── EngineError          one model request failed: it becomes a Move with an error
        ├── ContextLengthError   the prompt does not fit; the episode continues
        ├── RequestError         it failed after every retry; the episode continues
        │   ├── RefusedError     the engine refused its content: another try would not help
        │   └── InnerCallError   the model that an agent program called failed, and the program with it
        ├── LimitReachedError    a limit of the seat or the turn allows no further inner call
        └── EngineFatalError     the engine is unusable: the run stops and can be resumed

Model text never raises: see `harness.api.Parsed`.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Final

KEY: Final = "\0key"
"""Last in a path into YAML, it means the key itself rather than its value."""
ValuePath = tuple[Hashable, ...]
"""Where a value stands: mapping keys and list indices from the top."""


@dataclass(frozen=True, slots=True)
class Place:
    """A file, and a line and column in it, counted from 1 (0: unknown).

    What has no file that a person could open has a `name` in its stead, such as "the spec's task.size".
    """

    file: str
    line: int = 0
    column: int = 0
    name: str = ""

    def __str__(self) -> str:
        return self.name or (f"{self.file}:{self.line}:{self.column}" if self.line else self.file)


class HarnessError(Exception):
    """Base of all errors that the harness raises on purpose."""


class UserError(HarnessError):
    """A mistake that the user can correct.

    Args:
        message: what is wrong, and what was found.
        place: the file, line and column to look at.
        hint: what to do about it.
        at: the parameter in question (and where in it), for callers that know the place of parameters.
    """

    def __init__(
        self, message: str, *, place: Place | None = None, hint: str | None = None, at: tuple[str | int, ...] = ()
    ) -> None:
        super().__init__(message)
        self.message, self.place, self.hint, self.at = message, place, hint, at

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        then = f"\n  {self.hint}" if self.hint else ""
        return f"{where}{self.message}{then}"


class SpecError(UserError):
    """A YAML document is malformed, or says something that is not allowed."""


class CombinedSpecError(SpecError):
    """Several mistakes at once. `each` holds their texts, each text once."""

    def __init__(self, each: Iterable[str]) -> None:
        self.each = tuple(dict.fromkeys(each))
        count = f"{len(self.each)} problems:\n" if len(self.each) > 1 else ""
        super().__init__(count + "\n".join(self.each))


class PluginError(UserError):
    """A plugin is missing, broken, or has wrong parameters."""


class PromptError(UserError):
    """A template does not compile or does not render."""


class DataError(UserError):
    """Data, a recorded run or a results folder cannot be read or written."""


class NotPreparedError(DataError):
    """What a protocol reads before a run (`Protocol.prepare`) is missing, or is about other agents or prompts."""

    def advise(self, options: Any) -> None:
        """Let the hint name the command that prepares it for the run of these options of `harness eval`."""


class StorageError(DataError):
    """The journal can no longer be written (disk full, folder gone). Everything written so far stays readable."""


class SetupError(UserError):
    """Something outside the spec is missing: a package, a server, a model, a permission."""


class BudgetSpentError(HarnessError):
    """The run's budget allows no new request.

    Args:
        by: the part that is used up: `max_calls`, `max_tokens_total`, `max_cost` (USD) or `max_time` (seconds).
        at: its value.
    """

    def __init__(self, by: str, at: float) -> None:
        super().__init__(f"{by} {at:.15g} is reached" if isinstance(at, float) else f"{by} {at} is reached")
        self.by, self.at = by, at

    def __reduce__(self) -> tuple[type[BudgetSpentError], tuple[str, float]]:
        return type(self), (self.by, self.at)  # it travels between processes


class EngineError(HarnessError):
    """One model request failed. `kind` is what the move records; `is_fault`: whether the engine is to blame."""

    kind = "engine"
    is_fault = True


class ContextLengthError(EngineError):
    """The conversation no longer fits the model's context window."""

    kind = "context_length"
    is_fault = False


class RequestError(EngineError):
    """The request failed after every retry. Another time it may succeed."""

    kind = "request"


class RefusedError(RequestError):
    """A working engine refused the request because of its content or form."""

    kind = "refused"


class InnerCallError(RequestError):
    """An agent program gave no reply since a call of its own model failed: not the program's fault."""

    kind = "inner"
    is_fault = False


class LimitReachedError(EngineError):
    """A limit of a turn or a seat allows no further call of an agent program's model."""

    kind = "limit"
    is_fault = False


class EngineFatalError(EngineError):
    """The engine is unusable (dead process, bad credentials, no server): the run stops and can be resumed."""

    kind = "fatal"


MAX_MISTAKES = 30
"""Problems that one error shows."""


def _where(error: SpecError) -> tuple[str, int, int]:
    return (error.place.file, error.place.line, error.place.column) if error.place else ("", 0, 0)


def raise_all(errors: Iterable[SpecError]) -> None:
    """Raise one error that lists the first `MAX_MISTAKES` of `errors`; nothing if there are none."""
    mistakes = sorted(itertools.islice(errors, MAX_MISTAKES + 1), key=_where)
    if len(mistakes) == 1:
        raise mistakes[0]
    if len(mistakes) > MAX_MISTAKES:
        mistakes[MAX_MISTAKES:] = [SpecError(f"… and more; these are the first {MAX_MISTAKES}")]
    if mistakes:
        raise CombinedSpecError(map(str, mistakes))


def near(name: str, choices: Iterable[str]) -> str:
    """A sentence for a name that does not exist: the near matches first, then the choices.

    >>> near("colouring", ["coloring", "matching"])
    'Did you mean coloring? Available: coloring, matching.'
    >>> near("games/random", ["random", "oracle"])
    'Did you mean random? Available: oracle, random.'
    """
    known = sorted(set(choices))
    if not known:
        return "None found."
    # "agentsnet/colouring" should also find "coloring": compare whole names, then last parts.
    tails: dict[str, list[str]] = {}
    for k in known:
        tails.setdefault(k.rsplit("/", 1)[-1], []).append(k)
    tail = name.rsplit("/", 1)[-1]
    close = [*tails.get(tail, ()), *difflib.get_close_matches(name, known, n=3, cutoff=0.6)]
    close += [k for t in difflib.get_close_matches(tail, tails, n=3, cutoff=0.75) for k in tails[t]]
    close = list(dict.fromkeys(close))[:3]
    shown = ", ".join(known[:30]) + (f", … ({len(known)} in all)" if len(known) > 30 else "")
    return (f"Did you mean {' or '.join(close)}? " if close else "") + f"Available: {shown}."
