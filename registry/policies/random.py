"""The random baseline."""

from __future__ import annotations

import math
import random

from harness.api import Action, Policy, Turn, plugin
from harness.engines.likelihoods import Likelihoods, likelihoods_of
from harness.extensions.panels.ballots import CandidateBallot
from harness.extensions.yaml_tasks.contract import with_fields


@plugin
class Random(Policy):
    """Chooses uniformly among the legal options. Without finite options it does nothing.

    Beside an action it says a value by chance in each field that the task's `reply:` declares.

    On a ballot it prefers some of the candidates, in an order, all such lists of a length equally likely.

    Where a turn is scored it draws a probability from 0 to 1 for each text, so that each is equally often the
    likeliest; of a text that stands for itself every byte is equally likely.
    """

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """Return one of the options, log-likelihoods, or the no-op."""
        scored = likelihoods_of(turn.reply)
        if scored is not None:
            return [[_log_likelihood(text.text, scored, rng), False] for text in scored.continuations]
        if isinstance(turn.reply, CandidateBallot):
            labels = turn.reply.candidates
            return turn.reply.of(rng.sample(labels, rng.randint(1, len(labels))))
        action = rng.choice(turn.reply.options) if turn.reply.options else turn.reply.noop
        return with_fields(turn.reply, action, rng)


def _log_likelihood(text: str, form: Likelihoods, rng: random.Random) -> float:
    if form.rolling:
        return -len(text.encode("utf-8", "surrogatepass")) * math.log(256)
    return math.log(1 - rng.random())
