"""DarkForest's calibration: counts on questions with known answers, and parameters derived from them (Section 3.4).

The file stores counts, so every variant (terms, shares over valid or all outputs, minimum counts, correlated pairs)
reads the same file. Its `derived` entry is for human readers only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.api import Facts, PluginError
from harness.extensions.panels.panels import Opinion

from .belief import Theta
from .rules import Outputs, Rules

MAX_COUNT = 1_000_000_000
"""The largest count that a file may have."""
HINT = "Write the file again with `harness calibrate`."


@dataclass(slots=True)
class Tally:
    """Numbers of outputs: correct ones, valid ones (with an answer), and all."""

    correct: int = 0
    valid: int = 0
    all: int = 0

    def add(self, valid: bool, correct: bool) -> None:
        """Count one output."""
        self.correct += correct
        self.valid += valid
        self.all += 1

    def of(self, outputs: Outputs) -> int:
        """Return the number of valid outputs, or of all."""
        return self.valid if outputs == "valid" else self.all

    def smoothed(self, outputs: Outputs) -> float:
        """Return the share of correct outputs with Laplace's correction: (correct + 1) / (n + 2)."""
        return (self.correct + 1) / (self.of(outputs) + 2)


@dataclass
class Counts:
    """The counts of a calibration.

    Attributes:
        agents: the panel, in order.
        episodes: the number of questions.
        tallies: agent → its outputs.
        patterns: supporters in the panel's order → the candidates on which exactly they agreed.
        unstated: outputs that state no confidence.
        malformed, formed: outputs not in the requested form, and outputs in it.
        labels: label of cases → value → agent → outputs.
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
        """Count a question: the panel's opinions, in order, and whether each is correct.

        An output without an answer counts as malformed. A candidate is correct if its first supporter is.
        """
        self.episodes += 1
        places_of: dict[str, list[int]] = {}
        for place, (opinion, right) in enumerate(zip(opinions, correct, strict=True)):
            valid = opinion.candidate is not None
            if opinion.candidate is not None:
                places_of.setdefault(opinion.candidate, []).append(place)
            tallies = [self.tallies.setdefault(opinion.agent, Tally())]
            tallies.append(self.malformed if opinion.malformed or not valid else self.formed)
            if opinion.confidence is None:
                tallies.append(self.unstated)
            for label, value in labels.items():
                values = self.labels.setdefault(label, {})
                tallies.append(values.setdefault(str(value), {}).setdefault(opinion.agent, Tally()))
            for tally in tallies:
                tally.add(valid, right)
        for places in places_of.values():
            pattern = tuple(opinions[place].agent for place in places)
            self.patterns.setdefault(pattern, Tally()).add(True, correct[places[0]])

    # --------------------------------------------------------------------------------- parameters

    def theta(self, rules: Rules) -> Theta:
        """Return the frozen parameters Θ with all terms, even those that the rules leave out."""
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
        """Return the agents in the panel's order."""
        return tuple(sorted(agents, key=self.agents.index))

    def alpha_by(self, label: str) -> Mapping[str, Mapping[str, float]]:
        """Return value of the label → agent → its reliability over its outputs there."""
        values = self.labels.get(label, {})
        return {
            value: {agent: tally.smoothed("all") for agent, tally in agents.items()} for value, agents in values.items()
        }

    # --------------------------------------------------------------------------------------- JSON

    def facts(self, rules: Rules) -> dict[str, Any]:
        """Return the counts as JSON, with the parameters that follow from them under these rules."""
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
    """Return c_miss = clip(share of correct outputs among those without a confidence); by default `rules.c_miss`."""
    count = unstated.of(rules.quality_over)
    return clip(unstated.correct / count, rules.c_min, rules.c_max) if count else rules.c_miss


def penalty(malformed: Tally, formed: Tally, rules: Rules) -> float:
    """Return λ_mal = clip(accuracy of malformed outputs / accuracy of well-formed ones).

    The default if there are no outputs of one kind, or the second accuracy is 0.
    """
    bad, good = malformed.of(rules.quality_over), formed.of(rules.quality_over)
    if not bad or not good or not formed.correct:
        return rules.lambda_mal
    return clip((malformed.correct / bad) / (formed.correct / good), rules.lambda_min, 1.0)


def independence(pattern: float | None, alpha: Mapping[str, float], pair: Sequence[str], rules: Rules) -> float:
    """Return γ = clip((R_ij - max α) / (1 - max α)), the gain of the pair's agreement; the default without R_ij."""
    if pattern is None:
        return rules.gamma
    best = max(alpha[agent] for agent in pair)
    return clip((pattern - best) / (1 - best), rules.gamma_min, 1.0)


def clip(value: float, low: float, high: float) -> float:
    """Return the nearest number from `low` to `high`."""
    return min(max(value, low), high)


def vars_of(tally: Tally) -> dict[str, int]:
    """Return a tally as JSON."""
    return {"correct": tally.correct, "valid": tally.valid, "all": tally.all}


# ------------------------------------------------------------------------------------ from a file


def counts_of(parameters: Any) -> Counts:
    """Return the counts of a calibration file.

    Raises:
        PluginError: for missing entries, values that are not counts, unknown agents, and impossible counts.
    """
    fields = _mapping(parameters, "the calibration")
    panel = fields.get("agents")
    if not isinstance(panel, list) or not panel or not all(isinstance(agent, str) and agent for agent in panel):
        raise _wrong("agents", panel, "a list of agents")
    if len(set(panel)) != len(panel):
        raise _wrong("agents", panel, "a list of different agents")
    counts = Counts(tuple(panel), _count(fields, "episodes"))
    counts.tallies = _tallies(fields.get("tallies"), "tallies", counts.agents)
    missing_agents = [agent for agent in counts.agents if agent not in counts.tallies]
    if missing_agents:
        raise PluginError(f"the calibration counts nothing of {missing_agents[0]}", hint=HINT, at=("calibration",))
    patterns = fields.get("patterns")
    if not isinstance(patterns, list):
        raise _wrong("patterns", patterns, "a list")
    for place, entry in enumerate(patterns):
        pattern, tally = _pattern(entry, f"patterns[{place}]", counts)
        if pattern in counts.patterns:
            raise _wrong(f"patterns[{place}]", entry, "a pattern that is not there already")
        counts.patterns[pattern] = tally
    for name in ("unstated", "malformed", "formed"):
        setattr(counts, name, _tally(fields.get(name), name))
    for label, values in _mapping(fields.get("labels", {}), "labels").items():
        counts.labels[str(label)] = {
            str(value): _tallies(agents, f"labels.{label}.{value}", counts.agents)
            for value, agents in _mapping(values, f"labels.{label}").items()
        }
    return counts


def _pattern(entry: Any, where: str, counts: Counts) -> tuple[tuple[str, ...], Tally]:
    fields = _mapping(entry, where)
    agents = fields.get("agents")
    valid = isinstance(agents, list) and agents and all(isinstance(s, str) and s in counts.agents for s in agents)
    if not isinstance(agents, list) or not valid or list(counts.ordered(set(agents))) != agents:
        raise _wrong(f"{where}.agents", agents, f"some of {', '.join(counts.agents)}, in this order")
    correct, count = _count(fields, "correct", where), _count(fields, "count", where)
    if correct > count:
        raise _wrong(f"{where}.correct", correct, f"at most the count, {count}")
    return tuple(agents), Tally(correct, count, count)


def _tallies(value: Any, where: str, agents: Sequence[str]) -> dict[str, Tally]:
    tallies = {}
    for agent, tally in _mapping(value, where).items():
        if agent not in agents:
            raise _wrong(where, agent, f"one of {', '.join(agents)}")
        tallies[agent] = _tally(tally, f"{where}.{agent}")
    return tallies


def _tally(value: Any, where: str) -> Tally:
    fields = _mapping(value, where)
    tally = Tally(*(_count(fields, name, where) for name in ("correct", "valid", "all")))
    if not tally.correct <= tally.valid <= tally.all:
        raise _wrong(where, value, "correct ≤ valid ≤ all")
    return tally


def _count(fields: Mapping[str, Any], name: str, where: str = "") -> int:
    value = fields.get(name)
    if type(value) is not int or not 0 <= value <= MAX_COUNT:
        raise _wrong(f"{where}.{name}".lstrip("."), value, f"a whole number from 0 to {MAX_COUNT:,}")
    return value


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _wrong(where, value, "a mapping")
    return value


def _wrong(where: str, value: Any, expected: str) -> PluginError:
    text = repr(value) if len(repr(value)) <= 60 else repr(value)[:57] + "…"
    return PluginError(f"calibration: {where} must be {expected}, found {text}", hint=HINT, at=("calibration",))
