"""What a run may use, and what it has used: model calls, tokens, seconds. This counts; what refuses calls beyond the
budget is `harness.engines.bounded_usage`.

A budget is not part of what a run is: it decides how far this process goes, never what is measured, and the run can be
resumed. What a spec allows an episode or an agent is in `harness.config.limits`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.api import Completion, Engine
from harness.api.errors import BudgetSpentError, SetupError

if TYPE_CHECKING:
    from harness.api import InnerUsage

MAX_BUDGET = 10**18 - 1


@dataclass(frozen=True)
class Budget:
    """What a run may use; None: no limit.

    Attributes:
        max_calls: requests to engines, failed ones too, in all processes of the run together.
        max_tokens_total: input and output tokens of the replies, in all processes together. A reply's tokens are known
            only when it arrives, so requests in flight when the sum reaches this come on top.
        max_cost: USD, in all processes together; requests in flight then come on top.
        max_time: seconds from the start of this process's run, in which it may make new calls.

    Raises:
        SetupError: a value that is no such number.
    """

    max_calls: int | None = None
    max_tokens_total: int | None = None
    max_time: float | None = None
    max_cost: float | None = None

    def __post_init__(self) -> None:
        for name in ("max_calls", "max_tokens_total"):
            value = getattr(self, name)
            if value is not None and not (type(value) is int and 1 <= value <= MAX_BUDGET):
                raise SetupError(f"{name} must be a whole number from 1 to 10^18 − 1, found {value!r:.40}")
        span = self.max_time
        if span is not None and not (type(span) in (int, float) and 0 < span <= MAX_BUDGET):
            raise SetupError(f"max_time must be a number of seconds above 0, found {span!r:.40}")
        usd = self.max_cost
        if usd is not None and not (type(usd) in (int, float) and 0 < usd <= MAX_BUDGET):
            raise SetupError(f"max_cost must be a number of USD above 0, found {usd!r:.40}")


def billed(call: Completion, in_batch: bool = False) -> dict[str, float]:
    """What a reply is billed by (`harness.tables.cost.usd_of`): {"usd": …} if it says itself what it cost; else its
    tokens, "input", "cached" and "output", of a batch also as "batch_input", …; {"uncounted": 1} if it says neither."""
    if call.cost is not None:
        return {"usd": call.cost}
    if call.input_tokens is None or call.output_tokens is None:
        return {"uncounted": 1}
    counts = {"input": call.input_tokens, "cached": call.cached_tokens or 0, "output": call.output_tokens}
    return {**counts, **({f"batch_{kind}": count for kind, count in counts.items()} if in_batch else {})}


def billed_inner(used: InnerUsage) -> dict[str, float]:
    """The same of a turn's inner calls, as if each were billed by itself."""
    tokens = {
        "input": used.unpriced_input_tokens,
        "cached": used.unpriced_cached_tokens,
        "output": used.unpriced_output_tokens,
    }
    if used.cost is None:  # all tokens, which older runs do not have apart
        tokens = {"input": used.input_tokens, "cached": used.cached_tokens, "output": used.output_tokens}
        return {**tokens, "uncounted": used.uncounted}
    silent = used.uncounted if any(tokens.values()) else max(0, used.calls - used.failed - used.priced)
    return {"usd": used.cost, **tokens, "uncounted": silent}


@dataclass(frozen=True)
class Spent:
    """Calls, tokens, seconds and millionths of a USD that were used of a budget."""

    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    micros: int = 0


class Usage:
    """What a run has used, of all its engines. Without a budget there is no limit.

    Args:
        calls, tokens: what earlier processes of the run used.

    Attributes:
        budget: what it may use.
        bounded: whether `take` has to be asked before each call.
        write: journals [calls, tokens] and returns when that outlives this process; may raise `StorageError`.
        answers, output_tokens, turns: what this process was answered, and the turns of models that it has recorded;
            `inner_calls`: how many of the answers were to calls of agents' programs; for progress only.
        micros: millionths of a USD, where costs are bounded.
        late: answers that came when tokens or costs were used up already: their requests were in flight.
        exhausted: why it is used up, where another process keeps the count and has said so.
    """

    def __init__(self, calls: int = 0, tokens: int = 0) -> None:
        self.calls, self.tokens = calls, tokens
        self.answers = self.output_tokens = self.turns = self.inner_calls = self.micros = self.late = 0
        self.budget, self.bounded = Budget(), False
        self._journaled = (calls, tokens)
        self.write: Callable[[list[int]], None] | None = None
        self.exhausted: BudgetSpentError | None = None

    def check(self) -> None:
        """Raises `BudgetSpentError` when nothing is left, `EngineFatalError` when tokens cannot be counted."""

    def check_kept(self) -> None:
        """Raises `EngineFatalError` if it is not known what an answer used of the budget."""

    def is_unproven(self, engine: Engine) -> bool:
        """Whether only an answer of this engine will show that what it uses can be counted."""
        return False

    def check_time(self) -> None:
        """Raises `BudgetSpentError` when the time is over."""

    def time_left(self) -> float | None:
        """The seconds that are left; None without a limit."""
        return None

    def time_over(self) -> BudgetSpentError:
        """The error to raise when the time is up."""
        return BudgetSpentError("max_time", self.budget.max_time or 0)

    async def take(self) -> None:
        """Count a call that is about to be made, so that never more are in flight than there may be. Raises as
        `check`."""
        self.calls += 1

    def answered(self, answer: Completion, engine: Engine) -> None:
        """Count the tokens of an engine's answer."""
        self.tokens += (answer.input_tokens or 0) + (answer.output_tokens or 0)
        self.output_tokens += answer.output_tokens or 0
        self.answers += 1

    def halt(self, reason: Exception) -> None:
        """The run is about to end: no call waits in `take` any longer."""

    def unjournaled(self, *, ending: bool = False) -> list[int] | None:
        """[calls, tokens] that were used and are not journaled, for the journal; None: nothing.

        Args:
            ending: no call follows. The calls are below zero then, where more were reserved than made.
        """
        before = self._journaled
        self._journaled = (self.calls if ending else max(self.calls, before[0]), self.tokens)
        return None if self._journaled == before else [self._journaled[0] - before[0], self.tokens - before[1]]
