"""Who answers, as an engine learned it when it started: its name in tables, and what may not change in a run.

An engine may know only its address until it has asked its server, such as an A2A agent for its card. From then on it
has another `Engine.model`, and `Engine.weights`. The journal keeps these, in a line for each start, as a process may be
killed before it writes run.json:

    {"k": "served", "m": name of the engine in the plan, "weights": what it found}
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.api import Engine
from harness.api.errors import SetupError
from harness.storage.files import short_name

if TYPE_CHECKING:
    from harness.runtime.open_episodes import Episodes


def note(episodes: Episodes, name: str, engine: Engine, called: str) -> None:
    """Take what an engine has learned.

    Args:
        episodes: those of its run.
        name: the engine's in the plan.
        engine: the engine, which is started.
        called: its `model` before that.

    Raises:
        SetupError: it found something else when the run began.
    """
    work = episodes.work
    if engine.model != called:
        names = [engine.model if part == short_name(called) else part for part in work.plan.model.split(" + ")]
        work.plan = replace(work.plan, model=" + ".join(map(short_name, names)))
    if engine.weights is None:
        return
    before = work.served.setdefault(name, engine.weights)
    if before != engine.weights:
        message = f"the run in {episodes.folder} began with {before}, and this is {engine.weights}"
        hint = "Start what it began with, or begin another run: choose another --output_path, or add --overwrite."
        raise SetupError(message, hint=hint)
    episodes.journal.append({"k": "served", "m": name, "weights": engine.weights})
