"""AgentsNet's MATCHING (Section 3.1, Appendix B)."""

from __future__ import annotations

from collections.abc import Mapping

from harness.api import Case, Outcome, plugin
from harness.extensions.networks import honest, topology_of, valid
from harness.replies import Choice

from ._network import FINAL_ANSWER, AgentsNetTask

NO_PARTNER = "None"


@plugin
class Matching(AgentsNetTask):
    """AgentsNet matching: neighbors must pair up until no two neighbors remain single.

    `score` is 1 - I/n, where I counts the agents with an inconsistent answer: it is missing or invalid, or names a
    neighbor that does not name the agent, or is None although a neighbor's answer is None too. `solved` is 1 if I = 0.

    The paper does not say how to grade an answer that names a byzantine agent. For `solved` and `score` it is
    consistent if that agent names the other one too; for `solved_honest` and `score_honest` it never is. Without
    byzantine agents both readings agree.
    """

    problem = "matching"
    grades = ("solved", "score", "solved_honest", "score_honest")

    def reply(self, case: Case, agent: str) -> Choice:
        """A neighbor, in graph order, or None."""
        return Choice((*topology_of(case)[agent], NO_PARTNER), FINAL_ANSWER)

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, float | None]:
        """Return the four grades; None if no agent is scored."""
        team = honest(self, case, outcome)
        if not team.agents:
            return dict.fromkeys(self.grades)
        all_answers = {agent: valid(self, case, outcome, agent) for agent in case.agents}
        peers = team.neighbors()

        def inconsistent(agent: str, answers: Mapping[str, str | None]) -> bool:
            choice = team.answers[agent]
            if choice == NO_PARTNER:
                return any(team.answers[peer] == NO_PARTNER for peer in peers[agent])
            return choice is None or answers.get(choice) != agent

        grades: dict[str, float | None] = {}
        for suffix, answers in (("", all_answers), ("_honest", team.answers)):
            wrong = sum(inconsistent(agent, answers) for agent in team.agents)
            grades |= {f"solved{suffix}": float(wrong == 0), f"score{suffix}": 1 - wrong / len(team.agents)}
        return grades
