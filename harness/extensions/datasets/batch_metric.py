"""One number of many answers, by code that is not ours, under a clock.

Which of the answers such code cannot end with is found out by trying each alone; it then counts as an empty one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.api.errors import PluginError
from harness.extensions.sandbox import clock
from harness.extensions.sandbox.clock import ClockedFunction, UnreadableTextError
from harness.replies.parse_guard import guarded

Pairs = Sequence[tuple[str, Sequence[str]]]
"""Answers ("" if there is none), each with the right ones."""
BATCH_SECONDS = 60.0
"""Seconds of processor time for many answers, before each is tried alone."""


class BatchMetric:
    """A function of pairs and further arguments that works in the process of the clock.

    Args:
        name: the metric's, for errors.
        make: "module:function", as for `ClockedFunction`.
        arguments: of `make`.
        more: what the function takes beside the pairs when it is first tried, without an answer of a model.
    """

    def __init__(self, name: str, make: str, *arguments: Any, more: tuple[Any, ...] = ()) -> None:
        self.name = name
        warm = ([("0", ["0"])], *more)
        self._alone = ClockedFunction(make, *arguments, warm=warm)
        self._all = ClockedFunction(make, *arguments, warm=warm)
        self._endless: set[str] = set()
        self._seconds = BATCH_SECONDS

    def __call__(self, pairs: Pairs, *more: Any) -> Any:
        """What the function gives. Raises what it raises; `PluginError` if it does not end with empty answers."""
        pairs = self.readable(pairs)
        try:
            if len(pairs) == 1:
                return self._alone(pairs, *more)
            return self._all(pairs, *more, seconds=self._seconds)
        except UnreadableTextError as error:
            bug = error
        endless = {answer: right for answer, right in pairs if answer}
        if len(pairs) > 1:
            endless = {answer: right for answer, right in endless.items() if not self._ends(answer, right, more)}
        if not endless:
            return self._patiently(pairs, more)
        self._endless |= endless.keys()
        guarded(f"metric {self.name}", self, _raising(bug), lambda _: None)  # writes it down
        return self(pairs, *more)

    def readable(self, pairs: Pairs) -> list[tuple[str, Sequence[str]]]:
        """The pairs, with an empty answer for each with which the function has not ended."""
        return [("" if answer in self._endless else answer, right) for answer, right in pairs]

    def _ends(self, answer: str, right: Sequence[str], more: tuple[Any, ...]) -> bool:
        try:
            self._alone([(answer, right)], *more)
        except UnreadableTextError:
            return False
        except Exception:  # all answers together may please it better
            return True
        return True

    def _patiently(self, pairs: Pairs, more: tuple[Any, ...]) -> Any:
        """With the time that so many answers may take, since it ends with each."""
        self._seconds = max(self._seconds, clock.SECONDS * len(pairs))
        try:
            return self._all(pairs, *more, seconds=self._seconds)
        except UnreadableTextError as error:
            raise PluginError(f"the metric {self.name} does not finish with {len(pairs)} answers") from error


def _raising(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail
