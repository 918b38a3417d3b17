"""The rules of a world that a spec declares: its keys, checked and compiled."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

from harness.api import KEY, Action, PluginError, Range, Reply, near
from harness.extensions.games.actions import ActionForm, ActionParameter, Actions
from harness.extensions.yaml_tasks.expressions import CompiledExpression, Expression, ExpressionError, Names, is_number
from harness.extensions.yaml_tasks.reply_fields import ReplyFields
from harness.replies import Labelled

from .lines import AGENT, CLOCK, MEANINGS, Block, Compiler, Together

SHOWN_KEYS = frozenset({"inbox", "silent", "timestep", "talk_round", "memory", "view", "available"})
"""What observations have besides what `sees` names."""
KNOWN = frozenset({"name", "number", "agents", "rules", "known", "actions", "talk_rounds"})
"""What contexts have besides what `knows` names."""


class ParameterEntry(TypedDict, total=False):
    """A parameter of an action: exactly one of the first four.

    Attributes:
        integer: whole numbers from a lowest to a highest, both expressions: [0, stock].
        number: numbers from a lowest to a highest.
        one_of: a list, or an expression that gives one.
        text: one line of at most so many characters.
        means: what it is, for the prompt.
    """

    integer: tuple[Expression, Expression]
    number: tuple[Expression, Expression]
    one_of: list[str | int | float] | Expression
    text: Annotated[int, Range(ge=1, le=20_000)]
    means: str


class ActionEntry(TypedDict, total=False):
    """An action.

    Attributes:
        means: what it does, for the prompt.
        parameters: what it takes, by name.
        when: whether it is possible for an agent.
        effects: what it changes, line by line: `stock: stock - amount`; `mine.catch: mine.catch + amount`.
        backoff: whether the protocol may force an agent to it that has waited too long.
    """

    means: str
    parameters: dict[str, ParameterEntry]
    when: Expression
    effects: dict[str, Expression]
    backoff: Expression


def described(forms: Sequence[ActionForm]) -> list[dict[str, Any]]:
    """Actions for prompts: name, usage, and each parameter's name and values in words."""
    return [
        {
            "name": form.name,
            "usage": form.usage,
            "parameters": [{"name": one.name, "words": one.words} for one in form.parameters],
        }
        for form in forms
    ]


MAX_VALUES = 10_000
"""Of a parameter: all stand in the prompt."""
KINDS = ("integer", "number", "one_of", "text")


@dataclass(frozen=True)
class Parameter:
    """A parameter whose bounds may depend on the state; `ready` where they do not."""

    name: str
    kind: str
    bounds: tuple[CompiledExpression, ...]
    ready: ActionParameter | None
    chars: int
    means: str

    def now(self, names: Names, of_agent: Sequence[Any]) -> ActionParameter | None:
        """What it can be for an agent now; None if there is no value for it."""
        if self.ready is not None:
            return self.ready
        values = [bound.value(names, *of_agent) for bound in self.bounds]
        return self._with(values)

    def _with(self, values: Sequence[Any]) -> ActionParameter | None:
        text = self.bounds[0].text if self.bounds else None
        if self.kind == "one_of":
            many = values[0]
            if not isinstance(many, list) or not all(
                isinstance(one, (str, int, float)) and str(one).strip() for one in many
            ):
                what = f"{self.name}: one_of must give a list of texts or numbers, not {many!r:.80}"
                raise ExpressionError.of(text, what)
            if len(many) > MAX_VALUES:
                message = f"{self.name}: one_of gives {len(many):,} values; at most {MAX_VALUES:,} are read"
                raise ExpressionError.of(text, message)
            many = list(dict.fromkeys(many))
            if len({str(one).casefold() for one in many}) < len(many):
                raise ExpressionError.of(text, f"{self.name}: two values look the same: {many!r:.80}")
            return ActionParameter(self.name, "one_of", values=tuple(many), means=self.means) if many else None
        if self.kind == "text":
            return ActionParameter(self.name, "text", chars=self.chars, means=self.means)
        low, high = values
        for end in values:
            if not is_number(end):
                raise ExpressionError.of(text, f"{self.name}: a bound must be a number, not {end!r:.80}")
        kind: Literal["integer", "number"] = "number"
        if self.kind == "integer":
            kind, low, high = "integer", math.ceil(low), math.floor(high)
        return ActionParameter(self.name, kind, low, high, means=self.means) if low <= high else None


@dataclass(frozen=True)
class ActionRules:
    """An action: when it is possible, and what it does."""

    name: str
    means: str
    parameters: tuple[Parameter, ...]
    when: CompiledExpression | None
    effects: Block
    backoff: CompiledExpression | None
    ready: ActionForm | None

    @property
    def fixed(self) -> bool:
        """Whether it is always possible, with the same values."""
        return self.when is None and self.ready is not None

    def now(self, names: Names, of_agent: Sequence[Any]) -> ActionForm | None:
        """The form of the action for an agent now; None if it is not possible."""
        if self.when is not None and not self.when.value(names, *of_agent):
            return None
        if self.ready is not None:
            return self.ready
        parameters = [parameter.now(names, of_agent) for parameter in self.parameters]
        known = tuple(parameter for parameter in parameters if parameter is not None)
        return ActionForm(self.name, known, self.means) if len(known) == len(parameters) else None


class Rules:
    """All that a world's states share.

    Args:
        keys: the task's keys by name, as it documents them.
    """

    def __init__(self, keys: Mapping[str, Any]) -> None:
        self._numbers: tuple[list[str], dict[str, int]] = [], {}
        self.state_names, self.own = tuple(keys["state"]), tuple(keys["own"])
        compiler = self.compiler = Compiler(self.own)
        self.beside = ReplyFields(keys["reply_"], "action")
        self.clock = CLOCK | {"said"} if self.beside.values else CLOCK
        self._check_names(keys)
        self.draws = self._series(keys["draw"], {"agents", "n"})
        fixed = {"agents", "n", *keys["draw"]}
        self.neighbors = compiler(keys["neighbors"], fixed, ("me", "number")) if keys["neighbors"] is not None else None
        self.knows = {name: compiler(text, fixed, ("me", "number")) for name, text in keys["knows"].items()}
        start = {*fixed, *self.clock}
        self.state = self._series(keys["state"], start)
        start |= {*self.state_names}
        self.own_start = self._series(keys["own"], start, ("me", "number"))
        self.names = names = start | {*self.own}
        self.changeable = (*self.state_names, *self.own)
        self.before = self._block(keys, "before")
        self.after = self._block(keys, "after")
        self.each_round = self._block(keys, "each_round")
        self.break_deadlock = self._block(keys, "break_deadlock", chance=False) if keys["break_deadlock"] else None
        self.end, self.deadlock = (
            compiler(keys[key], names) if keys[key] is not None else None for key in ("end", "deadlock")
        )
        self.turn = compiler(keys["turn"], names, AGENT) if keys["turn"] is not None else None
        self.sees = Together({name: compiler(text, names, AGENT) for name, text in keys["sees"].items()}, AGENT)
        self.actions = {name: self._action(name, entry or {}) for name, entry in keys["actions"].items()}
        self.backoffs = [(action.backoff, name) for name, action in self.actions.items() if action.backoff is not None]
        self.random_order = keys["conflict"] == "random"
        texts: list[str] = [one.kind for one in self.beside.values]
        texts += [one.kind for action in self.actions.values() for one in action.parameters]
        self.has_texts = "text" in texts
        self.plain = not any(action.parameters for action in self.actions.values())
        self.noop = self._noop(keys["noop"])
        self.reports = {name: compiler(text, names) for name, text in keys["reports"].items()}
        graded = {*names, "end", "timesteps", "honest"} - self.clock
        self.scores: dict[str, CompiledExpression] = {}
        for name, text in keys["scores"].items():
            self.scores[name] = compiler(text, graded)
            graded.add(name)
        self.ready = tuple(action.ready for action in self.actions.values() if action.ready is not None)
        fixed_actions = all(action.fixed for action in self.actions.values())
        self.reply = self.reply_of(self.ready) if fixed_actions else None
        self.available = described(self.ready)

    def number_of(self, agent: str, agents: list[str]) -> int:
        """An agent's place among the agents; looked up, since all of ten thousand ask for theirs."""
        numbers = self._numbers
        if numbers[0] is not agents:
            numbers = self._numbers = agents, {name: number for number, name in enumerate(agents)}
        return numbers[1][agent]

    def reply_of(self, forms: tuple[ActionForm, ...]) -> Reply:
        """The form of a reply with these actions."""
        names = tuple(form.name for form in forms)
        noop = self.noop if self.noop in names else None
        if self.plain:
            return self.beside.around(Labelled(names, "ACTION", noop=noop), names)
        return self.beside.around(Actions(forms, "ACTION", None if noop is None else {"action": noop}), names)

    def described_all(self) -> list[dict[str, Any]]:
        """All actions, with bounds as far as they are fixed."""
        return [
            {
                "name": name,
                "usage": " ".join([name, *(f"{one.name}=<{one.name}>" for one in action.parameters)]),
                "means": action.means,
                "parameters": [
                    {"name": one.name, "means": one.means, "words": one.ready.words if one.ready else ""}
                    for one in action.parameters
                ],
            }
            for name, action in self.actions.items()
        ]

    def written(self, name: str) -> Action:
        """The action of that name, without parameters, as agents' actions are written."""
        return name if self.plain else {"action": name}

    def name_of(self, action: Any) -> str:
        """The name of an agent's action."""
        return str(action if self.plain else action["action"])

    def parameters_of(self, action: Any) -> dict[str, Any]:
        """The parameters of an agent's action: name → value."""
        return {} if self.plain else {name: value for name, value in action.items() if name != "action"}

    def _check_names(self, keys: Mapping[str, Any]) -> None:
        homes: dict[str, str] = {}
        for key in ("draw", "state", "own"):
            for name in keys[key]:
                if name in MEANINGS and (name != "said" or self.beside.values):
                    raise PluginError(
                        f"{name!r} is a name that worlds have already: {MEANINGS[name]}",
                        at=(key, name, KEY),
                        hint="Take another.",
                    )
                if name in homes:
                    raise PluginError(f"{name!r} is under {homes[name]}: too; give it another name", at=(key, name))
                homes[name] = key
        for key, taken in (
            ("sees", SHOWN_KEYS | KNOWN),
            ("knows", SHOWN_KEYS | KNOWN | {*keys["sees"]}),
            ("reports", {"state"}),
        ):
            for name in keys[key]:
                if name in taken:
                    what = f"{name!r} is a name that agents have something under already"
                    raise PluginError(what, at=(key, name), hint=f"Take another than {', '.join(sorted(taken))}.")
                if not name.isidentifier():
                    raise PluginError(
                        f"{name!r} is not a plain word", at=(key, name), hint="Templates use it as a name."
                    )

    def _series(
        self, texts: Mapping[str, str], names: set[str], arguments: Sequence[str] = ()
    ) -> dict[str, CompiledExpression]:
        """Values that are worked out in order: each sees the ones before."""
        done, known = {}, set(names)
        for name, text in texts.items():
            done[name] = self.compiler(text, known, arguments, chance=True)
            known.add(name)
        return done

    def _block(self, keys: Mapping[str, Any], key: str, chance: bool = True) -> Block:
        return Block(keys[key], self.compiler, self.names, self.changeable, chance=chance, at=(key,))

    def _action(self, name: str, entry: Mapping[str, Any]) -> ActionRules:
        at = ("actions", name)
        if not name.isidentifier():
            raise PluginError(
                f"{name!r} is not a plain word", at=at, hint="Name it with letters, digits and _: GRAB_LEFT."
            )
        parameters = []
        for parameter, body in (entry.get("parameters") or {}).items():
            if parameter in {*self.names, *AGENT, "action", "act", "message"}:
                named = parameter in self.names or parameter in AGENT
                meaning = MEANINGS.get(parameter, "a variable of the world") if named else "a key of agents' replies"
                message = f"{parameter!r} cannot name a parameter: it is {meaning}"
                raise PluginError(message, at=(*at, "parameters", parameter, KEY), hint="Choose another name.")
            parameters.append(self._parameter(parameter, body, (*at, "parameters", parameter)))
        arguments = [parameter.name for parameter in parameters]
        effects = Block(
            entry.get("effects") or {},
            self.compiler,
            self.names,
            self.changeable,
            arguments=arguments,
            acting=True,
            at=(*at, "effects"),
        )
        when, backoff = (
            self._condition(entry[key], arguments, name) if key in entry else None for key in ("when", "backoff")
        )
        if backoff is not None and parameters:
            raise PluginError(
                f"{name} has parameters; an agent can be forced to an action without", at=(*at, "backoff")
            )
        means, known = entry.get("means", ""), tuple(parameter.ready for parameter in parameters)
        ready = ActionForm(name, tuple(k for k in known if k is not None), means) if None not in known else None
        return ActionRules(name, means, tuple(parameters), when, effects, backoff, ready)

    def _condition(self, text: Expression, arguments: Sequence[str], name: str) -> CompiledExpression:
        try:
            return self.compiler(text, self.names, AGENT)
        except ExpressionError as error:
            if any(f"{argument}: unknown name" in error.message for argument in arguments):
                error.hint = (
                    f"Whether {name} is possible is asked before its parameters. Bound them: integer: [0, stock]."
                )
            raise

    def _parameter(self, name: str, entry: Mapping[str, Any], at: tuple[str, ...]) -> Parameter:
        kinds = [kind for kind in KINDS if kind in entry]
        if len(kinds) != 1:
            what = (
                f"{name} has {' and '.join(kinds)}; it takes one"
                if kinds
                else f"{name} needs one of {', '.join(KINDS)}"
            )
            raise PluginError(what, at=at, hint="For example integer: [0, 10], or one_of: [up, down].")
        kind, value, means = kinds[0], entry[kinds[0]], entry.get("means", "")
        if kind == "text" or (kind == "one_of" and isinstance(value, list)):
            empty = Parameter(name, kind, (), None, value if kind == "text" else 0, means)
            ready = empty._with([value])
            if ready is None:
                raise PluginError(f"{name}: one_of must not be empty", at=(*at, kind))
            return Parameter(name, kind, (), ready, empty.chars, means)
        texts = (value,) if kind == "one_of" else value
        bounds = tuple(self.compiler(text, self.names, AGENT) for text in texts)
        draft = Parameter(name, kind, bounds, None, 0, means)
        try:
            fixed = [ast.literal_eval(text) for text in texts]
        except (ValueError, SyntaxError, TypeError):
            return draft  # it depends on the state
        ready = draft._with(fixed)
        if ready is None:
            raise PluginError(f"{name} has no values: {kind} {', '.join(map(str, fixed))}", at=(*at, kind))
        return Parameter(name, kind, bounds, ready, 0, means)

    def _noop(self, name: str | None) -> str | None:
        if name is None:
            return None
        action = self.actions.get(name)
        if action is None:
            raise PluginError(f"noop: there is no action {name!r}. {near(name, self.actions)}", at=("noop",))
        if action.parameters:
            raise PluginError(
                f"noop: {name} takes parameters", at=("noop",),
                hint="Name an action without parameters, or leave noop out: then an agent can do nothing at all.",
            )  # fmt: skip
        return name
