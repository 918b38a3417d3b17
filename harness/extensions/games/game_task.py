"""Games: stepped worlds that pay every agent a return. Tasks for libraries of games derive from `GameTask`."""

from __future__ import annotations

import math
import random
import statistics
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from harness.api import Action, Case, Facts, Outcome, Protocol, Range, Turn, derive_seed
from harness.extensions.games.worlds import SteppedTask

T = TypeVar("T")

Invalid = Literal["random", "forfeit"]


def player_names(count: int) -> tuple[str, ...]:
    """Player-0, Player-1 …: the agents of a game, in its own order of seats."""
    return tuple(f"Player-{seat}" for seat in range(count))


def legal_instead(moves: Sequence[T], *parts: object) -> T:
    """The legal move that stands in for an invalid one: uniform, and the same for the same `parts`."""
    return moves[derive_seed("instead", *parts) % len(moves)]


@dataclass(kw_only=True)
class GameTask(SteppedTask):
    """A task whose cases are games: each agent ends with a return, a number.

    A subclass defines `game_case`, `world`, `reply`, `context` and, if they are known, `bounds` and `best`. The facts
    of its worlds are `returns` (agent → its return, as the game gives it; of a game that was cut off, what it has given
    so far) and `invalid` (agent → how many of its moves were invalid or missing); and `forfeited`, the agent whose
    invalid move ended the game, if one did. What is random in a game comes from the case's seed, never from the
    protocol's rng, so the same moves give the same game under every condition.

    Attributes:
        instances: the number of cases; case k has chance of its own, and the same one under every condition.
        invalid: what happens if an agent gives no legal move after its retries. "random": a legal move is drawn for it,
            from the case's seed. "forfeit": the game ends, and it gets the game's least return. Tournaments take
            "forfeit" where a spec does not say.
    """

    instances: Annotated[int, Range(ge=1, le=1_000_000)] = 10
    invalid: Invalid = "random"

    grades = ("returns", "score", "solved", "invalid")
    facts: ClassVar[tuple[str, ...]] = ("returns", "invalid")
    prompts: ClassVar[str] = "games/standard"  # the prompt set for a spec that names none
    playing: ClassVar[Facts] = {"max_timesteps": 10_000, "parse_retries": 1}  # parameters of `steps`

    def cases(self, limit: int | None, seed: int) -> Iterable[Case]:
        """Yield the cases: `game_case` of each sample."""
        for sample in range(self.instances if limit is None else min(limit, self.instances)):
            yield self.game_case(sample, derive_seed("game", seed, sample))

    @abstractmethod
    def game_case(self, sample: int, chance_seed: int) -> Case:
        """Return the case of this number. Its target is `chance_seed`, which seeds everything random in its game."""

    def bounds(self, case: Case) -> tuple[float, float] | None:
        """The least and the greatest return that an agent can get; None if they are unknown."""
        return None

    def teams(self, case: Case) -> Sequence[Sequence[str]]:
        """The agents of a case who win and lose together, as many teams in every case; () in games of each alone.

        `tournament: {teams: game}` seats a contestant in each team.
        """
        return ()

    def ordinary(self) -> Callable[[Turn], Action]:
        """The player in all seats of the game that `harness plan` counts: by default one that moves at random.

        Idle players may end a game at once, or lengthen it.
        """
        rng = random.Random(0)
        return lambda turn: rng.choice(turn.reply.options) if turn.reply.options else turn.reply.noop

    def best(self, case: Case) -> float | None:
        """The greatest return of a cooperative game, in which all agents get the same; None in other games."""
        return None

    def zero_sum(self) -> bool:
        """Whether what one agent gets, others lose; False where that is not known."""
        return False

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, Any]:
        """Return the grades of an episode.

        `returns`: agent → its return. `score`: the mean of the scored agents' returns, normalized to [0, 1] by the
        game's bounds; None if these are unknown. `solved`: 1 if a cooperative game gave its greatest return, else 0;
        None in other games. `invalid`: how many moves were invalid or missing. All are None without a game.
        """
        returns, invalid = outcome.facts.get("returns"), outcome.facts.get("invalid")
        if not isinstance(returns, Mapping) or not isinstance(invalid, Mapping):
            return dict.fromkeys(self.grades)
        scored = [returns[agent] for agent in case.agents if agent not in case.unscored]
        bounds, best = self.bounds(case), self.best(case)
        return {
            "returns": dict(returns),
            "score": normalized(scored, bounds),
            "solved": None if best is None or not scored else float(min(scored) >= best),
            "invalid": sum(invalid.values()),
        }

    def spec_defaults(self, protocol: type[Protocol]) -> Facts:
        """The prompt set, metrics, a table, the headline, the random baseline, and parameters of the protocol."""
        known = getattr(protocol, "__dataclass_fields__", ())
        invalid: Facts = {"use": "grade", "of": "invalid", "name": "invalid"}
        return {
            "prompts": self.prompts,
            "protocol": {name: value for name, value in self.playing.items() if name in known},
            "metrics": ["score", invalid, "parse_failures", "truncated", "engine_errors"],
            "headline": {"metric": "score", "title": "Return, from 0 (least) to 1 (greatest)", "digits": 2},
            "baseline": "random",
        }


def normalized(returns: Sequence[float], bounds: tuple[float, float] | None) -> float | None:
    """The mean return, from 0 (the least possible) to 1 (the greatest); None without returns or finite bounds."""
    if not returns or bounds is None or not all(map(math.isfinite, (*bounds, *returns))) or bounds[0] >= bounds[1]:
        return None
    least, greatest = bounds
    return min(1.0, max(0.0, (statistics.fmean(returns) - least) / (greatest - least)))
