"""The ceiling of who_broke_it: what the experiment found."""

from __future__ import annotations

import random

from harness.api import Action, Case, InformedPolicy, Turn, plugin


@plugin
class Replay(InformedPolicy):
    """Names the agent and the turn that `harness blame` finds when it plays the episode with other moves."""

    label: str = "replay"

    def __post_init__(self) -> None:
        self._mistake: Action = None

    def inform(self, agent: str, case: Case, seed: int) -> None:
        """Take over what was found when the case was made; of several moves the first."""
        self._mistake = case.target[0] if isinstance(case.target, list) and case.target else case.target

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """Return it; nothing in another task."""
        found = self._mistake if isinstance(self._mistake, dict) else None
        return found if found is not None and turn.reply.allows(found) else turn.reply.noop
