"""Whether a journal's outcomes are those to which its moves lead.

The journal states both. A protocol sees moves only, so playing it again with the recorded moves gives the outcome;
where the journal states another one, the journal was changed, or the protocol was.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import storage
from harness.api import Case, Move, Outcome, Turn
from harness.api.errors import DataError
from harness.api.run_files import META
from harness.api.version import __version__
from harness.config.plan import Condition, Plan, protocol_seed
from harness.replies.parse_guard import read_completion
from harness.runtime.run_schema import read_meta
from harness.runtime.sources import changed_files, code, readers
from harness.runtime.steps import Steps

MAX_NAMED_EPISODES = 3
"""Episodes that an error names."""


def replayed(
    plan: Plan,
    condition: Condition,
    case: Case,
    repeat: int,
    batches: Sequence[list[Move]],
    on_turn: Callable[[Turn, Move], None] = lambda turn, move: None,
) -> Outcome | None:
    """What recorded moves lead to; None if the protocol asks for more.

    Args:
        plan, condition, case, repeat: the episode; `case` with its groups assigned.
        batches: all its moves in the order of the protocol; batches without turns are left out.
        on_turn: called with each turn and its recorded move.

    Raises:
        RuntimeError: the moves are those of other turns, or there are more of them. Whatever the protocol raises.
    """
    rng = random.Random(protocol_seed(plan, condition, case, repeat))
    left = iter(batches)
    with Steps(condition.protocol, condition.task, case, rng) as game:
        while (batch := game.batch) is not None:
            moves = next(left, None) if batch else []
            if moves is None:
                return None
            asked, found = [(turn.agent, turn.name) for turn in batch], [(move.agent, move.turn) for move in moves]
            if asked != found:
                raise RuntimeError(f"batch {game.number} has the turns {asked!r:.200}, recorded are {found!r:.200}")
            for turn, move in zip(batch, moves, strict=True):
                on_turn(turn, move)
            game.send(moves)
        if more := sum(map(len, left)):
            raise RuntimeError(f"the protocol ends before the last {more} of the recorded moves")
        return game.result()


def misstated(outcome: Outcome | None, end: Mapping[str, Any]) -> str | None:
    """How the outcome of an episode's end line differs from that of its moves, in words; None if it does not."""
    stated, error = end.get("outcome"), end.get("error")
    if outcome is None:
        return "it has an outcome, and its moves do not end the episode" if stated is not None else None
    found = json.loads(json.dumps(storage.outcome_line(outcome)))
    if stated is None:
        return f"it failed ({error!s:.100}), and its moves lead to an outcome"
    if _text(found) == _text(stated):
        return None
    path, one, two = _difference(stated, found)
    return f"its outcome has {path} {_text(one):.100}, its moves lead to {_text(two):.100}"


def misread(turn: Turn, move: Move) -> str | None:
    """How a recorded move differs from what its turn's form reads in the recorded text, in words; None if it does not.

    A move without text (of a policy, or of a limit) and one of a failed request say nothing to compare.
    """
    if not move.calls or move.error_kind not in (None, "parse"):
        return None
    parsed = read_completion(turn.reply, move.calls[-1])
    action = parsed.action if parsed.error is None else parsed.fallback_action
    was_read, is_read = move.error_kind is None, parsed.error is None
    if was_read == is_read and _text(move.action) == _text(action):
        return None
    recorded = f"is recorded as {_text(move.action):.100}" if was_read else "is recorded as unreadable"
    found = f"its text says {_text(action):.100}" if is_read else f"its text cannot be read ({parsed.error:.100})"
    return f"the reply of {move.agent} in {move.turn!r} {recorded}, and {found}"


def dispute(
    plan: Plan,
    episode: tuple[Condition, Case, int],
    end: Mapping[str, Any],
    batches: Sequence[list[Move]],
    *,
    texts: bool = False,
) -> str | None:
    """Why a finished episode's outcome is not that of its moves, in words; None if it is.

    Args:
        plan, episode: what was played: its condition, case and repeat.
        end: its last line in the journal.
        batches: all its moves.
        texts: whether its moves must also be what their texts say to the forms that are here.
    """
    differences: list[str] = []

    def compare(turn: Turn, move: Move) -> None:
        if not differences and (why := misread(turn, move)) is not None:
            differences.append(why)

    try:
        outcome = replayed(plan, *episode, batches, *([compare] if texts else []))
    except (Exception, SystemExit) as error:  # an episode that failed may fail again
        if end.get("outcome") is not None:
            return f"playing its moves again failed: {type(error).__name__}: {error!s:.300}"
    else:
        if (why := misstated(outcome, end)) is not None:
            return why
    return next(iter(differences), None)


def same_readers(plan: Plan, folder: Path) -> bool:
    """Whether the forms that read the replies of the run in `folder` are those that are here."""
    meta = read_meta(folder / META)
    return meta.get("reply_code") == readers() and not changed_files(
        meta.get("code") or {}, code(plan), ("play", "task")
    )


def refuse(plan: Plan, folder: Path, disputed: Mapping[str, str]) -> None:
    """Raise `DataError` for episodes of the run in `folder` whose outcome is not that of their moves, if there are any.

    `disputed`: episode → why.
    """
    if not disputed:
        return
    listed = [f"\n  {name}: {why}" for name, why in [*disputed.items()][:MAX_NAMED_EPISODES]]
    more = [f"\n  … and {len(disputed) - MAX_NAMED_EPISODES} more"] if len(disputed) > MAX_NAMED_EPISODES else []
    count = "an episode" if len(disputed) == 1 else f"{len(disputed)} episodes"
    message = f"in the journal of {folder} the outcome of {count} is not that of the recorded moves:"
    meta = read_meta(folder / META)
    files = sorted(changed_files(meta.get("code") or {}, code(plan), ("play", "task")))
    then = (meta.get("versions") or {}).get("harness")
    if files:
        hint = f"Changed since the run: {', '.join(files)}. If that is the reason, grade it with the old code."
    elif then != __version__:
        hint = f"The run is of harness {then}, this is {__version__}: grade it with that version."
    else:
        hint = "The journal was changed after the run: its numbers are not those of what was played."
    raise DataError(message + "".join([*listed, *more]), hint=hint)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)


def _difference(one: Any, two: Any, path: str = "") -> tuple[str, Any, Any]:
    """The first place at which two JSON values differ, and what is there."""
    if isinstance(one, dict) and isinstance(two, dict):
        for key in [*one, *(key for key in two if key not in one)]:
            if _text(one.get(key)) != _text(two.get(key)):
                return _difference(one.get(key), two.get(key), f"{path}.{key}" if path else str(key))
    return path or "the value", one, two
