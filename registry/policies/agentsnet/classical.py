"""The classical randomized algorithms that AgentsNet compares models with (Appendix K)."""

from __future__ import annotations

import random
from dataclasses import field
from typing import Annotated

from harness.api import Action, PluginError, Policy, Range, Turn, near, plugin

from ._agent import Agent
from ._coloring import Coloring
from ._cover import VertexCover
from ._flooding import Consensus, LeaderElection
from ._matching import Matching

ALGORITHMS: dict[str, type[Agent]] = {
    "coloring": Coloring,
    "consensus": Consensus,
    "leader_election": LeaderElection,
    "matching": Matching,
    "vertex_cover": VertexCover,
}


@plugin
class Classical(Policy):
    """Plays AgentsNet's problems with Luby-style algorithms and flooding, in the same number of rounds as models.

    Attributes:
        deliveries_per_phase: rounds that a phase of coloring, matching or vertex cover takes; None for 2, 1 and 1,
            which reproduce the paper's results (docs/benchmarks/agentsnet.md).
        max_phases: the most phases to play; None for as many as the rounds allow.
    """

    deliveries_per_phase: Annotated[int, Range(ge=1)] | None = None
    max_phases: Annotated[int, Range(ge=0)] | None = None
    _agent: Agent | None = field(init=False, default=None, repr=False)

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """Return messages or the final answer, depending on the turn.

        Raises:
            PluginError: if the turn is not one of AgentsNet's.
        """
        agent = self._agent = self._agent or self._enter(turn, rng)
        agent.receive(turn.observation["inbox"])
        if turn.reply.options is not None:
            return agent.answer(rng)
        phase, step = divmod(turn.observation["round"] - 1, self.deliveries_per_phase or agent.deliveries)
        fits = turn.observation["rounds_left"] >= (self.deliveries_per_phase or agent.deliveries)
        allowed = self.max_phases is None or phase < self.max_phases
        return agent.send(step == 0 and fits and allowed, rng)

    def _enter(self, turn: Turn, rng: random.Random) -> Agent:
        problem = str(turn.context.get("problem"))
        if problem not in ALGORITHMS:
            raise PluginError(
                f"agentsnet/classical has no algorithm for the problem {problem!r}", hint=near(problem, ALGORITHMS)
            )
        return ALGORITHMS[problem](turn.context, rng)
