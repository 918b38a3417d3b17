"""Draws the pictures of the docs: `python docs/images/make.py`. The runs behind them take seconds and no model."""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import viewer

import harness
from harness.api import Completion, Request
from harness.cli import main
from harness.engines.mock import Mock
from harness.extensions.charts.style import blank, look, styled, write

HERE = Path(__file__).parent
LEADERBOARDS = HERE.parent.parent / "results" / "leaderboards"
SKILLS = {"small": 0.75, "medium": 0.9, "large": 0.97}
"""Stand-in → how likely it gets two terms right."""


def calculator(skill: float) -> Callable[[Request], Completion]:
    """Does sums, and errs the more often the longer they are."""

    def reply(request: Request) -> Completion:
        terms = max(re.findall(r"[-+*() \d]{5,}", request.thread.messages[-1]["content"]), key=len)
        numbers = len(re.findall(r"\d+", terms))
        error = random.Random(request.id).random() > skill ** (numbers / 2)
        return Completion(f"The answer is {eval(terms) + error}.", input_tokens=60, output_tokens=20 * numbers)

    return reply


def baselines(file: Path) -> None:
    """Where floor and ceiling of every benchmark lie, from results/leaderboards."""
    documents = [json.loads(path.read_text("utf-8")) for path in sorted(LEADERBOARDS.glob("*.json"))]
    both = [d for d in documents if "floor" in d and "ceiling" in d]
    shown = [d for d in both if not d["spec"].endswith("_quick") and "/" not in d["spec"]][::-1]
    with styled():
        figure = blank(0.3 * len(shown) + 0.8, 6.5)
        axis = figure.subplots()
        for i, document in enumerate(shown):
            ends = [document[role] for role in ("floor", "ceiling")]
            axis.plot([100 * end["value"] for end in ends], [i, i], color="0.75", linewidth=2, zorder=1)
            for j, (role, end) in enumerate(zip(("floor", "ceiling"), ends, strict=True)):
                color = look(j)["color"]
                axis.plot([100 * end["low"], 100 * end["high"]], [i, i], color=color, linewidth=1.2)
                axis.plot(100 * end["value"], i, "os"[j], color=color, label=role if i == 0 else None)
        arrows = {"higher": "↑", "lower": "↓"}
        names = [f"{d['spec']}: {d['headline']['title']} {arrows[d['headline']['better']]}" for d in shown]
        axis.set_yticks(range(len(shown)), names)
        axis.set_xlim(-3, 103)
        axis.set_xlabel("%, with 95 % intervals")
        axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        write(figure, file)


if __name__ == "__main__":
    baselines(HERE / "baselines.svg")
    with tempfile.TemporaryDirectory() as folder:
        runs = [str(Path(folder) / name) for name in SKILLS]
        for run, (name, skill) in zip(runs, SKILLS.items(), strict=True):
            model = Mock(model=name, function=calculator(skill))
            harness.evaluate("arithmetic", model, overrides=["matrix.terms=[2,4,8,16]"], output_path=Path(run))
        main(["plot", *runs, "--kind", "scaling", "-o", str(HERE / "scaling.svg")])
    viewer.take(HERE, [Mock(model=name, function=calculator(skill)) for name, skill in SKILLS.items()])
