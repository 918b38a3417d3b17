"""What it is worth that both sides of a pairing play the same deals: python benchmarks/run.py tournament"""

from __future__ import annotations

import statistics
import tempfile
from typing import Any

import harness
from harness.config.project import builtin
from harness.tables import CorpusRecord

CARDS: dict[str, Any] = {
    "use": "world",
    "agents": 2,
    "rules": "Each of you has a card. Raise or fold; the higher card wins.",
    "draw": {"cards": "sample(range(1, 14), 2)"},
    "own": {"raises": False, "coins": 0},
    "sees": {"card": "cards[number]"},
    "actions": {"RAISE": {"effects": {"mine.raises": True}}, "FOLD": {"effects": {"mine.raises": False}}},
    "each_round": {
        "mine.coins": "(4 if all(values(raises)) else 1) * (1 if cards[number] == max(cards) else -1) "
        "if len(set(values(raises))) == 1 else 1 if mine.raises else -1"
    },
    "end": "rounds >= 1",
    "scores": {"returns": "coins"},
}
"""A game of one deal: what is won hangs on the cards more than on the play."""


def _raises_from(card: int) -> dict[str, Any]:
    act = f"'RAISE' if card >= {card} else 'FOLD'"
    return {"label": f"from {card}", "policy": {"use": "expression", "act": act}}


def luck(games: int) -> list[dict[str, object]]:
    """The standard error of the mean difference between two players after so many games, by how they are seated.

    All three are of the games of one tournament: d₁ₖ is the difference in case k with one of them in the first seat,
    d₂ₖ with the other. With n cases the errors are √(Var(d₁ + d₂)/4n) for the same deals from both sides,
    √((Var d₁ + Var d₂)/4n) for other deals on either side, and √(Var d₁/2n) for one side alone.
    """
    n = games // 2
    spec = {
        "name": "luck",
        "task": CARDS,
        "protocol": "steps",
        "prompts": "world/standard",
        "metrics": ["games/results"],
        "tables": [],
        "tournament": {"pool": [_raises_from(7), _raises_from(9)], "games_per_pairing": n},
    }
    sides: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for score in harness.evaluate(spec, output_path=folder, project=builtin()).scores:
            record = score.numbers["games/results"]
            assert isinstance(record, CorpusRecord)
            returns = {contestant: value for contestant, value, *_ in record.value}
            sides.setdefault(score.labels["first"], []).append(returns["from 7"] - returns["from 9"])
    first, second = sides.values()
    both = statistics.variance([a + b for a, b in zip(first, second, strict=True)])
    apart = statistics.variance(first) + statistics.variance(second)
    errors = {
        "the same deals from both sides": (both / 4 / n) ** 0.5,
        "other deals on either side": (apart / 4 / n) ** 0.5,
        "one side alone": (statistics.variance(first) / 2 / n) ** 0.5,
    }
    best = errors["the same deals from both sides"]
    return [
        {
            "seats": how,
            "games": games,
            "standard error": f"{error:.4f}",
            "games for the same error": f"{(error / best) ** 2:.1f}x",
        }
        for how, error in errors.items()
    ]
