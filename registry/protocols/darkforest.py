"""DarkForest: answers are given alone, weighed by what is known of who gave them, and only the weighing is passed on.

Li et al., "DarkForest: Less Talk, Higher Accuracy for Multi-Agent LLMs", arXiv 2605.25188, Section 3 and Algorithm 1.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from harness.api import Action, Case, Facts, Move, Outcome, Play, Range, Task, Turn, plugin
from harness.authoring.calibrated import CalibratedProtocol, CalibrationEpisode
from harness.authoring.panels import Opinion, Panel, unanimous
from harness.authoring.questions import QuestionTask
from harness.errors import PluginError, near
from harness.replies import AnswerWithConfidence

from ._darkforest.belief import Backing, Belief, Term, Theta, Tie, believe
from ._darkforest.calibration import Counts, counts_of
from ._darkforest.disclosure import Disclosure, Field, Policy, disclose
from ._darkforest.rules import PARAMETERS, Coordinate, Outputs, Preset, Rules, Terms, Unusable, names, rules_of

Share = Annotated[float, Range(ge=0, le=1)] | None
Count = Annotated[int, Range(ge=0)] | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer, whose it is, whether the top candidate is trusted, whether what stood before the guardrail differs
    from it, and whether the guardrail replaced it."""

    answer: Action
    by: str
    trusted: bool
    dissent: bool = False
    overridden: bool = False


@plugin
class DarkForest(Panel, CalibratedProtocol):
    """Independent answers become a calibrated belief; one coordinator sees a summary; a guardrail checks its answer.

    Turns: `answer`, all members at once, the observation empty; then `coordinate`, in a new conversation, with
    `evidence` (the
    disclosed text), `uncertain` (None unless it is disclosed) and `leading` (the top answer, likewise).

    A parameter that is not given is the preset's. Defaults below are the preset's "paper".

    Attributes:
        preset: whose choices: the paper's, or those of its public artifact for a benchmark.
        calibration: the file that `harness fit` wrote; None: every agent counts the same.
        terms: what weighs: "uniform" nothing, "agent" α alone, "full" all; or a list of agent (α), pattern (R),
            confidence (φ), malformed (ρ), independence (δ). Default full.
        correlated: pairs of agents; the later one of a pair that supports the same candidate counts γ. Default none.
        ties: what ranks equally likely candidates, one after another: more "support", higher sum of "alpha", the
            "order" of first supporters, the "candidate" text. Default support, alpha, order.
        priority: agents in the order that "order" means; by default the panel's.
        min_count: how often a pattern must have been seen for its R to be used. Default 5.
        fallback: R of other patterns. Default 1.
        c_miss, c_min, c_max: confidence of who states none, if not calibrated, and its bounds. Default 0.5, 0.1, 0.9.
        lambda_mal, lambda_min: ρ of malformed answers, if not calibrated, and its lower bound. Default 0.5, 0.1.
        gamma, gamma_min: γ of a pair, if not calibrated, and its lower bound. Default 0.5, 0.2.
        alpha_over: α is the share of right outputs among the "valid" ones, or "all". Default valid.
        alpha_by: a label of cases: where calibration saw its value, α is that of all outputs there; "" for none.
        quality_over: as `alpha_over`, for c_miss and λ_mal. Default valid.
        tau_u, tau_delta: the belief is uncertain below this posterior or margin. Default 0.60, 0.15.
        coordinator: who coordinates; a member of the panel, or an agent of its own. Default "Coordinator".
        coordinate: when it is asked: "always"; "doubt": the belief is uncertain, or the `compared` agents do not give
            the same answer; "disagreement": the panel is not of one mind; "uncertain"; "never": the anchor's answer
            counts, without an anchor the top candidate.
        compared: the agents that "doubt" compares; by default the first two.
        anchor: a member whose answer counts where the coordinator is not asked; "" for none.
        unusable: what counts if the coordinator's reply has no answer and nothing is trusted: nothing ("none", as in
            the paper), the "top" candidate, or the "anchor"'s answer. Also where an anchor has none.
        guardrail: whether a trusted candidate replaces another answer. Default true.
        k, tau_p, tau_m: a candidate is trusted with k supporters, this posterior, this margin. Default 2, 0.66, 0.25.
        trusts, trusts_by: what must stand behind it besides posterior and margin, "all" or "any" of: "size" (k
            supporters), "pattern" (one of `patterns`), "reliable" (a calibrated R of `accept`), "only" (no other
            candidate). Default [size].
        patterns, accept: see `trusts`. Default none, 0.75.
        anchor_posterior: the guardrail also trusts a top candidate of the anchor's with this posterior and the margin
            tau_m, whatever its support; "never" by default.
        disclosure: what the coordinator sees: "belief_summary", "reasoning_summary" (and what each member wrote before
            its answer), "full_traces" (and whole replies); or a list of fields (docs/methods/darkforest.md).
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
        self._named = names(rules)
        self._rank = {agent: place for place, agent in enumerate(rules.priority)}
        self._policy = Policy(
            frozenset(rules.disclosed),
            rules.reasoning_chars,
            None if rules.trace_chars == "all" else rules.trace_chars,
            None if rules.max_clusters == "all" else rules.max_clusters,
            rules.digits,
        )
        self._panel: tuple[str, ...] | None = None  # the one that was calibrated
        gamma = {pair: rules.gamma for one, two in rules.correlated for pair in ((one, two), (two, one))}
        self._theta = Theta({}, {}, rules.fallback, True, rules.c_miss, rules.lambda_mal, gamma).only(rules.terms)
        self._special: Mapping[str, Theta] = {}

    # ---------------------------------------------------------------------------------- the method

    def others(self) -> tuple[str, ...]:
        """The coordinator, if it is ever asked."""
        return () if self._rules.coordinate == "never" else (self._rules.coordinator,)

    def members(self, case: Case) -> tuple[str, ...]:
        """The panel. Raises `PluginError` if a parameter names an unknown agent, or another panel was calibrated."""
        found = super().members(case)
        self._check(found)
        return found

    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Algorithm 1: one batch of the members, then at most one turn of the coordinator."""
        members = self.members(case)
        moves = yield [self.ask(task, case, agent) for agent in members]
        opinions = [self.read(task, case, move) for move in moves]
        theta = self._theta_for(case)
        belief = believe(opinions, theta, self._rules.ties, self._rank)
        uncertain = belief.uncertain(self._rules.tau_u, self._rules.tau_delta)
        final, peer_characters, exit = None, 0, ""
        sent: Mapping[str, Mapping[str, list[int | None]]] = {}
        if self._consults(opinions, uncertain):
            errors = [move.error for move in moves]
            options = task.question_of(case).choices if isinstance(task, QuestionTask) else None
            read = functools.partial(self.candidate, task, case)
            shown = disclose(self._policy, opinions, belief, uncertain, theta, read, errors=errors, options=options)
            [move] = yield [self._coordinate(task, case, belief, uncertain, shown)]
            final, peer_characters = self.read(task, case, move), len(shown)
            if shown:  # one text, composed of what all of these wrote
                sent = {o.agent: {move.agent: [1, None]} for o in opinions if o.text and o.agent != move.agent}
            if final.candidate is None:
                exit = "coordinator unreadable" if move.error_kind in (None, "parse") else "coordinator failed"
        return self._outcome(opinions, belief, uncertain, final, peer_characters, sent, exit)

    def _consults(self, opinions: Sequence[Opinion], uncertain: bool) -> bool:
        """Whether the coordinator is asked."""
        when = self._rules.coordinate
        if when == "doubt":
            compared = self._rules.compared or tuple(opinion.agent for opinion in opinions[:2])
            return uncertain or not unanimous([opinion for opinion in opinions if opinion.agent in compared])
        if when == "disagreement":
            return not unanimous(opinions)
        return when == "always" or (when == "uncertain" and uncertain)

    def _coordinate(self, task: Task, case: Case, belief: Belief, uncertain: bool, evidence: str) -> Turn:
        """The coordinator's turn. How sure it is, is of no use, and not asked for."""
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
        """What is told. `final` is the coordinator's answer, None if it was not asked; `exit` what befell it, or ""."""
        verdict, top = self._verdict(opinions, belief, final), belief.top
        if top is None:
            exit = "no candidate"
        elif not exit and all(opinion.malformed for opinion in opinions if opinion.candidate is not None):
            exit = "all malformed"
        return self.outcome(
            [opinions],
            verdict.answer,
            exit=exit or verdict.by,
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
        """The answer that stands, unless the guardrail replaces it (Section 3.6)."""
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
        """Whether an anchor that leads does so clearly enough to count by itself."""
        wanted = self._rules.anchor_posterior
        return wanted != "never" and belief.strong(wanted, self._rules.tau_m)

    # --------------------------------------------------------------------------------- calibration

    def calibration_protocol(self) -> Facts:
        """A vote: all agents answer independently, in the form that this protocol asks for."""
        return {
            "use": "vote",
            "agents": self.agents,
            "confidence": self.confidence,
            "parse_retries": self.parse_retries,
        }

    def fit(self, played: Sequence[CalibrationEpisode]) -> Facts:
        """Counts over calibration questions, and what follows from them with these parameters.

        Raises:
            PluginError: for no questions, or panels that differ.
        """
        if not played:
            raise PluginError("there is nothing to calibrate on: no questions were played", at=("calibration",))
        counts = Counts(tuple(move.agent for move in played[0].batches[0]))
        for one in played:
            moves: Sequence[Move] = one.batches[0]
            if tuple(move.agent for move in moves) != counts.agents:
                there = ", ".join(counts.agents)
                message = f"{one.case.id!r} was answered by {', '.join(m.agent for m in moves)}, others by {there}"
                raise PluginError(message, hint="Calibrate one panel at a time.", at=("agents",))
            opinions = [self.read(one.task, one.case, move) for move in moves]
            known: dict[str, bool] = {}
            for opinion in opinions:
                if opinion.answer is not None and repr(opinion.answer) not in known:
                    known[repr(opinion.answer)] = one.right(opinion.answer)
            correct = [known.get(repr(o.answer), False) for o in opinions]
            counts.add(opinions, correct, one.case.labels)
        self._check(counts.agents)
        return counts.facts(self._rules)

    def load_parameters(self, parameters: Facts) -> None:
        """Take over a calibration's counts; what follows from them is worked out anew, with these parameters.

        Raises:
            PluginError: for counts that cannot be, and for another panel.
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
        """Θ, with the reliabilities of the case's label if there are any."""
        if not self._special:
            return self._theta
        return self._special.get(str(case.labels.get(self._rules.alpha_by)), self._theta)

    # ------------------------------------------------------------------------------------- checks

    def _check(self, members: Sequence[str]) -> None:
        """Raises `PluginError` for agents that are named and not there, and for a panel that was not calibrated."""
        self._check_names(self._named, members)
        if self._panel is not None:
            self._check_panel(members, self._panel)

    def _check_names(self, named: Sequence[tuple[str, str]], members: Sequence[str]) -> None:
        for parameter, agent in named:
            if agent not in members:
                whose = "" if getattr(self, parameter) is not None else f" (of the preset {self.preset})"
                message = f"{parameter}{whose} names {agent!r}, who is not on the panel"
                raise PluginError(message, hint=near(agent, members), at=(parameter,))

    def _check_panel(self, members: Sequence[str], calibrated: Sequence[str]) -> None:
        if tuple(members) != tuple(calibrated):
            message = f"the panel is {', '.join(members)}; the calibration is of {', '.join(calibrated)}"
            raise PluginError(message, hint="Fit this panel, in this order.", at=("calibration",))


def trusts(belief: Belief, rules: Rules) -> bool:
    """Whether the top candidate may replace another answer (Section 3.6)."""
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
