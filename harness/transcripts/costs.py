"""What the replies of a transcript cost, by what each agent's model costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.api import Completion, Move
from harness.config.plan import Plan
from harness.config.user_prices import known_prices
from harness.engines.usage import billed, billed_inner
from harness.tables.cost import Price, Usd, total, usd_of


@dataclass(frozen=True, slots=True)
class SeatPrice:
    """What an agent's replies are billed at.

    Attributes:
        price: of its model, or of the one that answers the calls of its program; None if it is not known.
        in_batch: whether its replies come in batches.
        inner_model: the model that answers the calls of its program, by its own name; None if there is none.
    """

    price: Price | None = None
    in_batch: bool = False
    inner_model: str | None = None

    def of_call(self, call: Completion) -> Usd | None:
        """What a reply cost, or an inner call; None if that is not known."""
        return usd_of(billed(call, self.in_batch), self.price)

    def of_move(self, move: Move) -> Usd | None:
        """What a turn cost; None if it asked nothing, or nothing of it is known."""
        if move.inner_calls is not None:
            return usd_of(billed_inner(move.inner_calls), self.price)
        return total(map(self.of_call, move.calls))


def of_moves(moves: Iterable[Move], seat_prices: Mapping[str, SeatPrice]) -> Usd | None:
    """What turns cost together; None if they asked nothing, or nothing of it is known."""
    asked = (move for move in moves if move.calls or move.inner_calls is not None)
    return total(seat_prices.get(move.agent, SeatPrice()).of_move(move) for move in asked)


class SeatPrices:
    """What the seats of a run are billed at, by its record and the prices that are known now.

    Raises:
        SetupError: the user's own prices are none.
    """

    def __init__(self, meta: Mapping[str, Any], plan: Plan | None) -> None:
        self._prices = known_prices(plan.spec.get("prices") if plan is not None else None)
        self._inner, self._batched = meta.get("inner") or {}, meta.get("in_batches") or ()

    def of(self, engine: str, model: str) -> SeatPrice:
        """The rate of an agent: name of its engine in the run, its model's own name."""
        inner = (self._inner.get(engine) or {}).get("model")
        return SeatPrice(self._prices.get(inner or model), engine in self._batched, inner)
