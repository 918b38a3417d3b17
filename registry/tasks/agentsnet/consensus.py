"""AgentsNet's CONSENSUS (Section 3.1, Appendix B)."""

from __future__ import annotations

from collections.abc import Mapping

from harness.api import Case, Outcome, plugin
from harness.extensions.networks import honest
from harness.replies import Choice

from ._network import FINAL_ANSWER, AgentsNetTask


@plugin
class Consensus(AgentsNetTask):
    """AgentsNet consensus: all agents must announce the same value, 0 or 1.

    `solved` and `score` are the same: 1 if all answers are valid and equal, else 0.
    """

    problem = "consensus"
    grades = ("solved", "score")
    is_global = True

    def reply(self, case: Case, agent: str) -> Choice:
        """0 or 1."""
        return Choice(("0", "1"), FINAL_ANSWER)

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, float | None]:
        """Return `solved` and `score`; None if no agent is scored."""
        team = honest(self, case, outcome)
        if not team.agents:
            return {"solved": None, "score": None}
        solved = float(team.all_valid and len(set(team.answers.values())) == 1)
        return {"solved": solved, "score": solved}
