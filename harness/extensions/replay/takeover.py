"""Who is asked something else than in the recorded run: the episode, played in memory with a policy from there on."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from harness.api import Completion, Engine, Move, Policy, Turn
from harness.api.errors import DataError, EngineFatalError
from harness.api.printable import clean_name
from harness.config.limits import TurnQuota
from harness.config.plan import Job, Plan, protocol_seed
from harness.runtime.episode import STOPS, play
from harness.runtime.players import ModelPlayer, Player
from harness.runtime.seats import Seat, seats
from harness.runtime.steps import Steps
from harness.storage.plugin_errors import describe

from .simulation import is_unanswered

_MAX_PROBLEM_CHARS = 300
"""Characters of a problem."""


async def first_differing(plan: Plan, job: Job, episode: str, policy: Callable[[], Policy]) -> dict[str, int]:
    """Agent of a model → the first of its own turns whose prompt differs; those whose prompts stay the same are left
    out.

    Args:
        plan: the changed run; its engines know the recorded replies, and nobody answers other prompts
            (`recorded_engine.RecordedEngine`).
        job, episode: the episode, and its id.
        policy: makes the policy that plays for an agent from that turn on.

    Raises:
        DataError: the policy fails.
    """
    condition, case, repeat = job
    players: dict[str, Player] = {}
    for agent, seat in seats(plan, condition, case, repeat).items():
        is_policy = seat.group.policy is not None
        players[agent] = seat.player({}, episode) if is_policy else _Model(seat, plan.engines, episode, policy)
    game = Steps(condition.protocol, condition.task, case, random.Random(protocol_seed(plan, condition, case, repeat)))
    try:
        await play(game, players, {}, lambda *_: None, limits=condition.limits)
    except STOPS:
        raise
    except Exception as error:
        message = (
            f"the episode cannot be played on with this policy: {clean_name(describe(error))[:_MAX_PROBLEM_CHARS]}"
        )
        raise DataError(message, hint="Choose another one.") from None
    found = {agent: one.since for agent, one in players.items() if isinstance(one, _Model)}
    return {agent: since for agent, since in found.items() if since is not None}


class _Model(ModelPlayer):
    """A model as it was recorded, and from the first prompt on that differs a policy.

    Attributes:
        since: the first of the policy's own turns.
    """

    def __init__(self, seat: Seat, engines: Mapping[str, Engine], episode: str, policy: Callable[[], Policy]) -> None:
        engine, name = engines[seat.group.model or "model"], f"{episode}/{seat.agent}"
        super().__init__(engine, seat.group.prompts, seat.sampling, seat.structured_output, name, seat.seed)
        self.policy = replace(seat, group=replace(seat.group, model=None, policy=policy)).policy_player()
        self.since: int | None = None

    async def act(
        self,
        turn: Turn,
        quota: TurnQuota | None = None,
        previous_calls: Sequence[Completion] = (),
        on_move: Callable[[Move], None] = lambda move: None,
    ) -> Move:
        index, chosen = self.policy.turns, self.policy.decide(turn)
        if self.since is None:
            try:
                return await super().act(turn, quota, previous_calls, on_move)
            except EngineFatalError as error:
                if not is_unanswered(error):
                    raise
                self.since = index
        return chosen
