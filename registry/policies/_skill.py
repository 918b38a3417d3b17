"""The declared skill of simulated agents, in closed form: accuracy, malformed replies, confidence, correlation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from harness.api import PluginError, near

_SLACK = 1e-9
"""Tolerance of bounds, for decimal fractions that have no exact binary form."""


@dataclass(frozen=True, slots=True)
class Skill:
    """The declared skill of one agent. `Simulated` explains the fields; all but `spread` are probabilities."""

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
        """Return P(malformed | right) or P(malformed | wrong).

        With a = `accuracy`, m = `malformed`, b = `malformed_accuracy`, these are by Bayes' rule m·b / a and
        m·(1−b) / (1−a), so that P(malformed) = m, P(right | malformed) = b and P(right) = a. Without b both are m.
        """
        if self.malformed_accuracy is None:
            return self.malformed
        accuracy, share = self.accuracy, self.malformed_accuracy
        if not right:
            accuracy, share = 1 - accuracy, 1 - share
        return min(1.0, self.malformed * share / accuracy) if accuracy else 0.0

    def confidence(self, right: bool, luck: float) -> float:
        """Return a confidence within `spread` of the declared mean; `luck` in [0, 1) says where."""
        mean = self.confidence_right if right else self.confidence_wrong
        return min(1.0, max(0.0, round(mean + self.spread * (2 * luck - 1), 2)))


@dataclass(frozen=True, slots=True)
class Copying:
    """The agent repeats what `source` answers with probability `share`, else answers independently with `accuracy`.

    With a the source's accuracy, b the declared accuracy of the copying agent and ρ the correlation of being right:

        share    c = ρ · √(b(1−b) / (a(1−a)))
        accuracy     (b − c·a) / (1−c)

    Then P(right) is c·a + (1−c)·(b−ca)/(1−c) = b, and the covariance is c·a + (b−ca)·a − a·b = c·a(1−a), which is ρ
    times both standard deviations. This is possible if c ≤ min(b/a, (1−b)/(1−a)), the Fréchet–Hoeffding bound on the
    correlation of two such answers.
    """

    source: str
    share: float
    accuracy: float


def skills(defaults: Skill, agents: Mapping[str, Mapping[str, Any]]) -> dict[str, Skill]:
    """Return agent → its skill, for the agents with an entry. Raises `PluginError` for impossible values."""
    keys = [f.name for f in fields(Skill)]
    _check(defaults, ())
    result = {}
    for agent, values in agents.items():
        for key, value in values.items():
            if key not in keys:
                raise PluginError(f"{agent}: unknown key {key!r}", hint=near(key, keys), at=("agents", agent, key))
            top = 0.5 if key == "spread" else 1
            if value is None and key == "malformed_accuracy":
                continue
            if value is None or not 0 <= value <= top:
                raise PluginError(
                    f"{agent}: {key} must be between 0 and {top}, found {value}", at=("agents", agent, key)
                )
        result[agent] = replace(defaults, **values)
        _check(result[agent], ("agents", agent))
    return result


def _check(skill: Skill, at: tuple[str, ...]) -> None:
    """Raise `PluginError` if no answers can have this skill."""
    prefix = f"{at[-1]}: " if at else ""
    if skill.malformed_accuracy is not None:
        right, wrong = skill.malformed * skill.malformed_accuracy, skill.malformed * (1 - skill.malformed_accuracy)
        if right > skill.accuracy + _SLACK or wrong > 1 - skill.accuracy + _SLACK:
            share = "right" if right > skill.accuracy + _SLACK else "wrong"
            available = skill.accuracy if share == "right" else 1 - skill.accuracy
            raise PluginError(
                f"{prefix}malformed and malformed_accuracy make {max(right, wrong):.3g} of all answers malformed and "
                f"{share}; by its accuracy only {available:.3g} of them are {share}",
                hint="Lower malformed, or bring malformed_accuracy closer to accuracy.",
                at=(*at, "malformed_accuracy"),
            )
    for name in ("confidence_right", "confidence_wrong"):
        mean = getattr(skill, name)
        if not skill.spread - _SLACK <= mean <= 1 - skill.spread + _SLACK:
            message = f"{prefix}{name} {mean} and spread {skill.spread} reach beyond 0 to 1"
            raise PluginError(message, hint=f"spread is at most {min(mean, 1 - mean):.3g} here.", at=(*at, "spread"))


def copyings(
    declared: Sequence[Mapping[str, Any]], skills_by_agent: Mapping[str, Skill], defaults: Skill
) -> dict[str, Copying]:
    """Return copying agent → how it copies. Raises `PluginError` for malformed pairs and impossible correlations."""
    result: dict[str, Copying] = {}
    for i, entry in enumerate(declared):
        at = ("correlated", i)
        source, agent, correlation = _pair(entry, at)
        if agent in result:
            message = f"{agent} is to copy {result[agent].source} and {source}; an agent copies one"
            raise PluginError(message, hint="Let one of the two copy it instead.", at=at)
        a, b = (skills_by_agent.get(name, defaults).accuracy for name in (source, agent))
        result[agent] = _copying(source, agent, correlation, a, b, at)
    for agent in result:
        chain = [agent]
        while chain[-1] in result:
            chain.append(result[chain[-1]].source)
            if chain[-1] == agent:
                circle = " copies ".join(chain)
                raise PluginError(f"{circle}: one of them must answer without copying", at=("correlated",))
            if len(chain) > len(result) + 1:  # leads into a circle of other agents, which is reported there
                break
    return result


def _pair(entry: Mapping[str, Any], at: tuple[str | int, ...]) -> tuple[str, str, float]:
    for key in entry:
        if key not in ("agents", "correlation"):
            raise PluginError(f"unknown key {key!r}", hint=near(str(key), ("agents", "correlation")), at=(*at, key))
    pair, correlation = entry.get("agents"), entry.get("correlation")
    if not isinstance(pair, list) or len(pair) != 2 or pair[0] == pair[1] or not all(isinstance(x, str) for x in pair):
        raise PluginError(
            f"agents must be two names, found {pair!r:.80}", hint="Write [Agent-0, Agent-1]; 1 copies 0.", at=at
        )
    if isinstance(correlation, bool) or not isinstance(correlation, int | float) or not 0 <= correlation <= 1:
        hint = "Copying makes answers more alike, never less."
        raise PluginError(f"correlation must be a number from 0 to 1, found {correlation!r:.80}", hint=hint, at=at)
    return pair[0], pair[1], float(correlation)


def _copying(source: str, agent: str, correlation: float, a: float, b: float, at: tuple[str | int, ...]) -> Copying:
    """Return `Copying` with its probabilities."""
    for name, accuracy in ((source, a), (agent, b)):
        if accuracy in (0, 1):
            message = f"{name} has accuracy {accuracy:g}: a constant has no correlation"
            raise PluginError(message, at=at)
    share = correlation * math.sqrt(b * (1 - b) / (a * (1 - a)))
    largest = min(b / a, (1 - b) / (1 - a))
    if share > largest + _SLACK:
        bound = largest * math.sqrt(a * (1 - a) / (b * (1 - b)))
        raise PluginError(
            f"{source} is right with {a:g}, {agent} with {b:g}: correlation at most {bound:.3f}, not {correlation:g}",
            hint="Lower it, or bring the accuracies together.",
            at=at,
        )
    alone = (b - share * a) / (1 - share) if share < 1 else b
    return Copying(source, min(1.0, share), min(1.0, max(0.0, alone)))
