"""Rules over answers: what must hold for every edge, agent or pair, or for the network, and the share that does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any, Literal, NotRequired, Required, TypedDict

from harness.api import PluginError, Range
from harness.extensions.networks import Honest
from harness.extensions.yaml_tasks.expressions import (
    CompiledExpression,
    Expression,
    ExpressionError,
    ExpressionLimitError,
    Names,
    compiled,
)

MAX_ITEMS = 2_000_000
Every = Literal["edge", "agent", "pair", "network"]
ARGUMENTS: Mapping[Every, tuple[str, ...]] = {
    "edge": ("u", "v"), "agent": ("agent",), "pair": ("u", "v"), "network": (),
}  # fmt: skip
"""What an expression for every edge, agent or pair, or for the network, takes."""


class Constraint(TypedDict):
    """What must hold for every edge (u, v), agent (agent) or pair of agents (u, v), or for the network."""

    every: Required[Annotated[Every, "edge, agent, pair or network: what the expressions are about"]]
    holds: Required[Annotated[Expression, "true or false, or a number from 0 to 1 for a share that holds"]]
    where: NotRequired[Annotated[Expression, "which of them count; all by default"]]
    within: NotRequired[Annotated[int, Range(ge=1), "pairs of at most so many hops from one to the other"]]
    weight: NotRequired[Annotated[float, Range(ge=0), "its weight in the score; 1 by default"]]
    needs_answers: NotRequired[
        Annotated[bool, "whether it fails where an agent of it has no answer; if false, expressions read None there"]
    ]


@dataclass(frozen=True)
class Rule:
    """A constraint that was checked.

    Attributes:
        name: its name.
        entry: the constraint as the spec has it.
        holds, where: its expressions.
        free: whether agents write what expressions cannot foresee; then an expression that fails does not hold.
    """

    name: str
    entry: Constraint
    holds: CompiledExpression
    where: CompiledExpression | None
    free: bool

    @classmethod
    def of(cls, name: str, entry: Constraint, known: Collection[str], free: bool, at: tuple[str, ...]) -> Rule:
        """Check a constraint. Raises `PluginError`, `ExpressionError`."""
        if "within" in entry and entry["every"] != "pair":
            raise PluginError(f"within is about pairs, not every {entry['every']}", at=(*at, "within"))
        arguments = ARGUMENTS[entry["every"]]
        where = compiled(entry["where"], known, arguments) if "where" in entry else None
        return cls(name, entry, compiled(entry["holds"], known, arguments), where, free)

    @property
    def weight(self) -> float:
        """Its weight in the score."""
        return self.entry.get("weight", 1)

    @property
    def too_many(self) -> str:
        """What is wrong if a network is too large for it."""
        return f"{self.name} is about more than {MAX_ITEMS:,} pairs of agents; `within:` keeps to those that are close"

    def check(self, agents: int) -> None:
        """Raise `ExpressionLimitError` for a network of so many agents that it has too many pairs."""
        if self.entry["every"] == "pair" and "within" not in self.entry and agents * (agents - 1) // 2 > MAX_ITEMS:
            raise ExpressionLimitError.of(self.holds.text, self.too_many)

    def items(self, team: Honest) -> Iterable[tuple[str, ...]]:
        """What it is about: edges, agents, pairs, or the network once."""
        every = self.entry["every"]
        if every == "edge":
            return team.edges
        if every == "pair":
            return near(team, self.entry["within"]) if "within" in self.entry else combinations(team.agents, 2)
        return ((agent,) for agent in team.agents) if every == "agent" else ((),)

    def credits(self, team: Honest, values: Names) -> Iterator[tuple[tuple[str, ...], float]]:
        """Yield everything that counts, with the share of it that holds, from 0 to 1.

        An expression that fails where answers are missing does not hold.

        Raises:
            ExpressionError: if an expression fails although all agents have answers, or there are no steps left.
        """
        answers, complete = team.answers, team.all_valid
        total = complete and not self.free
        holds = _guarded(self.holds.on(values), total, False)
        where = None if self.where is None else _guarded(self.where.on(values), total, True)
        strict = self.entry.get("needs_answers", True) and not complete
        for number, item in enumerate(self.items(team)):
            if number == MAX_ITEMS:
                raise ExpressionLimitError.of(self.holds.text, self.too_many)
            if where is not None and not where(*item):
                continue
            if strict and (not item or None in [answers[agent] for agent in item]):
                yield item, 0.0
            else:
                yield item, self._credit(holds(*item))

    def share(self, team: Honest, values: Names) -> float | None:
        """Return the mean share that holds, from 0 to 1; None if nothing counts. Raises `ExpressionError`."""
        credit, number = 0.0, 0
        for _, part in self.credits(team, values):
            credit += part
            number += 1
        return credit / number if number else None

    def _credit(self, value: Any) -> float:
        if value is True or value is False:
            return 1.0 if value else 0.0
        if value is None:  # such as the answer that another agent does not have
            return 0.0
        if isinstance(value, (int, float)) and 0 <= value <= 1:
            return float(value)
        what = f"{self.name} gives {value!r:.60}; what holds is true or false, or a number from 0 to 1"
        raise ExpressionError.of(self.holds.text, what)


def _guarded(function: Callable[..., Any], total: bool, otherwise: bool) -> Callable[..., Any]:
    """The function; unless it must never fail, with a value for where it does."""
    if total:
        return function

    def guarded(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except ExpressionLimitError:
            raise
        except ExpressionError:
            return otherwise

    return guarded


def near(team: Honest, hops: int) -> Iterator[tuple[str, str]]:
    """Yield each pair of agents once that are at most so many hops from each other, over scored agents."""
    neighbors, position = team.neighbors(), {agent: i for i, agent in enumerate(team.agents)}
    for agent in team.agents:
        reached = front = {agent}
        for _ in range(hops):
            front = {other for one in front for other in neighbors[one]} - reached
            if not front:
                break
            reached = reached | front
        later = [other for other in reached if position[other] > position[agent]]
        yield from ((agent, other) for other in sorted(later, key=position.__getitem__))


def mean(shares: Sequence[tuple[float | None, float]]) -> float | None:
    """Return the weighted mean of the shares that there are; None if none has weight."""
    present = [(share, weight) for share, weight in shares if share is not None]
    total = sum(weight for _, weight in present)
    return sum(share * weight for share, weight in present) / total if total else None
