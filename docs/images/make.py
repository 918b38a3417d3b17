"""Draws the pictures of the docs: `python docs/images/make.py`. The runs behind them take seconds and no model."""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import harness
from harness.api import Completion
from harness.cli import main
from harness.engine_api import Request
from harness.engines.mock import Mock

HERE = Path(__file__).parent
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


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        runs = [str(Path(folder) / name) for name in SKILLS]
        for run, (name, skill) in zip(runs, SKILLS.items(), strict=True):
            model = Mock(model=name, function=calculator(skill))
            harness.evaluate("arithmetic", model, overrides=["matrix.terms=[2,4,8,16]"], output_path=Path(run))
        main(["plot", *runs, "--kind", "scaling", "-o", str(HERE / "scaling.svg")])
