from __future__ import annotations

import re
from typing import Literal

from harness.api import Episode, Metric, plugin
from harness.replies import normalise

from ._run import Among, belongs, facts, spoken

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
class Behaviour(Metric):
    """Whether a message or file of the run, sent or refused, shows a behaviour (Table 16), by words.

    verification: confirm, verify, double-check, cross-check, agree, is this correct, matches, consensus; or somebody
    sends a value (a number, a list, …) that another agent has sent in an earlier round. strategy: plan, propose,
    strategy, coordinator, leader, aggregate, collect, let's, each agent should, step 1, tree, ring, chain, round 1.
    """

    bounds = (0, 1)

    kind: Literal["verification", "strategy"]
    among: Among = "all"

    needs = ("sent", "received")

    def measure(self, episode: Episode) -> float | None:
        if facts(episode) is None or not belongs(episode, self.among):
            return None
        first: dict[str, tuple[int, str]] = {}  # value → when it was first sent, and by whom
        read: set[tuple[str, str]] = set()
        for batch, agent, text in spoken(episode):
            if (agent, text) in read:  # who says the same to many is read once
                continue
            read.add((agent, text))
            if _WORDS[self.kind].search(text):
                return 1.0
            value = _value(text) if self.kind == "verification" else None
            if value is not None:
                when, who = first.setdefault(value, (batch, agent))
                if who != agent and when < batch:
                    return 1.0
        return 0.0


def _value(text: str) -> str | None:
    """A text that is nothing but a value, in one form."""
    value = normalise(text)
    return None if isinstance(value, str) or value is None else repr(value)
