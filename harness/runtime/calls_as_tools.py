"""The key `reply_via:` of specs: whether models write their replies, or give them as the arguments of a tool."""

from __future__ import annotations

import contextlib
import copy
import functools
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from harness.api import Case, Facts, Move, Outcome, Play, Task, Turn
from harness.api.errors import SpecError, near
from harness.config.building import split
from harness.config.keys import SpecKey, keys_of
from harness.config.plan import Condition
from harness.replies.tool_reply import ToolReply
from harness.runtime.steps import Steps

FORMS = ("text", "tool_calls")
DEFAULT = "default"
_BATCHES = 40


class CallsKey(SpecKey):
    """Models are offered the form of each of their replies as a tool."""

    entry = Annotated[
        str | dict[str, str],  # or the ${variable} that the matrix turns into one
        "tool_calls: models give their replies as arguments of a tool; {GROUP: tool_calls}: those of a group; or text",
    ]

    def conditions(self, whole: Condition, before: int) -> Iterable[Condition]:
        """The condition with a protocol whose turns offer tools. Raises `SpecError` where none of them can."""
        groups = {group.name: group for group in whole.groups}
        forms = self.value if isinstance(self.value, Mapping) else dict.fromkeys(groups, self.value)
        for name, form in forms.items():
            if name not in groups:
                raise SpecError(f"there is no group {name!r}", place=self.place(name), hint=near(name, groups))
            if form not in FORMS:
                place = self.place(name) if isinstance(self.value, Mapping) else self.place()
                raise SpecError(
                    f"must be text or tool_calls, found {form!r:.40}", place=place, hint=near(str(form), FORMS)
                )
            if isinstance(self.value, Mapping) and form == "tool_calls" and name in self._of_policies():
                hint = "Leave it out, or let a model play them."
                raise SpecError(f"a policy plays {name!r}: it calls no tools", place=self.place(name), hint=hint)
        calling = frozenset(name for name, form in forms.items() if form == "tool_calls")
        protocol: Any = copy.copy(whole.protocol)
        if hasattr(protocol, "offers_tools"):  # its turns are calls in any case
            if "reply_via" in split(self.spec.data["protocol"])[1]:
                message = "reply_via: is said twice, here and as the protocol's own"
                raise SpecError(message, place=self.place(), hint="Say protocol.reply_via alone.")
            return (replace(whole, protocol=replace(protocol, reply_via=self.value)),)
        if not calling:
            return (whole,)
        # A frozen dataclass too: the copy is no one else's.
        object.__setattr__(protocol, "play", functools.partial(play, whole.protocol.play, calling))
        called = replace(whole, protocol=protocol)
        if (why := _nothing_to_offer(called, calling)) is not None:
            raise SpecError(
                f"reply_via: tool_calls has nothing to offer: {why}", place=self.place(), hint="Leave it out."
            )
        return (called,)

    def _of_policies(self) -> set[str]:
        """The groups that a policy plays, whether a model is given or not."""
        bodies = dict(self.spec.get("agents") or {})
        bodies |= {name: one for key in keys_of(self.spec) if key.seats_agents for name, one, _ in key.contestants()}
        return {name for name, body in bodies.items() if isinstance(body, Mapping) and "policy" in body}


def play(
    inner: Callable[[Task, Case, Sequence[str], random.Random], Play],
    groups: Collection[str],
    task: Task,
    case: Case,
    agents: Sequence[str],
    rng: random.Random,
) -> Play:
    """An episode of the protocol `inner` in which agents of these groups are offered tools.

    The protocol itself knows nothing of it: it gets each move as if its agent had written the reply.
    """
    calling = {agent for agent in agents if case.roles.get(agent, DEFAULT) in groups}
    results: dict[str, tuple[str, ...]] = {}
    game = inner(task, case, agents, rng)
    with contextlib.closing(game):
        try:
            batch = next(game)
            while True:
                offered = [offer(turn, results) if turn.agent in calling else turn for turn in batch]
                moves = yield offered
                for turn, move in zip(offered, moves, strict=True):
                    results[turn.agent] = results_of(turn, move)
                batch = game.send([as_written(turn, move) for turn, move in zip(offered, moves, strict=True)])
        except StopIteration as stop:
            outcome: Outcome = stop.value
            return outcome


def offer(turn: Turn, results: dict[str, tuple[str, ...]]) -> Turn:
    """A turn whose form is offered as a tool, if it has fields; with the results of its agent's last calls."""
    answered = turn.call_results or (() if turn.fresh else results.get(turn.agent, ()))
    form = turn.reply
    can_call = form.fields and not form.tools and form.ability is None
    return replace(turn, reply=ToolReply(form) if can_call else form, call_results=answered)


def _nothing_to_offer(condition: Condition, groups: Collection[str]) -> str | None:
    """Why none of the first turns that these groups have in a condition's example offers a tool; None if one does, if
    they have none (the example may be too small), or if it cannot be played, which is for others to say."""
    why = None
    with contextlib.suppress(Exception):
        example = condition.assign_groups(condition.task.example(), 0)
        with Steps(condition.protocol, condition.task, example, random.Random(0)) as game:
            while game.batch is not None and game.number < _BATCHES:
                for turn in (one for one in game.batch if example.roles.get(one.agent, DEFAULT) in groups):
                    if turn.reply.tools:
                        return None
                    ability = turn.reply.ability
                    why = f"turn {turn.name!r} {ability.need if ability is not None else 'declares no fields'}"
                game.send([Move(turn.agent, turn.name, turn.reply.noop) for turn in game.batch])
    return why


def results_of(turn: Turn, move: Move) -> tuple[str, ...]:
    """What the calls of a move have returned: the one that is the reply was received."""
    calls = move.calls[-1].tool_calls if move.calls else None
    if not calls or not isinstance(turn.reply, ToolReply) or move.error_kind is not None:
        return ()
    return (*("replaced by a later call" for _ in calls[:-1]), "received")


def as_written(turn: Turn, move: Move) -> Move:
    """A move as if its reply were written: what was said beside the call, then the fields on their lines."""
    calls: Sequence[Facts] | None = move.calls[-1].tool_calls if move.calls else None
    if not calls or not isinstance(turn.reply, ToolReply):
        return move
    last = move.calls[-1]
    text = turn.reply.written(move.action) if move.error is None else last.shown
    text = "\n".join(filter(None, (last.text, text))) if move.error is None else text
    return replace(move, calls=(*move.calls[:-1], replace(last, text=text, tool_calls=None)))
