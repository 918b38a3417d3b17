"""Declared skill in closed form: how likely a simulated agent is to be right, well-formed, sure, and like another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from harness.errors import PluginError, near

_SLACK = 1e-9
"""Declared numbers may miss a bound by as much as decimal fractions miss their binary ones."""


@dataclass(frozen=True, slots=True)
class Skill:
    """What is declared of one agent; `simulated` says what the fields mean. All but `spread` are probabilities."""

    accuracy: float
    malformed: float
    malformed_accuracy: float | None
    confidence_right: float
    confidence_wrong: float
    spread: float
    unstated: float
    unreadable: float
    conformity: float
    steady: float

    def malformed_if(self, right: bool) -> float:
        """P(malformed | right or wrong): with a = `accuracy`, m = `malformed`, b = `malformed_accuracy`, by Bayes
        m·b / a where the answer is right, m·(1−b) / (1−a) where it is wrong; so that P(malformed) = m,
        P(right | malformed) = b and P(right) = a. Without b it is m either way."""
        if self.malformed_accuracy is None:
            return self.malformed
        accuracy, share = self.accuracy, self.malformed_accuracy
        if not right:
            accuracy, share = 1 - accuracy, 1 - share
        return min(1.0, self.malformed * share / accuracy) if accuracy else 0.0

    def sure(self, right: bool, luck: float) -> float:
        """A confidence, uniform from `spread` below to `spread` above the declared mean; `luck` in [0, 1)."""
        mean = self.confidence_right if right else self.confidence_wrong
        return min(1.0, max(0.0, round(mean + self.spread * (2 * luck - 1), 2)))


@dataclass(frozen=True, slots=True)
class Copying:
    """The agent repeats what `source` answers with probability `share`, else answers with `accuracy` by itself.

    With a the accuracy of the source, b that declared of the copying agent and ρ the correlation wanted of being right:

        share    c = ρ · √(b(1−b) / (a(1−a)))
        accuracy     (b − c·a) / (1−c)

    P(right) is then c·a + (1−c)·(b−ca)/(1−c) = b, and the covariance c·a + (b−ca)·a − a·b = c·a(1−a), which is ρ times
    both standard deviations. It can be done if c ≤ min(b/a, (1−b)/(1−a)), the largest correlation that two such
    answers can have (the bound of Fréchet and Hoeffding).
    """

    source: str
    share: float
    accuracy: float


def skills(defaults: Skill, agents: Mapping[str, Mapping[str, Any]]) -> dict[str, Skill]:
    """Agent → its skill; agents that are not named have the defaults. Raises `PluginError`."""
    known = [f.name for f in fields(Skill)]
    _check(defaults, ())
    made = {}
    for agent, given in agents.items():
        for key, value in given.items():
            if key not in known:
                raise PluginError(f"{agent}: unknown key {key!r}", hint=near(key, known), at=("agents", agent, key))
            top = 0.5 if key == "spread" else 1
            if value is None and key == "malformed_accuracy":
                continue
            if value is None or not 0 <= value <= top:
                raise PluginError(
                    f"{agent}: {key} must be between 0 and {top}, found {value}", at=("agents", agent, key)
                )
        made[agent] = replace(defaults, **given)
        _check(made[agent], ("agents", agent))
    return made


def _check(skill: Skill, at: tuple[str, ...]) -> None:
    """What no answers can be at once."""
    whose = f"{at[-1]}: " if at else ""
    if skill.malformed_accuracy is not None:
        right, wrong = skill.malformed * skill.malformed_accuracy, skill.malformed * (1 - skill.malformed_accuracy)
        if right > skill.accuracy + _SLACK or wrong > 1 - skill.accuracy + _SLACK:
            share = "right" if right > skill.accuracy + _SLACK else "wrong"
            has = skill.accuracy if share == "right" else 1 - skill.accuracy
            raise PluginError(
                f"{whose}malformed and malformed_accuracy make {max(right, wrong):.3g} of all answers malformed and "
                f"{share}; by its accuracy only {has:.3g} of them are {share}",
                hint="Lower malformed, or let malformed_accuracy be nearer to accuracy.",
                at=(*at, "malformed_accuracy"),
            )
    for name in ("confidence_right", "confidence_wrong"):
        mean = getattr(skill, name)
        if not skill.spread - _SLACK <= mean <= 1 - skill.spread + _SLACK:
            message = f"{whose}{name} {mean} and spread {skill.spread} reach beyond 0 to 1"
            raise PluginError(message, hint=f"spread is at most {min(mean, 1 - mean):.3g} here.", at=(*at, "spread"))


def copyings(declared: Sequence[Mapping[str, Any]], made: Mapping[str, Skill], defaults: Skill) -> dict[str, Copying]:
    """Copying agent → how it copies. Raises `PluginError` for what is no pair, and for what no answers can be."""
    found: dict[str, Copying] = {}
    for i, entry in enumerate(declared):
        at = ("correlated", i)
        source, agent, wanted = _pair(entry, at)
        if agent in found:
            message = f"{agent} is to copy {found[agent].source} and {source}; an agent copies one"
            raise PluginError(message, hint="Let one of the two copy it instead.", at=at)
        a, b = (made.get(name, defaults).accuracy for name in (source, agent))
        found[agent] = _copying(source, agent, wanted, a, b, at)
    for agent in found:
        chain = [agent]
        while chain[-1] in found:
            chain.append(found[chain[-1]].source)
            if chain[-1] == agent:
                listed = " copies ".join(chain)
                raise PluginError(f"{listed}: somebody must answer first", at=("correlated",))
            if len(chain) > len(found) + 1:  # runs into another agent's circle, which is told at that agent
                break
    return found


def _pair(entry: Mapping[str, Any], at: tuple[str | int, ...]) -> tuple[str, str, float]:
    for key in entry:
        if key not in ("agents", "correlation"):
            raise PluginError(f"unknown key {key!r}", hint=near(str(key), ("agents", "correlation")), at=(*at, key))
    pair, wanted = entry.get("agents"), entry.get("correlation")
    if not isinstance(pair, list) or len(pair) != 2 or pair[0] == pair[1] or not all(isinstance(x, str) for x in pair):
        raise PluginError(
            f"agents must be two names, found {pair!r:.80}", hint="Which copies which: [Agent-0, Agent-1].", at=at
        )
    if isinstance(wanted, bool) or not isinstance(wanted, int | float) or not 0 <= wanted <= 1:
        hint = "Copying makes answers alike; it cannot make them differ."
        raise PluginError(f"correlation must be a number from 0 to 1, found {wanted!r:.80}", hint=hint, at=at)
    return pair[0], pair[1], float(wanted)


def _copying(source: str, agent: str, wanted: float, a: float, b: float, at: tuple[str | int, ...]) -> Copying:
    """The probabilities of `Copying`."""
    for name, accuracy in ((source, a), (agent, b)):
        if accuracy in (0, 1):
            message = f"{name} has accuracy {accuracy:g}: what is always the same has no correlation"
            raise PluginError(message, at=at)
    share = wanted * math.sqrt(b * (1 - b) / (a * (1 - a)))
    most = min(b / a, (1 - b) / (1 - a))
    if share > most + _SLACK:
        bound = most * math.sqrt(a * (1 - a) / (b * (1 - b)))
        raise PluginError(
            f"{source} is right with {a:g}, {agent} with {b:g}: correlation at most {bound:.3f}, not {wanted:g}",
            hint="Lower it, or bring the accuracies together.",
            at=at,
        )
    alone = (b - share * a) / (1 - share) if share < 1 else b
    return Copying(source, min(1.0, share), min(1.0, max(0.0, alone)))
