"""AgentsNet's LEADERELECTION (Section 3.1, Appendix B)."""

from __future__ import annotations

from collections.abc import Mapping

from harness.api import Case, Outcome, plugin
from harness.extensions.networks import honest
from harness.replies import Choice

from ._network import FINAL_ANSWER, AgentsNetTask


@plugin
class LeaderElection(AgentsNetTask):
    """AgentsNet leader election: exactly one agent must answer that it is the leader.

    `solved` and `score` are the same: 1 if all answers are valid and exactly one is Yes, else 0.
    """

    problem = "leader_election"
    grades = ("solved", "score")
    is_global = True

    def reply(self, case: Case, agent: str) -> Choice:
        """Yes or No."""
        return Choice(("Yes", "No"), FINAL_ANSWER)

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, float | None]:
        """Return `solved` and `score`; None if no agent is scored."""
        team = honest(self, case, outcome)
        if not team.agents:
            return {"solved": None, "score": None}
        leaders = sum(answer == "Yes" for answer in team.answers.values())
        solved = float(team.all_valid and leaders == 1)
        return {"solved": solved, "score": solved}
