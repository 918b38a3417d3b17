"""How worlds that a spec declares are drawn: what every agent does and sees, step by step."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.api import Action, PluginError, Protocol, Task, plugin
from harness.extensions.viewer.scenes import (
    agents_acting,
    brief,
    count,
    edges_of,
    messages,
    places,
    verdict,
    why_nothing,
)
from harness.transcripts.view_api import RecordedTurn, Scene, SentMessage, Sheet, Transcript, View

from ..tasks.world import DeclaredWorld

_ENDS = {"deadlock": "The episode ends in a deadlock", "limit": "The time is up", "over": "The game is over"}
_BEFORE = "What they saw before they acted"
_MAX_NAMED_AGENTS = 6  # agents whose actions a caption names


@plugin
class Worlds(View):
    """What agents do in each step, what they see of the world, and their messages."""

    def draws(self, task: Task, protocol: Protocol) -> bool:
        """Worlds that a spec declares."""
        return isinstance(task, DeclaredWorld)

    def scenes(self, transcript: Transcript, task: Task) -> Iterator[Scene]:
        """One scene a round, with a sheet of all actions so far and one of what agents saw before acting."""
        where, edges = places(transcript), edges_of(transcript)
        done: dict[str, str] = {}
        rows: dict[str, tuple[str, ...]] = {agent: (agent,) for agent in transcript.agents}
        steps: list[str] = []
        seen: dict[str, Mapping[str, Any]] = {}

        yield Scene(f"{count(len(where), 'agent')} before the first step.", agents_acting(where, (), done), edges)
        rounds = transcript.rounds
        for number, turns in enumerate(rounds):
            seen |= {turn.agent: (turn.observation or {}).get("view", {}) for turn in turns}
            sent_messages = _messages(turns, transcript)
            if turns[0].name == "talk":
                yield Scene(
                    f"Talk: {count(len(sent_messages), 'message')}.",
                    agents_acting(where, turns, done),
                    edges,
                    sent_messages,
                )
                continue
            step = (turns[0].observation or {}).get("timestep", number + 1)
            cells = {turn.agent: _words(turn) for turn in turns}
            done |= {turn.agent: _played(turn) or cells[turn.agent] for turn in turns}
            steps.append(str(step))
            rows = {agent: (*row, brief(cells.get(agent), 60)) for agent, row in rows.items()}
            caption = ", ".join(f"{agent} {brief(words, 60)}" for agent, words in cells.items())
            caption = (
                f"Step {step}: {caption if len(cells) <= _MAX_NAMED_AGENTS else count(len(cells), 'agent') + ' act'}."
            )
            if number == len(rounds) - 1 and transcript.finished:
                end = transcript.outcome.facts.get("end") if transcript.outcome is not None else None
                caption = f"{caption} {_ENDS.get(str(end), verdict(transcript)).rstrip('.')}."
                common, sheet = _end(transcript, seen)
            else:
                common, sheet = _seen(seen, _BEFORE)
            sheets = (Sheet("Actions", ("", *steps), tuple(rows.values())), *sheet)
            yield Scene(caption, agents_acting(where, turns, done), edges, sent_messages, sheets=sheets, facts=common)


def _words(turn: RecordedTurn) -> str:
    """What an agent does, in words; of a failed turn why, and what was played in its place."""
    if turn.move is None:
        return "…"
    played = _played(turn)
    if turn.move.action is not None:
        return played or why_nothing(turn.move)
    return f"{why_nothing(turn.move)} → {played}" if played else why_nothing(turn.move)


def _played(turn: RecordedTurn) -> str:
    """The action that counts, the no-op where the turn failed; "" where there is none."""
    action: Action = turn.move.action if turn.move is not None else None
    if turn.move is not None and action is None and turn.reply is not None:
        action = turn.reply.noop
    if isinstance(action, Mapping) and "act" in action:
        action = action["act"]
    if isinstance(action, Mapping) and "action" in action:
        return " ".join(str(part) for part in action.values())
    return brief(action)


def _messages(turns: Sequence[RecordedTurn], transcript: Transcript) -> tuple[SentMessage, ...]:
    """The messages of a round; in rounds of talk the action is the message."""
    turns = [
        replace(turn, move=replace(turn.move, action={"message": turn.move.action}))
        if turn.name == "talk" and turn.move is not None and isinstance(turn.move.action, str)
        else turn
        for turn in turns
    ]
    return messages(turns, transcript.agents)


def _seen(seen: Mapping[str, Mapping[str, Any]], title: str) -> tuple[dict[str, str], tuple[Sheet, ...]]:
    """What all agents see alike, as facts, and the rest as a sheet."""
    keys = list(dict.fromkeys(key for view in seen.values() for key in view))
    texts = {key: [brief(_plain(view.get(key)), 60) for view in seen.values()] for key in keys}
    alike = {key for key, values in texts.items() if len(seen) > 1 and len(set(values)) == 1}
    common = {key.replace("_", " "): texts[key][0] or "nothing" for key in keys if key in alike}
    own = [key for key in keys if key not in alike]
    if not own:
        return common, ()
    rows = tuple((agent, *(texts[key][i] for key in own)) for i, agent in enumerate(seen))
    return common, (Sheet(title, ("", *(key.replace("_", " ") for key in own)), rows),)


def _end(transcript: Transcript, seen: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, str], tuple[Sheet, ...]]:
    """What agents see when all is over, and their scores; scores that have no agent as facts."""
    last, title = transcript.outcome.last if transcript.outcome is not None else None, _BEFORE
    if last is not None:
        with contextlib.suppress(PluginError):  # a spec's `sees` need not have a value once nobody acts any more
            seen = {agent: last(agent).get("view", {}) for agent in transcript.agents}
            title = "What they see in the end"
    common, sheets = _seen(seen, title)
    grade: Mapping[str, Any] = transcript.grade
    own = {name: value for name, value in grade.items() if isinstance(value, Mapping)}
    scores = {name: brief(value) for name, value in grade.items() if value is not None and name not in own}
    if own:
        rows = tuple((agent, *(brief(value.get(agent)) for value in own.values())) for agent in transcript.agents)
        sheets = (Sheet("Scores", ("", *own), rows), *sheets)
    return {**common, **scores}, sheets


def _plain(value: Any) -> Any:
    """A mapping without braces and quotes."""
    if not isinstance(value, Mapping):
        return value
    return ", ".join(f"{key}: {part if isinstance(part, str) else brief(part)}" for key, part in value.items())
