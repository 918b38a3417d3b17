"""DarkForest: independent answers, a calibrated belief over them, and a coordinator that sees only a summary.

Li et al., "DarkForest: Less Talk, Higher Accuracy for Multi-Agent LLMs", arXiv 2605.25188, Section 3 and Algorithm 1.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from harness.api import Action, Case, Facts, Move, Outcome, Play, PluginError, Range, Task, Turn, near, plugin
from harness.extensions.panels.answer_with_confidence import AnswerWithConfidence
from harness.extensions.panels.calibrated_protocol import CalibratedProtocol, CalibrationEpisode
from harness.extensions.panels.panels import Opinion, Panel
from harness.extensions.panels.questions import QuestionTask

from ._darkforest.belief import Backing, Belief, Term, Theta, Tie, believe
from ._darkforest.calibration import Counts, counts_of
from ._darkforest.disclosure import Disclosure, Field, Policy, disclose
from ._darkforest.rules import (
    PARAMETERS,
    Coordinate,
    Outputs,
    Preset,
    Rules,
    Terms,
    Unusable,
    agent_references,
    rules_of,
)

Share = Annotated[float, Range(ge=0, le=1)] | None
Count = Annotated[int, Range(ge=0)] | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The final answer.

    Attributes:
        answer: the answer; None if there is none.
        source: what decided: "top", "guardrail", "anchor", "coordinator" or "anchor unreadable".
        trusted: whether the guardrail trusts the top candidate.
        dissent: whether the answer before the guardrail differed from the top candidate.
        overridden: whether the guardrail replaced that answer.
    """

    answer: Action
    source: str
    trusted: bool
    dissent: bool = False
    overridden: bool = False


@plugin
class DarkForest(Panel, CalibratedProtocol):
    """Independent answers become a calibrated belief; one coordinator sees a summary; a guardrail checks its answer.

    Turns: `answer`, all members at once, with an empty observation; then `coordinate`, in a new conversation, with
    `evidence` (the disclosed text), `uncertain` and `leading` (the top answer); the latter two are None unless
    disclosed.

    A parameter that is None takes the preset's value. The defaults below are those of the preset "paper".

    Attributes:
        preset: the choices of the paper, or those of its public artifact for a benchmark.
        calibration: the file that `harness calibrate` wrote; None: every agent counts the same.
        terms: the factors of the score: "uniform" none, "agent" α alone, "full" all; or a list of agent (α), pattern
            (R), confidence (φ), malformed (ρ), independence (δ). Default full.
        correlated: pairs of agents. If both support a candidate, the later one counts γ. Default none.
        ties: tie-breaks between equally likely candidates, one after another: more "support", higher sum of "alpha",
            the "order" of first supporters, the "candidate" text. Default support, alpha, order.
        priority: agents in the order that "order" uses; by default the panel's.
        min_count: how often calibration must have seen a pattern for its R to be used. Default 5.
        fallback: R of other patterns. Default 1.
        c_miss, c_min, c_max: confidence of an agent that states none, if not calibrated, and its bounds. Default 0.5,
            0.1, 0.9.
        lambda_mal, lambda_min: ρ of malformed answers, if not calibrated, and its lower bound. Default 0.5, 0.1.
        gamma, gamma_min: γ of a pair, if not calibrated, and its lower bound. Default 0.5, 0.2.
        alpha_over: α is the share of correct outputs among the "valid" ones, or "all". Default valid.
        alpha_by: a label of cases. For a value that calibration saw, α is the share over its outputs; "" for none.
        quality_over: as `alpha_over`, for c_miss and λ_mal. Default valid.
        tau_u, tau_delta: the belief is uncertain below this posterior or margin. Default 0.60, 0.15.
        coordinator: the coordinating agent: a member of the panel, or an agent of its own. Default "Coordinator".
        coordinate: when the coordinator acts: "always"; "doubt": the belief is uncertain, or the `compared` agents
            differ; "disagreement": the panel is not unanimous; "uncertain": the belief is; "never": the anchor's
            answer counts, without an anchor the top candidate.
        compared: the agents that "doubt" compares; by default the first two.
        anchor: a member whose answer counts where the coordinator does not act; "" for none.
        unusable: what counts if the coordinator's reply (or the anchor's) has no answer and no candidate is trusted:
            nothing ("none", as in the paper), the "top" candidate, or the "anchor"'s answer.
        guardrail: whether a trusted candidate replaces another answer. Default true.
        k, tau_p, tau_m: a candidate is trusted with k supporters, this posterior, this margin. Default 2, 0.66, 0.25.
        trusts, trusts_by: what must back it besides posterior and margin, "all" or "any" of: "size" (k supporters),
            "pattern" (one of `patterns`), "reliable" (a calibrated R of at least `accept`), "only" (no other
            candidate). Default [size], all.
        patterns, accept: see `trusts`. Default none, 0.75.
        anchor_posterior: the guardrail also trusts the anchor's answer if it is the top candidate with this posterior
            and the margin tau_m, whatever its support; "never" by default.
        disclosure: what the coordinator sees: "belief_summary"; "reasoning_summary": also what each member wrote before
            its answer; "full_traces": also whole replies; or a list of fields (docs/methods/darkforest.md).
        summary: the fields of the summary.
        reasoning_chars, trace_chars, max_clusters, digits: characters of reasoning and of a reply, candidates listed,
            decimals. Default 900, all, all, 3.
    """

    preset: Preset = "paper"
    calibration: str | None = None
    terms: Terms | list[Term] | None = None
    correlated: list[list[str]] | None = None
    ties: list[Tie] | None = None
    priority: list[str] | None = None
    min_count: Count = None
    fallback: Annotated[float, Range(gt=0)] | None = None
    c_miss: Share = None
    c_min: Share = None
    c_max: Share = None
    lambda_mal: Share = None
    lambda_min: Share = None
    gamma: Share = None
    gamma_min: Share = None
    alpha_over: Outputs | None = None
    alpha_by: str | None = None
    quality_over: Outputs | None = None
    tau_u: Share = None
    tau_delta: Share = None
    coordinator: str | None = None
    coordinate: Coordinate | None = None
    compared: list[str] | None = None
    anchor: str | None = None
    unusable: Unusable | None = None
    guardrail: bool | None = None
    k: Count = None
    tau_p: Share = None
    tau_m: Share = None
    trusts: list[Backing] | None = None
    trusts_by: Literal["all", "any"] | None = None
    patterns: list[list[str]] | None = None
    accept: Share = None
    anchor_posterior: Annotated[float, Range(ge=0, le=1)] | Literal["never"] | None = None
    disclosure: Disclosure | list[Field] | None = None
    summary: list[Field] | None = None
    reasoning_chars: Count = None
    trace_chars: Annotated[int, Range(ge=0)] | Literal["all"] | None = None
    max_clusters: Annotated[int, Range(ge=1)] | Literal["all"] | None = None
    digits: Annotated[int, Range(ge=0, le=16)] | None = None

    roles = ("coordinator",)
    facts = (
        *Panel.facts,
        *("top", "posterior", "margin", "uncertain", "clusters", "trusted", "overridden"),
        *("asked", "coordinator_read", "dissent"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._rules = rules = rules_of(self.preset, {name: getattr(self, name) for name in PARAMETERS})
        self._references = agent_references(rules)
        self._rank = {agent: place for place, agent in enumerate(rules.priority)}
        self._policy = Policy(
            frozenset(rules.disclosed),
            rules.reasoning_chars,
            None if rules.trace_chars == "all" else rules.trace_chars,
            None if rules.max_clusters == "all" else rules.max_clusters,
            rules.digits,
        )
        self._panel: tuple[str, ...] | None = None  # the calibrated panel
        gamma = {pair: rules.gamma for one, two in rules.correlated for pair in ((one, two), (two, one))}
        self._theta = Theta({}, {}, rules.fallback, True, rules.c_miss, rules.lambda_mal, gamma).only(rules.terms)
        self._special: Mapping[str, Theta] = {}

    # ---------------------------------------------------------------------------------- the method

    def others(self) -> tuple[str, ...]:
        """The coordinator, if it ever acts."""
        return () if self._rules.coordinate == "never" else (self._rules.coordinator,)

    def members(self, case: Case) -> tuple[str, ...]:
        """The panel. Raises `PluginError` for unknown agents in parameters, and for a calibration of another panel."""
        panel = super().members(case)
        self._check(panel)
        return panel

    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Algorithm 1: yield one batch of the members, then at most one turn of the coordinator."""
        members = self.members(case)
        moves = yield [self.ask(task, case, agent) for agent in members]
        opinions = [self.read(task, case, move) for move in moves]
        opinions = self.sure(opinions, (yield from self.likelihoods(task, case, members)))
        theta = self._theta_for(case)
        belief = believe(opinions, theta, self._rules.ties, self._rank)
        uncertain = belief.uncertain(self._rules.tau_u, self._rules.tau_delta)
        final, peer_characters, exit = None, 0, ""
        sent: Mapping[str, Mapping[str, list[int | None]]] = {}
        if self._consults(opinions, uncertain):
            errors = [move.error for move in moves]
            options = task.question_of(case).choices if isinstance(task, QuestionTask) else None
            read = functools.partial(self.candidate, task, case)
            evidence = disclose(self._policy, opinions, belief, uncertain, theta, read, errors=errors, options=options)
            [move] = yield [self._coordinate(task, case, belief, uncertain, evidence)]
            final, peer_characters = self.read(task, case, move), len(evidence)
            if evidence:  # one text, composed of all members' replies
                sent = {o.agent: {move.agent: [1, None]} for o in opinions if o.text and o.agent != move.agent}
            if final.candidate is None:
                exit = "coordinator unreadable" if move.error_kind in (None, "parse") else "coordinator failed"
        return self._outcome(opinions, belief, uncertain, final, peer_characters, sent, exit)

    def _consults(self, opinions: Sequence[Opinion], uncertain: bool) -> bool:
        """Whether the coordinator acts."""
        when = self._rules.coordinate
        if when == "doubt":
            compared = self._rules.compared or tuple(opinion.agent for opinion in opinions[:2])
            return uncertain or not self.unanimous([opinion for opinion in opinions if opinion.agent in compared])
        if when == "disagreement":
            return not self.unanimous(opinions)
        return when == "always" or (when == "uncertain" and uncertain)

    def _coordinate(self, task: Task, case: Case, belief: Belief, uncertain: bool, evidence: str) -> Turn:
        """The coordinator's turn. It is not asked for a confidence, which would have no use."""
        top = belief.top
        observation = {
            "evidence": evidence,
            "uncertain": uncertain if "uncertain" in self._policy.fields and top is not None else None,
            "leading": top.answer if top is not None and self._policy.leading else None,
        }
        peer_texts = (evidence,) if evidence else ()
        agent, more = self._rules.coordinator, {"confidence": "none"}
        turn = self.ask(task, case, agent, "coordinate", observation, peer_texts=peer_texts, fresh=True, more=more)
        inner = turn.reply.inner if isinstance(turn.reply, AnswerWithConfidence) else turn.reply
        return replace(turn, reply=AnswerWithConfidence(inner, "none"))

    def _outcome(
        self,
        opinions: Sequence[Opinion],
        belief: Belief,
        uncertain: bool,
        final: Opinion | None,
        peer_characters: int,
        sent: Mapping[str, Mapping[str, list[int | None]]],
        exit: str,
    ) -> Outcome:
        """The outcome. `final` is the coordinator's answer, None if it did not act; `exit` its failure, or ""."""
        verdict, top = self._verdict(opinions, belief, final), belief.top
        if top is None:
            exit = "no candidate"
        elif not exit and all(opinion.malformed for opinion in opinions if opinion.candidate is not None):
            exit = "all malformed"
        return self.outcome(
            [opinions],
            verdict.answer,
            exit=exit or verdict.source,
            peer_characters=peer_characters,
            sent=sent,
            proposal=final.answer if final is not None else None,
            top=top.answer if top is not None else None,
            posterior=belief.posterior,
            margin=belief.margin,
            uncertain=int(uncertain),
            clusters=[{"agents": list(c.agents), "score": c.score, "posterior": c.posterior} for c in belief.clusters],
            trusted=int(verdict.trusted),
            overridden=int(verdict.overridden),
            asked=int(final is not None),
            coordinator_read=None if final is None else int(final.candidate is not None),
            dissent=int(verdict.dissent),
        )

    def _verdict(self, opinions: Sequence[Opinion], belief: Belief, final: Opinion | None) -> Verdict:
        """Decide on the answer, guardrail included (Section 3.6)."""
        rules, top = self._rules, belief.top
        anchor = next((o for o in opinions if o.agent == rules.anchor), None)
        standing = final if final is not None else anchor
        trusted = trusts(belief, rules)
        if standing is None:  # no coordinator: the belief decides
            return Verdict(top.answer if top is not None else None, "top" if top is not None else "", trusted)
        dissent = top is not None and standing.candidate != top.candidate
        if top is not None and rules.guardrail and dissent:
            if trusted:
                return Verdict(top.answer, "guardrail", trusted, dissent, True)
            if anchor is not None and anchor.candidate == top.candidate and self._anchored(belief):
                return Verdict(anchor.answer, "anchor", trusted, dissent, True)
        if standing.candidate is not None:
            return Verdict(standing.answer, "coordinator" if final is not None else "anchor", trusted, dissent)
        if rules.unusable == "anchor" and anchor is not None and anchor.candidate is not None:
            return Verdict(anchor.answer, "anchor", trusted, dissent)
        if rules.unusable == "top" and top is not None:
            return Verdict(top.answer, "top", trusted, dissent)
        return Verdict(None, "anchor unreadable", trusted, dissent)

    def _anchored(self, belief: Belief) -> bool:
        """Whether an anchor that leads does so clearly enough to count alone."""
        threshold = self._rules.anchor_posterior
        return threshold != "never" and belief.strong(threshold, self._rules.tau_m)

    # --------------------------------------------------------------------------------- calibration

    def calibration_protocol(self) -> Facts:
        """A vote: all agents answer independently, in this protocol's form."""
        return {
            "use": "vote",
            "agents": self.agents,
            "confidence": self.confidence,
            "parse_retries": self.parse_retries,
        }

    def fit(self, episodes: Sequence[CalibrationEpisode]) -> Facts:
        """Return the counts over calibration questions, and the parameters that follow from them.

        Raises:
            PluginError: if there are no episodes, or their panels differ.
        """
        if not episodes:
            raise PluginError("there is nothing to calibrate on: no questions were played", at=("calibration",))
        counts = Counts(tuple(move.agent for move in episodes[0].batches[0]))
        for episode in episodes:
            moves: Sequence[Move] = episode.batches[0]
            if tuple(move.agent for move in moves) != counts.agents:
                panel = ", ".join(counts.agents)
                message = f"{episode.case.id!r} was answered by {', '.join(m.agent for m in moves)}, others by {panel}"
                raise PluginError(message, hint="Calibrate one panel at a time.", at=("agents",))
            opinions = [self.read(episode.task, episode.case, move) for move in moves]
            for scored in episode.batches[1:]:  # with confidence: likelihood
                opinions = self.sure(opinions, self.believed(episode.task, episode.case, scored))
            verdicts: dict[str, bool] = {}
            for opinion in opinions:
                if opinion.answer is not None and repr(opinion.answer) not in verdicts:
                    verdicts[repr(opinion.answer)] = episode.right(opinion.answer)
            correct = [verdicts.get(repr(o.answer), False) for o in opinions]
            counts.add(opinions, correct, episode.case.labels)
        self._check(counts.agents)
        return counts.facts(self._rules)

    def load_parameters(self, parameters: Facts) -> None:
        """Load a calibration's counts, and derive Θ from them with this protocol's parameters.

        Raises:
            PluginError: for impossible counts, and for another panel.
        """
        counts = counts_of(parameters)
        if self.agents is not None:
            self._check_panel(tuple(f"Agent-{i}" for i in range(self.agents)), counts.agents)
        for pair in self._rules.correlated:
            self._check_names([("correlated", agent) for agent in pair], counts.agents)
        whole = counts.theta(self._rules)
        self._panel = counts.agents
        self._theta = whole.only(self._rules.terms)
        special = counts.alpha_by(self._rules.alpha_by)
        self._special = {
            value: replace(whole, alpha={**whole.alpha, **alpha}).only(self._rules.terms)
            for value, alpha in special.items()
        }

    def _theta_for(self, case: Case) -> Theta:
        """Return Θ, with the reliabilities for the case's label if there are any."""
        if not self._special:
            return self._theta
        return self._special.get(str(case.labels.get(self._rules.alpha_by)), self._theta)

    # ------------------------------------------------------------------------------------- checks

    def _check(self, members: Sequence[str]) -> None:
        """Raise `PluginError` if a parameter names an unknown agent, or the calibration is of another panel."""
        self._check_names(self._references, members)
        if self._panel is not None:
            self._check_panel(members, self._panel)

    def _check_names(self, references: Sequence[tuple[str, str]], members: Sequence[str]) -> None:
        for parameter, agent in references:
            if agent not in members:
                whose = "" if getattr(self, parameter) is not None else f" (of the preset {self.preset})"
                message = f"{parameter}{whose} names {agent!r}, which is not on the panel"
                raise PluginError(message, hint=near(agent, members), at=(parameter,))

    def _check_panel(self, members: Sequence[str], calibrated: Sequence[str]) -> None:
        if tuple(members) != tuple(calibrated):
            message = f"the panel is {', '.join(members)}; the calibration is of {', '.join(calibrated)}"
            raise PluginError(message, hint="Fit this panel, in this order.", at=("calibration",))


def trusts(belief: Belief, rules: Rules) -> bool:
    """Return whether the top candidate may replace another answer (Section 3.6)."""
    top = belief.top
    if top is None or not belief.strong(rules.tau_p, rules.tau_m):
        return False
    backed: Mapping[Backing, bool] = {
        "size": len(top.agents) >= rules.k,
        "pattern": top.agents in rules.patterns,
        "reliable": top.calibrated and top.reliability >= rules.accept,
        "only": len(belief.clusters) == 1,
    }
    marks = [backed[kind] for kind in rules.trusts]
    return all(marks) if rules.trusts_by == "all" else any(marks)
