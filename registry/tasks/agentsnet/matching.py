"""AgentsNet's MATCHING (Section 3.1, Appendix B)."""

from __future__ import annotations

from collections.abc import Mapping

from harness.api import Case, Outcome, plugin
from harness.authoring.networks import honest, topology_of, valid
from harness.replies import Choice

from ._network import FINAL_ANSWER, AgentsNetTask

NOBODY = "None"


@plugin
class Matching(AgentsNetTask):
    """AgentsNet matching: neighbors must pair up until no two neighbors are left alone.

    `score` is 1 - I/n, I being the agents whose answer is inconsistent: it is missing or invalid, or it names a
    neighbor who does not name them, or it is None while a neighbor also says None. `solved` is I = 0.

    With byzantine agents the paper does not say what naming one of them is worth. `solved` and `score` count it as
    consistent if that agent named the agent back; `solved_honest` and `score_honest` never do. Without such agents
    the two readings are the same.
    """

    problem = "matching"
    grades = ("solved", "score", "solved_honest", "score_honest")

    def reply(self, case: Case, agent: str) -> Choice:
        """A neighbor, in graph order, or None."""
        return Choice((*topology_of(case)[agent], NOBODY), FINAL_ANSWER)

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, float | None]:
        """The four grades; None if nobody is scored."""
        team = honest(self, case, outcome)
        if not team.agents:
            return dict.fromkeys(self.grades)
        everybody = {agent: valid(self, case, outcome, agent) for agent in case.agents}
        peers = team.neighbors()

        def inconsistent(agent: str, answers: Mapping[str, str | None]) -> bool:
            choice = team.answers[agent]
            if choice == NOBODY:
                return any(team.answers[peer] == NOBODY for peer in peers[agent])
            return choice is None or answers.get(choice) != agent

        grades: dict[str, float | None] = {}
        for suffix, answers in (("", everybody), ("_honest", team.answers)):
            wrong = sum(inconsistent(agent, answers) for agent in team.agents)
            grades |= {f"solved{suffix}": float(wrong == 0), f"score{suffix}": 1 - wrong / len(team.agents)}
        return grades
