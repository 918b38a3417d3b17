"""Text games of TextArena, by their names."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal

from harness.api import Action, Case, Facts, Outcome, PluginError, Protocol, Range, Turn, plugin
from harness.extensions.games.game_task import GameTask, player_names
from harness.extensions.games.textarena import ClockedGame, ExampleGame, Public, TextWorld, catalog, listed
from harness.replies import FreeText


@plugin
class TextArena(GameTask):
    """TextArena's games: `task: {use: textarena, env: SecretMafia-v0, players: 6}`.

    `harness list tasks --textarena [WORD]` names them. Rules, observations, turns and rewards are those of the
    installed package (`pip install "mas-eval-harness[textarena]"`), seeded by the case: the same actions give the same
    game. The environment's own rule holds for an invalid action, which most answer with one more try and then with
    defeat or elimination; `invalid` counts them. A game that reaches `max_timesteps` has no returns.

    Attributes:
        env: the environment's name. Names in "-train" and "-raw" show the same game in other ways: "-raw" shows only
            what is new, for one long conversation (`memory: thread`).
        players: how many; by default the fewest.
        options: parameters of the environment, over those that its name stands for: `{discussion_rounds: 1}`.
        invalid: "environment": as the environment's own rule says.
        public: what of a reply goes to the game, and there to the other players: "all" of it, or only what stands
            "after MESSAGE:", so that an agent can think aloud first without telling its role. Any other words can stand
            for MESSAGE:. It is read as every label is: in bold, as a heading, as a field of JSON; what stands behind a
            rule or another label is not public. A reply without it is asked for again, and then says nothing.
        max_chars: longer replies are cut to their last characters. Environments need time that grows with its square.
    """

    env: str
    players: Annotated[int, Range(ge=1, le=15)] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    invalid: Literal["environment"] = "environment"  # type: ignore[assignment]
    public: str = "all"
    max_chars: Annotated[int, Range(ge=1, le=10_000)] = 4000

    facts = (*GameTask.facts, "secret_roles", "reason", "finished", "words_per_turn")
    prompts: ClassVar[str] = "textarena/standard"
    playing: ClassVar[Facts] = {"max_timesteps": 1000, "parse_retries": 1}

    def __post_init__(self) -> None:
        self._count = self.players or 2
        self._sides: dict[int, tuple[list[str], list[str]]] = {}
        before, _, label = self.public.partition(" ")
        self._label = label.strip() if before == "after" else None
        if self.public != "all" and not (self._label and self._label.isprintable() and len(self._label) <= 40):
            hint = 'Write "all", or "after MESSAGE:".'
            raise PluginError(
                f"public says what of a reply is for others; found {self.public!r:.60}", hint=hint, at=("public",)
            )
        if not catalog.installed():
            return
        entry = catalog.entry(self.env)
        few, most = entry.players
        self._count = few if self.players is None else self.players
        if not few <= self._count <= most:
            played = f"{few}" if few == most else f"{few} to {most}"
            message = f"{self.env} has {played} player{'s' * (most > 1)}, not {self._count}"
            raise PluginError(message, at=("players",))
        if (problem := entry.problem()) is not None:
            hint = "`harness list tasks --textarena` says which environments can be played."
            raise PluginError(f"{self.env} cannot be played here: {problem}", hint=hint, at=("env",))

    def cases(self, limit: int | None, seed: int) -> Iterable[Case]:
        """Yield the cases. Raises `SetupError` without the package, `PluginError` if the environment does not start."""
        catalog.version()
        for i, case in enumerate(super().cases(limit, seed)):
            if i == 0:
                self._game(case).start()
            yield case

    def game_case(self, sample: int, chance_seed: int) -> Case:
        """A game with chance of its own."""
        labels = {"env": self.env, "players": self._count, "game": sample}
        return Case(f"game{sample}", player_names(self._count), target=chance_seed, labels=labels)

    def teams(self, case: Case) -> Sequence[Sequence[str]]:
        """In Secret Mafia the village and the mafia, by the secret roles of the case; in Codenames red and blue."""
        if self.env.startswith("Codenames"):
            return case.agents[:2], case.agents[2:]
        if not self.env.startswith("SecretMafia"):
            return ()
        if case.target is None:  # the stand-in has no roles
            return case.agents[1:], case.agents[:1]
        if case.target not in self._sides:
            roles = self._game(case).start().roles
            mafia = [agent for i, agent in enumerate(case.agents) if roles.get(i) == "Mafia"]
            self._sides[case.target] = [agent for agent in case.agents if agent not in mafia], mafia
        return self._sides[case.target]

    def example(self) -> Case:
        """A stand-in that needs no package."""
        labels = {"env": self.env, "players": self._count, "game": 0}
        return Case("example", player_names(self._count), labels=labels)

    def bounds(self, case: Case) -> tuple[float, float]:
        """Of one player 0 and 1, of several −1 (defeat) and 1 (victory)."""
        return (0.0, 1.0) if len(case.agents) == 1 else (-1.0, 1.0)

    def context(self, case: Case, agent: str) -> Facts:
        """`env`, `name` and `players`; the rules come with the first observation. `label`: what announces the part of a
        reply that others read; None if they read it all.
        """
        return {"env": self.env, "name": agent, "players": list(case.agents), "label": self._label}

    def reply(self, case: Case, agent: str) -> FreeText:
        """Any text, or any behind the label."""
        return self._form

    def world(self, case: Case, rng: random.Random) -> TextWorld:
        """The first state."""
        game = self._game(case)
        return TextWorld(game, game.start(), case.agents, self.max_chars, self._form)

    @property
    def _form(self) -> FreeText:
        return FreeText() if self._label is None else Public(self._label)

    def _game(self, case: Case) -> ClockedGame | ExampleGame:
        count = len(case.agents)
        return ExampleGame(count) if case.target is None else ClockedGame(self.env, count, case.target, self.options)

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, Any]:
        """As `GameTask`; of a game without an end the number of invalid actions only."""
        grades, invalid = super().grade(case, outcome), outcome.facts.get("invalid")
        return {**grades, "invalid": sum(invalid.values()) if isinstance(invalid, Mapping) else None}

    def ordinary(self) -> Callable[[Turn], Action]:
        """A player of moves that the game has listed, as the policy `textarena/random`."""
        moves: dict[str, list[str]] = {}
        rng = random.Random(0)

        def choose(turn: Turn) -> Action:
            if not isinstance(turn.reply, FreeText):
                return turn.reply.noop
            moves[turn.agent] = listed(turn.observation["news"]) or moves.get(turn.agent) or ["Nothing."]
            return rng.choice(moves[turn.agent])

        return choose

    def spec_defaults(self, protocol: type[Protocol]) -> Facts:
        """As `GameTask`, with the policy that plays what the game lists."""
        finished: Facts = {"use": "fact", "of": "finished", "name": "finished"}
        defaults = super().spec_defaults(protocol)
        return {**defaults, "metrics": [*defaults["metrics"], finished], "baseline": "textarena/random"}
