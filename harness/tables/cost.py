"""What tokens cost (`cost:` of tables): prices, and the cells and notes of a table's costs."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Required, TypedDict

from harness.api import Range
from harness.plugins.parameters import Keywords

from .entry import Name
from .keys import TableKey
from .scores import EpisodeScore, finite
from .spec import DerivedCell, TableSpec
from .table import Cell, text

_USD = Annotated[float, Range(ge=0, le=1_000_000)]


class PricesEntry(TypedDict, total=False):
    """What a model costs, as a spec's `prices:` states it."""

    input: Required[Annotated[_USD, "USD per million input tokens"]]
    output: Required[Annotated[_USD, "USD per million output tokens"]]
    cached: Annotated[_USD, "USD per million input tokens that were cached; as input if there is none"]


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens.

    `cached` is the price of input tokens that were in a cache, if these have one of their own; `batch` is the share of
    all of it that a reply in a batch costs.
    """

    input: float
    output: float
    cached: float | None = None
    batch: float = 1.0

    def __str__(self) -> str:
        cached = "" if self.cached is None else f", {self.cached:.10g} cached"
        return f"{self.input:.10g} in{cached}, {self.output:.10g} out"

    def micros(self, kind: str, tokens: float) -> float:
        """Millionths of a USD that tokens add; `cached` ones are part of `input`, and usually take something off."""
        if kind == "cached":
            return 0.0 if self.cached is None else tokens * (self.cached - self.input)
        return tokens * (self.input if kind == "input" else self.output)


Prices = Mapping[str, Price]
"""Model, as tables name it → price."""


def read_prices(entry: Mapping[str, Any] | None) -> dict[str, Price]:
    """The prices that a spec's `prices:` states, a mapping of models to `PricesEntry`."""
    return {
        text(model): Price(price["input"], price["output"], price.get("cached"))
        for model, price in (entry or {}).items()
    }


Parts = Mapping[str, str]
"""Kind of tokens ("input", the "cached" ones among them, "output") → the metric that counts them."""


def cost(parts: Parts, prices: Prices, scores: Sequence[EpisodeScore], failed: int) -> Cell:
    """USD: the sum over all episodes of tokens × price of the episode's model / 10⁶. A total, it has no error.

    Args:
        parts: which metrics count the tokens.
        prices: where one of the models has none, the cell has no value: part of a sum would pass for all of it.
        scores: the episodes; those that lack one of the numbers are left out and counted as missing.
        failed: how many of the episodes failed.
    """
    billed = [(score.model, tokens) for score in scores if (tokens := _tokens(score, parts)) is not None]
    value = None
    if billed and all(model in prices for model, _ in billed):
        value = math.fsum(prices[model].micros(kind, x) for model, tokens in billed for kind, x in tokens) / 1e6
    return Cell(finite(value), None, len(billed), failed, len(scores) - failed - len(billed))


def cost_notes(costs: Mapping[str, Parts], scores: Sequence[EpisodeScore], prices: Prices) -> Iterable[str]:
    """Which prices a table's costs use, which are missing, and which episodes no sum includes."""
    played = [score for score in scores if score.error is None]
    models: dict[str, None] = {}
    short = []
    for name, parts in costs.items():
        billed = [score for score in played if _tokens(score, parts) is not None]
        models |= dict.fromkeys(score.model for score in billed)
        if len(billed) < len(played):
            lacking = " or ".join(parts.values())
            short.append(f"{name} leaves out {len(played) - len(billed)} of {len(played)} episodes: no {lacking}.")
    if priced := [f"{model} {prices[model]}" for model in models if model in prices]:
        yield f"Prices in USD per million tokens: {'; '.join(priced)}."
    if unpriced := [model for model in models if model not in prices]:
        yield (
            f"No cost without a price, and there is none for {', '.join(unpriced)}: give it in the spec as "
            f"prices: {{{unpriced[0]}: {{input: …, output: …}}}}, in USD per million tokens."
        )
    yield from short


def _tokens(score: EpisodeScore, parts: Parts) -> list[tuple[str, float]] | None:
    """(price's name, tokens) of an episode; None if it lacks one."""
    counts = [(price, score.number(metric)) for price, metric in parts.items()]
    present = [(price, count) for price, count in counts if count is not None]
    return present if len(present) == len(parts) else None


class CostParts(TypedDict, total=False):
    """The metrics of a sum of money."""

    input: Name
    cached: Name
    output: Name


class CostEntry(TypedDict, total=False):
    """The keys of a table with costs."""

    cost: Annotated[
        dict[str, Annotated[CostParts, Keywords(minProperties=1)]],
        "a mapping of new names, to be used in `metrics`, to {input: metric, cached: metric, output: metric}, or some "
        "of them: the USD that so many tokens cost at the spec's prices, over all episodes",
    ]
    prices: Annotated[dict[str, PricesEntry], "what models cost in this table; by default, what the spec says"]


@dataclass(frozen=True, slots=True)
class Cost(TableKey):
    """`cost:` of a table: new name → what is billed; and the prices."""

    entry: ClassVar[Any] = CostEntry
    with_kinds: ClassVar[bool] = True

    costs: Mapping[str, Parts]
    prices: Prices = field(default_factory=dict)

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Cost:
        """Read `cost:`, and the prices that the spec has given the table."""
        return cls(entry["cost"], read_prices(entry.get("prices")))

    def cells(self) -> dict[str, DerivedCell]:
        """The sums."""
        return {
            name: DerivedCell("cost", tuple(parts.values()), functools.partial(cost, parts, self.prices))
            for name, parts in self.costs.items()
        }

    def notes(self, table: TableSpec, scores: Sequence[EpisodeScore]) -> Iterable[str]:
        """As `cost_notes`."""
        return cost_notes(self.costs, scores, self.prices)


def priced(table: TableSpec, prices: Prices) -> TableSpec:
    """The table with these prices beside its own."""
    added = tuple(
        replace(key, prices={**prices, **key.prices}) if isinstance(key, Cost) else key for key in table.added
    )
    cells = {name: made for key in added if isinstance(key, Cost) for name, made in key.cells().items()}
    return replace(table, added=added, derived={**table.derived, **cells})
