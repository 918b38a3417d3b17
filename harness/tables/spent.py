"""The table "Cost": what the calls of a run have used and cost, a row a model, by `EpisodeScore.usage`."""

from __future__ import annotations

from collections.abc import Sequence

from .cost import Prices, spending_notes, spent_by_model, usd_cell, usd_digits, usd_of
from .scores import EpisodeScore
from .table import Cell, Column, Row, Table

TITLE = "Cost"
_COUNTS = ("episodes", "input", "cached", "output", "uncounted")
_NAMES = {
    "input": "input tokens",
    "cached": "of these cached",
    "output": "output tokens",
    "uncounted": "not counted",
    "usd": "USD",
    "usd_episode": "USD an episode",
}


def table(scores: Sequence[EpisodeScore], prices: Prices) -> Table | None:
    """What each model of a run used and cost in all, a row a model; None where no cost is known.

    A model of which nothing is known has no USD, never 0; one of which a part is known has that as a lower bound.
    """
    counted = spent_by_model(scores)
    usd = {model: usd_of(counts, prices.get(model)) for model, counts in counted.items()}
    known = {model: amount for model, amount in usd.items() if amount is not None}
    if not known:
        return None
    kinds = [kind for kind in _COUNTS if any(counts.get(kind) for counts in counted.values())]
    rows = []
    for model, counts in counted.items():
        amount, n = usd[model], int(counts["episodes"])
        cells = [Cell(counts.get(kind, 0), n=n) for kind in kinds]
        cells += [usd_cell(amount, n), usd_cell(amount, n, n)]
        rows.append(Row({"model": model}, (model,), tuple(cells)))
    paid = [(amount.value, amount.value / counted[model]["episodes"]) for model, amount in known.items()]
    least = [min((pair[i] for pair in paid if pair[i]), default=1.0) for i in (0, 1)]
    columns = [Column({"statistic": kind}, (_NAMES.get(kind, kind),), kind) for kind in (*kinds, "usd", "usd_episode")]
    digits = dict.fromkeys(kinds, 0) | {"usd": usd_digits(least[0]), "usd_episode": usd_digits(least[1])}
    notes = tuple(spending_notes(scores, prices))
    return Table(TITLE, ("model",), ("statistic",), tuple(columns), tuple(rows), ("Model",), digits=digits, notes=notes)
