"""Perfect teams for sharded tasks on a network."""

from __future__ import annotations

import random

from harness.api import Action, Turn, plugin
from harness.errors import PluginError
from harness.replies import normalise

from ._agent import Agent, Call, letter_in, message


@plugin
class Flooding(Agent):
    """Any sharded task with a `topology`: passes on all shards it knows, and answers from them in the end.

    In a network of diameter D every agent knows all after D rounds. An agent that does not know all answers from its
    own shard alone.
    """

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """Return what to write to each neighbor, or the answer."""
        if "shard" not in turn.context or "silent" not in turn.observation:
            raise PluginError(
                "Flooding plays sharded tasks in a network, and this turn is of something else",
                hint="Use it with the protocol local_rounds and a sharded task that has a topology.",
            )
        if not hasattr(self, "id"):
            self.begin(turn.context)
        for text in turn.observation["inbox"].values():
            self.learn(letter_in(text))
        if turn.name != "answer":
            return dict.fromkeys(turn.observation["neighbors"], message(shards=self.shards))
        answer = normalise(self.solve()[self.id] if len(self.shards) == self.n else self.local())
        return answer if turn.reply.allows(answer) else turn.reply.noop

    def act(self, turn: Turn) -> list[Call]:
        """It makes no calls."""
        return []
