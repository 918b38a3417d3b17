"""Two passes over a case: in the second one every agent knows its own answer of the first (MAS-Bench, Appendix F.5)."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from harness.api import Case, Facts, Move, Outcome, Play, Protocol, Task, Turn


@dataclass(kw_only=True)
class TwoPassProtocol(Protocol):
    """A protocol that defines one pass; the spec chooses one pass or two (Algorithm 3).

    In the second pass every agent starts a new conversation, and channels are empty. Its context has one more fact,
    `previous`: its own answer of the first pass, None if it gave none. Nothing else carries over. The outcome of the
    last pass counts.

    Facts: `first`, {"answers": agent → answer, "facts": …} of the first pass, None if there is but one; `final_from`,
    the number of the first batch of the pass that counts.

    Attributes:
        phases: "two": after the answers the group starts again, and each agent knows only its own answer (`previous` in
            its context); the second pass's answers count (MAS-Bench's one-shot commitment).
    """

    phases: Literal["one", "two"] = "one"

    facts: ClassVar[tuple[str, ...]] = ("first", "final_from")

    @abstractmethod
    def one_pass(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """One pass, like `play` of other protocols. The second pass continues `rng`."""

    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Yield the batches of one pass or of two."""
        first: Facts | None = None
        previous: Facts | None = None
        final_from = 0
        for number in range(2 if self.phases == "two" else 1):
            outcome, batches = yield from _pass(self.one_pass(task, case, agents, rng), previous)
            if number == 0 and self.phases == "two":
                previous = outcome.answers
                first, final_from = {"answers": dict(outcome.answers), "facts": dict(outcome.facts)}, batches
        return replace(outcome, facts={**outcome.facts, "first": first, "final_from": final_from})


def _pass(game: Play, previous: Facts | None) -> Generator[list[Turn], list[Move], tuple[Outcome, int]]:
    """Play one pass; return its outcome and its number of batches."""
    contexts: dict[str, Facts] = {}
    batches = 0
    try:
        batch = next(game)
        while True:
            moves = yield batch if previous is None else [_again(turn, contexts, previous) for turn in batch]
            batches += 1
            batch = game.send(moves)
    except StopIteration as stop:
        return stop.value, batches


def _again(turn: Turn, contexts: dict[str, Facts], previous: Facts) -> Turn:
    """Return the turn for the second pass. An agent's first turn starts its new conversation."""
    opening = turn.agent not in contexts
    if opening:
        contexts[turn.agent] = {**turn.context, "previous": previous.get(turn.agent)}
    return replace(turn, context=contexts[turn.agent], fresh=turn.fresh or opening)
