"""How games are drawn: what the players saw before they acted, as the game writes it, and all moves so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.api import Protocol, Task, plugin
from harness.extensions.games.game_result import alike, winners
from harness.extensions.games.game_task import GameTask
from harness.extensions.viewer.scenes import agents_acting, brief, count, messages, ring, why_nothing
from harness.transcripts.view_api import RecordedTurn, Scene, Sheet, Transcript, View

_MAX_NAMED_AGENTS = 6  # agents whose actions a caption names
_MAX_LISTED_MOVES = 200  # moves that the sheet lists
_TEXT = 4000  # characters of a text that a player saw
_ENDS = {"limit": "The time is up", "over": "The game is over"}


@plugin
class Games(View):
    """What players saw, what they did, and the returns at the end."""

    def draws(self, task: Task, protocol: Protocol) -> bool:
        """Games that show their players a text, such as a board."""
        return isinstance(task, GameTask)

    def scenes(self, transcript: Transcript, task: Task) -> Iterator[Scene]:
        """One scene a round: the texts of those that act, and a sheet of the moves so far, the last one first.

        Players are drawn where messages pass between them, or nothing else is to be seen of the game.
        """
        rounds = transcript.rounds
        silent = not any(messages(turns, transcript.agents) for turns in rounds)
        boards = any(_text(turn) is not None for turn in transcript.turns)
        where = {} if silent and boards else ring(transcript.agents)
        done: dict[str, str] = {}
        moves: list[tuple[str, ...]] = []

        yield Scene(f"{count(len(transcript.agents), 'player')} before the first move.", agents_acting(where, (), done))
        for number, turns in enumerate(rounds):
            sent_messages = messages(turns, transcript.agents)
            if turns[0].name == "talk":
                yield Scene(
                    f"Talk: {count(len(sent_messages), 'message')}.",
                    agents_acting(where, turns, done),
                    (),
                    sent_messages,
                )
                continue
            words = {turn.agent: _words(turn) for turn in turns}
            done |= words
            moves += [(str(len(moves) + 1), agent, brief(text, 80)) for agent, text in words.items()]
            named = ", ".join(f"{agent}: {brief(text, 60)}" for agent, text in words.items())
            caption = f"{named if len(words) <= _MAX_NAMED_AGENTS else count(len(words), 'player') + ' act'}."
            facts: dict[str, str] = {}
            seen = tuple(sheet for turn in turns[:_MAX_NAMED_AGENTS] if (sheet := _text(turn)) is not None)
            if number == len(rounds) - 1 and transcript.finished and transcript.outcome is not None:
                returns = transcript.outcome.facts.get("returns")
                end = f"{_ENDS.get(str(transcript.outcome.facts.get('end')), 'The game ends')}."
                caption, facts = " ".join(filter(None, (caption, end, winners(returns)))), _returns(returns)
                seen = _ends(transcript) or seen
            listed = Sheet(
                "Moves, the last one first", ("", "player", "move"), tuple(reversed(moves[-_MAX_LISTED_MOVES:]))
            )
            yield Scene(
                caption, agents_acting(where, turns, done), (), sent_messages, sheets=(*seen, listed), facts=facts
            )


def _words(turn: RecordedTurn) -> str:
    """What an agent does, in words."""
    if turn.move is None:
        return "…"
    action = turn.move.action
    if isinstance(action, Mapping) and "act" in action:
        action = action["act"]
    return brief(action, 80) or why_nothing(turn.move)


def _ends(transcript: Transcript) -> tuple[Sheet, ...]:
    """What the players see at the end, each text once."""
    last = transcript.outcome.last if transcript.outcome is not None else None
    if last is None:
        return ()
    states = {agent: str(last(agent).get("state") or "")[:_TEXT] for agent in transcript.agents[:_MAX_NAMED_AGENTS]}
    return tuple(
        Sheet(f"The end, as {', '.join(agents)} saw it", ("",), ((text,),)) for agents, text in alike(states).items()
    )


def _text(turn: RecordedTurn) -> Sheet | None:
    """What an agent saw before it acted."""
    state: Any = (turn.observation or {}).get("state")
    if not isinstance(state, str) or not state.strip():
        return None
    return Sheet(f"What {turn.agent} saw before its move", ("",), ((state[:_TEXT],),))


def _returns(returns: Any) -> dict[str, str]:
    """Each player's return as text; of a damaged journal whatever it has."""
    return {f"return of {agent}": brief(value) for agent, value in returns.items()} if isinstance(returns, dict) else {}
