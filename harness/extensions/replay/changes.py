"""What the options of `harness replay` say, as changes of recorded turns; each is checked before anything is played."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.api import Action, Completion, Facts, Parsed, Reply, as_text, derive_seed
from harness.api.errors import DataError, Place, near
from harness.api.printable import clean_name, cut
from harness.replies.parse_guard import read_completion
from harness.runtime.seats import seats

from .base_run import BaseRun, BaseTurn
from .replay_key import ChangeEntry
from .replay_key import as_text as of_entry

_EXAMPLES, _LENGTH = 3, 200


@dataclass(frozen=True)
class Change:
    """A recorded turn with another move.

    Attributes:
        played: the turn.
        action: what its agent does instead.
        completion: how a model says it; None if it said just that.
    """

    played: BaseTurn
    action: Action
    completion: Completion | None

    def entry(self, parent: BaseRun, episode: str) -> ChangeEntry:
        """As the spec of the run that is played has it."""
        agent, index = self.played.turn.agent, self.played.index
        seat = seats(parent.plan, *parent.jobs[episode])[agent]
        move: dict[str, Any] = {"action": self.action}
        if self.completion is not None:
            move["text"], move["calls"] = self.completion.text, self.completion.tool_calls
        return {
            "episode": episode,
            "agent": agent,
            "turn": index,
            "chance": derive_seed(seat.seed, index),
            "move": of_entry(move),
        }


def changed(turns: Sequence[BaseTurn], number: int, text: str) -> Change:
    """A turn whose reply is another text.

    Args:
        turns: those of the episode.
        number: the turn's.
        text: a reply as a model would write it; also an action by its name, where the form lists its actions. Where the
            agent calls tools, a JSON list of calls, each {"name", "arguments"}.

    Raises:
        DataError: there is no such turn, or its form does not allow this.
    """
    played = turn_at(turns, number, "--change")
    form, move = played.turn.reply, played.move
    if form.ability is not None:
        raise DataError(f"turn {number} {form.ability.need}: it has no reply", place=Place("--change"))
    # What tells that nothing changes must tell it: of a policy, and of calls of tools, the text is empty.
    recorded = move.text if move.calls else form.written(move.action)
    if recorded and text == recorded:
        return Change(played, move.action, None)
    said = _calls(text) if form.tools else Completion(text)
    parsed = read_completion(form, said)
    if parsed.error is not None and (named := [one for one in form.options or () if as_text(one) == text.strip()]):
        said, parsed = Completion(form.written(named[0]) or text), Parsed(named[0])
    if parsed.error is not None or not (parsed.action == form.noop or form.allows(parsed.action)):
        why = parsed.error or f"{as_text(parsed.action)} is not allowed there"
        message = f"turn {number} ({_who(played)}) cannot be {cut(clean_name(text), _LENGTH)!r}: {why}"
        raise DataError(message, place=Place("--change"), hint=_legal(form))
    return Change(played, parsed.action, said)


def dropped(turns: Sequence[BaseTurn], number: int, receiver: str | None = None) -> Change:
    """A turn without the message that its agent sends there: to all, or to one `receiver`.

    Raises `DataError` if there is no such turn or message.
    """
    played = turn_at(turns, number, "--drop")
    action, form = played.move.action, played.turn.reply
    silent = without_messages(action, receiver, receivers(turns))
    if silent is None or not (silent == form.noop or form.allows(silent)):
        whom = f" to {receiver}" if receiver is not None else ""
        there = [f"{one.number} ({_who(one)})" for one in turns if _speaks(one, turns)]
        hint = f"Turns with a message: {', '.join(there[:10])}{', …' if len(there) > 10 else ''}."
        if not there:
            hint = "No turn of this episode sends one; --change gives a turn another reply."
        elif receiver is not None and (to := _receivers_of(action, receivers(turns))):
            hint = f"It sends messages to {', '.join(to)}."
        message = f"turn {number} ({_who(played)}) sends no message{whom} that could be dropped"
        raise DataError(message, place=Place("--drop"), hint=hint)
    text = form.written(silent)
    said = Completion(text)
    if form.tools:
        said = Completion("", tool_calls=[call_of(i, call) for i, call in enumerate(form.calls_of(silent))])
    return Change(played, silent, said)


def turn_at(turns: Sequence[BaseTurn], number: int, option: str) -> BaseTurn:
    """The turn of this number. Raises `DataError` if the episode has none."""
    if not 0 <= number < len(turns):
        hint = "`harness replay RUN --episode E` lists them."
        raise DataError(f"the episode has turns 0 to {len(turns) - 1}, found {number}", place=Place(option), hint=hint)
    return turns[number]


def listed(turns: Sequence[BaseTurn]) -> Iterator[str]:
    """A line a turn: number, round, agent, template, and what was done."""
    width = max((len(turn.turn.agent) for turn in turns), default=0)
    for turn in turns:
        did = turn.move.text or as_text(turn.move.action)
        agent = clean_name(turn.turn.agent).ljust(width)
        yield f"{turn.number:>4}  round {turn.round:<3} {agent}  {turn.turn.name}  {cut(clean_name(did), 80)}"


def by_agent(agents: Sequence[str], agent: str) -> str:
    """The agent, if there is one of this name. Raises `DataError`."""
    if agent not in agents:
        raise DataError(f"there is no agent {agent!r}", place=Place("--swap"), hint=near(agent, agents))
    return agent


def _who(played: BaseTurn) -> str:
    return f"{clean_name(played.turn.agent)}, {played.turn.name}"


def _legal(form: Reply) -> str:
    texts = [cut(clean_name(form.written(one) or as_text(one)), _LENGTH) for one in form.examples[:_EXAMPLES]]
    if form.tools:
        names = ", ".join(str(tool["name"]) for tool in form.tools)
        return f'Calls of tools, as JSON: [{{"name": …, "arguments": {{…}}}}]; there are {names}.'
    return f"Legal are such as: {'; '.join(texts)}." if texts else "The prompt says how a reply looks; `harness view`."


def _calls(text: str) -> Completion:
    """A JSON list of calls as a completion; what is none is a text without calls, which the form refuses."""
    try:
        calls = json.loads(text)
        return Completion("", tool_calls=[call_of(i, {**one}) for i, one in enumerate(calls)])
    except (ValueError, TypeError, KeyError, RecursionError):
        return Completion(text)


def call_of(number: int, call: Facts) -> dict[str, str]:
    """A call of a tool, as a completion has it. Raises `KeyError` if it names no tool."""
    arguments = call["arguments"] if "arguments" in call else {k: v for k, v in call.items() if k != "call"}
    name = call["name"] if "name" in call else call["call"]
    return {"id": f"call_{number}", "name": str(name), "arguments": as_text(arguments)}


def _speaks(played: BaseTurn, turns: Sequence[BaseTurn]) -> bool:
    return without_messages(played.move.action, None, receivers(turns)) is not None


def receivers(turns: Sequence[BaseTurn]) -> frozenset[str]:
    """All agents that may get messages."""
    return frozenset(turn.turn.agent for turn in turns)


def _receivers_of(action: Action, agents: frozenset[str]) -> list[str]:
    """Whom messages of an action name, as it names them."""
    if isinstance(action, Mapping) and agents.issuperset(action):
        return [clean_name(name) for name in action]
    if isinstance(action, list) and all(isinstance(call, Mapping) for call in action):
        named = [str(call["target_id"]) for call in action if _sends(call) and call.get("target_id") is not None]
        return [cut(clean_name(name), _LENGTH) for name in dict.fromkeys(named)]
    return []


_SENDING = ("send", "broadcast", "write")


def without_messages(action: Action, receiver: str | None, agents: frozenset[str]) -> Action | None:
    """The action without its messages; None if it has none."""
    if isinstance(action, Mapping) and isinstance(action.get("message"), str) and receiver is None:
        return {**action, "message": None}
    if isinstance(action, Mapping) and action and agents.issuperset(action):
        left = {} if receiver is None else {name: text for name, text in action.items() if name != receiver}
        return left if len(left) < len(action) else None
    if isinstance(action, list) and all(isinstance(call, Mapping) for call in action):
        own = [call for call in action if _sends(call) and receiver in (None, str(call.get("target_id")))]
        return [call for call in action if call not in own] if own else None
    return None


def _sends(call: Facts) -> bool:
    return str(call.get("call", "")).startswith(_SENDING)
