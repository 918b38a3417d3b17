"""A process that plays a part of a run and is killed: `python -m harness.extensions.certificates.killed_run`.

Its standard input says what to play, as JSON with the fields of `KilledRun`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.api.errors import HarnessError, PluginError
from harness.config import spec
from harness.config.project import find
from harness.evaluation.stages import execute
from harness.tables import EpisodeScore

from .trial import Confinement, Player, Rehearsal, die, plan_of


@dataclass(frozen=True)
class KilledRun:
    """What to play, and when to be killed.

    Attributes:
        name, overrides, limit, seed, repeats: the spec, as `harness.config.spec.load` takes it.
        root: the project's folder.
        player: who plays.
        folder: the run's.
        calls: the call of the stand-in at which the process is killed.
        episodes: after how many finished episodes it is killed, where `calls` is 0.
        confinement: the fields of a `Confinement`.
    """

    name: str
    overrides: list[str]
    limit: int | None
    seed: int | None
    repeats: int | None
    root: str
    player: Player
    folder: str
    calls: int
    episodes: int
    confinement: Mapping[str, Any]

    def run(self) -> None:
        """Play it in a process of its own, which must be killed.

        Raises:
            PluginError: it ended otherwise.
        """
        command = [sys.executable, "-P", "-m", "harness.extensions.certificates.killed_run"]
        paths = [str(Path(__file__).resolve().parents[3]), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        data = json.dumps(asdict(self))
        done = subprocess.run(command, input=data, capture_output=True, text=True, env=environment, check=False)
        if done.returncode != -signal.SIGKILL:
            last = next(iter(done.stderr.strip().splitlines()[-1:]), f"exit code {done.returncode}")
            raise PluginError(f"the run in a process of its own was not killed but ended: {last:.300}")

    def play_until_killed(self) -> None:
        """Play in this process, which does not live to see the end."""
        project = find(Path(self.root))
        loaded = spec.load(self.name, project, self.overrides, limit=self.limit, seed=self.seed, repeats=self.repeats)
        plan = plan_of(loaded, project, self.player, Rehearsal(self.calls or None))
        assert plan is not None, "the parent has played it"
        count = 0

        def on_score(score: EpisodeScore | None, total: int) -> None:
            nonlocal count
            count += score is not None
            if not self.calls and count == self.episodes:
                die()

        execute(plan, Confinement(**self.confinement).options(Path(self.folder)), on_score, asked_for=None)


if __name__ == "__main__":
    try:
        KilledRun(**json.load(sys.stdin)).play_until_killed()
    except HarnessError as error:
        sys.exit(" ".join(str(error).split()))
