"""A finished run whose episodes are played again: its plan, its recorded turns, and whether it still is what it was."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness import storage
from harness.api import Move, Turn
from harness.api.errors import DataError, Place, near
from harness.api.run_files import SPEC
from harness.config import resolve
from harness.config.plan import Job, Plan, episode_id, prepare, protocol_seed, survey
from harness.config.project import Project, find
from harness.engines.mock import Mock
from harness.evaluation.load_run import load_run
from harness.evaluation.run import Run
from harness.runtime import run_json
from harness.runtime.run_schema import check_journals
from harness.runtime.sources import changed, changed_files, code
from harness.runtime.steps import Steps
from harness.runtime.verification import dispute
from harness.storage import finished_episodes

_MAX_LISTED = 3
_DECIDES = ("task", "protocol", "prompts", "agents", "matrix", "seed", "baseline", "generation_kwargs", "limits")
"""Keys of a spec by which the same moves are other episodes, or the same turns other moves."""


@dataclass(frozen=True, slots=True)
class BaseTurn:
    """A recorded turn.

    Attributes:
        number: its place in the episode, over all agents, from 0.
        round: its batch, from 0.
        index: its agent's own turns before it.
        turn: what was asked.
        move: what was done.
    """

    number: int
    round: int
    index: int
    turn: Turn
    move: Move


@dataclass(kw_only=True)
class PlayedEpisodes:
    """Episodes that were played: what `Simulation` needs of them.

    Attributes:
        plan: whose they are.
        project: where its plugins are.
        jobs: the episodes, by id.
        batches: the moves of those that are known, by id.
    """

    plan: Plan
    project: Project
    jobs: dict[str, Job]
    batches: dict[str, list[list[Move]]] = field(default_factory=dict)

    def played(self, episode: str) -> list[BaseTurn]:
        """The turns of an episode whose moves are known, in order."""
        condition, case, repeat = self.jobs[episode]
        rng = random.Random(protocol_seed(self.plan, condition, case, repeat))
        left, counts, turns = iter(self.batches[episode]), Counter[str](), list[BaseTurn]()
        with Steps(condition.protocol, condition.task, case, rng) as game:
            while (batch := game.batch) is not None:
                moves = next(left) if batch else []
                for turn, move in zip(batch, moves, strict=True):
                    turns.append(BaseTurn(len(turns), game.number, counts[turn.agent], turn, move))
                    counts[turn.agent] += 1
                game.send(moves)
        return turns


@dataclass(kw_only=True)
class BaseRun(PlayedEpisodes):
    """A finished run. `batches` are the moves of the episodes that `read` has read."""

    run: Run
    ends: dict[str, storage.Line] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: Path | str, project: Project | None = None) -> BaseRun:
        """Read a finished run.

        Raises:
            DataError: there is none, it is not finished or damaged, or what it played has changed since; or its
                conditions are drawn as it continues, so that none of them can be played alone.
        """
        project = project or find()
        run = load_run(folder, project)
        check_journals(run.meta, run.folder)
        plan = resolve.plan(run.spec, project, None if run.meta.get("policies_only") else Mock())
        plan = replace(plan, model=str(run.meta["model"]))
        if key := next((key for key in plan.keys if key.seats_agents), None):
            message = f"{run.folder} is a run with {key.name}:, which seats its players as it goes on"
            hint = (
                "Only episodes whose players are in the spec can be played again: play one pairing without that key, "
            )
            raise DataError(message, hint=f"{hint}with its players under `agents:`.")
        _check(run, plan)
        surveyed = survey(plan)
        if other := changed(run.meta.get("cases", surveyed.cases), surveyed.cases):
            hint = "Undo the change, or play the run again."
            raise DataError(f"the task's {' and '.join(other)} changed since the run in {run.folder}", hint=hint)
        jobs = {episode_id(*job): job for job in surveyed.episodes}
        return cls(run=run, plan=plan, project=project, jobs=jobs)

    def read(self, episodes: Iterable[str]) -> None:
        """Read the moves of these episodes, and check that they lead to the outcome that the journal states.

        Raises `DataError` for an episode that there is not, that did not end, or that plays otherwise now.
        """
        wanted = {name for name in episodes if name not in self.batches}
        for name in wanted - self.jobs.keys():
            raise DataError(f"{self.run.folder} has no episode {name!r}", hint=near(name, self.jobs))
        for end, batches in finished_episodes.batches(*storage.journals(self.run.folder), episodes=wanted):
            name = end["e"]
            if end["outcome"] is None:
                message = f"episode {name} failed, and has no outcome: {end['error']!s:.200}"
                raise DataError(message, hint="Only episodes that were played to their end can be played again.")
            if (why := dispute(self.plan, self.jobs[name], end, batches)) is not None:
                hint = "The code differs from that of the run, or the journal was changed. Play the run again."
                raise DataError(f"episode {name} cannot be played again: {why}", hint=hint)
            self.batches[name], self.ends[name] = batches, end
        for name in wanted - self.batches.keys():
            raise DataError(f"the journal of {self.run.folder} lacks episode {name!r}")

    def digest(self, episodes: Sequence[str]) -> str:
        """A digest of the recorded moves of these episodes: what was played again."""
        text = json.dumps([[name, self._lines(name)] for name in episodes], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _lines(self, episode: str) -> list[Any]:
        return [
            [storage.move_line(episode, b, p, 0, move) for p, move in enumerate(batch)]
            for b, batch in enumerate(self.batches[episode])
        ]


def _check(run: Run, plan: Plan) -> None:
    """Raise `DataError` where code, prompts or fitted parameters are other ones than those of the run."""
    identity = run.meta.get("identity") or {}
    if played := identity.get("spec"):
        now = run_json.identity(plan)["spec"]
        if other := [key for key in _DECIDES if played.get(key) != now.get(key)]:
            what = f"the spec is another one than that of the run: {', '.join(other)}"
            hint = "Undo the change, or play the run again: `harness eval --spec` with this file and another folder."
            raise DataError(what, place=Place(str(run.folder / SPEC)), hint=hint)
    files = changed_files(run.meta.get("code") or {}, code(plan), ("play", "task"))
    recorded = identity.get("prompts") or {}
    current = {group.prompts.name: group.prompts.digest for c in plan.conditions for group in c.groups}
    files |= {f"prompts/{name}" for name in current if recorded.get(name, current[name]) != current[name]}
    fitted = identity.get("calibration") or {}
    files |= {name for name, digest in prepare(plan).items() if fitted.get(name) != digest}
    if files:
        listed = ", ".join(sorted(files)[:_MAX_LISTED]) + (
            f" and {len(files) - _MAX_LISTED} more" if len(files) > _MAX_LISTED else ""
        )
        hint = "Its effects must not mix with those of your change: undo it, or play the run again."
        raise DataError(f"changed since the run in {run.folder}: {listed}", hint=hint)
