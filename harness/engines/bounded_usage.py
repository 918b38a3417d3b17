"""The budget of a run: no call is made beyond it (`--max_calls`, `--max_tokens_total`,
`--max_cost`, `--max_time`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Literal

from harness.api import Completion, Engine
from harness.api.errors import BudgetSpentError, EngineFatalError
from harness.engines.usage import Budget, Usage, billed
from harness.tables.cost import Price, usd_of

RESERVED = 32
"""Calls that are reserved in the journal in advance, at most: as many at once as costs little and wastes little."""


class BoundedUsage(Usage):
    """What a run has used of its budget.

    Where calls are bounded each is reserved in the journal before it is made. So the journal of a process that is
    killed shows at least the calls it made, and the run never makes more than it may.

    Args:
        budget: what it may use.
        calls, tokens: what earlier processes of the run used.
        now: a clock in seconds; the time starts to run here.
        seconds: what is used of the time already.
    """

    def __init__(
        self,
        budget: Budget,
        calls: int = 0,
        tokens: int = 0,
        now: Callable[[], float] = time.monotonic,
        seconds: float = 0.0,
    ) -> None:
        super().__init__(calls, tokens)
        self.budget, self.bounded, self._now = budget, budget != Budget(), now
        self._end = None if budget.max_time is None else now() + budget.max_time - seconds
        self._uncounted: Engine | None = None
        self._prices: Mapping[str, Price] = {}
        self._unpriced, self._micros_journaled = "", 0
        self._states_cost: set[str] = set()  # models without a price whose answers say what they cost

    def count_costs(self, prices: Mapping[str, Price], micros: int) -> None:
        """Count money from here on: model → price, and the millionths of a USD that earlier processes used."""
        self._prices = prices
        self.micros = self._micros_journaled = micros

    def check(self) -> None:
        budget = self.budget
        if budget.max_calls is not None and self.calls >= budget.max_calls:
            raise BudgetSpentError("max_calls", budget.max_calls)
        self.check_kept()
        for name in ("max_tokens_total", "max_cost"):
            if self._is_used_up(name):
                raise BudgetSpentError(name, getattr(budget, name))
        self.check_time()

    def _is_used_up(self, name: Literal["max_tokens_total", "max_cost"]) -> bool:
        most = getattr(self.budget, name)
        used = self.tokens if name == "max_tokens_total" else self.micros / 1e6
        return most is not None and used >= most

    def check_kept(self) -> None:
        self.check_counted()
        if self._unpriced:
            remedy = "Give the spec prices: {MODEL: {input: …, output: …}}, in USD per million tokens"
            elsewhere = "or write that into prices.yaml in the folder of your configuration"
            raise EngineFatalError(f"max_cost cannot be kept: {self._unpriced}. {remedy}, {elsewhere}")

    def is_unproven(self, engine: Engine) -> bool:
        known = engine.model in self._prices or engine.model in self._states_cost
        return self.budget.max_cost is not None and not known and not self._unpriced and not engine.collects

    def check_time(self) -> None:
        if self._end is not None and self._now() >= self._end:
            raise self.time_over()

    def check_counted(self) -> None:
        """Raises `EngineFatalError` if tokens are bounded and an engine does not report them."""
        if self._uncounted is not None and self.budget.max_tokens_total is not None:
            message = f"{self._uncounted.model} does not say how many tokens its calls take"
            raise EngineFatalError(f"{message}: max_tokens_total cannot be kept")

    def time_left(self) -> float | None:
        return None if self._end is None else max(0.0, self._end - self._now())

    async def take(self) -> None:
        self.check()
        self._count(self.budget.max_calls)

    def _count(self, most: int | None) -> None:
        """One call more, of `most`."""
        if most is not None and self.write is not None and self.calls >= self._journaled[0]:
            ahead = min(RESERVED, 1 + (most - self.calls) // 20)
            self.write([ahead, 0])
            self._journaled = (self.calls + ahead, self._journaled[1])
        self.calls += 1

    def answered(self, answer: Completion, engine: Engine) -> None:
        self.late += self._is_used_up("max_tokens_total") or self._is_used_up("max_cost")
        super().answered(answer, engine)
        if answer.input_tokens is None or answer.output_tokens is None:
            self._uncounted = engine
        if self.budget.max_cost is not None:
            self._count_cost(answer, engine)

    def _count_cost(self, answer: Completion, engine: Engine) -> None:
        price = self._prices.get(engine.model)
        amount = usd_of(billed(answer, engine.collects), price)
        if amount is not None and amount.whole:
            self.micros += round(amount.value * 1e6)
            if price is None:
                self._states_cost.add(engine.model)
        else:
            lack = "does not say how many tokens its calls take" if price is not None else "has no price"
            self._unpriced = f"{engine.model} {lack}"

    def unjournaled(self, *, ending: bool = False) -> list[int] | None:
        """[calls, tokens, millionths of a USD], the last only where costs are bounded."""
        found, new = super().unjournaled(ending=ending), self.micros - self._micros_journaled
        self._micros_journaled = self.micros
        return [*(found or [0, 0]), new] if new else found
