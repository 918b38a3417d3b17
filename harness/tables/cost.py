"""What calls cost: prices, the one rule by which all parts bill them (`usd_of`), and `cost:` of tables.

The rule: a reply costs what it says itself; one that says nothing costs its tokens at its model's price
(`harness.engines.usage.billed`). Where neither is known, its cost is unknown: a sum that lacks it is a lower bound and
says so (`Usd.whole`), and never passes for all.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Final, Literal, Required, TypedDict

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
    batch: Annotated[float, Range(ge=0, le=1), "the share of all this that a reply in a batch costs; 1 by default"]


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
        text(model): Price(price["input"], price["output"], price.get("cached"), price.get("batch", 1.0))
        for model, price in (entry or {}).items()
    }


@dataclass(frozen=True, slots=True)
class Usd:
    """An amount of money: `value` USD, or at least that where it is not the `whole` of what it stands for."""

    value: float
    whole: bool = True

    def __str__(self) -> str:
        """
        >>> print(Usd(0.25), Usd(1234.5), Usd(0.00012, whole=False))
        0.25 USD 1,234.50 USD at least 0.00012 USD
        """
        least = "" if self.whole else "at least "
        return f"{least}{self.value:,.{usd_digits(self.value)}f} USD"


def usd_cell(amount: Usd | None, n: int | None, shares: int = 1, **more: Any) -> Cell:
    """A cell with an amount, or with one of so many equal shares of it."""
    if amount is None:
        return Cell(None, n=n, **more)
    return Cell(amount.value / shares, n=n, beyond=None if amount.whole else "least", **more)


def usd_digits(least: float) -> int:
    """As many decimals as the least of some sums needs for two digits other than 0."""
    return min(10, max(2, 1 - math.floor(math.log10(least)))) if least > 0 else 2


def total(amounts: Iterable[Usd | None]) -> Usd | None:
    """The sum of amounts, of which None are unknown: a lower bound if some are; None if all are, or there are none."""
    values, whole = list[float](), True
    for amount in amounts:
        whole = whole and amount is not None and amount.whole
        values += [] if amount is None else [amount.value]
    value = finite(math.fsum(values)) if values else None
    return None if value is None else Usd(value, whole)


TOKENS: Final = ("input", "cached", "output")
"""Kinds of tokens that have a price."""


def usd_of(counts: Mapping[str, float], price: Price | None) -> Usd | None:
    """What sums of `harness.engines.usage.billed` over replies of one model come to; None if nothing of it is known."""
    whole, known = not counts.get("uncounted"), counts.get("usd")
    tokens = [(kind, counts[kind]) for kind in TOKENS if counts.get(kind)]
    if tokens and price is not None:
        less = price.batch - 1.0
        micros = [price.micros(kind, count + less * counts.get(f"batch_{kind}", 0)) for kind, count in tokens]
        known = (known or 0.0) + math.fsum(micros) / 1e6
    elif tokens:
        whole = False
    elif known is None and whole:
        known = 0.0
    return None if known is None else Usd(known, whole)


def usd_of_episode(score: EpisodeScore, prices: Prices) -> Usd | None:
    """What the calls of an episode cost; None if it made none, or nothing of it is known.

    A score of before there was `EpisodeScore.usage` is billed by its metrics `tokens_input` and `tokens_output`, at the
    price of its model.
    """
    if score.usage:
        return total(usd_of(counts, prices.get(model)) for model, counts in score.usage.items())
    tokens, price = [*(score.number(name) for name in ("tokens_input", "tokens_output"))], prices.get(score.model)
    if price is None or None in tokens:
        return None
    return usd_of({"input": tokens[0] or 0.0, "output": tokens[1] or 0.0}, price)


def usd_of_episodes(scores: Iterable[EpisodeScore], prices: Prices) -> list[Usd | None]:
    """What each episode in which models answered cost."""
    return [usd_of_episode(score, prices) for score in scores if score.usage or score.answered or _counted(score)]


def usd_an_episode(scores: Iterable[EpisodeScore], prices: Prices) -> Usd | None:
    """The mean over the episodes in which models answered: a lower bound where a part of what they cost is unknown."""
    amounts = usd_of_episodes(scores, prices)
    paid = total(amounts)
    return paid and Usd(paid.value / len(amounts), paid.whole)


def _counted(score: EpisodeScore) -> bool:
    """Whether a score of before there was `usage` says how many tokens its calls took."""
    return score.number("tokens_input") is not None


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


def whole_cost(prices: Prices, scores: Sequence[EpisodeScore], failed: int) -> Cell:
    """USD of all calls of the episodes, failed ones too: they were paid for."""
    amounts = usd_of_episodes(scores, prices)
    paid, known = total(amounts), sum(amount is not None for amount in amounts)
    played = [score for score in scores if not score.failed]
    missing = len(played) - sum(amount is not None for amount in usd_of_episodes(played, prices))
    return usd_cell(paid, known, failed=failed, missing=missing)


def spending_notes(spent: Iterable[SpentByModel], prices: Prices) -> Iterable[str]:
    """At which prices costs are counted, which are missing, and what is counted in no cost."""
    counts = dict[str, Counter[str]]()
    for one in spent:
        for model, own in one.items():
            counts.setdefault(model, Counter()).update(own)
    priced = [model for model, own in counts.items() if any(own.get(kind) for kind in TOKENS)]
    if rates := [f"{model} {prices[model]}" for model in priced if model in prices]:
        yield f"Prices in USD per million tokens: {'; '.join(rates)}."
    if unpriced := [model for model in priced if model not in prices]:
        yield (
            f"No USD without a price, and there is none for {', '.join(unpriced)}: give it in the spec's `prices:` or "
            "in your `prices.yaml`."
        )
    for model, own in counts.items():
        if count := own.get("uncounted"):
            yield f"{model}: {count:,.0f} replies do not say how many tokens they took, so what they cost is unknown."


SpentByModel = Mapping[str, Mapping[str, float]]
"""As `spent_by_model`."""


def spent_by_model(scores: Iterable[EpisodeScore]) -> dict[str, dict[str, float]]:
    """Model, by its own name → sums of what its calls are billed by, and "episodes", in how many it was asked."""
    total_of: dict[str, dict[str, float]] = {}
    for score in scores:
        for model, counts in score.usage.items():
            own = total_of.setdefault(model, {})
            own["episodes"] = own.get("episodes", 0) + 1
            for kind, count in counts.items():
                own[kind] = own.get(kind, 0) + count
    return total_of


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
        dict[str, Literal["all"] | Annotated[CostParts, Keywords(minProperties=1)]],
        "a mapping of new names, to be used in `metrics`, to `all`: the USD that all calls of the episodes cost; or to "
        "{input: metric, cached: metric, output: metric}, or some of them: the USD that so many tokens would cost at "
        "the spec's prices",
    ]
    prices: Annotated[dict[str, PricesEntry], "what models cost in this table; by default, what the spec says"]


@dataclass(frozen=True, slots=True)
class Cost(TableKey):
    """`cost:` of a table: new name → what is billed; and the prices."""

    entry: ClassVar[Any] = CostEntry
    with_kinds: ClassVar[bool] = True

    costs: Mapping[str, Parts | Literal["all"]]
    prices: Prices = field(default_factory=dict)

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Cost:
        """Read `cost:`, and the prices that the spec has given the table."""
        return cls(entry["cost"], read_prices(entry.get("prices")))

    def cells(self) -> dict[str, DerivedCell]:
        """The sums."""
        return {
            name: DerivedCell("cost", (), functools.partial(whole_cost, self.prices))
            if isinstance(parts, str)
            else DerivedCell("cost", tuple(parts.values()), functools.partial(cost, parts, self.prices))
            for name, parts in self.costs.items()
        }

    def notes(self, table: TableSpec, scores: Sequence[EpisodeScore]) -> Iterable[str]:
        """As `cost_notes`, and as `spending_notes`."""
        parts = {name: parts for name, parts in self.costs.items() if not isinstance(parts, str)}
        if parts:
            yield from cost_notes(parts, scores, self.prices)
        if len(parts) < len(self.costs):
            yield from spending_notes([spent_by_model(scores)], self.prices)


def priced(table: TableSpec, prices: Prices) -> TableSpec:
    """The table with these prices beside its own."""
    added = tuple(
        replace(key, prices={**prices, **key.prices}) if isinstance(key, Cost) else key for key in table.added
    )
    cells = {name: made for key in added if isinstance(key, Cost) for name, made in key.cells().items()}
    return replace(table, added=added, derived={**table.derived, **cells})
