"""The states of a world that a spec declares. The task is `world.py`."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from typing import Any

from harness.api import Action, Facts, PluginError, Reply
from harness.extensions.games.actions import ActionForm
from harness.extensions.games.worlds import World
from harness.extensions.yaml_tasks.contract import said_of
from harness.extensions.yaml_tasks.expressions import Names, names, random_functions, renew
from harness.replies import act_of

from .rules import ActionRules, Rules, described


class DeclaredState(World):
    """A state: the values of all variables by name, and what was worked out from them so far.

    Args:
        rules: those of its task.
        values: what expressions run on. Nothing changes it from here on.
        acted: the agents that have acted in the round under way.
    """

    def __init__(self, rules: Rules, values: Names, acted: frozenset[str] = frozenset()) -> None:
        self.rules, self.values, self.acted = rules, values, acted
        self._own: dict[str, tuple[Any, ...]] = {}
        self._observations: dict[str, Facts] = {}
        self._possible: dict[str, tuple[ActionForm, ...]] = {}
        self._replies: dict[str, Reply | None] = {}
        self._backoffs: dict[str, Action] = {}
        self._waiting: list[tuple[Callable[..., Any], str]] | None = None
        self._deadlock: bool | None = None
        self._sees: Callable[..., dict[str, Any]] | None = None

    @classmethod
    def start(cls, rules: Rules, fixed: Mapping[str, Any], rng: random.Random) -> DeclaredState:
        """The first state; `fixed` has the agents and what was drawn."""
        course: dict[str, Any] = {"step": 0, "rounds": 0, "actions": {}, "parameters": {}}
        course |= {"said": {}} if rules.beside.values else {}
        values = names({**fixed, **course, **(random_functions(rng) if rules.compiler.chance else {})})
        for name, expression in rules.state.items():
            values[name] = expression.value(values)
        agents: list[str] = values["agents"]
        for name, expression in rules.own_start.items():
            value = expression.on(values)
            values[name] = {agent: value(agent, i) for i, agent in enumerate(agents)}
        return cls(rules, values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeclaredState) and self._all() == other._all()

    __hash__ = None  # type: ignore[assignment]

    def _all(self) -> tuple[Any, ...]:
        return self._variables(), self.acted

    def _variables(self) -> dict[str, Any]:
        return {name: self.values[name] for name in self.rules.names}

    def _of(self, agent: str) -> tuple[Any, ...]:
        """What expressions about an agent take."""
        if agent not in self._own:
            number = self.rules.number_of(agent, self.values["agents"])
            self._own[agent] = (agent, number, {name: self.values[name][agent] for name in self.rules.own})
        return self._own[agent]

    def observation(self, agent: str) -> Facts:
        """What `sees` names, once more together as `view`, and the actions that are `available`."""
        if agent not in self._observations:
            renew(self.values)
            if self._sees is None:
                self._sees = self.rules.sees.on(self.values)
            view = self._sees(*self._of(agent))
            shown = {name: _apart(value) for name, value in view.items()} if self.rules.has_texts else view
            self._observations[agent] = {**view, "view": shown, "available": self._available(agent)}
        return self._observations[agent]

    def _available(self, agent: str) -> list[dict[str, Any]]:
        if self.rules.reply is not None:
            return self.rules.available
        return described(self._forms(agent))

    def reply(self, agent: str) -> Reply | None:
        """The possible actions: `Labelled` words, or `Actions` where any action of the world has parameters."""
        rules = self.rules
        if rules.turn is None and rules.reply is not None:
            return rules.reply
        if agent not in self._replies:
            self._replies[agent] = self._reply(agent)
        return self._replies[agent]

    def _reply(self, agent: str) -> Reply | None:
        rules = self.rules
        if rules.turn is not None and not rules.turn.value(self.values, *self._of(agent)):
            return None
        if rules.reply is not None:
            return rules.reply
        forms = self._forms(agent)
        return rules.reply_of(forms) if forms else None

    def step(self, actions: Mapping[str, Action], rng: random.Random) -> DeclaredState:
        """The lines of `before`, the actions' effects one agent after another, the lines of `after` and `each_round`.

        An action that is no longer possible when its agent's turn comes has no effect.
        """
        rules = self.rules
        done = {agent: act_of(actions[agent]) for agent in self.values["agents"] if actions.get(agent) is not None}
        values = names({**self._variables(), **(random_functions(rng) if rules.compiler.chance else {})})
        values["actions"] = {agent: rules.name_of(action) for agent, action in done.items()}
        values["parameters"] = {agent: rules.parameters_of(action) for agent, action in done.items()}
        if rules.beside.values:
            nothing = dict.fromkeys(rules.beside.names)
            values["said"] = {agent: {**nothing, **said_of(actions[agent])} for agent in done}
        state = DeclaredState(rules, values)
        rules.before.run(values, rules.own)
        order = list(done)
        if rules.random_order:
            rng.shuffle(order)
        for agent in order:
            state._act(agent, done[agent])
        rules.after.run(values, rules.own)
        values["step"] += 1
        state._own.clear()
        state.acted = state._round(self.acted.union(actions))
        return state

    def _round(self, acted: frozenset[str]) -> frozenset[str]:
        """Who has acted in the round; the lines of `each_round` where this completes it."""
        rules, values = self.rules, self.values
        for agent in values["agents"] if len(acted) < values["n"] else ():
            if agent not in acted and (rules.turn is None or rules.turn.value(values, *self._of(agent))):
                return acted
        rules.each_round.run(values, rules.own)
        values["rounds"] += 1
        self._own.clear()
        return frozenset()

    def facts(self) -> Facts:
        """Return `state`, all variables, and what `reports` names."""
        state = {name: self.values[name] for name in self.rules.changeable}
        for name, value in state.items():
            if (key := _strange(value)) is not None:
                hint = "Keys of mappings are texts in results: write {str(i): …}."
                raise PluginError(f"{name} is a mapping with the key {key!r}", hint=hint, at=("state",))
        return {"state": state, **{name: one.value(self.values) for name, one in self.rules.reports.items()}}

    @property
    def over(self) -> bool:
        """What `end` says."""
        return self.rules.end is not None and bool(self.rules.end.value(self.values))

    @property
    def deadlock(self) -> bool:
        """What `deadlock` says."""
        if self._deadlock is None:
            self._deadlock = self.rules.deadlock is not None and bool(self.rules.deadlock.value(self.values))
        return self._deadlock

    def break_deadlock(self) -> DeclaredState:
        """The state after the lines of `break_deadlock`."""
        if self.rules.break_deadlock is None:
            raise PluginError(
                "a deadlock is to be broken, and the world does not say how",
                hint="Declare it: break_deadlock: {forks: …}; or let the protocol end there, deadlock: terminal.",
            )
        values = names(self._variables())
        self.rules.break_deadlock.run(values, self.rules.own)
        return DeclaredState(self.rules, values, self.acted)

    def backoff(self, agent: str) -> Action:
        """The first action whose `backoff` holds for the agent."""
        if not self.rules.backoffs:
            return None
        if agent not in self._backoffs:
            if self._waiting is None:
                self._waiting = [(condition.on(self.values), name) for condition, name in self.rules.backoffs]
            self._backoffs[agent] = None
            for holds, name in self._waiting:
                if holds(*self._of(agent)):
                    self._backoffs[agent] = self.rules.written(name)
                    break
        return self._backoffs[agent]

    def _forms(self, agent: str) -> tuple[ActionForm, ...]:
        if agent not in self._possible:
            forms = (action.now(self.values, self._of(agent)) for action in self.rules.actions.values())
            self._possible[agent] = tuple(form for form in forms if form is not None)
        return self._possible[agent]

    def _act(self, agent: str, action: Action) -> None:
        """Change the values of a state that is not finished yet."""
        rules, values = self.rules, self.values
        chosen: ActionRules = rules.actions[rules.name_of(action)]
        if not chosen.fixed:
            self._own.clear()
            form = chosen.now(values, self._of(agent))
            if form is None or not all(parameter.allows(action[parameter.name]) for parameter in form.parameters):
                return
        if chosen.effects.lines:
            arguments = [action[parameter.name] for parameter in chosen.parameters]
            chosen.effects.act(values, agent, rules.number_of(agent, values["agents"]), rules.own, arguments)


_SEPARATES = re.compile(r"[,;:\"]")


def _apart(value: Any, within: bool = False) -> Any:
    """A value in which texts within lists and mappings that have a sign between entries stand in quotes.

    Prompts list entries on one line: what one agent says must not pass for what another one does.
    """
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False) if within and _SEPARATES.search(value) else value
    if isinstance(value, Mapping):
        return {key: _apart(one, within=True) for key, one in value.items()}
    return [_apart(one, within=True) for one in value] if isinstance(value, (list, tuple)) else value


def _strange(value: Any) -> Any:
    """A key of a mapping in the value that is no text; None if there is none."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                return key
            if (strange := _strange(inner)) is not None:
                return strange
    elif isinstance(value, list):
        for inner in value:
            if (strange := _strange(inner)) is not None:
                return strange
    return None
