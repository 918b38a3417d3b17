"""Small stepped worlds that a spec declares."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Annotated, Any, Literal

from harness.api import Case, Facts, Outcome, PluginError, Range, Reply, derive_seed, plugin
from harness.extensions.games.worlds import SteppedTask
from harness.extensions.yaml_tasks.expressions import Expression, ExpressionError, is_number, names, random_functions
from harness.extensions.yaml_tasks.reply_fields import ReplyEntry
from harness.extensions.yaml_tasks.wordings import Wording
from harness.extensions.yaml_tasks.yaml_task import YamlTask

from ._world.rules import ActionEntry, Rules
from ._world.states import DeclaredState


@plugin
class DeclaredWorld(YamlTask, SteppedTask):
    """A small stepped world in YAML: state, what agents see, actions with effects, and scores, as expressions.

    Names in expressions: `agents` (their names), `n` (how many), what `draw` and `state` name, each variable of `own`
    as a mapping agent → value, `step` and `rounds` (how many so far), `actions` (agent → the name of its action, of the
    step under way or else of the last one; agents that did nothing are left out) and `parameters` (agent → the
    parameters of that action: `parameters[a].litres`). In what concerns one agent also `me` (its name), `number` (its
    position, from 0) and `mine` (its own variables: `mine.catch`). With `reply`, `said` is agent → what it said beside
    that action, None in fields that it left out: `said[a].confidence`.

    A step: the lines of `before`, the effects of the actions, one agent after another, and the lines of `after`; then,
    if all agents that have a turn have acted, the lines of `each_round`.
    Lines are carried out in order, and each sees what the ones before have changed. Draws (`randint`, `choice` …) may
    stand in `draw`, `state`, `own`, `before`, `after`,
    `each_round` and `effects`.

    Attributes:
        agents: how many (Agent-0, Agent-1 …), or their names.
        instances: the number of cases; each draws anew.
        rules: what all agents read first: a Jinja template over `name`, `number`, `agents` and what `knows` names.
        draw: what is drawn once a case, in order.
        knows: what an agent knows from the start, for its prompts.
        neighbors: the names of those that an agent's messages reach; by default all others.
        state: the variables of the world at the start of an episode, in order.
        own: the variables of each agent at the start.
        sees: what the acting agent observes.
        turn: whether an agent has a turn now; by default always.
        actions: what agents can do.
        reply: what agents write beside their action, each on its line: `{reason: text, confidence: {number: [0, 1]}}`.
            The action stands where `action:` does, by default last.
        noop: the action, without parameters, of an agent whose turn fails; by default it does nothing.
        conflict: whose effects come first in a simultaneous step: "order", that of `agents`, or "random". An action
            that is no longer possible when its turn comes has no effect. What all actions do together stands in
            `before` or `after`, over `actions`.
        before, after: what changes by itself before and after the actions of each step. A line `mine.x` is carried out
            for every agent, on the same values.
        each_round: what changes by itself once all agents have acted: after every simultaneous step, and after the last
            agent's in sequential order.
        end: whether the game is over; the protocol's `max_timesteps` ends it too.
        deadlock: whether no agent can continue.
        break_deadlock: what changes when a deadlock is broken from outside.
        reports: further facts for metrics, from the final state.
        scores: the grades, from the final state and `end` ("over", "limit" or "deadlock"), `timesteps`, `honest` (the
            scored agents), and the scores before (a variable of the same name comes first). Each is a number, or a
            mapping agent → number, such as `returns: purse` for ratings.
    """

    prompts = "world/standard"

    agents: Annotated[int, Range(ge=1, le=10_000)] | list[str] = 3
    instances: Annotated[int, Range(ge=1, le=1_000_000)] = 1
    rules: str = ""
    draw: dict[str, Expression] = field(default_factory=dict)
    knows: dict[str, Expression] = field(default_factory=dict)
    neighbors: Expression | None = None
    state: dict[str, Expression] = field(default_factory=dict)
    own: dict[str, Expression] = field(default_factory=dict)
    sees: dict[str, Expression] = field(default_factory=dict)
    turn: Expression | None = None
    actions: dict[str, ActionEntry | None]
    reply_: ReplyEntry = field(default_factory=dict)
    noop: str | None = None
    conflict: Literal["order", "random"] = "order"
    before: dict[str, Expression] = field(default_factory=dict)
    after: dict[str, Expression] = field(default_factory=dict)
    each_round: dict[str, Expression] = field(default_factory=dict)
    end: Expression | None = None
    deadlock: Expression | None = None
    break_deadlock: dict[str, Expression] = field(default_factory=dict)
    reports: dict[str, Expression] = field(default_factory=dict)
    scores: dict[str, Expression] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._names = [f"Agent-{i}" for i in range(self.agents)] if isinstance(self.agents, int) else self.agents
        if not self._names or len(set(self._names)) < len(self._names):
            raise PluginError("agents: names must be there, and differ", at=("agents",))
        strange = next((name for name in self._names if not name.strip() or not name.isprintable()), None)
        if strange is not None:
            raise PluginError(f"agents: {strange!r:.80} cannot be an agent's name", at=("agents",))
        if not self.actions:
            raise PluginError("actions: a world needs at least one", at=("actions",))
        self._rules = Rules(vars(self))
        seen = "It changes: agents see it in their turns, by `sees: {{{}: {}}}`. `rules` has what `knows` names."
        remedies = {name: f"Name it under `knows: {{{name}: {name}}}`." for name in (*self.draw, "n")}
        remedies |= {name: seen.format(name, name) for name in self.state}
        remedies |= {name: seen.format(name, f"mine.{name}") for name in self.own}
        self._shared: tuple[Case, list[str], dict[str, int]] | None = None
        self._text = Wording("rules", self.rules, {"name", "number", "agents", *self.knows}, remedies=remedies)

    @property
    def grades(self) -> tuple[str, ...]:
        """The names of the scores."""
        return tuple(self.scores)

    @property
    def beside(self) -> tuple[str, ...]:
        """The names of the fields of `reply`."""
        return self._rules.beside.names

    @property
    def facts(self) -> tuple[str, ...]:  # type: ignore[override]
        """`state`: all variables at the end; and the names of `reports`."""
        return ("state", *self.reports)

    def cases(self, limit: int | None, seed: int) -> Iterable[Case]:
        """Yield the cases; what was drawn is their target, of which agents know what `knows` and `sees` say."""
        agents = self._names
        for sample in range(self.instances if limit is None else min(limit, self.instances)):
            rng = random.Random(derive_seed("world", len(agents), seed, sample))
            values = names({"agents": agents, "n": len(agents), **random_functions(rng)})
            for name, expression in self._rules.draws.items():
                values[name] = expression.value(values)
            private = {}
            for i, agent in enumerate(agents if self.knows else ()):
                private[agent] = {name: one.value(values, agent, i) for name, one in self._rules.knows.items()}
            neighbors = None
            if self._rules.neighbors is not None:
                neighbors = {agent: self._neighbors(values, agent, i) for i, agent in enumerate(agents)}
            yield Case(
                id=f"n{len(agents)}s{sample}",
                agents=tuple(agents),
                private=private,
                topology=neighbors,
                target={name: values[name] for name in self._rules.draws},
                labels={"agents": len(agents)},
            )

    def _neighbors(self, values: dict[str, Any], agent: str, number: int) -> tuple[str, ...]:
        assert self._rules.neighbors is not None
        named = self._rules.neighbors.value(values, agent, number)
        others = dict.fromkeys(named if isinstance(named, list) else ())
        if not isinstance(named, list) or any(other not in self._names or other == agent for other in others):
            what = f"neighbors of {agent}: it must be a list of other agents, found {named!r:.80}"
            raise ExpressionError.of(self.neighbors, what)
        return tuple(others)

    def context(self, case: Case, agent: str) -> Facts:
        """`name`, `number`, `agents`, what `knows` names, `rules`, `known` and `actions`.

        `rules` ends with how to write the fields of `reply`.
        `known` has what `knows` names and `rules` does not mention; `actions` each action's name, usage, meaning and
        parameters.
        """
        knows = case.private.get(agent, {})
        shared = self._shared
        if shared is None or shared[0] is not case:  # one list for all agents: each its own would be quadratic
            numbers = {name: number for number, name in enumerate(case.agents)}
            shared = self._shared = case, list(case.agents), numbers
        _, agents, numbers = shared
        facts = {"name": agent, "number": numbers[agent], "agents": agents, **knows}
        known = {name: value for name, value in knows.items() if name not in self._text.uses}
        asked = self._rules.beside.words("the line with your action")
        rules = "\n\n".join(filter(None, (self._text(facts), *asked)))
        return {**facts, "rules": rules, "known": known, "actions": self._rules.described_all()}

    def world(self, case: Case, rng: random.Random) -> DeclaredState:
        """The first state."""
        fixed = {"agents": list(case.agents), "n": len(case.agents), **case.target}
        return DeclaredState.start(self._rules, fixed, rng)

    def reply(self, case: Case, agent: str) -> Reply:
        """The form of the agent's action in the first state; all fixed actions where it has no turn then."""
        return self.world(case, random.Random(0)).reply(agent) or self._rules.reply_of(self._rules.ready)

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, float | dict[str, float] | None]:
        """Return the scores: each a number, or agent → number; all None for an outcome of another protocol."""
        state = outcome.facts.get("state")
        if not isinstance(state, Mapping):
            return dict.fromkeys(self.scores)
        honest = [agent for agent in case.agents if agent not in case.unscored]
        values = names(
            {
                "agents": list(case.agents),
                "n": len(case.agents),
                **case.target,
                **state,
                "end": outcome.facts.get("end"),
                "timesteps": outcome.facts.get("timesteps"),
                "honest": honest,
            }
        )
        grades: dict[str, float | dict[str, float] | None] = {}
        for name, expression in self._rules.scores.items():
            value = expression.value(values)
            values.setdefault(name, value)
            if isinstance(value, Mapping) and value.keys() == set(case.agents) and all(map(is_number, value.values())):
                grades[name] = {agent: float(value[agent]) for agent in case.agents}
            elif value is None or isinstance(value, bool) or is_number(value):
                grades[name] = None if value is None else float(value)
            else:
                message = f"scores: {name} must be a number, or one for each agent, found {value!r:.80}"
                raise ExpressionError.of(self.scores[name], message)
        return grades
