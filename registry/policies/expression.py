"""A policy in YAML: what an agent does, as an expression over what it knows and sees."""

from __future__ import annotations

import keyword
import random
import re
from collections.abc import Iterable
from dataclasses import field
from functools import lru_cache
from typing import Any

from harness.api import Action, Place, PluginError, Policy, Reply, Turn, plugin
from harness.extensions.games.actions import Actions
from harness.extensions.networks.calls import Calls, Verb
from harness.extensions.networks.messages import Messages
from harness.extensions.yaml_tasks.contract import ActWithFields
from harness.extensions.yaml_tasks.expressions import (
    FUNCTIONS,
    RANDOM,
    CompiledExpression,
    Expression,
    Names,
    compiled,
    names,
    random_functions,
)
from harness.replies.action_with_message import ActionWithMessage, MessageLine

_WORD = re.compile(r"[^\W\d_]\w*")
_OWN = ("facts", "options", "noop", "turn", "action")


@plugin
class ByExpression(Policy):
    """Does what an expression says: a floor or an oracle without Python.

    The names in expressions are those of the agent's context and observation, which are the variables of its prompts.
    Besides: `options` (all legal actions; None if they are not finitely many), `noop` (the action that does nothing),
    `turn` (the name of the turn: act, talk, answer …), and `facts` (context and observation as one mapping, for names
    that are functions too: `facts.round`). Draws are allowed: `choice(options)`.

    Attributes:
        act: the action, such as `'WAIT' if holds_left else 'GRAB_LEFT'`; None does nothing. An action with parameters
            is a mapping: `{'action': 'TAKE', 'amount': 3}`. In games with messages it is the action without them.
        say: the message, in turns of talk and beside an action; by default none. In turns of messages to neighbors, a
            text goes to all of them, and a mapping neighbor → text to some; without `say`, `act` gives them.
        label: what tables call it, instead of "expression".
        remember: what the agent remembers for its next turn, by name, worked out after it has chosen `action`. In the
            first turn all are None: `{mistrust: "mistrust or min(gifts) < 5"}`.
    """

    act: Expression
    say: Expression | None = None
    remember: dict[str, Expression] = field(default_factory=dict)
    label: str = ""

    def __post_init__(self) -> None:
        for name in self.remember:
            if name in _OWN or not _usable(name):
                raise PluginError(f"{name!r} cannot name a memory: it is taken", at=("remember", name))
        for text in (self.act, self.say, *self.remember.values()):
            if text is not None:  # which names there are depends on the task; all else is known now
                _compiled(text, _place(text), frozenset(filter(_usable, _WORD.findall(text))))
        self._memory: dict[str, Any] = dict.fromkeys(self.remember)

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """Return the action. Raises `ExpressionError`, and `PluginError` for one that is not legal."""
        reply = turn.reply.act if isinstance(turn.reply, ActionWithMessage) else turn.reply
        facts = {**turn.context, **turn.observation}
        values = {name: value for name, value in facts.items() if _usable(name)} | self._memory
        values |= {"facts": facts, "noop": reply.noop, "turn": turn.name, "options": None}
        known = frozenset(values)
        if any("options" in _compiled(text, _place(text), known).uses for text in self._texts()):
            options = reply.options
            values["options"] = None if options is None else list(options)
        run = names({**values, **random_functions(rng)})
        message = None if self.say is None else self._message(_value(self.say, known, run), turn)
        if isinstance(reply, MessageLine) or (isinstance(reply, Messages) and self.say is not None):
            action = message
        else:
            action = _value(self.act, known, run)
            if action is None:
                action = reply.noop
            elif isinstance(action, str) and isinstance(
                reply.act if isinstance(reply, ActWithFields) else reply, Actions
            ):
                action = {"action": action}
            if action != reply.noop and not reply.allows(action):
                what = f"act gives {action!r:.200}, which is not an action in turn {turn.name!r}"
                raise PluginError(what, place=_place(self.act), hint=_possible(reply))
        run["action"] = action
        self._memory |= {name: _value(text, known | {"action"}, run) for name, text in self.remember.items()}
        return {"act": action, "message": message} if isinstance(turn.reply, ActionWithMessage) else action

    def _message(self, message: Any, turn: Turn) -> Action:
        """The value of `say` as the turn takes it. Raises `PluginError` for what is not a message."""
        line = turn.reply.line if isinstance(turn.reply, ActionWithMessage) else turn.reply
        if isinstance(line, Messages):
            texts = dict.fromkeys(line.to, message) if isinstance(message, str) else message
            texts = {} if texts is None else texts
            if isinstance(texts, dict):
                texts = {
                    name: text[: line.max_chars] if isinstance(text, str) else text for name, text in texts.items()
                }
            if not line.allows(texts):
                what = (
                    f"say gives {message!r:.200} in turn {turn.name!r}, where it is a text, or maps neighbors to texts"
                )
                raise PluginError(what, place=_place(self.say), hint=f"The neighbors: {', '.join(line.to)[:200]}.")
            return texts
        if isinstance(line, MessageLine) and message is not None:
            if not isinstance(message, str):
                raise PluginError(f"say gives {message!r:.200}, which is not text", place=_place(self.say))
            return message[: line.max_chars]
        return message

    def _texts(self) -> Iterable[Expression]:
        return [text for text in (self.act, self.say) if text is not None]


def _usable(name: str) -> bool:
    """Whether expressions can use a name."""
    taken = name in FUNCTIONS or name in RANDOM or name.startswith("_")
    return name.isidentifier() and not taken and not keyword.iskeyword(name)


def _place(text: Expression | None) -> Place | None:
    return getattr(text, "place", None)


@lru_cache(maxsize=1024)
def _compiled(text: Expression, place: Place | None, known: frozenset[str]) -> CompiledExpression:
    """Compiled once for all agents whose turns have the same names; `place` keeps equal texts of two files apart."""
    return compiled(text, known, functions=RANDOM)


def _value(text: Expression, known: frozenset[str], run: Names) -> Any:
    return _compiled(text, _place(text), known).value(run)


def _possible(reply: Reply) -> str:
    """What a policy could do instead."""
    reply = reply.act if isinstance(reply, ActWithFields) else reply
    if isinstance(reply, Actions):
        listed = [
            f"{form.usage}{''.join(f', {one.name} {one.words}' for one in form.parameters)}" for form in reply.forms
        ]
        return f"An action is a mapping {{'action': name, parameter: value}}. Possible: {'; '.join(listed)[:600]}."
    if isinstance(reply, Messages):
        return "An action maps neighbors to messages here: {b: 'text' for b in neighbors}. Or give messages with say."
    if isinstance(reply, Calls):
        calls = ", ".join(f"{{{', '.join(_call(verb))}}}" for verb in reply.verbs[:20])
        return f"An action is a list of calls, such as {reply.noop!r}. Possible calls: {calls:.600}."
    if reply.options is not None:
        return f"Possible: {', '.join(map(repr, reply.options[:20]))}."
    return f"What agents read about such a reply: {reply.parse('').error or f'for example {reply.noop!r}'}."


def _call(verb: Verb) -> Iterable[str]:
    yield f"'call': {verb.name!r}"
    yield from (f"{name!r}: '…'" for name in verb.required)
