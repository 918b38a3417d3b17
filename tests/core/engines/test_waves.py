"""Engines that collect requests get all of a wave: what can be asked before one of them is answered."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.api import Completion, Request
from harness.engines.mock import Mock
from harness.engines.waves import Waves
from tests.conftest import request
from tests.helpers.collector import Collector, by_seed
from tests.helpers.toy import results, run

Play = list[list[int]]
"""The episodes of a task, one after another: -1 asks the engine that collects, n one that answers n rounds later."""


@given(st.lists(st.lists(st.lists(st.integers(-1, 12), max_size=5), max_size=3), min_size=1, max_size=6))
def test_a_wave_has_a_request_of_everyone_who_plays(plays: list[Play]) -> None:
    engine, waves = Collector(), Waves()
    playing, missing = set[str](), list[set[str]]()

    async def play(name: str, episodes: Play) -> None:
        playing.add(name)
        for number, steps in enumerate(episodes):
            asked = waves.engines({"model": engine}, f"{name}/{number}")["model"]
            for step in steps:
                if step < 0:
                    await asked.complete(request(name))
                for _ in range(step):
                    await asyncio.sleep(0)
        playing.discard(name)

    def send() -> None:
        missing.append(playing - {asked.thread.messages[-1]["content"] for asked, _ in engine.collected})
        engine.send()

    async def main() -> None:
        engine.collect(lambda _: waves.when_all_wait(send), Path())
        tasks = [asyncio.create_task(play(f"{n}", episodes)) for n, episodes in enumerate(plays)]
        waves.watch(tasks)
        await asyncio.gather(*tasks)

    asyncio.run(main())
    assert not set().union(*missing)
    assert sum(engine.sizes()) == sum(step < 0 for play in plays for episode in play for step in episode)
    assert len(engine.waves) == max(sum(step < 0 for episode in play for step in episode) for play in plays)


@pytest.mark.parametrize("more", [(), ("dedupe_calls=true",)])
def test_each_round_of_a_run_is_a_wave(tmp_path: Path, more: tuple[str, ...]) -> None:
    engine = Collector()
    run(tmp_path / "waves" / "run", engine, more)
    run(tmp_path / "plain" / "run", Mock(function=by_seed), more)
    assert len(engine.waves) == 3 and engine.sizes()[0] == (20 if not more else 12)
    waves, plain = results(tmp_path / "waves" / "run"), results(tmp_path / "plain" / "run")
    # Tokens in batches are counted apart too, since they are cheaper; here all are.
    waves["scores.jsonl"] = re.sub(rb', "batch_input": \d+, "batch_output": \d+', b"", waves["scores.jsonl"])
    assert waves == plain


def test_engines_that_answer_at_once_are_waited_for(tmp_path: Path) -> None:
    """The aggregator of each panel is asked last, when its members have answered: by then those of others wait."""
    spec = {
        "name": "mixed",
        "task": {"use": "arithmetic", "size": 6},
        "protocol": {"use": "mixture_of_agents"},
        "prompts": "panels/standard",
        "models": {f"slow-{n}": {"use": "mock", "latency": n / 300} for n in range(3)},
        "agents": {
            "default": {"model": "slow-0"},
            "last": {"model": "model", "agents": ["Aggregator"]},
            **{f"slow-{n}": {"model": f"slow-{n}", "share": 0.25} for n in (1, 2)},
        },
        "metrics": ["score"],
    }
    engine = Collector()
    harness.evaluate(spec, engine, output_path=tmp_path / "run")
    assert engine.sizes() == [6]


def test_retries_are_part_of_the_next_wave(tmp_path: Path) -> None:
    class Mumbling(Collector):
        async def complete(self, request: Request) -> Completion:
            said = await super().complete(request)
            return said if request.id.endswith("/1") or request.seed % 3 else Completion("?", output_tokens=1)

    engine = Mumbling()
    run(tmp_path / "run", engine)
    assert len(engine.waves) <= 6 and sum(engine.sizes()) > 60
