"""The toy project's spec, played against a stand-in server that speaks as some provider does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
from tests.helpers.fake_openai import Body, FakeOpenAI, Fault, status
from tests.helpers.toy import TOY, results

ENGINE = {"model": "fake", "backoff": 0.0, "max_backoff": 0.0, "api_key_env": "NO_SUCH_KEY"}


def play(folder: Path, server: FakeOpenAI, engine: dict[str, Any] | None = None, **options: Any) -> harness.Run:
    """Eight episodes and more, by `repeats`."""
    fields = {**ENGINE, "base_url": server.url, **(engine or {})}
    return harness.evaluate("toy", "openai", model_args=fields, output_path=folder, project=TOY, **options)


def calm(folder: Path, **options: Any) -> dict[str, bytes]:
    """The results of a server that does nothing strange: its model says "a" or "b", by the seed."""
    with FakeOpenAI(by_seed) as server:
        play(folder, server, **options)
    return results(folder)


def by_seed(body: Body) -> str:
    """What the model says."""
    return "ab"[body["seed"] % 2]


def every(count: int, fault: Fault) -> Any:
    """A fault at the first request of every so many seeds."""
    seen: set[int] = set()

    def faults(body: Body) -> Fault | None:
        seed = body["seed"]
        if seed % count or seed in seen:
            return None
        seen.add(seed)
        return fault

    return faults


def refusing(message: str, when: Callable[[Body], bool]) -> Callable[[Body], Fault | None]:
    """HTTP 400 for some requests."""
    fault = status(400, message)
    return lambda body: fault if when(body) else None


def report(run: harness.Run) -> dict[str, Any]:
    """What the engine says of itself in run.json."""
    found: dict[str, Any] = run.meta["engines"]["model"]
    return found


def errors(run: harness.Run) -> list[str]:
    """Errors of all moves."""
    return [turn["error"] for turn in run.turns() if turn.get("error")]
