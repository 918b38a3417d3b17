"""Tournaments: who plays whom, and in which seats. Every pairing and seating is a condition.

A spec's `tournament:` stays as it is written wherever a spec is read, written down or compared. What it expands to
depends on how many seats a game has, which only the task can say.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from harness import api
from harness.api.errors import SpecError, near, raise_all
from harness.config.building import PlaceOf, policy_name
from harness.config.plan import Condition, Group, Plan
from harness.config.spec import MAX_CONDITIONS, Spec

from .adaptive import SeatedGame
from .results import RESULTS, VERSUS
from .swiss import Draw, draw
from .teams import Team, TeamsEntry, teams_of, together

LABELS: Final = ("round", "pairing", "first")
"""What a tournament adds to the labels of its conditions; `round` only where rounds are drawn."""
DRAWN: Final = {"swiss": 200, "adaptive": 60}
"""Pairings whose rounds are drawn → how many contestants they take: a round of so many takes seconds to draw."""
_ROUNDS: Final = 10
"""Of an adaptive tournament: more rounds bring little (`benchmarks/pairings.py`)."""
_MAX_NAME_CHARS: Final = 80


@dataclass(frozen=True)
class Contestant:
    """One entry of the pool: its name, and the keys of a group of agents."""

    name: str
    body: Mapping[str, Any]
    index: int


@dataclass(frozen=True)
class Tournament:
    """A checked `tournament:`. `games`, and `rounds` where none are drawn, may be None; `most` are the games in all of
    an adaptive one, if the spec says so."""

    contestants: tuple[Contestant, ...]
    pairing: str = "round_robin"
    self_play: bool = False
    rotate_seats: bool = True
    games: int | None = None
    most: int | None = None
    rounds: int | None = None
    results: str = RESULTS
    teams: TeamsEntry = None
    drawn: Mapping[str, Sequence[Draw]] = field(default_factory=dict)

    @classmethod
    def read(cls, entry: Mapping[str, Any], place: PlaceOf) -> Tournament:
        """The tournament of a spec in which the matrix's values are inserted. Raises `SpecError`."""
        errors: list[SpecError] = []

        def refuse(message: str, *path: Hashable, hint: str | None = None) -> None:
            errors.append(SpecError(message, place=place(*path), hint=hint))

        pool: dict[str, Contestant] = {}
        for i, value in enumerate(entry["pool"]):
            body: dict[str, Any] = {"model": value} if isinstance(value, str) else dict(value)
            if ("model" in body) == ("policy" in body):
                refuse(
                    "a contestant is either a model or a policy", "pool", i, hint="Give model: NAME or policy: NAME."
                )
                continue
            label = body.pop("label", None)
            name = str(label or body.get("model") or policy_name(body["policy"]))
            if why := _no_name(name, body.get("model")):
                refuse(f"a contestant cannot be called {name!r:.100}: {why}", "pool", i, hint="Give it another label:.")
            elif name in pool:
                hint = "Give one of them a label:, by which tables tell them apart."
                refuse(f"two contestants are called {name!r}", "pool", i, hint=hint)
            else:
                pool[name] = Contestant(name, body, i)
        pairing, self_play, rounds = entry.get("pairing", "round_robin"), entry.get("self_play"), entry.get("rounds")
        for key in ("rounds", "results", "drawn"):
            if key in entry and pairing not in DRAWN:
                refuse(f"{key}: belongs to pairing: swiss or adaptive, found pairing: {pairing}", key)
        if "games" in entry and pairing != "adaptive":
            hint = "games_per_pairing says how many games a pairing plays."
            refuse(f"games: belongs to pairing: adaptive, found pairing: {pairing}", "games", hint=hint)
        if pairing == "adaptive" and "games_per_pairing" not in entry:
            hint = "Say the most games that a pairing may play in each rotation of its seats."
            refuse("pairing: adaptive needs games_per_pairing", "pairing", hint=hint)
        if self_play is not None and pairing != "round_robin":
            refuse(f"self_play: belongs to pairing: round_robin, found pairing: {pairing}", "self_play")
        if not errors and len(pool) == 1 and pairing != "self_play":
            hint = "Add another, or give pairing: self_play."
            refuse("the pool has one contestant, and no other to meet", "pool", hint=hint)
        if pairing in DRAWN and len(pool) > DRAWN[pairing]:
            refuse(f"pairing: {pairing} with {len(pool)} contestants; at most {DRAWN[pairing]}", "pool")
        raise_all(errors)
        if pairing in DRAWN:
            rounds = rounds or (_ROUNDS if pairing == "adaptive" else math.ceil(math.log2(len(pool))))
        drawn = {key: [Draw.read(one) for one in draws] for key, draws in entry.get("drawn", {}).items()}
        for one in itertools.chain.from_iterable(drawn.values()):
            for name in {*itertools.chain.from_iterable(one.pairs), *filter(None, [one.bye])} - pool.keys():
                raise SpecError(f"no contestant is called {name!r}", place=place("drawn"), hint=near(name, pool))
        games, results = entry.get("games_per_pairing"), entry.get("results", RESULTS)
        rotate = entry.get("rotate_seats", True)
        teams = entry.get("teams")
        most = entry.get("games")
        return cls(tuple(pool.values()), pairing, bool(self_play), rotate, games, most, rounds, results, teams, drawn)

    @property
    def names(self) -> tuple[str, ...]:
        """The contestants' names, in the order of the pool."""
        return tuple(one.name for one in self.contestants)

    def check(self, seats: int, before: int, place: PlaceOf) -> None:
        """Raise `SpecError` for a game of so many seats that these contestants cannot play, and for too many
        conditions; `before`: how many there are already.
        """
        pool = len(self.contestants)
        if seats < 2:
            message = f"a game of one {'team' if self.teams else 'agent'} has no pairings"
            raise SpecError(message, place=place("teams") if self.teams else place(), hint="It takes two or more.")
        if self.pairing in DRAWN and seats != 2:
            hint = "pairing: round_robin plays all combinations."
            message = f"pairing: {self.pairing} needs two {self._sides}; this game has {seats}"
            raise SpecError(message, place=place("pairing"), hint=hint)
        if self.pairing == "round_robin" and pool < seats:
            hint = "Add contestants, or give pairing: self_play."
            message = f"the game has {seats} {self._sides}, the pool {pool} contestants"
            raise SpecError(message, place=place("pool"), hint=hint)
        pairings, seatings = self.count(seats)
        if before + seatings > MAX_CONDITIONS:
            message = f"{pool} contestants in {seats} {self._sides} make {pairings:,} pairings "
            message += f"and {seatings:,} conditions"
            message += f" beside {before:,} others" if before else ""
            hint = "Take a smaller pool, rotate_seats: false or, for two seats, pairing: swiss."
            raise SpecError(f"{message}; at most {MAX_CONDITIONS:,}", place=place("pool"), hint=hint)

    @property
    def _sides(self) -> str:
        """What contestants are seated in, in words."""
        return "teams" if self.teams else "seats"

    def rounds_of(self, variant: str, seed: int, limit: int | None = None) -> Sequence[Draw]:
        """The rounds drawn so far, at least the first. `limit`: the most games of a pairing in each seating."""
        if drawn := self.drawn.get(variant):
            return drawn
        return [draw(self.names, [], {}, seed) if self.pairing == "swiss" else self.further([], [], seed, limit)]

    def further(self, games: Sequence[SeatedGame], earlier: Sequence[Draw], seed: int, limit: int | None) -> Draw:
        """The next round of an adaptive tournament.

        Args:
            games: the results of the rounds before.
            earlier: these rounds.
            seed: what lots are drawn from.
            limit: as above.
        """
        from .adaptive import choose, first

        every, number = self.cases_in_all(limit), len(earlier)
        rounds = min(self.rounds or 1, every)
        units = every * (number + 1) // rounds - every * number // rounds
        most, pairs = self._most_of_a_pair(limit), [*itertools.combinations(range(len(self.names)), 2)]
        played = Counter[tuple[str, str]]()
        for one in earlier:
            played.update(dict(zip(one.pairs, one.cases, strict=True)))
        left = {(i, j): most - played[self.names[i], self.names[j]] for i, j in pairs}
        if not earlier:
            drawn = first(len(self.names), most, units, self.turns, seed)
        else:
            drawn = choose(len(self.names), games, left, units, self.turns, seed, number)
        chosen = sorted(drawn.items())
        return Draw(tuple((self.names[i], self.names[j]) for (i, j), _ in chosen), None, tuple(n for _, n in chosen))

    @property
    def turns(self) -> int:
        """How many games of two a case is."""
        return 2 if self.rotate_seats else 1

    def cases_in_all(self, limit: int | None) -> int:
        """How many cases the pairs of an adaptive tournament play together."""
        pairs = math.comb(len(self.names), 2)
        every = pairs * self._most_of_a_pair(limit)
        return max(1, min(every, self.most // self.turns if self.most is not None else every // 2))

    def _most_of_a_pair(self, limit: int | None) -> int:
        return min(one for one in (self.games, limit) if one is not None)

    def rounds_in_all(self, limit: int | None) -> int:
        """How many rounds are drawn; 1 where none are."""
        rounds = self.rounds or 1
        return min(rounds, self.cases_in_all(limit)) if self.pairing == "adaptive" else rounds

    def count(self, seats: int) -> tuple[int, int]:
        """(pairings of the whole tournament, seatings of all of them)."""
        pool = len(self.contestants)
        turns = seats if self.rotate_seats else 1
        if self.pairing == "self_play":
            return pool, pool
        if self.pairing == "swiss":
            pairs = (self.rounds or 1) * (pool // 2)
            return pairs, pairs * turns
        mixed, alone = math.comb(pool, seats), pool if self.self_play else 0
        return mixed + alone, mixed * turns + alone

    def conditions(
        self, whole: Condition, groups: Mapping[str, Group], seats: Sequence[Team], seed: int, limit: int | None = None
    ) -> Iterator[Condition]:
        """A condition for every pairing and seating.

        Args:
            whole: the condition of the spec without the tournament.
            groups: contestant → how it plays.
            seats: the teams, which are single agents where a game has none.
            seed: that of the run.
            limit: the most games of a pairing in each seating.
        """
        place = {name: i for i, name in enumerate(self.names)}
        for number, names, drawn in self._pairings(whole.id, len(seats), seed, limit):
            ordered = tuple(sorted(names, key=place.__getitem__))
            turns = range(len(names) if self.rotate_seats and len({*names}) > 1 else 1)
            for seating in (names[turn:] + names[:turn] for turn in turns):
                own: dict[str, Any] = {"pairing": VERSUS.join(ordered), "first": seating[0]}
                own = own if number is None else {"round": number, **own}
                prefix = [whole.id] if whole.labels else []
                sitting = [*zip(seats, seating, strict=True)]
                members = {name: together([seat for seat, who in sitting if who == name]) for name in seating}
                seated = [replace(groups[name], agents=agents) for name, agents in members.items()]
                yield replace(
                    whole,
                    id=",".join([*prefix, *(f"{key}={value}" for key, value in own.items())]),
                    labels={**whole.labels, **own},
                    groups=(replace(seated[0], name="default", agents=None), *seated),
                    base=whole.id,
                    games=self.games,
                    drawn=drawn,
                )

    def _pairings(
        self, variant: str, seats: int, seed: int, limit: int | None
    ) -> Iterator[tuple[int | None, tuple[str, ...], int | None]]:
        """(number of the round, who plays, how many games in each seating so far, where rounds say so)."""
        if self.pairing == "swiss":
            for number, drawn in enumerate(self.rounds_of(variant, seed), 1):
                yield from ((number, pair, None) for pair in drawn.pairs)
            return
        if self.pairing == "adaptive":
            cases = Counter[tuple[str, str]]()
            for drawn in self.rounds_of(variant, seed, limit):
                cases.update(dict(zip(drawn.pairs, drawn.cases, strict=True)))
            yield from ((None, pair, cases[pair]) for pair in itertools.combinations(self.names, 2) if cases[pair])
            return
        if self.pairing == "round_robin":
            yield from ((None, names, None) for names in itertools.combinations(self.names, seats))
        if self.pairing == "self_play" or self.self_play:
            yield from ((None, (name,) * seats, None) for name in self.names)


def seats_of(whole: Condition, name: str, place: PlaceOf) -> tuple[str, ...]:
    """The agents among whom contestants are seated. Raises `SpecError` for a protocol that has agents of its own."""
    protocol, example = whole.protocol, whole.task.example()
    if type(protocol).possible_agents is not api.Protocol.possible_agents:
        own = ", ".join(protocol.possible_agents(example)[:3])
        message = f"protocol {name!r} has agents of its own ({own}, …), which are not seats of a game"
        raise SpecError(message, place=place(), hint="Say who they are by agents:, and sweep models with matrix:.")
    return example.agents


def contestants_of(spec: Spec) -> set[str]:
    """The names in the pool of the spec's tournament; empty without a tournament."""
    place = functools.partial(spec.place, "tournament")
    entries = [variant.data["tournament"] for variant in spec.variants() if "tournament" in variant.data]
    return {name for entry in entries for name in Tournament.read(entry, place).names}


def summary(plan: Plan) -> list[str]:
    """Lines on how much there is to play, those of equal tournaments once."""
    firsts: dict[str, Condition] = {}
    for condition in plan.conditions:
        if condition.base is not None:
            firsts.setdefault(condition.base, condition)
    lines: dict[str, int] = {}
    for variant in plan.spec.variants() if firsts else ():
        first = firsts[variant.id]
        tournament = Tournament.read(variant.data["tournament"], functools.partial(plan.spec.place, "tournament"))
        place = functools.partial(plan.spec.place, "tournament")
        seats = teams_of(tournament.teams, first.task, first.task.example().agents, place)
        pairings, seatings = tournament.count(len(seats))
        games = sum(repeats for _, repeats in plan.all_cases(first))
        count = tournament.rounds_in_all(plan.limit)
        rounds = f" in {count} round{'s' * (count > 1)}" if tournament.rounds is not None else ""
        line = f"{len(tournament.names)} contestant{'s' * (len(tournament.names) > 1)}, "
        line += f"{pairings:,} pairing{'s' * (pairings > 1)}{rounds}"
        line += f", {seatings:,} with rotated seats" if seatings > pairings else ""
        line += f", {games:,} game{'s' * (games != 1)} each: "
        if tournament.pairing == "adaptive":
            line += f"{tournament.cases_in_all(plan.limit) * tournament.turns:,} of "
        line += f"{seatings * games:,} games"
        lines[line] = lines.get(line, 0) + 1
    return [line if count == 1 else f"{count} times {line}" for line, count in lines.items()]


def check_labels(whole: Condition, place_of: PlaceOf) -> None:
    """Raise `SpecError` for a matrix variable called like a label of tournaments."""
    raise_all(
        SpecError(
            f"{name!r} is a label that the tournament gives; call the variable otherwise",
            place=place_of("matrix", name),
        )
        for name in LABELS
        if name in whole.labels
    )


def _no_name(name: str, model: str | None) -> str | None:
    """Why a contestant cannot be called so; None if it can."""
    if not name.strip() or not name.isprintable():
        return "that cannot be printed"
    if len(name) > _MAX_NAME_CHARS:
        return f"it has {len(name)} characters, at most {_MAX_NAME_CHARS} fit"
    if name != name.strip():
        return "it begins or ends with a blank"
    if name == "default" or VERSUS in name or (name == "model" and model != name):
        return "the harness gives that word a meaning of its own"
    return None
