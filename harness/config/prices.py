"""The key `prices:` of a spec: what models cost, for its tables (`cost:`) and for `harness plan`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from harness.api.printable import clean_name
from harness.config.keys import SpecKey
from harness.tables.cost import PricesEntry, read_prices


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

    def estimated(self, figures: Any) -> Iterator[str]:
        """What the tokens cost, if each of the models reads and writes all of them."""
        for model, price in read_prices(self.value).items():
            usd = (figures.input_tokens * price.input + figures.output_tokens * price.output) / 1e6
            yield f"cost            about ${usd:,.2f} with {clean_name(model)} (USD per million tokens: {price})"
