"""Any game of OpenSpiel for two to ten agents (Lanctot et al., 2019, arXiv:1908.09453)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from harness.api import Case, Facts, Outcome, PluginError, Protocol, Range, Reply, plugin
from harness.extensions.games.game_task import GameTask, player_names
from harness.extensions.games.legal import LegalAction

from ._openspiel.example import ExampleState
from ._openspiel.listing import games
from ._openspiel.loading import LoadedGame, load, package, seats
from ._openspiel.rules import about, described, payoffs, rules_of
from ._openspiel.skill import scales
from ._openspiel.state import GameState, Rules

_EXAMPLE = "example"
_PARTNERS = ("bridge", "euchre", "spades", "tiny_bridge_4p")
_RECENT = 20
"""Moves that a prompt shows."""


@plugin
class OpenSpiel(GameTask):
    """A game of OpenSpiel: `task: {use: openspiel, game: "hanabi(players=3)"}`, with `protocol: steps`.

    The package is an extra (`pip install "mas-eval-harness[games]"`). `harness list tasks --openspiel [WORD]` names its
    games. Games for two to ten players can be played:
    sequential and simultaneous ones, with chance and with hidden information; mean-field games cannot. An agent sees
    what the game itself gives its player, and chooses among the legal actions by their names. Actions that a game calls
    by the same name get a number.

    Attributes:
        game: a game and its parameters, as OpenSpiel writes them: "connect_four", "hanabi(players=3)".
        observes: which text of the game an agent sees: its "observation" of the present state, or its "information"
            state, which often has the whole course of the game as far as it may know. "default": what our rules of the
            game say, and otherwise information where something is hidden, and an observation where nothing is.
        listed: how many legal actions a prompt lists; others can be chosen too.
        recent: how many of the last moves a prompt shows, as far as its reader may know them; those since the reader's
            last turn are always shown. None: 20, and 0 in games whose course an agent has to remember, since these
            propose one conversation a game (`memory: thread`). Where `state` is an "information" state it has the
            course, and no moves are shown.
    """

    grades = (*GameTask.grades, "skill")  # type: ignore[assignment]

    game: str
    observes: Literal["default", "observation", "information"] = "default"
    listed: Annotated[int, Range(ge=1, le=100_000)] = 200
    recent: Annotated[int, Range(ge=0, le=100_000)] | None = None

    def __post_init__(self) -> None:
        if package() is not None:
            loaded = load(self.game)  # a mistake in it shows now
            if self.observes != "default" and self.observes not in loaded.observes:
                hint = f"It gives: {', '.join(loaded.observes)}."
                raise PluginError(f"{loaded.name} gives no {self.observes}", hint=hint, at=("observes",))

    @staticmethod
    def games(word: str) -> list[tuple[str, ...]]:
        """What `harness list tasks --openspiel` prints: name, players, "open" or "hidden", whether there are rules,
        whether there is a ceiling, and why a game cannot be played. Raises `SetupError`, `DataError`.
        """
        return [*games(word)]

    @property
    def loaded(self) -> LoadedGame:
        """The game. Raises `SetupError` if the package is missing."""
        return load(self.game)

    @property
    def name(self) -> str:
        """The game's short name."""
        return self.game.partition("(")[0].strip()

    def game_case(self, sample: int, chance_seed: int) -> Case:
        """A game with chance of its own."""
        loaded = self.loaded
        return self._case(f"{loaded.name}-{sample}", loaded.players, chance_seed)

    def _case(self, name: str, players: int, chance_seed: int) -> Case:
        labels = {"game": self.name, "players": players}
        return Case(id=name, agents=player_names(players), target=chance_seed, labels=labels)

    def teams(self, case: Case) -> Sequence[Sequence[str]]:
        """Partners who face each other at a table of four, in the games that are played so."""
        return (case.agents[::2], case.agents[1::2]) if self.name in _PARTNERS and len(case.agents) == 4 else ()

    def example(self) -> Case:
        """The first game of seed 0; without the package, a little game with the same facts."""
        players = self.loaded.players if package() is not None else seats(self.game) or 2
        return self._case(_EXAMPLE, players, 0)

    def context(self, case: Case, agent: str) -> Facts:
        """`name`, `number`, `agents`, `others`; `game` as the spec writes it, `title`, `rules`, `payoffs`, `about`.

        `rules` are in our words, "" for a game that has none here; `payoffs` are lines, of small matrix games;
        `about` has sentences on what the game's type says.
        """
        number = case.agents.index(agent)
        facts: dict[str, Any] = {
            "name": agent,
            "number": number,
            "agents": list(case.agents),
            "others": [other for other in case.agents if other != agent],
            "game": self.game,
        }
        if self._stands_in(case):
            parameters: dict[str, Any] = {"players": len(case.agents)}
            return {**facts, "title": self.name, "rules": rules_of(self.name, parameters), "payoffs": [], "about": []}
        loaded = self.loaded
        return {
            **facts,
            "title": loaded.title,
            "rules": rules_of(loaded.name, loaded.parameters),
            "payoffs": list(payoffs(loaded, number)),
            "about": about(loaded),
        }

    def world(self, case: Case, rng: random.Random) -> GameState | ExampleState:
        """The first state in which agents decide."""
        if self._stands_in(case):
            return ExampleState(case.agents)
        recent = self.recent if self.recent is not None else 0 if self._remembered() else _RECENT
        shown = (self._observes(), self.listed, recent)
        return Rules(self.loaded, case.agents, case.target, self.invalid, *shown).first()

    def _stands_in(self, case: Case) -> bool:
        return case.id == _EXAMPLE and package() is None

    def _remembered(self) -> bool:
        """Whether what agents see now leaves out what they could see before."""
        ours = described().get(self.name)
        if package() is None or (ours is not None and ours.remembered):
            return package() is not None
        return not self.loaded.public and self._observes() == "observation"

    def _observes(self) -> str:
        loaded, wanted = self.loaded, str(self.observes)
        if wanted == "default":
            ours = described().get(loaded.name)
            wanted = (ours.observes if ours else None) or ("observation" if loaded.public else "information")
        return wanted if wanted in loaded.observes else loaded.observes[0]

    def reply(self, case: Case, agent: str) -> Reply:
        """A legal action of the first state; for agents that have no turn then, the form without actions."""
        return self.world(case, random.Random(0)).reply(agent) or LegalAction(())

    def bounds(self, case: Case) -> tuple[float, float] | None:
        """The least and the greatest return, as the game states them."""
        return None if self._stands_in(case) else self.loaded.bounds

    def best(self, case: Case) -> float | None:
        """The greatest return of a cooperative game that our rules know as such."""
        ours = described().get(self.name)
        bounds = self.bounds(case)
        return bounds[1] if ours is not None and ours.cooperative and bounds is not None else None

    def zero_sum(self) -> bool:
        """As the game states it; a constant sum counts too."""
        return package() is not None and self.loaded.utility in ("zero_sum", "constant_sum")

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, Any]:
        """Return the grades of games, and `skill`.

        `skill`: the scored agents' returns between what random play gets in their seats (0) and what a strong player
        gets there (1), both against random players; None of games whose scale nobody has measured
        (`results/skill.py`), and where no play does better than random play.
        """
        grades, scale = super().grade(case, outcome), scales().get(self.game.strip())
        returns = grades["returns"]
        if scale is None or returns is None:
            return {**grades, "skill": None}
        scored = {seat: returns[agent] for seat, agent in enumerate(case.agents) if agent not in case.unscored}
        return {**grades, "skill": scale.skill(scored)}

    def spec_defaults(self, protocol: type[Protocol]) -> Facts:
        """Those of games; in a cooperative game also how often the greatest return was reached. Where agents have to
        remember the course of the game, one conversation a game.
        """
        proposed = dict(super().spec_defaults(protocol))
        if self._remembered() and "memory" in getattr(protocol, "__dataclass_fields__", ()):
            proposed["protocol"] = {**proposed["protocol"], "memory": "thread"}
        ours = described().get(self.name)
        if ours is not None and ours.cooperative:
            proposed["metrics"] = ["score", "solved", *proposed["metrics"][1:]]
        return proposed
