"""What agents await runs in one event loop of the process: a client that a module keeps open serves all of them."""

import asyncio
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from harness.api import Request, Thread
from harness.api.errors import RequestError
from harness.extensions.agents.agent import Agent

CODE = """
import asyncio, threading

loops, ended, block = [], threading.Event(), threading.Event()

async def linger():
    try:
        await asyncio.Event().wait()
    finally:
        ended.set()

async def reply(messages):
    loops.append(asyncio.get_running_loop())
    if messages[-1]["content"] == "linger":
        loops[-1].lingering = asyncio.create_task(linger())
    elif messages[-1]["content"] == "block":
        block.wait()
    elif messages[-1]["content"] == "stop":
        loops[-1].stop()
    return "yes"
"""
_names = itertools.count()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module that keeps the loops in which its `reply` ran."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    name = f"loops_of_a_test_{next(_names)}"
    Path(f"{name}.py").write_text(CODE)
    yield name
    loaded(name).block.set()
    del sys.modules[name]


def loaded(name: str) -> Any:
    module: ModuleType = sys.modules[name]
    return module


async def ask(engine: Agent, text: str) -> str:
    thread = Thread()
    thread.add("user", text)
    return (await engine.complete(Request("e/Ann/0/0", thread, {}, 1))).text


def use(module: str, *texts: str, engines: int = 1, **fields: Any) -> None:
    """Start engines of the module, ask each of them each text, close them."""

    async def work() -> None:
        started = [Agent(call=f"{module}:reply", **fields) for _ in range(engines)]
        for engine in started:
            await engine.start()
        try:
            for text in texts:
                assert await asyncio.gather(*(ask(engine, text) for engine in started)) == ["yes"] * engines
        finally:
            for engine in started:
                await engine.close()

    asyncio.run(work())


def test_engines_and_runs_share_it(module: str) -> None:
    use(module, "a", "b", engines=2)
    use(module, "c")
    [loop] = set(loaded(module).loops)
    assert len(loaded(module).loops) == 5 and not loop.is_closed()


def test_what_an_agent_leaves_running_ends_with_the_last_engine(module: str) -> None:
    use(module, "linger")
    assert loaded(module).ended.wait(10)


def test_an_agent_that_stops_it_ends_nothing(module: str) -> None:
    use(module, "stop", "a")
    use(module, "b")
    assert len(set(loaded(module).loops)) == 1


@pytest.mark.slow
def test_an_agent_that_blocks_it_blocks_no_later_run(module: str) -> None:
    with pytest.raises(RequestError, match="no reply within"):
        use(module, "block", timeout=0.2)
    use(module, "a")
    assert len(set(loaded(module).loops)) == 2
