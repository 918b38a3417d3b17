"""What the coordinator sees of the panel: E = D(O, B; Ω) as compact lines (DarkForest, Section 3.5).

A field that is not disclosed leaves no trace in the text, not even in the order of its lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.api import Action
from harness.extensions.panels.panels import Opinion
from harness.extensions.panels.peers import peer_text

from .belief import Belief, Cluster, Theta, stated
from .excerpt import Reader, excerpt, in_a_line

Disclosure = Literal["belief_summary", "reasoning_summary", "full_traces"]
"""Named policies (Table 8): the summary; the summary and reasoning excerpts; the summary and whole replies."""

Field = Literal[
    "answer", "canonical", "option", "status", "confidence", "error", "reasoning", "trace",
    "clusters", "top", "posterior", "margin", "uncertain", "disagreement", "pattern", "score", "counts", "imputed",
    "guidance",
]  # fmt: skip
"""Fields that can be disclosed: first those of each member, then those of the belief."""

SUMMARY: tuple[Field, ...] = (
    "answer", "status", "confidence", "clusters", "top", "posterior", "margin", "uncertain", "disagreement",
)  # fmt: skip
"""The belief summary of the paper (Section 3.5 and Appendix D.3)."""

MAX_INLINE_CHARS = 80
"""Longest answer within a line, in characters. Longer ones, and those of several lines, are put below it."""
MAX_ANSWER = 8_000
"""Characters of one answer at most; the rest is cut."""
STRONG_CONFLICT, STRONG_LEAD, SMALL_MARGIN = 0.45, 0.65, 0.15
"""Thresholds of the guidance line; those of the artifact for MATH."""


@dataclass(frozen=True)
class Policy:
    """Ω: the disclosed fields, and how much of each.

    Attributes:
        fields: the disclosed fields.
        reasoning: characters of a member's text before its answer.
        trace: characters of a member's whole reply; None for all.
        clusters: candidates listed at most; None for all.
        digits: decimals of numbers.
    """

    fields: frozenset[Field]
    reasoning: int = 900
    trace: int | None = None
    clusters: int | None = None
    digits: int = 3

    @property
    def leading(self) -> bool:
        """Whether the disclosed fields reveal which candidate leads."""
        return "top" in self.fields or self.fields >= {"clusters", "posterior"}


def disclose(
    policy: Policy,
    opinions: Sequence[Opinion],
    belief: Belief,
    uncertain: bool,
    theta: Theta,
    reader: Reader,
    *,
    errors: Sequence[str | None] = (),
    options: Sequence[str] | None = None,
) -> str:
    """Return the evidence as text; "" if there is nothing to disclose.

    Args:
        uncertain: the flag of Section 3.4.
        theta: has the confidence of members that stated none.
        reader: reads the answer from a text, so that excerpts end before it.
        errors: why members gave no answer, in the opinions' order.
        options: the question's choices, of which an answer may be the letter.
    """
    evidence = _Evidence(policy, opinions, belief, uncertain, theta, reader, errors, options)
    return "\n".join([*evidence.candidates(), *evidence.state(), *evidence.members()])


@dataclass(frozen=True, slots=True)
class _Evidence:
    policy: Policy
    opinions: Sequence[Opinion]
    belief: Belief
    uncertain: bool
    theta: Theta
    reader: Reader
    errors: Sequence[str | None]
    options: Sequence[str] | None

    def has(self, field: Field) -> bool:
        return field in self.policy.fields

    def number(self, value: float) -> str:
        return str(round(value, self.policy.digits))

    # -------------------------------------------------------------------------------- candidates

    def clusters(self) -> Sequence[Cluster]:
        """The disclosed clusters: the most probable first only if the belief is disclosed."""
        if not self.has("clusters"):
            return ()
        clusters = list(self.belief.clusters)
        if not self.policy.leading:
            places = {opinion.agent: place for place, opinion in enumerate(self.opinions)}
            clusters.sort(key=lambda cluster: places[cluster.agents[0]])
        return clusters[: self.policy.clusters]

    def candidates(self) -> Iterator[str]:
        clusters = self.clusters()
        if not clusters:
            return
        yield "Candidate answers" + (", most believed first:" if self.policy.leading else ":")
        for place, cluster in enumerate(clusters):
            notes = [f"given by {', '.join(cluster.agents)}"]
            if self.has("posterior"):
                notes.append(f"posterior {self.number(cluster.posterior)}")
            if self.has("score"):
                notes.append(f"score {self.number(cluster.score)}")
            if self.has("pattern"):
                source = "measured" if cluster.calibrated else "assumed"
                notes.append(f"reliability of this agreement {self.number(cluster.reliability)} ({source})")
            if self.has("imputed"):
                confidences = [stated(o, self.theta) for o in self.opinions if o.candidate == cluster.candidate]
                notes.append(f"mean confidence {self.number(sum(confidences) / len(confidences))}")
            yield from _answer_lines(f"{place + 1}. ", cluster.answer, notes)
        hidden = len(self.belief.clusters) - len(clusters)
        if hidden:
            yield f"({hidden} more)"

    # ------------------------------------------------------------------------------------ belief

    def state(self) -> Iterator[str]:
        belief, top = self.belief, self.belief.top
        readable = [o for o in self.opinions if o.candidate is not None]
        numbers = []
        if self.has("posterior"):
            numbers.append(f"posterior {self.number(belief.posterior)}")
        if self.has("margin"):
            numbers.append(f"margin over the next {self.number(belief.margin)}")
        if top is None:
            if self.policy.fields - {"reasoning", "trace"}:
                yield "No member's answer could be read."
        elif self.has("top"):
            yield from _answer_lines("Leading candidate: ", top.answer, numbers)
        elif numbers:
            yield f"Leading candidate: {', '.join(numbers)}"
        if self.has("uncertain") and top is not None:
            yield f"The belief is {'uncertain' if self.uncertain else 'concentrated'}."
        if self.has("disagreement") and top is not None:
            disagree = len(belief.clusters) > 1
            yield f"The members disagree: {len(belief.clusters)} answers." if disagree else "The members agree."
        if self.has("counts"):
            unreadable = len(self.opinions) - len(readable)
            yield f"{len(belief.clusters)} different answers, {unreadable} replies without one."
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
            yield from _answer_lines(f"- {opinion.agent}: ", opinion.answer, notes)
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
        """A long answer's number in the list of candidates; None for a short or hidden one."""
        if not self.has("answer") or opinion.answer is None or _short(_words(opinion.answer)):
            return None
        candidates = [cluster.candidate for cluster in self.clusters()]
        return f"candidate {candidates.index(opinion.candidate) + 1}" if opinion.candidate in candidates else None

    def _excerpt(self, opinion: Opinion) -> str:
        if not self.has("reasoning"):
            return ""
        return excerpt(
            opinion, self.policy.reasoning, self.reader, answer_disclosed=self.has("answer") or self.has("trace")
        )

    def _trace(self, opinion: Opinion) -> str:
        if not self.has("trace") or not opinion.text:
            return ""
        cut = self.policy.trace
        return opinion.text if cut is None or len(opinion.text) <= cut else opinion.text[:cut] + " …"


def guidance(belief: Belief, uncertain: bool) -> str:
    """Return advice on the belief, in one line. Its tiers are those of the artifact for MATH, its words are ours."""
    if not belief.clusters:
        return "Nothing is known of the answer: work it out."
    if len(belief.clusters) >= 3 and belief.posterior <= STRONG_CONFLICT:
        return "Strong conflict: do not count votes, work it out."
    if uncertain or belief.margin < SMALL_MARGIN:
        return "Unsettled: check every candidate; one that a single member gave may be right."
    if belief.posterior >= STRONG_LEAD:
        return "Check the leading candidate first."
    return "The belief is a weak prior."


def _answer_lines(head: str, answer: Action, notes: Sequence[str]) -> Iterator[str]:
    """Yield an answer with notes: in one line if it is short, else its text below."""
    text, remarks = _words(answer), ", ".join(notes)
    if _short(text):
        yield f"{head}{text}" + (f" ({remarks})" if remarks else "")
    else:
        yield f"{head}({remarks})" if remarks else head.rstrip()
        yield peer_text(text[:MAX_ANSWER] + (" …" if len(text) > MAX_ANSWER else ""), block=True)


def _words(answer: Action) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def _short(text: str) -> bool:
    return len(text) <= MAX_INLINE_CHARS and len(text.splitlines()) <= 1


def _option(answer: Action, options: Sequence[str] | None) -> str | None:
    place = ord(answer) - ord("A") if isinstance(answer, str) and len(answer) == 1 else -1
    return options[place] if options is not None and 0 <= place < len(options) else None
