"""What the calls of a run have used and cost: the table "Cost", a row a model, and columns of inner calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from .cost import Prices, SpentByModel, spending_notes, spent_by_model, total, usd_cell, usd_digits, usd_of
from .notes import bound_notes
from .scores import EpisodeScore
from .spec import TableSpec
from .table import Cell, Column, Row, Table

Beside = Mapping[str, SpentByModel]
"""Purpose → what was spent on it: on what no number of a run's episodes is about."""
TITLE, TITLE_UNPRICED = "Cost", "Inner calls"
_COUNTS = ("episodes", "replies", "inner_calls", "input", "cached", "output", "uncounted")
_NAMES = {
    "inner_calls": "inner calls",
    "input": "input tokens",
    "cached": "of these cached",
    "output": "output tokens",
    "uncounted": "not counted",
    "usd": "USD",
    "usd_episode": "USD an episode",
}


def table(scores: Sequence[EpisodeScore], prices: Prices, beside: Beside = MappingProxyType({})) -> Table | None:
    """What each model of a run used and cost in all, a row a model; None where no cost is known, and no model answered
    the calls of agents' programs (`inner_calls`, beside the programs' `replies`).

    A model of which nothing is known has no USD, never 0; one of which a part is known has that as a lower bound.
    `beside`: what was paid for besides, a row for each model and purpose.
    """
    own = spent_by_model(scores)
    model_of = {model: model for model in own}
    counted: dict[str, Mapping[str, float]] = {**own}
    for purpose, spent in beside.items():
        for model, counts in spent.items():
            model_of[label := f"{model}, {purpose}"] = model
            counted[label] = counts
    usd = {label: usd_of(counts, prices.get(model_of[label])) for label, counts in counted.items()}
    known = {model: amount for model, amount in usd.items() if amount is not None}
    if not known and not any("inner_calls" in counts for counts in counted.values()):
        return None
    kinds = [kind for kind in _COUNTS if any(counts.get(kind) for counts in counted.values())]
    paid = ["usd", "usd_episode"] if known else []
    rows = []
    for model, counts in counted.items():
        amount, n = usd[model], int(counts["episodes"])
        cells = [Cell(counts.get(kind, 0), n=n) for kind in kinds]
        cells += [usd_cell(amount, n), usd_cell(amount, n, n)] if known else []
        rows.append(Row({"model": model}, (model,), tuple(cells)))
    sums = [(amount.value, amount.value / counted[model]["episodes"]) for model, amount in known.items()]
    least = [min((pair[i] for pair in sums if pair[i]), default=1.0) for i in (0, 1)]
    columns = [Column({"statistic": kind}, (_NAMES.get(kind, kind),), kind) for kind in (*kinds, *paid)]
    digits = dict.fromkeys(kinds, 0) | dict(zip(paid, map(usd_digits, least), strict=False))
    notes = (*spending_notes([own, *beside.values()], prices), *bound_notes(rows)) if known else ()
    if known and len(counted) > len(own):
        notes = (f"{total(usd.values())} in all.", *notes)
    title = TITLE if known else TITLE_UNPRICED
    return Table(title, ("model",), ("statistic",), tuple(columns), tuple(rows), ("Model",), digits=digits, notes=notes)


def beside_calls(entries: Iterable[TableSpec], scores: Iterable[EpisodeScore]) -> list[TableSpec]:
    """The tables; where some have a column of `calls` and episodes have inner calls, with one of these behind it."""
    if not any(score.numbers.get("inner_calls") for score in scores):
        return [*entries]
    return [_beside(entry) for entry in entries]


def _beside(entry: TableSpec) -> TableSpec:
    cells = entry.cells
    if entry.kind is not None or "calls" not in cells or len(cells) < 2 or "inner_calls" in cells:
        return entry
    at = cells.index("calls") + 1
    labels = {"inner_calls": _NAMES["inner_calls"], **entry.labels}
    return replace(entry, cells=(*cells[:at], "inner_calls", *cells[at:]), labels=labels)
