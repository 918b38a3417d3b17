"""Who made one episode fail, and with which move: found by experiment, with a reference policy in place of moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from harness.api.errors import EngineFatalError
from harness.api.printable import clean_name
from harness.extensions.replay.changes import receivers, without_messages
from harness.extensions.replay.simulation import Deviation, SimulatedEpisode, Simulation, Substitution, is_unanswered
from harness.runtime.episode import STOPS
from harness.storage.plugin_errors import describe

from .shares import MAX_EXACT_AGENTS, AgentGame, Share

Finding = Literal["blamed", "no_better", "alike", "unanswered", "too_many", "no_number", "fails"]
WORDS: Mapping[Finding, str] = {
    "blamed": "a move, or several together, decide it",
    "no_better": "the reference does no better: no agent is blamed",
    "alike": "all agents erred alike: no agent stands out",
    "too_many": "it takes more moves than --moves allows: no agent is blamed",
    "unanswered": "a model would have to be asked: no agent is blamed",
    "fails": "played with other moves they fail: no agent is blamed",
    "no_number": "with the reference in all seats they have no such number: no agent is blamed",
}


def words_of(finding: str) -> str:
    """A finding in words; also one of a file that someone else wrote."""
    return next((words for name, words in WORDS.items() if name == finding), "no agent is blamed")


_MAX_PROBLEM_CHARS = 300
"""Characters of a problem."""


@dataclass(frozen=True)
class Effect:
    """What the episode's number changes by where a single move is another one; None: a model would have to be asked."""

    deviation: Deviation
    value: Fraction | None


@dataclass(frozen=True)
class BlameVerdict:
    """What made an episode fail.

    Attributes:
        episode: its id.
        finding: whether an agent is blamed, or why none is.
        value, reference: the episode's number, and that of the reference in all seats.
        named: the decisive moves, the earliest first: each of them alone would have saved the episode; where none
            would, the fewest found that save it together.
        single: whether each of `named` does so alone.
        effects: of the single moves that the reference would not have made.
        last_chance: the last turn from which on the reference could still save it.
        shares: agent → its share of the difference.
        messages: place → what the number changes by where that message is not sent.
        courses: how often the episode was played.
        problem: why it failed, where it did with some other moves.
    """

    episode: str
    finding: Finding
    value: Fraction | None
    reference: Fraction | None = None
    named: tuple[Deviation, ...] = ()
    single: bool = False
    effects: tuple[Effect, ...] = ()
    last_chance: int | None = None
    shares: Mapping[str, Share] = field(default_factory=dict)
    messages: Mapping[int, Fraction | None] = field(default_factory=dict)
    courses: int = 0
    problem: str | None = None

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents of the decisive moves."""
        return tuple(dict.fromkeys(one.place[0] for one in self.named))


@dataclass(frozen=True)
class Search:
    """How much is played for an episode.

    Attributes:
        moves: at most so many single moves are tried; of more the first.
        permutations: of agents, where more than `shares.MAX_EXACT_AGENTS` deviate.
        messages: also drop each message alone.
        lower: whether a lower number is better.
        seed: of the permutations.
    """

    moves: int = 200
    permutations: int = 32
    messages: bool = False
    lower: bool = False
    seed: int = 0


async def verdict(rehearsal: Simulation, search: Search) -> BlameVerdict:
    """Find out. Raises `DataError` if the episode does not go as recorded without any change."""
    return await _Trial(rehearsal, search).verdict()


async def is_worse(rehearsal: Simulation, search: Search) -> bool | None:
    """Whether the episode's number is worse than that of the reference in all seats; None where that is not known."""
    trial = _Trial(rehearsal, search)
    try:
        own = await trial.simulate(Substitution())
        assert own.value is not None
        return trial.better(await trial.whole(own), own.value)
    except LookupError:
        return None


async def shares(rehearsal: Simulation, search: Search) -> Mapping[str, Share] | None:
    """Each agent's share alone; None where a model would have to be asked. Raises as `verdict`."""
    trial = _Trial(rehearsal, search)
    try:
        rehearsal.check(await trial.simulate(Substitution()))
    except LookupError:
        return None
    return await trial.shares()


async def effort(rehearsal: Simulation, search: Search) -> tuple[int, int, int, int, int]:
    """What `verdict` would take, with one course that asks nobody: as the fields of `blame.BlamePlan`."""
    watched = rehearsal.reference is not None  # other samples of a model are not known before it is asked
    try:
        own = await rehearsal.simulate(Substitution(), watched)
    except EngineFatalError as error:
        if is_unanswered(error):
            return 0, 1, 1, 0, 0
        raise
    rehearsal.check(own)
    found, n = own.deviations if watched else tuple(_all(own)), len(rehearsal.seats)
    if not found:
        return 0, 1, 1, 0, 0
    models = {agent for agent, seat in rehearsal.seats.items() if seat.group.policy is None}
    rounds = [number for number, batch in enumerate(own.moves) for move in batch if move.agent in models]
    after = [
        sum(number > one.round for number in rounds) for one in found
    ]  # who is asked once this move is another one
    agents = {one.place[0] for one in found}
    singles, halvings = min(len(found), search.moves), len(found).bit_length()
    turns = rehearsal.parent.played(rehearsal.episode) if search.messages else ()
    dropped = [one.round for one in turns if without_messages(one.move.action, None, receivers(turns)) is not None]
    coalitions, most = (_coalitions(count, search.permutations) for count in (len(agents), n))
    replays = 1 + singles + coalitions + halvings + len(dropped)
    again = 0 if watched else len(rounds)  # at each turn of a course the model is also asked for another sample
    calls = sum(after[:singles]) + coalitions * after[0] + again * (1 + coalitions)
    spoken = sum(number > one for one in dropped for number in rounds)
    most_replays = replays - coalitions + most + 2 * n + 2 * min(sum(map(len, own.moves)), search.moves)
    return (
        len(found),
        replays,
        most_replays,
        calls + spoken,
        (most_replays - halvings) * after[0] + again * most_replays + spoken,
    )


def _all(course: SimulatedEpisode) -> Iterator[Deviation]:
    """Every move, as if the reference would have made another one."""
    counts = Counter[str]()
    moves = ((number, move) for number, batch in enumerate(course.moves) for move in batch)
    for count, (number, move) in enumerate(moves):
        yield Deviation(count, number, (move.agent, counts[move.agent]), move.turn)
        counts[move.agent] += 1


def _coalitions(agents: int, permutations: int) -> int:
    """How many coalitions of deviating agents are played for their shares."""
    return (1 << agents) - 1 if agents <= MAX_EXACT_AGENTS else (1 << MAX_EXACT_AGENTS) + permutations * (agents - 1)


class _Trial:
    def __init__(self, rehearsal: Simulation, search: Search) -> None:
        self.rehearsal, self.search = rehearsal, search
        self.agents = frozenset(rehearsal.seats)
        self._courses: dict[object, SimulatedEpisode] = {}
        self._numbers: dict[object, Fraction] = {}  # of courses that nobody watched
        self.problem: str | None = None

    def better(self, one: Fraction, other: Fraction) -> bool:
        return one < other if self.search.lower else one > other

    async def simulate(self, by: Substitution) -> SimulatedEpisode:
        """Raises `LookupError` if a model would have to be asked, or if the episode fails with these moves."""
        key = _key(by)
        if key in self._courses:
            return self._courses[key]
        course = self._courses[key] = await self._play(by)
        if course.overruled is not None and by.since is None:  # replacing just these moves gives the same course
            self._courses.setdefault(_key(Substitution(places=course.overruled)), course)
        return course

    async def number(self, by: Substitution) -> Fraction:
        """The number alone; raises as `course`."""
        key = _key(by)
        if key in self._courses:
            value = self._courses[key].value
            assert value is not None
            return value
        if key not in self._numbers:
            value = (await self._play(by, watched=False)).value
            assert value is not None
            self._numbers[key] = value
        return self._numbers[key]

    async def _play(self, by: Substitution, watched: bool = True) -> SimulatedEpisode:
        try:
            course = await self.rehearsal.simulate(by, watched)
        except EngineFatalError as error:
            if is_unanswered(error):
                raise LookupError(str(error)) from None
            raise
        except STOPS:
            raise
        except Exception as error:  # scripted agents need not be able to read what others never said
            if by == Substitution():
                raise
            self.problem = self.problem or clean_name(describe(error))[:_MAX_PROBLEM_CHARS]
            raise LookupError(self.problem) from None
        if course.value is None:
            raise LookupError("the episode has no number")
        return course

    async def verdict(self) -> BlameVerdict:
        name, rehearsal = self.rehearsal.episode, self.rehearsal
        try:
            own = await self.simulate(Substitution())
        except LookupError:
            return BlameVerdict(name, "unanswered", None, courses=rehearsal.courses)
        rehearsal.check(own)
        before = own.value
        assert before is not None
        try:
            whole = await self.whole(own)
        except LookupError:  # the reference in all seats asks no model
            finding: Finding = "no_number" if self.problem is None else "fails"
            return BlameVerdict(name, finding, before, courses=rehearsal.courses, problem=self.problem)
        if not self.better(whole, before):
            return BlameVerdict(name, "no_better", before, whole, courses=rehearsal.courses)
        effects = [await self._effect(one, before) for one in own.deviations[: self.search.moves]]
        known = [(one.deviation, one.value) for one in effects if one.value is not None]
        saving = [deviation for deviation, value in known if not self.better(whole, before + value)]
        together: list[Deviation] | None = [] if saving else await self._together(own, whole)
        named = saving or together or []
        shares = await self.shares()
        unknown: Finding = "unanswered" if self.problem is None else "fails"
        finding = "blamed" if named else unknown if together is None else "too_many"
        if not saving and shares is not None and self._is_alike(shares, effects):
            finding, named = "alike", []
        return BlameVerdict(
            name,
            finding,
            before,
            whole,
            tuple(named),
            bool(saving),
            tuple(effects),
            await self._last_chance(own, whole),
            shares or {},
            await self._messages(before) if self.search.messages else {},
            rehearsal.courses,
            self.problem,
        )

    async def whole(self, own: SimulatedEpisode) -> Fraction:
        """The number with the reference in all seats: those that never deviate need not be replaced.

        Raises `LookupError` if it has none.
        """
        course, replaced = own, frozenset[str]()
        try:
            while course.deviations:
                replaced |= {one.place[0] for one in course.deviations}
                course = await self.simulate(Substitution(agents=replaced))
        except LookupError:  # others would hear what they have not heard; the reference needs no model
            course = await self.simulate(Substitution(agents=self.agents))
        self._courses[_key(Substitution(agents=self.agents))] = course
        assert course.value is not None
        return course.value

    def _is_alike(self, shares: Mapping[str, Share], effects: Sequence[Effect]) -> bool:
        acting = {one.deviation.place[0] for one in effects}
        return len(self.agents) > 1 and acting == self.agents and len({share.value for share in shares.values()}) == 1

    async def _effect(self, deviation: Deviation, before: Fraction) -> Effect:
        try:
            return Effect(deviation, await self.number(Substitution(places=frozenset([deviation.place]))) - before)
        except LookupError:
            return Effect(deviation, None)

    async def _together(self, own: SimulatedEpisode, whole: Fraction) -> list[Deviation] | None:
        """The fewest moves found that save the episode together; none where `moves` are not enough, None where a model
        would have to be asked.

        The reference's moves take the place of others one after another, as they come to deviate; then each that is
        not needed is taken back, the latest first.
        """
        chosen: list[Deviation] = []
        try:
            course = own
            while self.better(whole, course.value or Fraction(0)) and len(chosen) < self.search.moves:
                places = {one.place for one in chosen}
                new = next((one for one in course.deviations if one.place not in places), None)
                if new is None:
                    return []
                chosen.append(new)
                course = await self.simulate(Substitution(places=frozenset(one.place for one in chosen)))
            if self.better(whole, course.value or Fraction(0)):
                return []
            for one in reversed(chosen[:]):
                rest = [other for other in chosen if other != one]
                if not self.better(whole, await self.number(Substitution(places=frozenset(o.place for o in rest)))):
                    chosen = rest
        except LookupError:
            return None
        return chosen

    async def shares(self) -> dict[str, Share] | None:
        async def worth(coalition: frozenset[str]) -> tuple[Fraction, frozenset[str]]:
            course = await self.simulate(Substitution(agents=coalition))
            assert course.value is not None
            return course.value, course.followers - coalition

        try:
            game = AgentGame(tuple(self.rehearsal.seats), worth)
            return await game.shares(self.search.permutations, self.search.seed)
        except LookupError:
            return None

    async def _last_chance(self, own: SimulatedEpisode, whole: Fraction) -> int | None:
        """By halving: from a turn on the reference saves it, if it does from a later one on.

        From a turn on in which nobody deviates, what follows is as from the next one in which somebody does.
        """
        numbers, last = [one.number for one in own.deviations], own.deviations[-1]
        low, high = 0, len(numbers)  # from that of `low` on it is saved: before the first nobody deviates
        try:
            if not any(own.moves[last.round + 1 :]):  # nobody acts after it, so its effect alone is known
                if not self.better(whole, await self.number(Substitution(places=frozenset([last.place])))):
                    return last.number
                high -= 1
            while high - low > 1:
                middle = (low + high) // 2
                saved = not self.better(whole, await self.number(Substitution(since=numbers[middle])))
                low, high = (middle, high) if saved else (low, middle)
        except LookupError:
            return None
        return numbers[low]

    async def _messages(self, before: Fraction) -> dict[int, Fraction | None]:
        turns = self.rehearsal.parent.played(self.rehearsal.episode)
        agents, found = receivers(turns), dict[int, Fraction | None]()
        for turn in turns:
            silent = without_messages(turn.move.action, None, agents)
            if silent is None or not (silent == turn.turn.reply.noop or turn.turn.reply.allows(silent)):
                continue
            try:
                by = Substitution(actions={(turn.turn.agent, turn.index): silent})
                found[turn.number] = await self.number(by) - before
            except LookupError:
                found[turn.number] = None
        return found


def _key(by: Substitution) -> object:
    actions = tuple((place, repr(action)) for place, action in by.actions.items())
    return by.agents, by.places, by.since, actions
