"""DarkForest's belief: supporters of each candidate, their weighted evidence, and thresholds (Sections 3.3, 3.4, 3.6).

All functions are pure: opinions and parameters in, numbers out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from harness.api import Action
from harness.extensions.panels.panels import Opinion

Term = Literal["agent", "pattern", "confidence", "malformed", "independence"]
"""A factor of the score: α, R, φ, ρ, δ."""
Tie = Literal["support", "alpha", "order", "candidate"]
"""A tie-break: more supporters; higher sum of their α; first supporter earlier in the order; candidate text."""
Backing = Literal["size", "pattern", "reliable", "only"]
"""What can back a candidate: k supporters, a listed pattern, a reliable pattern, no other candidate."""

EQUAL = 1e-12
"""Numbers closer than this are equal, so the order of summation decides nothing."""


@dataclass(frozen=True)
class Theta:
    """The frozen parameters Θ of the score (Section 3.4). The defaults favor no agent.

    Attributes:
        alpha: agent → α, its reliability; 1 where it is not named.
        patterns: supporters in the panel's order → R, the reliability of their agreement.
        fallback: R of all other patterns.
        confidence: whether φ(c) = 0.5 + c counts; else φ = 1.
        c_miss: c of an agent that stated none.
        lambda_mal: ρ of a malformed answer.
        gamma: pairs of correlated agents, in both orders → γ.
    """

    alpha: Mapping[str, float] = field(default_factory=dict)
    patterns: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    fallback: float = 1.0
    confidence: bool = True
    c_miss: float = 0.5
    lambda_mal: float = 0.5
    gamma: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def only(self, terms: Sequence[Term]) -> Theta:
        """Return a copy in which every other term is 1 (Figure 7)."""
        return Theta(
            self.alpha if "agent" in terms else {},
            self.patterns if "pattern" in terms else {},
            self.fallback if "pattern" in terms else 1.0,
            self.confidence and "confidence" in terms,
            self.c_miss,
            self.lambda_mal if "malformed" in terms else 1.0,
            self.gamma if "independence" in terms else {},
        )


@dataclass(frozen=True, slots=True)
class Cluster:
    """A candidate and its supporters: C_z = (z, S_z, π_z).

    Attributes:
        candidate: z.
        answer: the answer as the first supporter wrote it.
        agents: S_z in the panel's order; this is the pattern π_z.
        score: s(z).
        posterior: P(z | O).
        reliability: R of the pattern.
        calibrated: whether R was calibrated; else it is the fallback.
    """

    candidate: str
    answer: Action
    agents: tuple[str, ...]
    score: float
    posterior: float
    reliability: float
    calibrated: bool


@dataclass(frozen=True, slots=True)
class Belief:
    """The clusters, the most probable first. Empty if there is no readable answer."""

    clusters: tuple[Cluster, ...]

    @property
    def top(self) -> Cluster | None:
        """z*, the most probable cluster."""
        return self.clusters[0] if self.clusters else None

    @property
    def posterior(self) -> float:
        """P(z* | O); 0 without a candidate."""
        return self.clusters[0].posterior if self.clusters else 0.0

    @property
    def margin(self) -> float:
        """Δ, the lead over the runner-up; the posterior itself without one."""
        return self.posterior - (self.clusters[1].posterior if len(self.clusters) > 1 else 0.0)

    def uncertain(self, tau_u: float, tau_delta: float) -> bool:
        """Whether the top posterior or its margin is low (Section 3.4). True without a candidate."""
        return self.posterior < tau_u - EQUAL or self.margin < tau_delta - EQUAL

    def strong(self, tau_p: float, tau_m: float) -> bool:
        """Whether posterior and margin reach the guardrail's thresholds."""
        return bool(self.clusters) and self.posterior >= tau_p - EQUAL and self.margin >= tau_m - EQUAL


TIES: tuple[Tie, ...] = ("support", "alpha", "order")


def believe(
    opinions: Sequence[Opinion], theta: Theta, ties: Sequence[Tie] = TIES, rank: Mapping[str, int] | None = None
) -> Belief:
    """Return the belief: s(z) = R_π Σ α ρ δ φ(c), normalized (Section 3.4).

    Opinions without an answer count nothing. If all scores are 0, candidates are equally likely.

    Args:
        opinions: in the panel's order.
        ties: tie-breaks between equally likely candidates, applied one after another.
        rank: agent → its place for the tie-break "order", which is also the last one; by default the panel's order.
    """
    supporters_of: dict[str, list[Opinion]] = {}
    for opinion in opinions:
        if opinion.candidate is not None:
            supporters_of.setdefault(opinion.candidate, []).append(opinion)
    patterns = {candidate: tuple([o.agent for o in supporters]) for candidate, supporters in supporters_of.items()}
    scores = {
        candidate: max(0.0, theta.patterns.get(patterns[candidate], theta.fallback) * evidence(supporters, theta))
        for candidate, supporters in supporters_of.items()
    }
    total = sum(scores.values())
    clusters = [
        Cluster(
            candidate,
            supporters_of[candidate][0].answer,
            pattern,
            scores[candidate],
            scores[candidate] / total if total > 0 else 1 / len(scores),
            theta.patterns.get(pattern, theta.fallback),
            pattern in theta.patterns,
        )
        for candidate, pattern in patterns.items()
    ]
    if len(clusters) > 1:
        places = rank or {opinion.agent: place for place, opinion in enumerate(opinions)}

        def sort_key(cluster: Cluster) -> tuple[float | str, ...]:
            keys: dict[Tie, float | str] = {
                "support": -len(cluster.agents),
                "alpha": -round(sum(theta.alpha.get(agent, 1.0) for agent in cluster.agents), 12),
                "order": places.get(cluster.agents[0], len(places)),
                "candidate": cluster.candidate,
            }
            return (-round(cluster.posterior, 12), *(keys[tie] for tie in ties), keys["order"])

        clusters.sort(key=sort_key)
    return Belief(tuple(clusters))


def evidence(supporters: Sequence[Opinion], theta: Theta) -> float:
    """Return Σ α ρ δ φ(c) over a cluster's supporters, given in the panel's order."""
    total = 0.0
    for place, opinion in enumerate(supporters):
        share = theta.alpha.get(opinion.agent, 1.0)
        if opinion.malformed:
            share *= theta.lambda_mal
        if theta.confidence:
            share *= 0.5 + stated(opinion, theta)
        if theta.gamma and place:
            share *= independence(opinion.agent, [other.agent for other in supporters[:place]], theta)
        total += share
    return total


def stated(opinion: Opinion, theta: Theta) -> float:
    """Return c_i, from 0 to 1: the stated confidence, else c_miss."""
    confidence = theta.c_miss if opinion.confidence is None else opinion.confidence
    return min(max(confidence, 0.0), 1.0)


def independence(agent: str, before: Sequence[str], theta: Theta) -> float:
    """Return δ_i: the product of γ over the correlated supporters before it in the panel's order.

    The paper defines γ for one pair. With one pair this is its rule: the second supporter is discounted.
    """
    product = 1.0
    for other in before:
        product *= theta.gamma.get((other, agent), 1.0)
    return product
