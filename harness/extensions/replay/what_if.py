"""A turn with another reply, and the episode played on from there: what the viewer asks for."""

from __future__ import annotations

import contextlib
import functools
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.api import Action, Completion, Engine, Facts, Request, as_text
from harness.api.errors import DataError, EngineFatalError, Place, near
from harness.api.printable import clean_name, cut
from harness.api.run_files import META
from harness.config import building
from harness.config.project import Project
from harness.engines.mock import Mock
from harness.runtime.options import Options

from .base_run import BaseRun
from .changes import call_of, receivers, turn_at, without_messages
from .reference import reference_of, try_policy
from .replay_run import ReplayRequest, count, play_again, taken_over

STAND_IN = "stand-in"
"""The player that answers prompts offline: with legal replies, drawn from the seed of each call."""
_OFFERED, _LENGTH = 60, 300


def form(project: Project, folder: Path, episode: str, turn: int) -> dict[str, Any]:
    """What may take the place of a turn's reply.

    Args:
        project, folder: the project, and the folder of a finished run.
        episode, turn: the episode's id, and the number of its turn.

    Returns:
        `text`: the reply; `legal`: texts that the form allows, at most 60; `left`: how many more there are; `tools`:
        the names of those that the agent can call; `call`: a JSON list with a call of one of them, "" without tools;
        `sends`: whether there is a message that can be dropped; `asks`: whether models play in the episode; `policies`:
        those of the project that could play for them.

    Raises:
        DataError: as in `replayed`, and where the turn has no reply.
    """
    parent = _parent(project, folder)
    parent.read([episode])
    turns = parent.played(episode)
    played = turn_at(turns, turn, "turn")
    reply, move = played.turn.reply, played.move
    if reply.ability is not None:
        raise DataError(f"turn {turn} {reply.ability.need}: it has no reply")
    actions = [*(reply.options or reply.examples)]

    def text_of(action: Action) -> str:
        """As its agent says it: a policy by the action's name."""
        is_named = not move.calls and action in (reply.options or ())
        return as_text(action) if is_named else reply.written(action) or as_text(action)

    texts = [text for one in actions[:_OFFERED] if len(text := text_of(one)) <= _LENGTH]
    own = move.text or text_of(move.action)
    made = move.calls[-1].tool_calls if move.calls else reply.calls_of(move.action)
    if reply.tools and (made or not reply.takes_text):
        own = _as_list(made or ())
    asks = any(one.move.calls for one in turns)
    examples = map(reply.calls_of, reply.examples if reply.tools else ())
    by_calls = reply.tools and not reply.takes_text
    return {
        "text": own,
        "legal": [] if by_calls else list(dict.fromkeys(texts)),
        "left": 0 if by_calls else max(0, len(actions) - _OFFERED),
        "tools": [str(tool["name"]) for tool in reply.tools],
        "call": next((_as_list(calls[:1]) for calls in examples if calls), ""),
        "sends": without_messages(move.action, None, receivers(turns)) is not None,
        "asks": asks,
        "policies": _policies(project, folder, _stamp(folder), parent.jobs[episode][0].id) if asks else [],
    }


def _as_list(calls: Sequence[Facts]) -> str:
    """Calls as a reader writes them: a JSON list."""
    return as_text([{"name": one["name"], "arguments": _as_json(one["arguments"])} for one in calls])


def play(
    project: Project,
    folder: Path,
    episode: str,
    turn: int,
    text: str | None,
    player: str | None,
    model: Mapping[str, Any] | None,
    max_calls: int | None,
) -> dict[str, Any]:
    """Play the episode with another reply in a turn, as `harness replay` does.

    Args:
        project, folder, episode, turn: as in `form`.
        text: the reply; None: the turn's message is not sent.
        player: who answers prompts that differ: "model", "stand-in", or the policy of this name, which plays from
            there on; None: nobody, and such a prompt is an error.
        model: the engine, as a spec has it.
        max_calls: of the model.

    Returns:
        `folder`: of the new run; `turns`: what became of the turns, in words.

    Raises:
        DataError: as in `replayed`; there is no such player; a model would have to be asked and nobody answers.
    """
    parent = _parent(project, folder)
    parent.read([episode])
    engine = _engine(project, player, model)
    policy = player if player is not None and engine is None else None
    if policy is not None:
        fitting = _policies(project, folder, _stamp(folder), parent.jobs[episode][0].id)
        if policy not in fitting:
            known = ["model", STAND_IN, *fitting]
            raise DataError(f"{clean_name(policy)!r:.80} cannot play on here", hint=near(policy, known))
    change = {} if text is None else {turn: text}
    # Whoever the reader chose answers alone: "offline" is true also where the spec names models of its own.
    wanted = ReplayRequest((episode,), change, [(turn, None)] if text is None else [], one_model=True)
    if engine is not None and parent.run.meta.get("policies_only"):
        engine = None
    try:
        if policy is not None:
            wanted = taken_over(parent, wanted, policy)
        done = play_again(parent, wanted, engine, Options(max_calls=max_calls))
    except DataError as error:  # its place is an option of the command, which nobody gave here
        raise DataError(f"{error.message}.", hint=error.hint) from None
    for score in done.scores:
        if score.error is not None:
            raise DataError(f"the episode could not be played on: {cut(score.error, 1000)}")
    return {"folder": str(done.folder), "turns": str(count(parent, done))}


def _engine(project: Project, player: str | None, model: Mapping[str, Any] | None) -> Engine | None:
    if player == STAND_IN:
        return Mock(model=STAND_IN, function=_some_legal_reply)
    if player == "model":
        if model is None:
            raise DataError("no model is configured", hint="Start `harness view --what_if` with --model.")
        return building.engine(dict(model), project, lambda *path: Place("--model"))
    return None


def _some_legal_reply(request: Request) -> Completion:
    """One of the actions that the form lists, or of its examples, drawn from the seed of the call."""
    reply = request.reply
    if reply is not None and reply.ability is not None:  # there is nothing to write
        return request.mock_answer("")
    actions = [*(reply.options or reply.examples)] if reply is not None else []
    if reply is None or not actions:
        raise EngineFatalError("the stand-in knows no legal reply to this prompt: choose a model")
    action = random.Random(request.seed).choice(actions)
    if reply.tools:
        return Completion("", tool_calls=[call_of(i, one) for i, one in enumerate(reply.calls_of(action))])
    return Completion(reply.written(action) or as_text(action))


@functools.lru_cache(maxsize=16)
def _policies(project: Project, folder: Path, stamp: int, condition: str) -> list[str]:
    """The policies of the project that can play a condition of the run, as `harness replay --swap` checks it."""
    plan = _opened(project, folder, stamp).plan
    [played] = [one for one in plan.conditions if one.id == condition]
    found = []
    for name in project.files("policies"):
        # A plugin of someone else may raise anything; one that does cannot play, and the others still can.
        with contextlib.suppress(Exception):
            try_policy(plan, [played], reference_of(plan, name, Place("--swap")), Place("--swap"))
            found.append(name)
    return found


def _as_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _parent(project: Project, folder: Path) -> BaseRun:
    """The run; the same one is asked about again and again."""
    return _opened(project, folder, _stamp(folder))


def _stamp(folder: Path) -> int:
    try:
        return (folder / META).stat().st_mtime_ns
    except OSError as error:
        raise DataError(f"{folder} cannot be read: {error.strerror}") from None


@functools.lru_cache(maxsize=2)
def _opened(project: Project, folder: Path, stamp: int) -> BaseRun:
    return BaseRun.open(folder, project)
