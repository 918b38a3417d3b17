"""The key `prices:` of a spec: what models cost, for its tables (`cost:`). `user_prices` knows all prices there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from harness.config.keys import SpecKey
from harness.tables.cost import PricesEntry


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
