"""Finding and loading OpenSpiel's games. A user's mistake becomes one line; it never ends this process.

OpenSpiel checks parameters by C++ assertions: some raise, some abort the process, some make it allocate without end.
So a game with parameters is tried in a process of its own first.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.api import PluginError, SetupError, UserError, near

INSTALL = 'pip install "mas-eval-harness[games]"'
PLAYERS = range(2, 11)
_SECONDS = 10
_GAME = re.compile(r"\s*(\w+)\s*(\(.*\))?\s*", re.DOTALL)
_SEATS = re.compile(r"\b(?:players|num_players|numPlayers)\s*=\s*(\d{1,9})\b")
_NOISE = re.compile(r"OpenSpiel exception: |/\S+/(?=[\w.-]+:\d)|\x1b\[[0-9;]*m")
_ISSUES = re.compile(r"Warning! The implementation of '(\w+)' has known issues")
_NEEDS = {
    "efg_game": "efg_game(filename=/path/to/game.efg)",
    "nfg_game": "nfg_game(filename=/path/to/game.nfg)",
    "repeated_game": "repeated_game(stage_game=matrix_pd(),num_repetitions=10)",
    "turn_based_simultaneous_game": "turn_based_simultaneous_game(game=goofspiel())",
    "normal_form_extensive_game": "normal_form_extensive_game(game=kuhn_poker())",
    "repeated_poker": "repeated_poker(max_num_hands=9,reset_stacks=True,universal_poker_game_string=universal_poker())",
    "restricted_nash_response": "restricted_nash_response(game=kuhn_poker(),fixed_player=0,p=0.5)",
    "start_at": "start_at(game=tic_tac_toe(),history=4;0)",
    "add_noise": "add_noise(game=kuhn_poker(),epsilon=1.0,seed=1)",
}
_TRIAL = """
import random, resource, sys, time
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
import pyspiel
game = pyspiel.load_game(sys.argv[1])
state, rng, end = game.new_initial_state(), random.Random(0), time.monotonic() + 2
game.min_utility(), game.max_utility(), game.num_players()
while not state.is_terminal() and time.monotonic() < end:
    if state.is_simultaneous_node():
        state.apply_actions([rng.choice(state.legal_actions(seat) or [0]) for seat in range(game.num_players())])
    else:
        state.apply_action(rng.choice(state.legal_actions()))
"""
"""Loads a game and plays some of it."""


@dataclass(frozen=True, eq=False)
class LoadedGame:
    """A game that can be played.

    Attributes:
        game: OpenSpiel's own object.
        name: its short name.
        title: its long name.
        players: the number of agents.
        public: whether nothing is hidden from any agent, so that all may know the whole history.
        simultaneous: whether agents act at the same time.
        chance: whether chance plays a part.
        utility: "zero_sum", "constant_sum", "general_sum" or "identical".
        bounds: the least and the greatest return; None where the game does not know them.
        observes: the texts that it gives for what an agent sees: "observation", "information".
        seeded: whether the game draws from a seed of its own, its parameter `rng_seed`.
    """

    game: Any
    name: str
    title: str
    players: int
    public: bool
    simultaneous: bool
    chance: bool
    utility: str
    bounds: tuple[float, float] | None
    observes: tuple[str, ...]
    seeded: bool

    @property
    def parameters(self) -> dict[str, Any]:
        """The game's parameters, with defaults."""
        given = self.game.get_parameters()
        defaults = self.game.get_type().parameter_specification
        return {**defaults, **given, "players": self.players}

    def with_seed(self, seed: int) -> Any:
        """The game as it draws for this seed."""
        if not self.seeded:
            return self.game
        import pyspiel

        return pyspiel.load_game(self.name, {**self.game.get_parameters(), "rng_seed": seed % 2**31})


def package() -> Any:
    """The module `pyspiel`; None if it is not installed."""
    try:
        import pyspiel
    except ImportError:
        return None
    return pyspiel


def seats(text: str) -> int | None:
    """How many players the text of a game asks for; None if it does not say."""
    found = _SEATS.search(text)
    return int(found[1]) if found else None


@functools.lru_cache(maxsize=1024)
def load(text: str) -> LoadedGame:
    """Return the game that a text such as "hanabi(players=3)" means.

    Raises:
        SetupError: the package is missing.
        PluginError: there is no such game, its parameters are wrong, or it is not for two to ten agents.
    """
    pyspiel = package()
    if pyspiel is None:
        raise SetupError("the task openspiel needs the package open_spiel", hint=INSTALL)
    found = _GAME.fullmatch(text)
    types = {kind.short_name: kind for kind in pyspiel.registered_games()}
    if found is None or found[1] not in types:
        what = f"OpenSpiel has no game {text[:60]!r}" if found else f"{text[:60]!r} is not a game"
        playable = [name for name, kind in types.items() if refusal(kind, pyspiel) is None]
        form = "" if found else " Write a name, or name(parameter=value,…)."
        raise _mistake(what, near(found[1] if found else text.partition("(")[0][:60], playable) + form)
    kind = types[found[1]]
    if (why := refusal(kind, pyspiel)) is not None:
        raise _mistake(f"{kind.short_name} {why}", "The task plays games of two to ten agents.")
    most = min(kind.max_num_players, PLAYERS[-1])
    if (count := seats(text)) is not None and not kind.min_num_players <= count <= most:
        least = max(2, kind.min_num_players)
        many = f"{least} to {most}" if least < most else f"{most}"
        raise _mistake(f"{kind.short_name} is for {many} players, found {count}")
    if not kind.default_loadable and (found[2] or "()").strip("( )\t\n") == "":
        hint = f"For example {_NEEDS.get(kind.short_name, f'{kind.short_name}(game=kuhn_poker())')}."
        raise _mistake(f"{kind.short_name} needs parameters", hint)
    if found[2]:
        _try(text, kind, list(types))
    try:
        with _own_words():
            game = pyspiel.load_game(text)
            return _loaded(game, kind, pyspiel)
    except UserError:
        raise
    except Exception as error:
        raise _mistake(f"{text[:80]} cannot be loaded: {_words(str(error))}") from None


@contextlib.contextmanager
def _own_words() -> Iterator[None]:
    """Let what OpenSpiel's C++ code writes to stderr come as a Python warning, each text once.

    Other threads' lines come later, not never.
    """
    try:
        before = os.dup(2)
    except OSError:  # there is no stderr
        yield
        return
    sys.stderr.flush()
    with tempfile.TemporaryFile() as caught:
        os.dup2(caught.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
            caught.seek(0)
            for line in caught.read().decode("utf-8", "replace").splitlines():
                if found := _ISSUES.search(line):
                    message = f"OpenSpiel says that its implementation of {found[1]} has known issues"
                    warnings.warn(message, stacklevel=2)
                elif "OpenSpiel exception: " not in line:  # those are raised too
                    print(line, file=sys.stderr)


def refusal(kind: Any, pyspiel: Any) -> str | None:
    """Why a kind of game cannot be played, whatever its parameters."""
    if kind.dynamics == pyspiel.GameType.Dynamics.MEAN_FIELD:
        return "is a mean-field game: it has a population and no agents"
    return "is for a single player" if kind.max_num_players < PLAYERS[0] else None


def _try(text: str, kind: Any, games: list[str]) -> None:
    command = [sys.executable, "-c", _TRIAL, text]
    try:
        tried = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise _mistake(f"{text[:80]} takes more than {_SECONDS} s to set up", "Make its parameters smaller.") from None
    if tried.returncode or "Failed to" in tried.stderr:
        lines = [line for line in tried.stderr.splitlines() if line.strip()]
        first = next((line for line in lines if "exception:" in line or "ailed" in line), lines[-1] if lines else "")
        known = sorted(kind.parameter_specification)
        unknown = re.search(r"Unknown parameter '(\w+)'", first)
        if unknown:
            raise _mistake(f"{kind.short_name} has no parameter {unknown[1]!r}", near(unknown[1], known))
        if other := re.search(r"Unknown game '(\w+)'", first):
            raise _mistake(f"OpenSpiel has no game {other[1]!r}", near(other[1], games))
        listed = f"Its parameters: {', '.join(f'{k}={_default(kind, k)}' for k in known)[:400]}." if known else ""
        raise _mistake(f"{text[:80]} cannot be played: {_words(first) or 'OpenSpiel ends'}", listed or None)


def _default(kind: Any, name: str) -> str:
    value = kind.parameter_specification[name]
    return "…" if isinstance(value, dict) else repr(value)[:40]


def _loaded(game: Any, kind: Any, pyspiel: Any) -> LoadedGame:
    own = game.get_type()
    if game.num_players() not in PLAYERS:
        hint = "Set its parameters for two players or more." if kind.max_num_players > 1 else None
        raise _mistake(f"{kind.short_name} is here for {game.num_players()} players; agents are two to ten", hint)
    texts = {"observation": own.provides_observation_string, "information": own.provides_information_state_string}
    hidden = pyspiel.GameType.Information.IMPERFECT_INFORMATION
    try:
        bounds: tuple[float, float] | None = (game.min_utility(), game.max_utility())
    except Exception:
        bounds = None
    if bounds is not None and not (all(map(math.isfinite, bounds)) and bounds[0] < bounds[1]):
        bounds = None
    return LoadedGame(
        game=game,
        name=kind.short_name,
        title=own.long_name,
        players=game.num_players(),
        public=own.information != hidden,
        simultaneous=own.dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS,
        chance=own.chance_mode != pyspiel.GameType.ChanceMode.DETERMINISTIC,
        utility=own.utility.name.lower(),
        bounds=bounds,
        observes=tuple(name for name, provided in texts.items() if provided),
        seeded=str(own.parameter_specification.get("rng_seed", ""))
        == str(game.get_parameters().get("rng_seed", own.parameter_specification.get("rng_seed"))),
    )


def _words(text: str) -> str:
    if "CHECK_TRUE(fd_)" in text:
        return "the file that it names cannot be opened"
    line = _NOISE.sub("", text.strip().split("\n")[0])
    return "".join(char if char.isprintable() else " " for char in line)[:200]


def _mistake(what: str, hint: str | None = None) -> PluginError:
    return PluginError(what, hint=hint, at=("game",))
