"""The keys: `prices:` of a spec, and `cost:` of a table, which has the spec's prices."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypedDict

from harness.config.keys import SpecKey
from harness.parameters import Keywords
from harness.printable import clean_name
from harness.tables import DerivedCell, EpisodeScore, TableKey, TableSpec
from harness.tables.entry import Name

from .costs import Parts, Prices, PricesEntry, cost, cost_notes, read_prices

if TYPE_CHECKING:
    from harness.extensions.estimates.estimate import Estimate


class PricesKey(SpecKey):
    """`prices:` of a spec."""

    entry = Annotated[
        dict[str, PricesEntry],
        "what models cost, by the names that tables show: {MODEL: {input: USD, output: USD}} per million tokens; "
        "tables show it with `cost:`",
    ]

    def table(self, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """A table with costs has these prices."""
        return {"prices": self.value, **entry} if "cost" in entry else entry

    def estimated(self, figures: Estimate) -> Iterator[str]:
        """What the tokens cost, if each of the models reads and writes all of them."""
        for model, price in read_prices(self.value).items():
            usd = (figures.input_tokens * price.input + figures.output_tokens * price.output) / 1e6
            yield f"cost            about ${usd:,.2f} with {clean_name(model)} (USD per million tokens: {price})"


class CostParts(TypedDict, total=False):
    """The metrics of a sum of money."""

    input: Name
    output: Name


class CostEntry(TypedDict, total=False):
    """The keys of a table with costs."""

    cost: Annotated[
        dict[str, Annotated[CostParts, Keywords(minProperties=1)]],
        "a mapping of new names, to be used in cell, to {input: metric, output: metric}, or one of them: the USD that "
        "so many tokens cost at the spec's prices, over all episodes",
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
        """As `costs.cost_notes`."""
        return cost_notes(self.costs, scores, self.prices)


def priced(table: TableSpec, prices: Prices) -> TableSpec:
    """The table with these prices in the place of its own."""
    added = tuple(replace(key, prices=prices) if isinstance(key, Cost) else key for key in table.added)
    cells = {name: made for key in added if isinstance(key, Cost) for name, made in key.cells().items()}
    return replace(table, added=added, derived={**table.derived, **cells})
