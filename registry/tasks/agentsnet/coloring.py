"""AgentsNet's COLORING (Section 3.1, Appendix B)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from harness.api import Case, Facts, Outcome, plugin
from harness.extensions.networks import honest
from harness.replies import Choice

from ._network import FINAL_ANSWER, AgentsNetTask


@plugin
class Coloring(AgentsNetTask):
    """AgentsNet coloring: neighbors must choose different groups out of Δ + 1.

    `score` is the share of edges whose two ends gave valid, different answers (without edges 1 if all answers are
    valid, else 0). `solved` is 1 if all edges and answers are such. With `scoring: reference` one invalid answer makes
    the score 0.
    """

    problem = "coloring"
    grades = ("solved", "score")

    def context(self, case: Case, agent: str) -> Facts:
        """The facts of all network tasks, and `groups`: the number of groups."""
        return {**super().context(case, agent), "groups": case.public["max_degree"] + 1}

    def reply(self, case: Case, agent: str) -> Choice:
        """Group 1 … Group Δ+1."""
        return Choice(_groups(case.public["max_degree"] + 1), FINAL_ANSWER)

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, float | None]:
        """Return `solved` and `score`; None if no agent is scored."""
        team = honest(self, case, outcome)
        if not team.agents:
            return {"solved": None, "score": None}
        pairs = [(team.answers[u], team.answers[v]) for u, v in team.edges]
        good = sum(None not in pair and pair[0] != pair[1] for pair in pairs)
        score = good / len(pairs) if pairs else float(team.all_valid)
        if self.scoring == "reference" and not team.all_valid:
            score = 0.0
        return {"solved": float(team.all_valid and good == len(pairs)), "score": score}


@lru_cache(maxsize=256)
def _groups(count: int) -> tuple[str, ...]:
    return tuple(f"Group {k}" for k in range(1, count + 1))
