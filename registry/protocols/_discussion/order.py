"""Who speaks when in a round of a discussion."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from harness.replies import Choice

from .talk import Batch, Style, Talk

Order = Literal["simultaneous", "round_robin", "random", "moderator", "proposer"]


def play_round(
    order: Order, talk: Talk, number: int, members: Sequence[str], style: Style, chair: str, rng: random.Random
) -> Batch:
    """Yield the batches of round `number`, in which as many contributions are made as there are members.

    `proposer`: the first member speaks, unless its draft is the proposal of the first round; then the others agree or
    amend, all at once.
    """
    if order == "simultaneous":
        yield from talk.speak(number, members, style)
    elif order == "proposer":
        if number > 1 or members[0] not in talk.current:
            yield from talk.speak(number, members[:1], style)
        if len(members) > 1:
            yield from talk.speak(number, members[1:], "agree", proposer=members[0])
    elif order == "moderator":
        yield from _moderated(talk, number, members, style, chair)
    else:
        for agent in rng.sample(members, len(members)) if order == "random" else members:
            yield from talk.speak(number, [agent], style)


def _moderated(talk: Talk, number: int, members: Sequence[str], style: Style, chair: str) -> Batch:
    """Yield a choice and a contribution, as often as there are members.

    Where the choice cannot be read, the agent speaks that has spoken least in this round, the first of several.
    """
    spoken = Counter(dict.fromkeys(members, 0))
    for _ in members:
        chosen = yield from talk.choose(number, chair, Choice(tuple(members), marker="Next:"))
        agent = chosen if chosen in spoken else min(members, key=spoken.__getitem__)
        spoken[agent] += 1
        yield from talk.speak(number, [agent], style)
