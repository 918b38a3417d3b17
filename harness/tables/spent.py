"""What the calls of a run have cost: USD by what each episode says that its models used (`EpisodeScore.usage`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from .cost import Price, Prices
from .scores import EpisodeScore, finite
from .table import Cell, Column, Row, Table

TITLE = "Cost"
_TOKENS = ("input", "cached", "output")
_COUNTS = ("episodes", "input", "cached", "output", "uncounted")
_USD = {"usd": "USD", "usd_episode": "USD an episode"}


def usd_of(counts: Mapping[str, float], price: Price | None) -> float | None:
    """USD of one model's part of an episode's `usage`; None where its price, or the tokens of a reply, are unknown."""
    if counts.get("uncounted"):
        return None
    own = counts.get("usd", 0.0)
    tokens = [(kind, counts[kind]) for kind in _TOKENS if counts.get(kind)]
    if not tokens:
        return own
    return None if price is None else own + sum(price.micros(kind, count) for kind, count in tokens) / 1e6


def usd_an_episode(scores: Iterable[EpisodeScore], prices: Prices) -> float | None:
    """The mean over the episodes that say what they used; None where one of these has no price: part of a sum would
    pass for all of it."""
    sums: list[float] = []
    for score in scores:
        if not score.usage or any(counts.get("uncounted") for counts in score.usage.values()):
            continue
        parts = [usd_of(counts, prices.get(model)) for model, counts in score.usage.items()]
        if None in parts:
            return None
        sums.append(math.fsum(part or 0.0 for part in parts))
    return finite(math.fsum(sums) / len(sums)) if sums else None


def table(scores: Sequence[EpisodeScore], prices: Prices) -> Table | None:
    """What each model of a run used and cost in all, a row a model; None where no cost is known.

    A model without a price, or with a reply whose tokens are unknown, has no USD, never 0.
    """
    total: dict[str, dict[str, float]] = {}
    for score in scores:
        for model, counts in score.usage.items():
            own = total.setdefault(model, {})
            own["episodes"] = own.get("episodes", 0) + 1
            for kind, count in counts.items():
                own[kind] = own.get(kind, 0) + count
    usd = {model: usd_of(counts, prices.get(model)) for model, counts in total.items()}
    if all(sum_of is None for sum_of in usd.values()):
        return None
    kinds = [kind for kind in _COUNTS if any(kind in counts for counts in total.values())]
    rows = []
    for model, counts in total.items():
        sum_of, n = usd[model], int(counts["episodes"])
        cells = [Cell(counts.get(kind, 0), n=n) for kind in kinds]
        cells += [Cell(sum_of, n=n), Cell(None if sum_of is None else sum_of / n, n=n)]
        rows.append(Row({"model": model}, (model,), tuple(cells)))
    known = [sum_of for sum_of in usd.values() if sum_of]
    least = min((sum_of / total[model]["episodes"] for model, sum_of in usd.items() if sum_of), default=1.0)
    columns = [Column({"statistic": kind}, (_NAMES.get(kind, kind),), kind) for kind in kinds]
    columns += [Column({"statistic": key}, (name,), key) for key, name in _USD.items()]
    digits = dict.fromkeys(kinds, 0) | {"usd": usd_digits(min(known, default=1.0)), "usd_episode": usd_digits(least)}
    notes = tuple(_notes(total, prices))
    return Table(TITLE, ("model",), ("statistic",), tuple(columns), tuple(rows), ("Model",), digits=digits, notes=notes)


_NAMES = {"input": "input tokens", "cached": "of these cached", "output": "output tokens", "uncounted": "not counted"}


def usd_digits(least: float) -> int:
    """As many decimals as the least of some sums needs for two digits other than 0."""
    return min(10, max(2, 1 - math.floor(math.log10(least)))) if least > 0 else 2


def _notes(total: Mapping[str, Mapping[str, float]], prices: Prices) -> Iterable[str]:
    billed = [model for model, counts in total.items() if any(counts.get(kind) for kind in _TOKENS)]
    if priced := [f"{model} {prices[model]}" for model in billed if model in prices]:
        yield f"Prices in USD per million tokens: {'; '.join(priced)}."
    if unpriced := [model for model in billed if model not in prices]:
        yield (
            f"No USD without a price, and there is none for {', '.join(unpriced)}: give it in the spec's `prices:` or "
            "in your `prices.yaml`."
        )
    for model, counts in total.items():
        if count := counts.get("uncounted"):
            yield f"{model}: {count:,.0f} replies do not say how many tokens they took, so its cost is unknown."
