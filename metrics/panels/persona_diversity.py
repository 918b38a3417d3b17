from __future__ import annotations

import itertools
import re
import statistics

from harness.api import Episode, Metric, plugin

_WORD = re.compile(r"\w+")


@plugin
class PersonaDiversity(Metric):
    """How different the personas of a panel are: 1 − the Jaccard similarity of their words, averaged over all pairs.

    0: all have the same words; 1: no two share a word (Jaccard, 1912). Missing with fewer than two personas.
    """

    bounds = (0, 1)
    needs = ("personas",)

    def measure(self, episode: Episode) -> float | None:
        personas = episode.outcome.facts.get("personas") if episode.outcome else None
        words = [frozenset(_WORD.findall(persona["text"].casefold())) for persona in (personas or {}).values()]
        pairs = [(one, other) for one, other in itertools.combinations(words, 2) if one or other]
        return statistics.fmean(1 - len(one & other) / len(one | other) for one, other in pairs) if pairs else None
