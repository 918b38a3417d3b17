"""The expressions of a world: compiled and checked once, evaluated on the names of a state."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.api import PluginError, near
from harness.extensions.yaml_tasks.expressions import RANDOM, CompiledExpression, ExpressionError, Names, compiled

AGENT = ("me", "number", "mine")
"""What an expression about one agent takes: its name, its position from 0, and its own variables."""
MEANINGS = {
    "me": "the agent's name", "number": "the agent's position", "mine": "the agent's own variables",
    "agents": "the names of all agents", "n": "the number of agents", "step": "the number of steps so far",
    "rounds": "the number of rounds so far", "actions": "the names of the actions of a step",
    "parameters": "the parameters of these actions", "said": "what agents say beside their actions",
    "end": "how the game ended",
    "timesteps": "the number of steps", "honest": "the scored agents",
}  # fmt: skip
"""The names that worlds have, and what they stand for."""
CLOCK = frozenset({"step", "rounds", "actions", "parameters"})
"""Those about the course of an episode."""
Evaluate = Callable[..., Any]


class Compiler:
    """Compiles expressions over the names that there are so far; `chance` says whether one of them draws.

    Args:
        own: the names of the agents' own variables, which `mine` may be asked for.
    """

    def __init__(self, own: Iterable[str] = ()) -> None:
        self.own, self.chance = frozenset(own), False

    def __call__(
        self, text: str, variables: Iterable[str], arguments: Sequence[str] = (), chance: bool = False
    ) -> CompiledExpression:
        """Compile. Raises `ExpressionError`, also for an own variable that there is not."""
        variables = frozenset(variables)
        try:
            done = compiled(text, variables, arguments)
        except ExpressionError:
            if not chance:
                raise
            done = compiled(text, variables, arguments, RANDOM)
            self.chance = True
        if "mine" in arguments:
            for node in ast.walk(ast.parse(f"({text}\n)", mode="eval")):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "mine":
                    self.check_own(node.attr, text)
        return done

    def check_own(self, name: str, text: str) -> None:
        """Raise `ExpressionError` if agents have no such variable."""
        if name not in self.own:
            hint = near(name, self.own) if self.own else "Declare it under own:."
            raise ExpressionError.of(text, f"mine.{name}: agents have no such variable. {hint}")


@dataclass(frozen=True)
class Line:
    """`variable: expression`, which changes a variable of the state; `own`: of the acting agent, or of each one."""

    variable: str
    own: bool
    value: CompiledExpression


class Block:
    """Lines that are carried out in order: each sees what the ones before have changed.

    Args:
        lines: `stock: expression`, or `mine.catch: expression`.
        compiler: compiles them.
        variables: all names.
        changeable: the variables of the state, own ones included.
        arguments: what the block is about besides the agent: the parameters of an action.
        acting: whether one agent acts; otherwise `mine.` means each agent.
        chance: whether lines may draw.
        at: the parameter, for messages.
    """

    def __init__(
        self,
        lines: Mapping[str, str],
        compiler: Compiler,
        variables: Iterable[str],
        changeable: Iterable[str],
        *,
        arguments: Sequence[str] = (),
        acting: bool = False,
        chance: bool = True,
        at: tuple[str, ...] = (),
    ) -> None:
        changeable, variables = frozenset(changeable), frozenset(variables)
        self.lines: list[Line] = []
        for target, text in lines.items():
            name, own = target.removeprefix("mine."), target.startswith("mine.")
            if own:
                compiler.check_own(name, text)
            elif name not in changeable:
                message = f"{name!r} is not a variable of the state. {near(name, changeable)}"
                raise PluginError(
                    message, at=(*at, target), hint="Declare it under state:, or under own: for each agent."
                )
            takes = (*AGENT, *arguments) if own or acting else ()
            self.lines.append(Line(name, own, compiler(text, variables, takes, chance)))

    def act(self, names: Names, agent: str, number: int, own: Sequence[str], arguments: Sequence[Any]) -> None:
        """Carry out the lines for one agent; `names` change."""
        mine = {name: names[name][agent] for name in own}
        for line in self.lines:
            value = line.value.on(names)(agent, number, mine, *arguments)
            if line.own:
                mine[line.variable] = value
                names[line.variable] = {**names[line.variable], agent: value}
            else:
                names[line.variable] = value
                if line.variable in own:
                    names[line.variable] = whole = _each(line, value, names["agents"])
                    mine[line.variable] = whole[agent]

    def run(self, names: Names, own: Sequence[str]) -> None:
        """Carry out the lines for the whole world; `mine.` lines for each agent, on the same values."""
        agents: Sequence[str] = names["agents"]
        each: list[dict[str, Any]] | None = None
        for line in self.lines:
            value = line.value.on(names)
            if line.own:
                if each is None:
                    each = [{name: names[name][agent] for name in own} for agent in agents]
                changes = [value(agent, i, each[i]) for i, agent in enumerate(agents)]
                for mine, change in zip(each, changes, strict=True):
                    mine[line.variable] = change
                names[line.variable] = dict(zip(agents, changes, strict=True))
            else:
                changed = value()
                names[line.variable] = _each(line, changed, agents) if line.variable in own else changed
                each = None if line.variable in own else each


def _each(line: Line, value: Any, agents: Sequence[str]) -> dict[str, Any]:
    """An own variable as a whole: a value for each agent, in their order."""
    if not isinstance(value, Mapping) or value.keys() != set(agents):
        what = f"{line.variable}: it must give a value for each agent, as in {{a: 0 for a in agents}}"
        raise ExpressionError.of(line.value.text, what)
    return {agent: value[agent] for agent in agents}


class Together:
    """Named expressions with the same arguments, evaluated at once: as one expression, which takes a third of the time.

    What fails is evaluated again alone, for its place.
    """

    def __init__(self, entries: Mapping[str, CompiledExpression], arguments: Sequence[str]) -> None:
        self.entries, self._all = entries, None
        if entries:
            text = ", ".join(f"{name!r}: ({one.text}\n)" for name, one in entries.items())
            variables = frozenset[str]().union(*(one.variables for one in entries.values()))
            try:
                self._all = compiled(f"{{{text}}}", variables, arguments)
            except ExpressionError:  # too long for one
                self._all = None

    def on(self, names: Names) -> Callable[..., dict[str, Any]]:
        """Return all values by name, as a function of the arguments. It raises `ExpressionError`."""
        together = None if self._all is None else self._all.on(names)

        def each(*arguments: Any) -> dict[str, Any]:
            if together is not None:
                try:
                    return together(*arguments)  # type: ignore[no-any-return]
                except ExpressionError:
                    pass
            return {name: one.value(names, *arguments) for name, one in self.entries.items()}

        return each
