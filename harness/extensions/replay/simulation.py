"""One episode of a finished run, played in memory with some of its moves made by a reference policy."""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from harness.api import Action, Completion, Engine, Episode, Move, Policy, Thread, Turn, derive_seed
from harness.api.errors import DataError, EngineFatalError
from harness.config.limits import TurnQuota
from harness.config.plan import protocol_seed
from harness.runtime.episode import play
from harness.runtime.players import ModelPlayer, Player
from harness.runtime.policy_players import PolicyPlayer
from harness.runtime.scoring import grade, labels, score
from harness.runtime.seats import Seat, seats
from harness.runtime.steps import Steps

from .base_run import PlayedEpisodes

_MORE_BATCHES, _TIMES = 1000, 10

Place = tuple[str, int]
"""(agent, its own turns before this one)."""


@dataclass(frozen=True)
class Substitution:
    """Which moves are others than the agents' own.

    Attributes:
        agents: all moves of these are the reference's.
        places: so are these moves.
        since: so are all from this turn on, counted over all agents.
        actions: place → another action.
    """

    agents: frozenset[str] = frozenset()
    places: frozenset[Place] = frozenset()
    since: int | None = None
    actions: Mapping[Place, Action] = field(default_factory=dict)

    def concerns(self, agent: str) -> bool:
        """Whether a move of the agent may be another one."""
        places = self.places if not self.actions else {*self.places, *self.actions}
        return self.since is not None or agent in self.agents or any(agent == one for one, _ in places)


@dataclass(frozen=True)
class Deviation:
    """A move of an agent that the reference would not have made there: its number, round, place and template."""

    number: int
    round: int
    place: Place
    turn: str


@dataclass(frozen=True)
class SimulatedEpisode:
    """How an episode went.

    Attributes:
        value: the metric's number; None if it has none.
        deviations: moves that were not substituted and that the reference would not have made, in order; where nobody
            watched, those of agents that the reference plays at times.
        overruled: the places at which the reference's move took the place of another one; None if that is not known,
            since a model was not asked.
        moves: all moves, batch by batch.
    """

    value: Fraction | None
    deviations: tuple[Deviation, ...]
    overruled: frozenset[Place] | None
    moves: Sequence[Sequence[Move]]

    @property
    def followers(self) -> frozenset[str]:
        """The agents all of whose moves are the reference's."""
        agents = {move.agent for batch in self.moves for move in batch}
        return frozenset(agents - {one.place[0] for one in self.deviations})


@dataclass
class Simulation:
    """Plays one episode again and again.

    Args:
        parent: the episodes; the moves of this one are known.
        episode: its id.
        reference: makes the policy whose moves take the place of others; `agents` have one each. None: what an agent's
            own player does by other seeds, those of `sample`.
        metric: name of the number.
        engines: answer models' turns (`recorded_engine.RecordedEngine`).
        sandbox: as in `harness.runtime.options.Options`.

    Attributes:
        courses: how often it was played.
    """

    parent: PlayedEpisodes
    episode: str
    reference: Callable[[], Policy] | None
    metric: str
    engines: Mapping[str, Engine]
    sandbox: str = "process"
    sample: int = 0
    courses: int = 0

    def __post_init__(self) -> None:
        self.seats = seats(self.parent.plan, *self.parent.jobs[self.episode])

    async def simulate(self, substitution: Substitution, watched: bool = True) -> SimulatedEpisode:
        """Play it.

        Raises `EngineFatalError` if a model would have to be asked and none is there, `RuntimeError` if it takes more
        than ten times as many batches as the recorded episode, and a thousand, and does not end; else as `play`.

        `watched`: whether the reference says at each turn what it would do, for `SimulatedEpisode.deviations`.
        """
        self.courses += 1
        condition, case, repeat = self.parent.jobs[self.episode]
        plan, batches = self.parent.plan, list[list[Move]]()
        log = _Log(substitution, batches)
        players: dict[str, Player] = {
            agent: self._player(seat, log, watched or substitution.concerns(agent))
            for agent, seat in self.seats.items()
        }
        rng = random.Random(protocol_seed(plan, condition, case, repeat))
        game = Steps(condition.protocol, condition.task, case, rng)
        most = _MORE_BATCHES + _TIMES * len(self.parent.batches.get(self.episode, ()))

        def keep(moves: list[Move]) -> None:
            batches.append(moves)
            if len(batches) > most:
                raise RuntimeError(f"it does not come to an end: it is still playing after {most:,} batches")

        outcome = await play(game, players, {}, lambda *_: None, keep, condition.limits)
        columns = labels(plan, condition, case)
        facts = self.episode, condition.id, case.id, repeat, columns, case.roles, batches, outcome
        graded = grade(Episode(*facts), condition, case, provider=self.sandbox)
        scored = score(graded, {self.metric: plan.metrics[self.metric]})
        if scored.error is not None:
            raise DataError(f"episode {self.episode}, played with other moves, cannot be graded: {scored.error}")
        number = scored.number(self.metric)
        return SimulatedEpisode(
            None if number is None else Fraction(number), tuple(log.deviations), log.overruled, batches
        )

    def check(self, course: SimulatedEpisode) -> None:
        """Raise `DataError` where an episode without substitutions is not the recorded one."""
        own = [[(move.agent, move.turn, move.action) for move in batch] for batch in course.moves if batch]
        recorded = [
            [(move.agent, move.turn, move.action) for move in batch]
            for batch in self.parent.batches[self.episode]
            if batch
        ]
        if own != recorded:
            hint = "Its policies or its model do not do the same again: the effects of a change cannot be determined."
            raise DataError(f"episode {self.episode} goes otherwise without any change", hint=hint)

    def _player(self, seat: Seat, log: _Log, watched: bool) -> Player:
        if not watched:
            return seat.player(self.engines, self.episode)
        own, reference = seat.group.policy is not None, None
        if self.reference is not None:
            reference = replace(seat, group=replace(seat.group, model=None, policy=self.reference)).policy_player()
        elif own:
            reference = replace(seat, seed=derive_seed(seat.seed, "sample", self.sample)).policy_player()
        if own:
            assert reference is not None
            return _Policy(seat, reference, log)
        return _Model(seat, self.engines[seat.group.model or "model"], self.episode, reference, log, self.sample)


class _Log:
    """What all players of a course share: whose moves are substituted, and what deviates."""

    def __init__(self, substitution: Substitution, batches: Sequence[object]) -> None:
        self.by, self.batches = substitution, batches
        self.numbers = itertools.count()
        self.deviations: list[Deviation] = []
        self.overruled: frozenset[Place] | None = frozenset()

    def next(self, turn: Turn, index: int) -> tuple[int, Move | bool]:
        """The turn's number over all agents, and what takes the place of the agent's own move: True is the reference's
        move, False none."""
        number, place, by = next(self.numbers), (turn.agent, index), self.by
        if place in by.actions:
            return number, Move(turn.agent, turn.name, by.actions[place])
        return number, turn.agent in by.agents or place in by.places or (by.since is not None and number >= by.since)

    def compare(self, number: int, turn: Turn, index: int, own: Move, reference: Move) -> None:
        """Note a move that the reference would not have made."""
        if own.action != reference.action:
            self.deviations.append(Deviation(number, len(self.batches), (turn.agent, index), turn.name))


class _Policy(PolicyPlayer):
    """A policy, beside which the reference chooses too."""

    def __init__(self, seat: Seat, reference: PolicyPlayer, log: _Log) -> None:
        super().__init__(lambda: seat.group.make_policy(seat.agent, seat.case, seat.case_seed), seat.seed)
        self.reference, self.log = reference, log

    def decide(self, turn: Turn) -> Move:
        index, reference = self.turns, self.reference.decide(turn)
        own = super().decide(turn)
        number, other = self.log.next(turn, index)
        if other is not False:
            made = reference if other is True else other
            if own.action != made.action and self.log.overruled is not None:
                self.log.overruled |= {(turn.agent, index)}
            return made
        self.log.compare(number, turn, index, own, reference)
        return own


class _Model(ModelPlayer):
    """A model, beside which the reference chooses too; without one, the model itself by other seeds."""

    def __init__(
        self, seat: Seat, engine: Engine, episode: str, reference: PolicyPlayer | None, log: _Log, sample: int
    ) -> None:
        name = f"{episode}/{seat.agent}"
        super().__init__(engine, seat.group.prompts, seat.sampling, seat.structured_output, name, seat.seed)
        self.reference, self.log, self.sample = reference, log, sample

    async def act(
        self,
        turn: Turn,
        quota: TurnQuota | None = None,
        previous_calls: Sequence[Completion] = (),
        on_move: Callable[[Move], None] = lambda move: None,
    ) -> Move:
        index = self.turns
        number, other = self.log.next(turn, index)
        reference = self.reference.decide(turn) if self.reference is not None else await self._another(turn, quota)
        if other is not False:
            made = reference if other is True else other
            self.log.overruled = None
            said = made if made.calls else replace(made, calls=(Completion(turn.reply.written(made.action)),))
            self.recall(turn, said)  # its conversation continues as if it had said that
            return said
        own = await super().act(turn, quota, previous_calls, on_move)
        self.log.compare(number, turn, index, own, reference)
        return own

    async def _another(self, turn: Turn, quota: TurnQuota | None) -> Move:
        """What the model says here by other seeds; its conversation stays as it is."""
        other = copy.copy(self)
        other.thread = Thread(self.thread.age, self.thread.chat, self.thread.verbatim)
        other.thread.messages = [*self.thread.messages]
        other.id, other.seed = f"{self.id}~{self.sample}", derive_seed(self.seed, "sample", self.sample)
        return await ModelPlayer.act(other, turn, quota)


def is_unanswered(error: BaseException) -> bool:
    """Whether a course ended because no model is there to answer."""
    return isinstance(error, EngineFatalError) and "no model is there" in str(error)
