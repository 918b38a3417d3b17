"""A byzantine agent without a model (AgentsNet, Appendix I)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

from harness.api import Action, Policy, Turn, plugin
from harness.replies import Messages

from ._agent import claims


@plugin
class Saboteur(Policy):
    """Sends every neighbor a different false message, in the words of the classical algorithms.

    Whom it misleads are agents of `agentsnet/classical`; to models it is noise that looks like a claim. Its own
    answer is a group that a neighbor claims, a second leader, the value that most neighbors do not have, or any.
    """

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """A lie for each neighbor, or an answer against them."""
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
        against = {
            "coloring": groups,
            "consensus": [min("01", key=lambda value: values[value])],
            "leader_election": ["Yes"],
        }
        wanted = against.get(str(turn.context.get("problem")), [])
        return rng.choice([answer for answer in wanted if answer in options] or options)
