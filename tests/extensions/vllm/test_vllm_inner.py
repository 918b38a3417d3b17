"""Agents whose own model is the real vLLM in this process: their programs ask it by HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import VLLM_ARGS
from tests.helpers.inner_agents import Place

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore"),  # what vLLM's dependencies say while they are imported
]
ASKS = 'first = ask("Say a or b.", seed=None); say(text="a" if ask("Say: " + first) else "b")'


def test_vllm_answers_the_calls_of_agents_programs(tiny_model: Path, tmp_path: Path) -> None:
    place = Place(tmp_path)
    inner = {"use": "vllm", "pretrained": str(tiny_model), **VLLM_ARGS}
    agent = {"command": place.program(ASKS), "inner": inner, "inner_kwargs": {"max_tokens": 8, "temperature": 0.7}}
    run = place.play(agent)
    assert not run.failed and run.scores[0].labels["model"].endswith(f" ({tiny_model.name})")
    moves, calls = place.lines("move"), place.lines("inner")
    assert len(moves) == 2 and len({call["seed"] for call in calls}) == len(calls) == 4
    for move in moves:
        own = [call["call"] for call in calls if call["s"] == move["s"]]
        assert [call["output_tokens"] <= 8 < call["input_tokens"] for call in own] == [True, True]
        for name in ("input_tokens", "output_tokens"):
            assert move["inner"][name] == move["calls"][0][name] == sum(call[name] for call in own)
