from __future__ import annotations

import re
from typing import Literal

from harness.api import Episode, Metric, plugin
from harness.extensions.networks.answers import normalize

from ._run import Among, belongs, facts, sent_texts

# The paper publishes no lexicon. Every alternative begins and ends with fixed words, so that the search is linear.
_WORDS = {
    "verification": re.compile(
        r"confirm|verif|double-?check|cross-?check|\bagree|is (?:this|that) correct|\bmatch(?:es)?\b|consensus",
        re.IGNORECASE,
    ),
    "strategy": re.compile(
        r"\bplan\b|propose|strateg|coordinator|leader|aggregat|collect|\blet's\b|each agent (?:should|will)"
        r"|\bstep \d|\btree\b|\bring\b|\bchain\b|\bround \d",
        re.IGNORECASE,
    ),
}


@plugin
class Behavior(Metric):
    """1 if a message or file, sent or refused, shows a behavior (SILO-Bench, Table 16), else 0. Decided by keywords.

    Attributes:
        kind: "verification": confirm, verify, double-check, cross-check, agree, is this correct, matches, consensus; or
            an agent sends a value (a number, a list, …) that another agent sent in an earlier round. "strategy": plan,
            propose, strategy, coordinator, leader, aggregate, collect, let's, each agent should, step 1, tree, ring,
            chain, round 1.
        among: the episodes that count, as in `silo/success`.
    """

    bounds = (0, 1)

    kind: Literal["verification", "strategy"]
    among: Among = "all"

    needs = ("sent", "received")

    def measure(self, episode: Episode) -> float | None:
        if facts(episode) is None or not belongs(episode, self.among):
            return None
        first_sent: dict[str, tuple[int, str]] = {}  # value → (batch, agent) that first sent it
        seen: set[tuple[str, str]] = set()
        for batch, agent, text in sent_texts(episode):
            if (agent, text) in seen:  # the same text to several receivers
                continue
            seen.add((agent, text))
            if _WORDS[self.kind].search(text):
                return 1.0
            value = _value(text) if self.kind == "verification" else None
            if value is not None:
                sent_at, sender = first_sent.setdefault(value, (batch, agent))
                if sender != agent and sent_at < batch:
                    return 1.0
        return 0.0


def _value(text: str) -> str | None:
    """Return a normal form of a text that is nothing but a value; else None."""
    value = normalize(text)
    return None if isinstance(value, str) or value is None else repr(value)
