"""A byzantine agent without a model (AgentsNet, Appendix I)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

from harness.api import Action, Policy, Turn, plugin
from harness.extensions.networks.messages import Messages

from ._agent import claims


@plugin
class Saboteur(Policy):
    """Sends every neighbor a random false message, in the language of the classical algorithms.

    It misleads agents of `agentsnet/classical`; for models the messages are noise. Its own answer is a neighbor's
    group, a second leader, the value that fewer neighbors have, or a random option.
    """

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """Return a lie for each neighbor, or an answer that contradicts theirs."""
        if isinstance(turn.reply, Messages):
            return {name: self._lie(turn, rng) for name in turn.reply.to}
        return self._answer(turn, rng) if turn.reply.options else turn.reply.noop

    def _lie(self, turn: Turn, rng: random.Random) -> str:
        group = rng.randint(1, int(turn.context.get("groups", 1)))
        letters = "".join(rng.choices("abcdefghij", k=3))
        lies = {
            "coloring": (f"took {group}",),
            "consensus": ("value 0", "value 1"),
            "leader_election": (f"leader A{letters}", f"leader {turn.context.get('name')}"),
            "matching": ("pair", "taken"),
            "vertex_cover": ("independent", f"number {rng.randrange(10**12)}"),
        }
        return rng.choice(lies.get(str(turn.context.get("problem")), (f"yes {letters}", f"no {letters}")))

    def _answer(self, turn: Turn, rng: random.Random) -> Action:
        inbox: Mapping[str, str] = turn.observation.get("inbox", {})
        options = turn.reply.options or ()
        groups = [f"Group {claim}" for claim in claims(inbox, "took").values()]
        values = Counter(claims(inbox, "value").values())
        candidates_by_problem = {
            "coloring": groups,
            "consensus": [min("01", key=lambda value: values[value])],
            "leader_election": ["Yes"],
        }
        candidates = candidates_by_problem.get(str(turn.context.get("problem")), [])
        return rng.choice([answer for answer in candidates if answer in options] or options)
