"""AgentsNet's VERTEXCOVER (Section 3.1, Appendix B)."""

from __future__ import annotations

from collections.abc import Mapping

from harness.api import Case, Outcome, plugin
from harness.extensions.networks import honest
from harness.replies import Choice

from ._network import FINAL_ANSWER, AgentsNetTask


@plugin
class VertexCover(AgentsNetTask):
    """AgentsNet vertex cover: the coordinators must touch every edge, and each must be needed for that.

    `score` is coverage · (1 - N/C), where coverage is the share of edges with a coordinator, and N of the C
    coordinators have only coordinators as neighbors. Without coordinators, where the paper's formula is undefined, it
    is 0 (1 if there are no edges). `solved` is 1 if the cover is minimal and all answers are valid. With `scoring:
    reference` N counts only in a complete cover, `solved` is a score of 1, an agent without an answer is not a
    coordinator, and without coordinators there are no grades.
    """

    problem = "vertex_cover"
    grades = ("solved", "score")

    def reply(self, case: Case, agent: str) -> Choice:
        """Yes or No."""
        return Choice(("Yes", "No"), FINAL_ANSWER)

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, float | None]:
        """Return `solved` and `score`; None if no agent is scored."""
        team = honest(self, case, outcome)
        if not team.agents:
            return {"solved": None, "score": None}
        cover = {agent for agent, answer in team.answers.items() if answer == "Yes"}
        covered = sum(u in cover or v in cover for u, v in team.edges)
        if self.scoring == "reference" and not cover:
            return {"solved": None, "score": None}
        neighbors = team.neighbors()
        needless = sum(cover.issuperset(neighbors[agent]) for agent in cover)
        coverage = covered / len(team.edges) if team.edges else 1.0
        needed = 1 - needless / len(cover) if cover else float(not team.edges)
        minimal = covered == len(team.edges) and needless == 0
        if self.scoring == "reference":
            score = coverage * needed if coverage == 1 else coverage
            return {"solved": float(score == 1), "score": score}
        return {"solved": float(team.all_valid and minimal), "score": coverage * needed}
