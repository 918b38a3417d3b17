"""Environments of PettingZoo, by their names."""

from __future__ import annotations

import functools
import importlib.util
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any

from harness.api import Case, Facts, PluginError, Range, SetupError, near, plugin
from harness.extensions.games.environments import Actions, Environment, EnvironmentTask, ExampleEnvironment

from ._pettingzoo_rules import rules_of, seats_in_words

MAX_NUMBERS = 10_000
"""Numbers of an observation: chess has 7,104; images have hundreds of thousands."""


@plugin
class PettingZoo(EnvironmentTask):
    """A turn-based game of PettingZoo: `task: {use: pettingzoo, env: classic/connect_four_v3}`.

    The rules in prompts are the documentation that the package ships with the environment: it says what the numbers of
    actions mean. Actions are numbers, and an agent sees the environment's own text where it renders one ("ansi"), and
    its observation as numbers. OpenSpiel has the classic games with actions and observations in words (`use:
    openspiel`).

    Attributes:
        env: the environment's folder and name in the package (`pip install "mas-eval-harness[pettingzoo]"`).
        players: how many it has.
        options: its parameters.
        between: the least and the greatest return of a player, where you know them: `score` needs them.
    """

    env: str
    players: Annotated[int, Range(ge=1, le=100)] = 2
    options: dict[str, Any] = field(default_factory=dict)
    between: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if _installed():
            import pettingzoo

            names = [name.replace("-v", "_v") for name in pettingzoo.aec_registry]
            if self.env.replace("-v", "_v") not in names:
                what = f"PettingZoo has no turn-based environment {self.env!r:.80}"
                raise PluginError(what, hint=near(self.env, names), at=("env",))

    def make(self, **words: Any) -> Any:
        """The package's environment. Raises `SetupError` if a package is missing."""
        try:
            import pettingzoo
            from pettingzoo.env_registry.exceptions import FailedToImport
        except ImportError:
            hint = 'pip install "mas-eval-harness[pettingzoo]"'
            raise SetupError("the task pettingzoo needs the package pettingzoo", hint=hint) from None
        try:
            return pettingzoo.make("aec", self.env, **{**self.options, **words})
        except (FailedToImport, ImportError) as error:
            hint = f'pip install "pettingzoo[{self.env.partition("/")[0]}]"'
            raise SetupError(f"{self.env}: {error.__cause__ or error}"[:200], hint=hint) from error
        except TypeError as error:
            raise PluginError(f"{self.env}: {error}"[:200], at=("options",)) from error

    def cases(self, limit: int | None, seed: int) -> Iterable[Case]:
        """Yield the cases. Raises `SetupError` without the package, `PluginError` if no text can show the game."""
        self.make()
        for i, case in enumerate(super().cases(limit, seed)):
            if i == 0:
                self.world(case, random.Random(0))
            yield case

    def example(self) -> Case:
        """The first game of seed 0; without the package, a game that stands in for it."""
        return self.game_case(0, 0)

    def environment(self, agents: Sequence[str]) -> Environment:
        """The environment; without its package, one that stands in for the example."""
        return _Cycle(self, agents) if _installed() else ExampleEnvironment(agents)

    def bounds(self, case: Case) -> tuple[float, float] | None:
        """What the spec says."""
        return self.between

    def context(self, case: Case, agent: str) -> Facts:
        """As other games; the environment's name is the title, and its own documentation the rules."""
        facts = {**super().context(case, agent), "title": f"{self.env} of PettingZoo"}
        if _installed():
            rules, seats = self._documentation
            facts |= {"rules": rules, "about": [seats_in_words(dict(zip(seats, case.agents, strict=False)))]}
        return facts

    @functools.cached_property
    def _documentation(self) -> tuple[str, list[str]]:
        """The rules, and the names of players in them. Raises `PluginError` where the package has no rules."""
        environment = self.make()
        if not (rules := rules_of(environment)):
            hint = "Its actions are numbers, which say nothing without rules: write a task of your own with `rules`."
            raise PluginError(f"{self.env} has no documentation of what its actions mean", hint=hint, at=("env",))
        return rules, list(environment.possible_agents)


def _installed() -> bool:
    try:
        return importlib.util.find_spec("pettingzoo") is not None
    except ValueError:  # the process has blocked it
        return False


class _Cycle(Environment):
    """An environment whose agents act in cycles (AEC: Terry et al., 2021, "PettingZoo", Section 4)."""

    def __init__(self, task: PettingZoo, agents: Sequence[str]) -> None:
        self.task, self.inner = task, task.make()
        if "ansi" in self.inner.metadata.get("render_modes", ()):
            self.inner = task.make(render_mode="ansi")
        seats = self.inner.possible_agents
        if len(seats) != len(agents):
            raise PluginError(f"{task.env} has {len(seats)} players, not {len(agents)}", at=("players",))
        self.names = dict(zip(seats, agents, strict=True))

    def reset(self, seed: int) -> None:
        self.inner.reset(seed=seed % 2**32)
        self.total = dict.fromkeys(self.inner.possible_agents, 0.0)

    def legal(self) -> Mapping[str, Sequence[str]]:
        """The numbers of the actions that an `action_mask` allows, or else of all."""
        inner = self.inner
        while inner.agents and (inner.terminations[inner.agent_selection] or inner.truncations[inner.agent_selection]):
            inner.step(None)
        if not inner.agents:
            return {}
        player = inner.agent_selection
        seen, space = inner.observe(player), inner.action_space(player)
        if not hasattr(space, "n"):
            raise PluginError(f"the actions of {player} are not a finite list: {space}", at=("env",))
        mask = seen.get("action_mask") if isinstance(seen, Mapping) else inner.infos[player].get("action_mask")
        return {self.names[player]: [str(i) for i in range(int(space.n)) if mask is None or mask[i]]}

    def observe(self, agent: str) -> str:
        import numpy

        seen = self.inner.observe(self.inner.agent_selection)
        seen = numpy.asarray(seen.get("observation") if isinstance(seen, Mapping) else seen)
        if seen.size > MAX_NUMBERS:
            what = (
                f"{self.task.env} shows {seen.size:,} numbers at a time, as an image has; the most is {MAX_NUMBERS:,}"
            )
            raise PluginError(what, at=("env",))
        text = numpy.array2string(seen * 1, threshold=10**6, max_line_width=200, separator=",")
        return f"{self.inner.render()}\n\n{text}" if self.inner.render_mode == "ansi" else text

    def last_board(self) -> str:
        return str(self.inner.render()) if self.inner.render_mode == "ansi" else ""

    def act(self, actions: Actions) -> None:
        self.inner.step(int(next(iter(actions.values()))))
        for player, reward in self.inner.rewards.items():
            self.total[player] += float(reward)

    def returns(self) -> Mapping[str, float]:
        return {self.names[player]: total for player, total in self.total.items()}
