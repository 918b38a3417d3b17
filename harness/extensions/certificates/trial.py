"""What is played to certify a benchmark: its floor, its ceiling, and a stand-in for a model."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from harness import storage
from harness.api import Completion, Request
from harness.api.run_files import SCORES, TABLES_MD
from harness.config import resolve
from harness.config.plan import Plan
from harness.config.project import Project
from harness.config.spec import Spec
from harness.evaluation.run import Run
from harness.evaluation.stages import execute
from harness.extensions.stress.stand_in import PLAIN, StandIn
from harness.runtime.options import Options
from harness.storage import finished_episodes

Player = Literal["floor", "ceiling", "baseline", "stand-in"]
PLAYERS: Final[tuple[Player, ...]] = ("floor", "ceiling", "baseline", "stand-in")
"""The spec's `baseline`, or the policies that it seats itself, play where its headline names neither floor nor
ceiling."""
_WRITTEN: Final = 0.2
"""Seconds after which the journal holds what was handed to it: twice what it promises."""


class Rehearsal(StandIn):
    """A stand-in model that may end its process as a power cut would.

    Args:
        kill_at: the number of the call, from 1, at which the process is killed; None: it is not.
    """

    def __init__(self, kill_at: int | None = None) -> None:
        super().__init__(PLAIN)
        self.kill_at, self.calls = kill_at, 0

    def __call__(self, request: Request) -> Completion:
        self.calls += 1
        if self.calls == self.kill_at:
            die()
        return super().__call__(request)


def die() -> None:
    """End this process with SIGKILL, once the journal has written what it has: what is after that is lost."""
    threading.Event().wait(_WRITTEN)
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Confinement:
    """What the user allows to run: as in `harness.runtime.options.Options`."""

    allow_code_execution: bool = False
    sandbox: Literal["process", "bwrap", "weaker"] = "process"

    def options(self, folder: Path) -> Options:
        """The options of a run that goes on whatever fails: what fails is counted."""
        return Options(
            output_path=folder,
            max_error_rate=1.0,
            allow_code_execution=self.allow_code_execution,
            sandbox=self.sandbox,
        )


def plan_of(loaded: Spec, project: Project, player: Player, model: Rehearsal | None = None) -> Plan | None:
    """What a player plays; None where the spec names no such policy, or has no place for a model.

    Raises:
        SpecError, PluginError: as `resolve.plan`.
    """
    headline, own = loaded.get("headline", {}), loaded.get("baseline") is not None
    if player == "stand-in":
        plan = resolve.plan(loaded, project, (model or Rehearsal()).engine("stand-in"))
        return plan if "model" in plan.seated_models else None
    if player == "baseline":
        if "floor" in headline or "ceiling" in headline:
            return None
        return resolve.plan(loaded, project) if own or plan_of(loaded, project, "stand-in") is None else None
    policy = headline.get(player)
    if policy is None:
        return None
    return resolve.plan(resolve.with_baseline(loaded, policy, "headline", player), project)


def play(plan: Plan, folder: Path, confinement: Confinement) -> Run:
    """Play a plan, or what is left of it in that folder. Raises as `execute`."""
    return execute(plan, confinement.options(folder), asked_for=None)


def digests(run: Run) -> dict[str, str]:
    """What must be the same in two runs of one plan: each file of results, and the moves, as SHA-256."""
    made = {name: _sha256((run.folder / name).read_bytes()) for name in (SCORES, TABLES_MD)}
    return made | {"moves": _sha256("\n".join(sorted(_moves(run.folder))).encode())}


def finished(folder: Path) -> int:
    """How many episodes the journals of a folder hold to their end."""
    return sum(1 for _ in finished_episodes.batches(*_journals(folder)))


def _moves(folder: Path) -> Iterator[str]:
    for end, batches in finished_episodes.batches(*_journals(folder)):
        moves = [[(move.agent, move.turn, move.action, move.error_kind) for move in batch] for batch in batches]
        yield json.dumps([end["e"], end.get("outcome"), [batch for batch in moves if batch]], default=str)


def _journals(folder: Path) -> list[Path]:
    return [path for path in storage.journals(folder) if path.is_file()]


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def options_of(loaded: Any) -> dict[str, Any]:
    """The parts of a loaded spec that its options may have changed, as a card lists them."""
    return {key: loaded.get(key) for key in ("limit", "seed", "repeats") if loaded.get(key) is not None}
