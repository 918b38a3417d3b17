"""What the coordinator is shown of the panel: E = D(O, B; Ω) as compact lines (DarkForest, Section 3.5).

What is not among the fields is not in the text, not even by the order of its lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.api import Action
from harness.authoring.panels import Opinion
from harness.authoring.peers import peer_text

from .belief import Belief, Cluster, Theta, stated
from .excerpt import Reader, excerpt, in_a_line

Disclosure = Literal["belief_summary", "reasoning_summary", "full_traces"]
"""Named policies (Table 8): the summary; with an excerpt of each member's reasoning; with its whole reply."""

Field = Literal[
    "answer", "canonical", "option", "status", "confidence", "error", "reasoning", "trace",
    "clusters", "top", "posterior", "margin", "uncertain", "disagreement", "pattern", "score", "counts", "imputed",
    "guidance",
]  # fmt: skip
"""What can be disclosed: first of each member, then of the belief."""

SUMMARY: tuple[Field, ...] = (
    "answer", "status", "confidence", "clusters", "top", "posterior", "margin", "uncertain", "disagreement",
)  # fmt: skip
"""The belief summary of the paper (Section 3.5 and Appendix D.3)."""

SHORT = 80
"""Characters up to which an answer stands in its line; longer ones, and those of several lines, are put below it."""
MAX_ANSWER = 8_000
"""Characters of one answer that are shown at most."""
STRONG_CONFLICT, STRONG_LEAD, SMALL_MARGIN = 0.45, 0.65, 0.15
"""Thresholds of the guidance line, which are the artifact's for MATH."""


@dataclass(frozen=True)
class Policy:
    """Ω: which fields, and how much of them.

    Attributes:
        fields: what is disclosed.
        reasoning: characters of a member's text before its answer that are shown.
        trace: characters of its whole reply; None: all.
        clusters: candidates that are listed at most; None: all.
        digits: decimals of numbers.
    """

    fields: frozenset[Field]
    reasoning: int = 900
    trace: int | None = None
    clusters: int | None = None
    digits: int = 3

    @property
    def leading(self) -> bool:
        """Whether what is disclosed tells which candidate leads."""
        return "top" in self.fields or self.fields >= {"clusters", "posterior"}


def disclose(
    policy: Policy,
    opinions: Sequence[Opinion],
    belief: Belief,
    uncertain: bool,
    theta: Theta,
    read: Reader,
    *,
    errors: Sequence[str | None] = (),
    options: Sequence[str] | None = None,
) -> str:
    """The evidence as text, "" if there is nothing to disclose.

    Args:
        uncertain: the flag of Section 3.4.
        theta: for what was imputed to members that stated no confidence.
        read: how answers were found in replies, so that reasoning ends before them.
        errors: why members gave no answer, in the opinions' order.
        options: the question's choices, of which an answer may be the letter.
    """
    made = _Evidence(policy, opinions, belief, uncertain, theta, read, errors, options)
    return "\n".join([*made.candidates(), *made.state(), *made.members()])


@dataclass(frozen=True, slots=True)
class _Evidence:
    policy: Policy
    opinions: Sequence[Opinion]
    belief: Belief
    uncertain: bool
    theta: Theta
    read: Reader
    errors: Sequence[str | None]
    options: Sequence[str] | None

    def has(self, field: Field) -> bool:
        return field in self.policy.fields

    def number(self, value: float) -> str:
        return str(round(value, self.policy.digits))

    # -------------------------------------------------------------------------------- candidates

    def listed(self) -> Sequence[Cluster]:
        """The clusters that are told, numbered from 1: most believed first only if the belief is told."""
        if not self.has("clusters"):
            return ()
        clusters = list(self.belief.clusters)
        if not self.policy.leading:
            places = {opinion.agent: place for place, opinion in enumerate(self.opinions)}
            clusters.sort(key=lambda cluster: places[cluster.agents[0]])
        return clusters[: self.policy.clusters]

    def candidates(self) -> Iterator[str]:
        listed = self.listed()
        if not listed:
            return
        yield "Candidate answers" + (", most believed first:" if self.policy.leading else ":")
        for place, cluster in enumerate(listed):
            notes = [f"given by {', '.join(cluster.agents)}"]
            if self.has("posterior"):
                notes.append(f"posterior {self.number(cluster.posterior)}")
            if self.has("score"):
                notes.append(f"score {self.number(cluster.score)}")
            if self.has("pattern"):
                source = "measured" if cluster.calibrated else "assumed"
                notes.append(f"reliability of this agreement {self.number(cluster.reliability)} ({source})")
            if self.has("imputed"):
                sure = [stated(o, self.theta) for o in self.opinions if o.candidate == cluster.candidate]
                notes.append(f"mean confidence {self.number(sum(sure) / len(sure))}")
            yield from _said(f"{place + 1}. ", cluster.answer, notes)
        left = len(self.belief.clusters) - len(listed)
        if left:
            yield f"({left} more)"

    # ------------------------------------------------------------------------------------ belief

    def state(self) -> Iterator[str]:
        belief, top = self.belief, self.belief.top
        found = [o for o in self.opinions if o.candidate is not None]
        numbers = []
        if self.has("posterior"):
            numbers.append(f"posterior {self.number(belief.posterior)}")
        if self.has("margin"):
            numbers.append(f"margin over the next {self.number(belief.margin)}")
        if top is None:
            if self.policy.fields - {"reasoning", "trace"}:
                yield "No member's answer could be read."
        elif self.has("top"):
            yield from _said("Leading candidate: ", top.answer, numbers)
        elif numbers:
            yield f"Leading candidate: {', '.join(numbers)}"
        if self.has("uncertain") and top is not None:
            yield f"The belief is {'uncertain' if self.uncertain else 'concentrated'}."
        if self.has("disagreement") and top is not None:
            several = len(belief.clusters) > 1
            yield f"The members disagree: {len(belief.clusters)} answers." if several else "The members agree."
        if self.has("counts"):
            unread = len(self.opinions) - len(found)
            yield f"{len(belief.clusters)} different answers, {unread} replies without one."
        if self.has("guidance"):
            yield guidance(belief, self.uncertain)

    # ----------------------------------------------------------------------------------- members

    def members(self) -> Iterator[str]:
        lines = [line for place in range(len(self.opinions)) for line in self.member(place)]
        if lines:
            yield "Members:"
            yield from lines

    def member(self, place: int) -> Iterator[str]:
        opinion = self.opinions[place]
        error = self.errors[place] if self.has("error") and place < len(self.errors) else None
        notes = []
        if opinion.answer is None:
            if self.has("answer") or self.has("status"):
                notes.append("no answer that could be read")
        else:
            notes += self._notes(opinion)
        if error:
            notes.append(f"error: {in_a_line(error, 200)}")
        number = self._number(opinion)
        if self.has("answer") and opinion.answer is not None and number is None:
            yield from _said(f"- {opinion.agent}: ", opinion.answer, notes)
        elif notes or number is not None:
            yield f"- {opinion.agent}: " + ", ".join([*([number] if number else []), *notes])
        for field, text in (("reasoning", self._excerpt(opinion)), ("trace", self._trace(opinion))):
            if text:
                what = "reasoning" if field == "reasoning" else "whole reply"
                yield f"  {opinion.agent}'s {what}: {peer_text(text, indent='    ')}"

    def _notes(self, opinion: Opinion) -> Iterator[str]:
        if self.has("option") and (text := _option(opinion.answer, self.options)):
            yield f"which is {in_a_line(text, 400)}"
        if self.has("canonical") and (opinion.candidate or "") not in ("", _words(opinion.answer)):
            yield f"in normal form {in_a_line(str(opinion.candidate), 400)}"
        if self.has("status") and opinion.malformed:
            yield "not in the form asked for"
        if self.has("confidence"):
            if opinion.confidence is not None:
                yield f"confidence {self.number(opinion.confidence)}"
            elif any(other.confidence is not None for other in self.opinions):
                yield "no confidence stated"

    def _number(self, opinion: Opinion) -> str | None:
        """A long answer is told by its number in the list of candidates."""
        if not self.has("answer") or opinion.answer is None or _short(_words(opinion.answer)):
            return None
        candidates = [cluster.candidate for cluster in self.listed()]
        return f"candidate {candidates.index(opinion.candidate) + 1}" if opinion.candidate in candidates else None

    def _excerpt(self, opinion: Opinion) -> str:
        if not self.has("reasoning"):
            return ""
        return excerpt(opinion, self.policy.reasoning, self.read, told=self.has("answer") or self.has("trace"))

    def _trace(self, opinion: Opinion) -> str:
        if not self.has("trace") or not opinion.text:
            return ""
        cut = self.policy.trace
        return opinion.text if cut is None or len(opinion.text) <= cut else opinion.text[:cut] + " …"


def guidance(belief: Belief, uncertain: bool) -> str:
    """What to make of the belief, in a line; its four tiers are the artifact's for MATH, its words ours."""
    if not belief.clusters:
        return "Nothing is known of the answer: work it out."
    if len(belief.clusters) >= 3 and belief.posterior <= STRONG_CONFLICT:
        return "Strong conflict: do not count votes, work it out."
    if uncertain or belief.margin < SMALL_MARGIN:
        return "Unsettled: check every candidate; one that a single member gave may be right."
    if belief.posterior >= STRONG_LEAD:
        return "Check the leading candidate first."
    return "The belief is a weak prior."


def _said(head: str, answer: Action, notes: Sequence[str]) -> Iterator[str]:
    """An answer with notes on it: in one line, or its text below."""
    text, behind = _words(answer), ", ".join(notes)
    if _short(text):
        yield f"{head}{text}" + (f" ({behind})" if behind else "")
    else:
        yield f"{head}({behind})" if behind else head.rstrip()
        yield peer_text(text[:MAX_ANSWER] + (" …" if len(text) > MAX_ANSWER else ""), block=True)


def _words(answer: Action) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def _short(text: str) -> bool:
    return len(text) <= SHORT and len(text.splitlines()) <= 1


def _option(answer: Action, options: Sequence[str] | None) -> str | None:
    place = ord(answer) - ord("A") if isinstance(answer, str) and len(answer) == 1 else -1
    return options[place] if options is not None and 0 <= place < len(options) else None
