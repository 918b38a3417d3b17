"""Questions about OpenSpiel's games that a program answers: does a reader of their prompts understand the rules?"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated, Any

from harness.api import Case, Place, Range, derive_seed, plugin
from harness.extensions.datasets import DatasetTask
from harness.extensions.datasets.rows import Row

from ._openspiel.listing import playable
from ._openspiel.loading import package
from .openspiel import OpenSpiel

_SHOWN = """{{ title }}, a game of {{ agents | join(", ") }}. You are {{ agent }}.

{{ rules }}
{% if payoffs %}Payoffs:
{% for line in payoffs %}- {{ line }}
{% endfor %}{% endif %}{{ about | join(" ") }}

{% if moves %}The moves so far, in order:
- {{ moves | join("\\n- ") }}

{% endif %}{% if state %}What you see now:
{{ state }}

{% endif %}{{ asked }}"""
_QUICK = {"bridge": "bridge(use_double_dummy_result=False)"}
"""Games that take seconds, and the same ones that do not: OpenSpiel solves each deal of bridge to score its auction."""
_SLOW = ("bridge_uncontested_bidding",)
_MOVES = 30
"""Moves of a game after which legal moves are asked for, at most."""
_MAX_MOVES = 300
"""Moves after which a game is not played to its end."""
_GAMES = 6
"""Games that are tried for a question."""


@plugin
class GameQuestions(DatasetTask):
    """What is legal, and who has got most, in random positions of OpenSpiel's games, from the prompts of the task
    openspiel. Works offline; needs the package (`pip install "mas-eval-harness[games]"`).

    Two kinds of questions, by turns: which one of up to four moves is legal for the player who reads, where the others
    are legal at other times in the same game; and, of games that hide nothing and have ended, which player has the
    greatest return. A game of one kind only has that kind alone. Positions come from random play, and depend on the
    seed, the game and the number of the question only.

    Attributes:
        games: the games, as OpenSpiel writes them; none: all that can be played without parameters, but for
            bridge_uncontested_bidding, whose ends take seconds.
        questions: how many questions a game.
    """

    games: list[str] = field(default_factory=list)
    questions: Annotated[int, Range(ge=1, le=10_000)] = 4
    test_split: str | None = "test"
    doc_to_text: str = _SHOWN
    doc_to_target: str | int | None = "right"
    doc_to_choice: str | list[str] | None = "options"
    answer: dict[str, Any] | None = field(default_factory=lambda: {"form": "letter"})
    instruction: str | None = "Think step by step, then end your reply with: The answer is (X)."
    labels: dict[str, str] = field(default_factory=lambda: {"game": "game", "kind": "kind"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if package() is not None:
            for game in self.games:
                OpenSpiel(game=game)  # a mistake in it shows now

    def rows(self, split: str, seed: int) -> Iterator[tuple[Place, Row]]:
        """Yield the questions, game by game."""
        games = self.games or [_QUICK.get(game, game) for game in playable() if game not in _SLOW]
        for game in games:
            task = OpenSpiel(game=game, recent=_MAX_MOVES, instances=1)
            for number in range(self.questions):
                rng = random.Random(derive_seed("game questions", split, seed, game, number))
                kinds = [_legal, _most] if number % 2 == 0 else [_most, _legal]
                row = next((found for kind in kinds if (found := kind(task, rng)) is not None), None)
                if row is not None:
                    yield Place(game, number + 1), {"id": f"{game}-{number}", "game": task.name, **row}

    def example(self) -> Case:
        """The first question; invented columns without the package."""
        return next(iter(self.cases(1, 0))) if package() is not None else super().example()


def _legal(task: OpenSpiel, rng: random.Random) -> Row | None:
    """Which of these moves is legal? None for a game in which every move always is."""
    for _ in range(_GAMES):
        other = [*_played(task, rng, _MOVES)]
        turns = [*_played(task, rng, rng.randint(1, _MOVES))]
        world, agent, legal = turns[-1] if turns[-1][1] else turns[-2]
        every = {name: who for _, who, names in other + turns for name in names if name not in legal}
        wrong = sorted(name for name, who in every.items() if who == agent) or sorted(every)
        if wrong:
            options = [rng.choice(legal), *rng.sample(wrong, min(3, len(wrong)))]
            rng.shuffle(options)
            right = next(i for i, option in enumerate(options) if option in legal)
            asked = "Which one of these moves is legal for you now?"
            return {**_shown(task, world, agent), "kind": "legal", "asked": asked, "options": options, "right": right}
    return None


def _most(task: OpenSpiel, rng: random.Random) -> Row | None:
    """Who has got most? None where a seat does not see all, or games take too long."""
    if not task.loaded.public:
        return None
    for _ in range(_GAMES):
        *_, (world, _, _) = _played(task, rng, _MAX_MOVES)
        if not world.over:
            continue
        returns = world.facts()["returns"]
        best = [agent for agent, value in returns.items() if value == max(returns.values())]
        agents = [*returns]
        options = [*agents, "several of them, equally"]
        right = len(agents) if len(best) > 1 else agents.index(best[0])
        asked = "The game has ended. Which player has the greatest return?"
        return {**_shown(task, world, agents[0]), "kind": "result", "asked": asked, "options": options, "right": right}
    return None


def _played(task: OpenSpiel, rng: random.Random, most: int) -> Iterator[tuple[Any, str, tuple[str, ...]]]:
    """A random game: (world, an agent that acts, its legal moves) of each turn, and (world, "", ()) at the end."""
    case = task.game_case(0, rng.getrandbits(60))
    world: Any = task.world(case, rng)
    for _ in range(most):
        replies = {agent: reply for agent in case.agents if (reply := world.reply(agent)) is not None}
        if not replies:
            break
        agent = next(iter(replies))
        yield world, agent, replies[agent].options
        world = world.step({one: rng.choice(reply.options) for one, reply in replies.items()}, rng)
    if world.over:
        yield world, "", ()


def _shown(task: OpenSpiel, world: Any, agent: str) -> Mapping[str, Any]:
    agent = agent or world.rules.agents[0]
    case = task.game_case(0, 0)
    context, seen = task.context(case, agent), world.observation(agent)
    known = {key: context[key] for key in ("title", "agents", "rules", "payoffs", "about")}
    return {**known, "agent": agent, "moves": seen["recent"], "state": seen["state"]}
