"""Tables and curves of what training brought."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scipy import stats

NAMES = {"team": "the team's outcome", "agent": "each agent's outcome", "credit": "credit of each turn"}
TASKS = {"ring": "ring", "maximum": "maximum", "dilemma": "dilemma", "table": "table"}


def interval(numbers: Sequence[float]) -> tuple[float, float]:
    """The mean, and half of its 95 % t interval: over the seeds of training, or over the cases that a script plays."""
    if len(numbers) < 2:
        return numbers[0], float("nan")
    half = float(stats.t.ppf(0.975, len(numbers) - 1)) * statistics.stdev(numbers) / len(numbers) ** 0.5
    return statistics.fmean(numbers), half


def shown(numbers: Sequence[float]) -> str:
    """`0.71 ± 0.05`."""
    return "{:.2f} ± {:.2f}".format(*interval(numbers))


def _rows(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows]]


def table(results: Mapping[str, Any]) -> str:
    """Scores on held-out cases, the differences between the kinds of reward, transfer and cross-play, in Markdown."""
    seeds, floor, ceiling = results["seeds"], results["floor"], results["ceiling"]

    def mark(of: Mapping[str, Any], kind: str, task: str) -> str:
        return "{:.2f} ± {:.2f}".format(*of[kind][task]["score"])

    def of(pick: Callable[[Any], Any], metric: str = "score") -> list[list[float]]:
        return [[pick(seed)[task][metric] for seed in seeds] for task in TASKS]

    def last(kind: str) -> Callable[[Any], Any]:
        return lambda seed: seed["curves"][kind][-1]["held_out"]

    rows = [
        ["floor: random", *(mark(floor, "held_out", task) for task in TASKS)],
        ["imitation", *map(shown, of(lambda seed: seed["imitation"]))],
        ["imitation, likeliest tokens", *map(shown, of(lambda seed: seed["greedy"]))],
        *([f"then {NAMES[kind]}", *map(shown, of(last(kind)))] for kind in NAMES),
        ["ceiling: script", *(mark(ceiling, "held_out", task) for task in TASKS)],
    ]
    lines = _rows(["held-out cases", *TASKS], rows)
    pairs = [
        [f"{NAMES[one]} less {NAMES[other]}"]
        + [
            shown([a - b for a, b in zip(left, right, strict=True)])
            for left, right in zip(of(last(one)), of(last(other)), strict=True)
        ]
        for one, other in (("agent", "team"), ("credit", "team"), ("credit", "agent"))
    ]
    lines += ["", *_rows(["differences within seeds", *TASKS], pairs)]
    rows = [
        [name, mark(floor, "transfer", name)]
        + [shown([seed["transfer"][kind][name]["score"] for seed in seeds]) for kind in ("imitation", *NAMES)]
        + [mark(ceiling, "transfer", name)]
        for name in floor["transfer"]
    ]
    heads = ["floor", "imitation", "team", "agent", "credit", "ceiling"]
    lines += ["", *_rows(["never trained on", *heads], rows)]
    cross = results["cross_play"]
    rows = [
        [f"{task} with another seed's decoder", *(shown(cross[kind][task]["score"]) for kind in NAMES)]
        for task in cross["team"]
    ]
    lines += ["", *_rows(["cross-play", "team", "agent", "credit"], rows)]
    return "\n".join(lines) + "\n"


def curves(results: Mapping[str, Any], file: Path) -> None:
    """One panel a task: held-out scores over the updates, with 95 % intervals over the seeds."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams |= {"svg.hashsalt": "train_tiny", "font.size": 8}
    figure, panels = pyplot.subplots(1, len(TASKS), figsize=(9, 2.6), sharey=True, layout="constrained")
    for panel, task in zip(panels, TASKS, strict=True):
        for at, (kind, name) in enumerate(NAMES.items()):
            points = [
                [seed["curves"][kind][step] for seed in results["seeds"]]
                for step in range(len(results["seeds"][0]["curves"][kind]))
            ]
            x = [point[0]["update"] for point in points]
            means, halves = zip(
                *(interval([one["held_out"][task]["score"] for one in point]) for point in points), strict=True
            )
            panel.plot(x, means, color=f"C{at}", label=name, marker=".", markersize=4)
            low, high = (
                [max(0, m - h) for m, h in zip(means, halves, strict=True)],
                [min(1, m + h) for m, h in zip(means, halves, strict=True)],
            )
            panel.fill_between(x, low, high, color=f"C{at}", alpha=0.15, linewidth=0)
        for marks in ("floor", "ceiling"):
            panel.axhline(
                results[marks]["held_out"][task]["score"][0],
                color="gray",
                linestyle=":" if marks == "floor" else "--",
                linewidth=0.8,
            )
        panel.set(title=task, xlabel="updates", ylim=(0, 1.02))
    panels[0].set_ylabel("score on held-out cases")
    panels[0].legend(loc="lower right", frameon=False)
    figure.savefig(file, format="svg", metadata={"Date": None})
    pyplot.close(figure)
