"""An episode that is being played: its players, what is journaled of it, and its end.

`harness.runtime.open_episodes` plays many of them at once.
"""

from __future__ import annotations

import asyncio
import functools
import random
from dataclasses import replace
from typing import TYPE_CHECKING

from harness import storage
from harness.api import Case, Episode, Move, Outcome
from harness.api.errors import InnerCallError
from harness.config.plan import Condition, episode_id, problem_digest, protocol_seed
from harness.engines.gate import Gate
from harness.replies.parse_guard import note_bugs
from harness.runtime.players import Player
from harness.runtime.scoring import grade, labels, score, turns_of, usage_of
from harness.tables import EpisodeScore

if TYPE_CHECKING:
    from harness.runtime.open_episodes import Episodes


class OpenEpisode:
    """An episode that is being played: its players, and what becomes of it."""

    def __init__(self, run: Episodes, condition: Condition, case: Case, repeat: int) -> None:
        self.run, self.condition, self.case, self.repeat = run, condition, case, repeat
        self.id = episode_id(condition, case, repeat)
        self.recorded = run.moves.pop(self.id, {})
        run.work.on_recorded((condition, case, repeat), self.recorded)
        self.rng = random.Random(protocol_seed(run.plan, condition, case, repeat))
        self.players: dict[str, Player] = {}
        self.batches: list[list[Move]] = []
        self.outcome: Outcome | None = None
        self.error: str | None = None
        self.prompts = storage.PromptIds()
        self.inner = lines = run.work.inner.pop(self.id, ())
        for inner in run.inner.values():
            inner.begin(self.id, self.recorded, lines)
        if run.samples is not None:
            for line in lines:
                run.samples.note(line)
        note_bugs(functools.partial(run.errors.record, episode=self.id))

    async def end(self) -> None:
        """Grade, measure and journal the episode."""
        run, condition, case = self.run, self.condition, self.case
        people = {type(engine): engine for engine in run.plan.engines.values() if engine.asks_people}
        if self.outcome is not None:
            for engine in people.values():
                engine.show_end(self.id, self.players, self.outcome)
        columns = labels(run.plan, condition, case)
        played = self.id, condition.id, case.id, self.repeat, columns, case.roles, self.batches, self.outcome
        episode = Episode(*played, error=self.error)
        if condition.task.grading != "quick":  # others continue meanwhile
            episode = await asyncio.to_thread(grade, episode, condition, case, run.errors, run.options.sandbox)
        else:
            episode = grade(episode, condition, case, run.errors)
        turns = turns_of(episode, condition, case)
        usage = usage_of(episode, condition, case, run.plan.engines, run.plan.inner)
        scored = score(episode, run.plan.metrics, condition.uses_ground_truth, run.errors, turns, usage)
        scored = replace(scored, problem=problem_digest(condition.task, case))
        marks = {name: getattr(scored, name) for name in storage.MARKS}
        line = storage.end_line(episode, scored.labels, scored.to_json()["numbers"], scored.error, marks)
        run.record(line, lambda: self._count(episode, scored))

    def _count(self, episode: Episode, scored: EpisodeScore) -> None:
        if self.run.samples is not None:
            self.run.samples.write(episode, self.case, self.players)
        if self.run.work.listeners is not None:
            self.run.work.listeners.episode_ended(scored)
        self.run.on_score(scored)

    def on_move(self, batch: int, position: int, index: int, move: Move) -> None:
        run = self.run
        line = storage.move_line(self.id, batch, position, index, move, self.prompts)
        if usage := run.usage.unjournaled():
            line["asked"] = usage
        run.usage.turns += bool(move.calls or move.error_kind) and move.error_kind != storage.UNFINISHED
        if run.pending or move.error_kind in storage.UNANSWERED:
            group = self.condition.group_of(self.case, move.agent)
            name = group.model or "model"
            if move.error_kind == InnerCallError.kind:  # it counts once that engine has answered again
                name = run.plan.inner.get(name, name)
            gate = run.gates[name] if group.policy is None else None
            if gate is not None and not gate.lenient and (run.pending or _may_pass(move, gate)):  # else a result
                line["engine"] = [name, gate.answered]
        hearing = None if move.error_kind == storage.UNFINISHED else run.work.listeners
        run.record(line, None if hearing is None else hearing.on_move(self.id, batch, index, move))
        if move.calls or move.error_kind is not None:
            run.turn_shares.end(self.id, self.condition.id, move)


def _may_pass(move: Move, gate: Gate) -> bool:
    """Whether a request that failed may have failed of an outage, or of a wrong set-up."""
    return move.error_kind in storage.PASSING or not (gate.answered or gate.is_known())
