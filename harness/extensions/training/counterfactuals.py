"""What an episode's number would be if a reference policy played on from some point: no model is asked.

The episode is played again in memory, from its moves (`harness.runtime.steps`), until the reference takes over. Where
the reference does what was done anyway, nothing is played: courses are shared between all turns of an episode.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import replace

from harness.api import Episode, Move, Outcome, Policy, derive_seed
from harness.config.plan import protocol_seed
from harness.runtime.scoring import grade
from harness.runtime.steps import Steps
from harness.storage.plugin_errors import describe

from .rewards import NoRewardError, PaidEpisode
from .rollout import by_policy

_MORE_BATCHES, _TIMES = 1000, 10
Numbers = Callable[[Episode], Mapping[str, float]]
"""Agent → what is compared: one number for all, or each agent's own. Raises `NoRewardError` where there is none."""
TurnKey = tuple[str, int]
"""(agent, its own turns before this one)."""


class Counterfactuals:
    """The courses of one episode with one reference.

    Policies of agents that do not learn play on as they are; the reference plays for all others.

    Args:
        played: the episode.
        reference: makes the policy; each agent has one.
        numbers: what is compared.
        draw: which of several courses of a reference that draws.
        sandbox: as in `harness.runtime.options.Options`.

    Attributes:
        courses: how often the episode was played.

    Raises:
        NoRewardError: the reference, or another policy, cannot play there, or a course has no number.
    """

    def __init__(
        self,
        played: PaidEpisode,
        reference: Callable[[], Policy],
        numbers: Numbers,
        draw: int = 0,
        sandbox: str = "process",
    ) -> None:
        self.played, self.numbers, self.sandbox, self.courses = played, numbers, sandbox, 0
        self._chance = protocol_seed(played.plan, *played.job)
        self._seats = dict(played.seats)
        for agent, seat in played.seats.items():
            if not self._plays_itself(agent):
                other = by_policy(seat, reference, played.plan, *played.job)
                self._seats[agent] = replace(other, seed=derive_seed(seat.seed, "draw", draw) if draw else seat.seed)
        self._moves = [[*batch] for batch in played.episode.batches]
        self._values: dict[tuple[int, str | None], Mapping[str, float]] = {}
        self._instead: dict[tuple[int, str], Move] = {}  # of the reference, where it would do something else
        self._last = -1  # the last batch with such a move
        self._turns: dict[tuple[int, str], TurnKey] = {}
        self._watch()

    async def values(self, upto: int, replaced: str | None = None) -> Mapping[str, float]:
        """The numbers if all moves of the batches before `upto` are those of the episode, and the reference plays from
        there. `replaced`: an agent whose move in the last of these batches is the reference's."""
        if replaced is None:
            while upto and not self._deviating(upto - 1):
                upto -= 1
            if upto > self._last:
                upto = len(self._moves)
        elif self._deviating(upto - 1) == [replaced]:
            return await self.values(upto - 1)
        key = upto, replaced
        if key not in self._values:
            self._values[key] = await self._numbers(upto, replaced)
        return self._values[key]

    async def credits(self) -> dict[TurnKey, float]:
        """Turn of a learning agent → what its move adds to the number over the reference's move at that place: all
        moves up to and with its batch as they were, and the reference from there on, less the same with its move
        replaced."""
        found: dict[TurnKey, float] = {}
        for (batch, agent), key in self._turns.items():
            if agent in self.played.learners:
                found[key] = 0.0
                if (batch, agent) in self._instead:
                    own, without = await self.values(batch + 1), await self.values(batch + 1, agent)
                    found[key] = own[agent] - without[agent]
        return found

    async def potentials(self) -> list[Mapping[str, float]]:
        """For each batch, and the end: the numbers if the reference plays from there on; at the end the episode's."""
        return [await self.values(upto) for upto in range(len(self._moves) + 1)]

    async def shaping(self, discount: float = 1.0, end: float | None = None) -> dict[TurnKey, float]:
        """Turn of a learning agent → γΦ(t + 1) − Φ(t) for its batch t, where Φ are the potentials (Ng, Harada & Russell
        1999). `end`: the potential at the end, if another."""
        found: dict[TurnKey, float] = {}
        potentials = await self.potentials()
        for (batch, agent), key in self._turns.items():
            if agent in self.played.learners:
                is_last = batch == len(self._moves) - 1 and end is not None
                after = end if is_last and end is not None else potentials[batch + 1][agent]
                found[key] = discount * after - potentials[batch][agent]
        return found

    def _deviating(self, batch: int) -> list[str]:
        return [move.agent for move in self._moves[batch] if (batch, move.agent) in self._instead]

    async def _numbers(self, upto: int, replaced: str | None) -> Mapping[str, float]:
        await asyncio.sleep(0)  # other episodes go on meanwhile
        if upto == len(self._moves) and replaced is None:
            return self.numbers(self.played.episode)
        if self.played.job[0].task.grading != "quick":
            return await asyncio.to_thread(self._course, upto, replaced)
        return self._course(upto, replaced)

    def _watch(self) -> None:
        """Let the reference see the episode as it was played, and note where it would do something else."""
        counts: dict[str, int] = {}

        def answer(batch: int, turn_moves: Mapping[str, Move]) -> list[Move]:
            own = self._moves[batch]
            if [move.agent for move in own] != [*turn_moves]:
                raise RuntimeError("the episode goes otherwise when it is played again")
            for move in own:
                agent = move.agent
                if move.error is None or move.calls:  # a failed request is in no conversation
                    self._turns[batch, agent] = agent, counts.get(agent, 0)
                counts[agent] = counts.get(agent, 0) + 1
                if self._plays_itself(agent):
                    continue
                if move.error is not None or move.action != turn_moves[agent].action:
                    self._instead[batch, agent] = turn_moves[agent]
                    self._last = batch
            return own

        self._play(answer)

    def _course(self, upto: int, replaced: str | None) -> Mapping[str, float]:
        """Play the episode with the reference from batch `upto` on."""
        batches: list[list[Move]] = []

        def answer(batch: int, turn_moves: Mapping[str, Move]) -> list[Move]:
            if batch >= upto:
                moves = [*turn_moves.values()]
            elif batch == upto - 1 and replaced is not None:
                moves = [turn_moves[m.agent] if m.agent == replaced else m for m in self._moves[batch]]
            else:
                moves = self._moves[batch]
            batches.append(moves)
            return moves

        outcome = self._play(answer)
        condition, case, _ = self.played.job
        course = replace(self.played.episode, batches=batches, outcome=outcome, grade={})
        graded = grade(course, condition, case, provider=self.sandbox)
        if graded.error is not None:
            raise NoRewardError(f"the episode, played on by the reference, cannot be graded: {graded.error}")
        return self.numbers(graded)

    def _play(self, answer: Callable[[int, Mapping[str, Move]], list[Move]]) -> Outcome:
        condition, case, _ = self.played.job
        self.courses += 1
        players = {agent: seat.policy_player() for agent, seat in self._seats.items()}
        most = _MORE_BATCHES + _TIMES * len(self._moves)
        try:
            with Steps(condition.protocol, condition.task, case, random.Random(self._chance)) as game:
                while (batch := game.batch) is not None:
                    if game.number > most:
                        raise RuntimeError(f"it does not come to an end within {most:,} batches")
                    game.send(answer(game.number, {turn.agent: players[turn.agent].decide(turn) for turn in batch}))
                return game.result()
        except Exception as error:
            raise NoRewardError(f"the reference cannot play on in this episode: {describe(error)}") from error

    def _plays_itself(self, agent: str) -> bool:
        return agent not in self.played.learners and self.played.seats[agent].group.policy is not None
