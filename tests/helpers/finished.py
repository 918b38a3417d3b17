"""Small finished runs for charts, reports, comparisons and leaderboards."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import harness
from harness.api import Completion, Request
from harness.engines.mock import Mock
from tests.helpers.hostile import HOSTILE

PANEL = {
    "name": "panel",
    "task": {"use": "arithmetic", "size": 8, "terms": 2},
    "protocol": {
        "use": "darkforest",
        "agents": 3,
        "confidence": "line",
        "terms": ["confidence"],
        "coordinate": "never",
    },
    "prompts": "panels/standard",
    "metrics": ["score"],
    "tables": [{"title": "Right", "rows": "model", "metrics": "score"}],
}


def calculator(wrong_from: int, tokens: int) -> Callable[[Request], Completion]:
    """Answers sums rightly that have fewer terms, each with a confidence of 0.9 or 0.6."""

    def reply(request: Request) -> Completion:
        question = request.thread.messages[-1]["content"]
        sums = re.findall(r"[-+*() \d]{5,}", question)
        value = eval(max(sums, key=len))
        wrong = len(re.findall(r"\d+", max(sums, key=len))) >= wrong_from
        text = f"{HOSTILE}\n#### {value + wrong}\nConfidence: {0.6 if value % 2 else 0.9}"
        return Completion(text, reasoning=HOSTILE, finish_reason="stop", input_tokens=50, output_tokens=tokens)

    return reply


def play(folder: Path) -> None:
    """Finished runs: two models on sums of 2 and 4 terms, a panel with confidences, networks played by policies."""
    sums = ["task.size=5", "matrix.terms=[2,4]"]
    for name, wrong_from, tokens in (("small", 3, 10), (HOSTILE, 9, 90)):
        model = Mock(model=name, function=calculator(wrong_from, tokens))
        place = folder / ("small" if name == "small" else "hostile")
        harness.evaluate("arithmetic", model, overrides=sums, output_path=place)
    harness.evaluate(PANEL, Mock(model="panelist", function=calculator(9, 10)), output_path=folder / "panel")
    harness.evaluate("agentsnet_quick", overrides=["matrix.size=[4,8]"], limit=1, output_path=folder / "network")
