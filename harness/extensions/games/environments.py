"""Mutable environments, such as those of Gymnasium and PettingZoo, as games in frozen worlds.

An adapter (`Environment`) lists the legal actions of each agent and what the agent observes; `EnvironmentTask` turns
it into games. Worlds record all actions, so an episode needs one environment only: a step from the newest state steps
it, and a step from an older state plays the game again from the start.
"""

from __future__ import annotations

import contextlib
import io
import math
import random
import reprlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from harness.api import Action, Case, Facts, Reply
from harness.api.errors import PluginError
from harness.extensions.games.worlds import World

from .game_task import GameTask, Invalid, legal_instead, player_names
from .legal import LegalAction

Actions = Mapping[str, str]
_GLOBAL_CHANCE = threading.RLock()
"""Only one thread at a time uses the global generators: two runs may play games in two threads of a process."""


class OwnChance:
    """Lets one game use Python's and NumPy's global generators, and restores their states afterwards.

    Libraries print, and the output of a run belongs to the harness: so this discards what they print.

    Args:
        seed: of both generators, at the start.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._states: tuple[Any, Any] | None = None

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """Continue with the random states at which the game stopped."""
        import numpy

        with _GLOBAL_CHANCE:
            before = (random.getstate(), numpy.random.get_state())
            if self._states is None:
                random.seed(self.seed)
                numpy.random.seed(self.seed % 2**32)
            else:
                random.setstate(self._states[0])
                numpy.random.set_state(self._states[1])
            nowhere = _Nowhere()
            try:
                with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
                    yield
            finally:
                self._states = (random.getstate(), numpy.random.get_state())
                random.setstate(before[0])
                numpy.random.set_state(before[1])


class _Nowhere(io.TextIOBase):
    """Discards what is printed."""

    def write(self, text: str) -> int:
        return len(text)


class Environment(ABC):
    """A mutable environment: an adapter for a library, or your own game.

    It may use Python's and NumPy's global generators; the seed of the case seeds them.
    """

    @abstractmethod
    def reset(self, seed: int) -> None:
        """Start again. The same seed and the same actions must give the same game."""

    @abstractmethod
    def legal(self) -> Mapping[str, Sequence[str]]:
        """The names of the legal actions of each agent that acts now; empty at the end of the game."""

    @abstractmethod
    def observe(self, agent: str) -> str:
        """The observation, as text, of an agent that acts now."""

    def last_board(self) -> str:
        """What all may see when the game has ended, as text; people who have played are shown it."""
        return ""

    @abstractmethod
    def act(self, actions: Actions) -> None:
        """Execute one legal action of each agent that acts now."""

    @abstractmethod
    def returns(self) -> Mapping[str, float]:
        """Every agent's return so far."""


class EnvironmentWorld(World):
    """A state of a game in an environment, frozen when the game reached it.

    Args:
        play: the environment, shared by all states of an episode; it is in this state now.
        before: the previous state, and the actions in it; None at the start.
        invalid: agent → its invalid actions so far.
        forfeited: the agent that lost by an invalid action.
    """

    def __init__(
        self,
        play: _Play,
        before: tuple[EnvironmentWorld, Actions] | None,
        invalid: Mapping[str, int],
        forfeited: str | None = None,
    ) -> None:
        self.play, self.before, self.invalid, self.forfeited = play, before, invalid, forfeited
        self.legal, self.seen = play.look() if forfeited is None else ({}, {})
        self.returns = play.returns()
        if forfeited is not None and play.least is not None:
            self.returns[forfeited] = play.least
        self.steps: int = before[0].steps + 1 if before else 0
        play.at = self

    def observation(self, agent: str) -> Facts:
        """`state`, `legal`, `legal_count`; at the end `state` is the last board.

        `moves` and `recent` are empty: what an agent may know is in `state`.
        """
        names = self.legal.get(agent, ())
        state, legal = self.seen.get(agent, ""), list(names[:200])
        if self.over and self.play.at is self:
            with self.play.chance():
                state = self.play.environment.last_board()
        return {"state": state, "legal": legal, "legal_count": len(names), "moves": [], "recent": []}

    def reply(self, agent: str) -> Reply | None:
        """One of the legal actions, by name."""
        return LegalAction(self.legal[agent]) if agent in self.legal else None

    def step(self, actions: Mapping[str, Action], rng: random.Random) -> EnvironmentWorld:
        """The state after these actions; for an agent without one, the task's rule for invalid ones."""
        play, chosen, invalid, forfeited = self.play, {}, dict(self.invalid), None
        for agent, names in self.legal.items():
            action = actions.get(agent)
            if action not in names:
                invalid[agent] += 1
                forfeited = forfeited or (agent if play.invalid == "forfeit" else None)
                action = legal_instead(names, play.chance.seed, self.steps, agent)
            chosen[agent] = action
        play.go_to(self)
        if forfeited is None:
            with play.chance():
                play.environment.act(chosen)
        return EnvironmentWorld(play, (self, chosen), invalid, forfeited)

    def facts(self) -> Facts:
        """`returns`, `invalid` and, if an agent has forfeited the game, `forfeited`."""
        forfeited = {} if self.forfeited is None else {"forfeited": self.forfeited}
        return {"returns": self.returns, "invalid": dict(self.invalid), **forfeited}

    @property
    def over(self) -> bool:
        """Whether no agent acts any more."""
        return not self.legal


class _Play:
    """An episode's environment and its present state; each start makes a new environment."""

    def __init__(
        self, make: Callable[[], Environment], agents: Sequence[str], seed: int, invalid: Invalid, least: float | None
    ) -> None:
        self.make, self.agents, self.invalid, self.least = make, agents, invalid, least
        self.chance = OwnChance(seed)
        self.at: EnvironmentWorld | None = None
        self.start()

    def start(self) -> None:
        """Make a new environment and reset it."""
        self.chance = OwnChance(self.chance.seed)
        with self.chance():
            self.environment = self.make()
            self.environment.reset(self.chance.seed)

    def go_to(self, world: EnvironmentWorld) -> None:
        """Bring the environment to this state."""
        if self.at is world:
            return
        done: list[Actions] = []
        state = world
        while state.before is not None:
            state, actions = state.before
            done.append(actions)
        self.start()
        for actions in reversed(done):
            self.look()
            with self.chance():
                self.environment.act(actions)
        self.look()
        self.at = world

    def look(self) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
        """The legal actions and the observation of each agent that acts.

        Called once in each state, since an environment may draw random numbers when it is asked.

        Raises:
            PluginError: the environment returned something else.
        """
        with self.chance():
            actions = self.environment.legal()
            if not isinstance(actions, Mapping):
                raise self._wrong("legal", "a mapping agent → names of its actions, which is empty at the end", actions)
            legal = {}
            for agent, names in actions.items():
                if agent not in self.agents:
                    raise self._wrong("legal", f"actions of {', '.join(self.agents[:10])} only", agent)
                listed = () if isinstance(names, str) else tuple(names)
                if not listed or not all(isinstance(name, str) for name in listed) or len({*listed}) < len(listed):
                    raise self._wrong("legal", f"a list of different texts for {agent}, one or more", names)
                legal[agent] = listed
            seen = {agent: self.environment.observe(agent) for agent in legal}
        for agent, text in seen.items():
            if not isinstance(text, str):
                raise self._wrong("observe", f"a text for {agent}", text)
        return legal, seen

    def returns(self) -> dict[str, float]:
        """Every agent's return so far. Raises `PluginError` if the environment lacks a number for one of them."""
        with self.chance():
            returned = self.environment.returns()
        with contextlib.suppress(TypeError, ValueError):
            if isinstance(returned, Mapping) and returned.keys() == {*self.agents}:
                returns = {agent: float(returned[agent]) for agent in self.agents}
                if all(map(math.isfinite, returns.values())):
                    return returns
        wanted = f"a mapping from each of {', '.join(self.agents[:10])} to a finite number"
        raise self._wrong("returns", wanted, returned)

    def _wrong(self, method: str, wanted: str, value: object) -> PluginError:
        name = f"{type(self.environment).__name__}.{method}"
        return PluginError(f"{name}() must return {wanted}; it returned {reprlib.repr(value)}")


@dataclass(kw_only=True)
class EnvironmentTask(GameTask):
    """Games in an environment. A subclass defines `environment` and `players`, and sets `title` and `rules`."""

    title: ClassVar[str] = "a game"
    rules: ClassVar[str] = ""

    @abstractmethod
    def environment(self, agents: Sequence[str]) -> Environment:
        """A new environment for these agents, in the order of seats."""

    @property
    def players(self) -> int:
        """How many agents play."""
        return 1

    def game_case(self, sample: int, chance_seed: int) -> Case:
        """A game with its own random seed."""
        return Case(f"game{sample}", player_names(self.players), target=chance_seed)

    def context(self, case: Case, agent: str) -> Facts:
        """`name`, `agents`, `title`, `rules`, and `payoffs` and `about`, which are empty."""
        known = {"title": self.title, "rules": self.rules, "payoffs": [], "about": []}
        return {"name": agent, "agents": list(case.agents), **known}

    def world(self, case: Case, rng: random.Random) -> World:
        """The first state."""
        bounds = self.bounds(case)
        least = bounds[0] if bounds else None
        play = _Play(lambda: self.environment(case.agents), case.agents, case.target, self.invalid, least)
        return EnvironmentWorld(play, None, dict.fromkeys(case.agents, 0))

    def reply(self, case: Case, agent: str) -> Reply:
        """One of the legal actions of the first state; no action is legal for agents that have no turn then."""
        return self.world(case, random.Random(0)).reply(agent) or LegalAction(())


class ExampleEnvironment(Environment):
    """A substitute for an environment whose package is missing: each agent acts once, and all returns are 0."""

    def __init__(self, agents: Sequence[str]) -> None:
        self.agents, self.acted = agents, 0

    def reset(self, seed: int) -> None:
        self.acted = 0

    def legal(self) -> Mapping[str, Sequence[str]]:
        return dict.fromkeys(self.agents[self.acted : self.acted + 1], ("0", "1"))

    def observe(self, agent: str) -> str:
        return "…"

    def act(self, actions: Actions) -> None:
        self.acted += 1

    def returns(self) -> Mapping[str, float]:
        return dict.fromkeys(self.agents, 0.0)
