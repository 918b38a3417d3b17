"""The replies of a finished run read by other rules, each episode played again with what they say."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from harness import storage
from harness.api import Case, Episode, Move, Parsed, Reply, Turn
from harness.config.plan import Condition, Plan, episode_id, problem_digest, protocol_seed
from harness.replies import strip_reasoning
from harness.replies.dropped_fields import dropped_fields
from harness.replies.parse_guard import read_completion
from harness.runtime.scoring import grade, labels, score
from harness.runtime.steps import Recorded, Steps, by_turn, recorded_move
from harness.storage import finished_episodes
from harness.tables import EpisodeScore

Reader = Literal["tolerant", "reference", "strict"]
READERS: Mapping[Reader, str] = {
    "tolerant": "every reply whose meaning is clear",
    "reference": "as the benchmark's own code reads, where it differs",
    "strict": "only replies that end as the prompt asks for",
}


@dataclass
class Reading:
    """What one reader makes of a run.

    Attributes:
        scores: of the episodes that could be played again with what it reads.
        read, asked: how many replies have an action, and how many there are.
        dropped_fields: field → the number of replies that have it and of which it is not read.
        other_course: episodes in which what is read leads to turns that were not asked.
    """

    scores: list[EpisodeScore] = field(default_factory=list)
    read: int = 0
    asked: int = 0
    dropped_fields: Counter[str] = field(default_factory=Counter)
    other_course: int = 0


def read_again(plan: Plan, folder: Path, reader: Reader) -> Reading:
    """Read every reply of a finished run by another rule, and grade what the episodes then come to."""
    reading = Reading()
    episodes = {episode_id(*episode): episode for episode in plan.episodes()}
    for end, batches in finished_episodes.batches(*storage.journals(folder)):
        if end["outcome"] is None or end["e"] not in episodes:
            continue
        condition, case, repeat = episodes[end["e"]]
        try:
            episode = _replayed(plan, condition, case, repeat, batches, reader, reading)
        except (RuntimeError, StopIteration):
            reading.other_course += 1
            continue
        read = score(grade(episode, condition, case), plan.metrics)
        reading.scores.append(replace(read, problem=problem_digest(condition.task, case)))
    return reading


def _replayed(
    plan: Plan,
    condition: Condition,
    case: Case,
    repeat: int,
    batches: Sequence[Sequence[Move]],
    reader: Reader,
    reading: Reading,
) -> Episode:
    """The episode with what the reader makes of its replies. Raises `RuntimeError` if it asks for other turns."""
    recorded: Recorded = by_turn(batches)
    counts = Counter[str]()
    played: list[list[Move]] = []
    seed = random.Random(protocol_seed(plan, condition, case, repeat))
    with Steps(condition.protocol, condition.task, case, seed) as game:
        while (batch := game.batch) is not None:
            moves = []
            for turn in batch:
                move = recorded_move(recorded, turn, counts[turn.agent])
                if move is None:
                    raise RuntimeError(f"{turn.agent} was not asked this turn")
                counts[turn.agent] += 1
                moves.append(_read(turn, move, reader, reading))
            played.append(moves)
            game.send(moves)
        outcome = game.result()
    name = episode_id(condition, case, repeat)
    return Episode(name, condition.id, case.id, repeat, labels(plan, condition, case), case.roles, played, outcome)


def _read(turn: Turn, move: Move, reader: Reader, reading: Reading) -> Move:
    """A move with what the reader makes of its last reply; moves without replies stay as they are."""
    if not move.calls or move.error_kind not in (None, "parse") or turn.reply.ability is not None:
        return move
    form, text = read_by(turn.reply, reader), move.calls[-1].text
    parsed = read_completion(form, move.calls[-1])
    called = form.tools and (move.calls[-1].tool_calls or not form.takes_text)
    if reader == "strict" and parsed.error is None and not called and not _as_asked(form, parsed, text):
        parsed = Parsed(error="it does not end as the prompt asks for")
    reading.asked += 1
    reading.read += parsed.error is None
    reading.dropped_fields.update(dropped_fields(form, move.calls[-1], parsed))
    action = parsed.action if parsed.error is None else parsed.fallback_action
    return replace(move, action=action, error=parsed.error, error_kind=None if parsed.error is None else "parse")


def read_by(form: Reply, reader: Reader) -> Reply:
    """The form as it reads by a rule; what has no such rule stays as it is."""
    if not dataclasses.is_dataclass(form):
        return form
    changes: dict[str, object] = {}
    for one in dataclasses.fields(form):
        value = getattr(form, one.name)
        if one.name == "parsing":
            changes["parsing"] = "reference" if reader == "reference" else "tolerant"
        elif isinstance(value, Reply):
            changes[one.name] = read_by(value, reader)
    return replace(form, **changes) if changes else form


def _as_asked(form: Reply, parsed: Parsed, text: str) -> bool:
    written = form.written(parsed.action) if form.fields and parsed.action is not None else ""
    return " ".join(strip_reasoning(text).split()).casefold().endswith(" ".join(written.split()).casefold())
