"""DarkForest's calibration: what was counted on questions with known answers, and the parameters that follow from it
(Section 3.4).

The file holds counts, so that every variant (terms, shares over valid or all outputs, other minimum counts, correlated
pairs) reads the same one. What it says under `derived` follows from the counts and is there for people to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.api import Facts
from harness.authoring.panels import Opinion
from harness.errors import PluginError

from .belief import Theta
from .rules import Outputs, Rules

LARGEST = 1_000_000_000
"""No count is larger than this."""
HINT = "Make the file anew with `harness fit`."


@dataclass(slots=True)
class Tally:
    """Outputs of a kind: how many were right, had an answer, and were there."""

    correct: int = 0
    valid: int = 0
    all: int = 0

    def add(self, valid: bool, correct: bool) -> None:
        """Count one."""
        self.correct += correct
        self.valid += valid
        self.all += 1

    def of(self, outputs: Outputs) -> int:
        """How many of these."""
        return self.valid if outputs == "valid" else self.all

    def smoothed(self, outputs: Outputs) -> float:
        """The share of right ones with Laplace's correction: (right + 1) / (n + 2), 0.5 of nothing."""
        return (self.correct + 1) / (self.of(outputs) + 2)


@dataclass
class Counts:
    """What calibration counted.

    Attributes:
        agents: the panel, in order.
        episodes: how many questions.
        tallies: agent → its outputs.
        patterns: supporters in the panel's order → the candidates they gave together, once each.
        unstated: outputs that state no confidence.
        malformed, formed: outputs that are not, and that are, in the form asked for.
        labels: label of cases → its value → agent → outputs.
    """

    agents: tuple[str, ...]
    episodes: int = 0
    tallies: dict[str, Tally] = field(default_factory=dict)
    patterns: dict[tuple[str, ...], Tally] = field(default_factory=dict)
    unstated: Tally = field(default_factory=Tally)
    malformed: Tally = field(default_factory=Tally)
    formed: Tally = field(default_factory=Tally)
    labels: dict[str, dict[str, dict[str, Tally]]] = field(default_factory=dict)

    def add(self, opinions: Sequence[Opinion], correct: Sequence[bool], labels: Facts) -> None:
        """Count a question: what the panel answered, in order, and whether each is right.

        An output without an answer keeps to no form. A candidate is right if its first supporter is.
        """
        self.episodes += 1
        behind: dict[str, list[int]] = {}
        for place, (opinion, right) in enumerate(zip(opinions, correct, strict=True)):
            valid = opinion.candidate is not None
            if opinion.candidate is not None:
                behind.setdefault(opinion.candidate, []).append(place)
            tallies = [self.tallies.setdefault(opinion.agent, Tally())]
            tallies.append(self.malformed if opinion.malformed or not valid else self.formed)
            if opinion.confidence is None:
                tallies.append(self.unstated)
            for label, value in labels.items():
                values = self.labels.setdefault(label, {})
                tallies.append(values.setdefault(str(value), {}).setdefault(opinion.agent, Tally()))
            for tally in tallies:
                tally.add(valid, right)
        for places in behind.values():
            pattern = tuple(opinions[place].agent for place in places)
            self.patterns.setdefault(pattern, Tally()).add(True, correct[places[0]])

    # --------------------------------------------------------------------------------- parameters

    def theta(self, rules: Rules) -> Theta:
        """The frozen parameters Θ; terms that the rules leave out are still in it."""
        alpha = {agent: tally.smoothed(rules.alpha_over) for agent, tally in self.tallies.items()}
        patterns = {
            pattern: tally.smoothed("all")
            for pattern, tally in self.patterns.items()
            if tally.all >= max(1, rules.min_count)
        }
        gamma = {
            pair: independence(patterns.get(self.ordered(pair)), alpha, pair, rules)
            for one, two in rules.correlated
            for pair in ((one, two), (two, one))
        }
        return Theta(
            alpha,
            patterns,
            rules.fallback,
            True,
            missing(self.unstated, rules),
            penalty(self.malformed, self.formed, rules),
            gamma,
        )

    def ordered(self, agents: Iterable[str]) -> tuple[str, ...]:
        """Agents in the panel's order."""
        return tuple(sorted(agents, key=self.agents.index))

    def alpha_by(self, label: str) -> Mapping[str, Mapping[str, float]]:
        """Value of a label → agent → its reliability over all its outputs there."""
        values = self.labels.get(label, {})
        return {
            value: {agent: tally.smoothed("all") for agent, tally in agents.items()} for value, agents in values.items()
        }

    # --------------------------------------------------------------------------------------- JSON

    def facts(self, rules: Rules) -> dict[str, Any]:
        """As JSON, with what follows under these rules."""
        theta = self.theta(rules)
        return {
            "agents": list(self.agents),
            "episodes": self.episodes,
            "tallies": {agent: vars_of(tally) for agent, tally in self.tallies.items()},
            "patterns": [
                {"agents": list(pattern), "correct": tally.correct, "count": tally.all}
                for pattern, tally in sorted(self.patterns.items(), key=lambda item: (-len(item[0]), item[0]))
            ],
            "unstated": vars_of(self.unstated),
            "malformed": vars_of(self.malformed),
            "formed": vars_of(self.formed),
            "labels": {
                label: {
                    value: {agent: vars_of(tally) for agent, tally in agents.items()}
                    for value, agents in values.items()
                }
                for label, values in self.labels.items()
            },
            "derived": {
                "alpha": dict(theta.alpha),
                "patterns": {"+".join(pattern): value for pattern, value in theta.patterns.items()},
                "c_miss": theta.c_miss,
                "lambda_mal": theta.lambda_mal,
                "gamma": {"+".join(pair): theta.gamma[pair] for pair in rules.correlated},
            },
        }


def missing(unstated: Tally, rules: Rules) -> float:
    """c_miss = clip(share of right outputs among those that state no confidence); the default if there are none."""
    count = unstated.of(rules.quality_over)
    return clip(unstated.correct / count, rules.c_min, rules.c_max) if count else rules.c_miss


def penalty(malformed: Tally, formed: Tally, rules: Rules) -> float:
    """λ_mal = clip(accuracy of malformed outputs / of well-formed ones); the default if either is not known or the
    latter 0."""
    bad, good = malformed.of(rules.quality_over), formed.of(rules.quality_over)
    if not bad or not good or not formed.correct:
        return rules.lambda_mal
    return clip((malformed.correct / bad) / (formed.correct / good), rules.lambda_min, 1.0)


def independence(pattern: float | None, alpha: Mapping[str, float], pair: Sequence[str], rules: Rules) -> float:
    """γ = clip((R_ij - max α) / (1 - max α)), what the pair's agreement adds; the default where R_ij is not known."""
    if pattern is None:
        return rules.gamma
    best = max(alpha[agent] for agent in pair)
    return clip((pattern - best) / (1 - best), rules.gamma_min, 1.0)


def clip(value: float, low: float, high: float) -> float:
    """The nearest number from `low` to `high`."""
    return min(max(value, low), high)


def vars_of(tally: Tally) -> dict[str, int]:
    """A tally as JSON."""
    return {"correct": tally.correct, "valid": tally.valid, "all": tally.all}


# ------------------------------------------------------------------------------------ from a file


def counts_of(parameters: Any) -> Counts:
    """The counts of a calibration file.

    Raises:
        PluginError: for what is missing, no count, or cannot be: more right ones than answers, agents there are not.
    """
    found = _mapping(parameters, "the calibration")
    listed = found.get("agents")
    if not isinstance(listed, list) or not listed or not all(isinstance(agent, str) and agent for agent in listed):
        raise _wrong("agents", listed, "a list of agents")
    if len(set(listed)) != len(listed):
        raise _wrong("agents", listed, "a list of different agents")
    counts = Counts(tuple(listed), _count(found, "episodes"))
    counts.tallies = _tallies(found.get("tallies"), "tallies", counts.agents)
    lacking = [agent for agent in counts.agents if agent not in counts.tallies]
    if lacking:
        raise PluginError(f"the calibration counts nothing of {lacking[0]}", hint=HINT, at=("calibration",))
    patterns = found.get("patterns")
    if not isinstance(patterns, list):
        raise _wrong("patterns", patterns, "a list")
    for place, entry in enumerate(patterns):
        pattern, tally = _pattern(entry, f"patterns[{place}]", counts)
        if pattern in counts.patterns:
            raise _wrong(f"patterns[{place}]", entry, "a pattern that is not there already")
        counts.patterns[pattern] = tally
    for name in ("unstated", "malformed", "formed"):
        setattr(counts, name, _tally(found.get(name), name))
    for label, values in _mapping(found.get("labels", {}), "labels").items():
        counts.labels[str(label)] = {
            str(value): _tallies(agents, f"labels.{label}.{value}", counts.agents)
            for value, agents in _mapping(values, f"labels.{label}").items()
        }
    return counts


def _pattern(entry: Any, where: str, counts: Counts) -> tuple[tuple[str, ...], Tally]:
    found = _mapping(entry, where)
    agents = found.get("agents")
    known = isinstance(agents, list) and agents and all(isinstance(s, str) and s in counts.agents for s in agents)
    if not isinstance(agents, list) or not known or list(counts.ordered(set(agents))) != agents:
        raise _wrong(f"{where}.agents", agents, f"some of {', '.join(counts.agents)}, in this order")
    correct, count = _count(found, "correct", where), _count(found, "count", where)
    if correct > count:
        raise _wrong(f"{where}.correct", correct, f"at most the count, {count}")
    return tuple(agents), Tally(correct, count, count)


def _tallies(found: Any, where: str, agents: Sequence[str]) -> dict[str, Tally]:
    made = {}
    for agent, tally in _mapping(found, where).items():
        if agent not in agents:
            raise _wrong(where, agent, f"one of {', '.join(agents)}")
        made[agent] = _tally(tally, f"{where}.{agent}")
    return made


def _tally(found: Any, where: str) -> Tally:
    listed = _mapping(found, where)
    tally = Tally(*(_count(listed, name, where) for name in ("correct", "valid", "all")))
    if not tally.correct <= tally.valid <= tally.all:
        raise _wrong(where, found, "correct ≤ valid ≤ all")
    return tally


def _count(found: Mapping[str, Any], name: str, where: str = "") -> int:
    value = found.get(name)
    if type(value) is not int or not 0 <= value <= LARGEST:
        raise _wrong(f"{where}.{name}".lstrip("."), value, f"a whole number from 0 to {LARGEST:,}")
    return value


def _mapping(found: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(found, Mapping):
        raise _wrong(where, found, "a mapping")
    return found


def _wrong(where: str, found: Any, wanted: str) -> PluginError:
    shown = repr(found) if len(repr(found)) <= 60 else repr(found)[:57] + "…"
    return PluginError(f"calibration: {where} must be {wanted}, found {shown}", hint=HINT, at=("calibration",))
