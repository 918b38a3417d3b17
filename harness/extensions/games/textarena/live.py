"""A game of TextArena in play, and its frozen states."""

from __future__ import annotations

import contextlib
import importlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

from harness.api.errors import PluginError, SetupError
from harness.extensions.games.environments import OwnChance

from . import catalog

LOSS_REWARD = -1.0
"""The reward of a player who loses, in all environments."""
MAX_INVALID_ACTIONS = 10
"""Invalid actions in a row after which a player has lost: some environments would ask it again forever."""
_END = 20_000
"""Characters of what a player has not read when the game ends."""


@dataclass(frozen=True, slots=True)
class Position:
    """One state of a game, as its environment showed it; nothing changes it.

    Attributes:
        before: the state before, and what was done in it; None at the start.
        turns: how many actions there were.
        player: whose turn it is, from 0.
        text: what the environment shows this player, as its own wrappers write it.
        news: what the player sees for the first time, each {"from": "GAME" or the player's name, "text", "kind"}.
        rewards: player → reward, at the end; None before.
        invalid: how many actions of each player were none, as the environment says.
        roles: player → its secret role; empty in games without any.
        wrong: how many actions of the last player were invalid in a row, up to now.
        reason: why the game ended, in the environment's words.
        unread: player → what it was shown since its last turn, at the end of the game.
    """

    before: tuple[Position, str] | None = field(repr=False, compare=False)
    turns: int
    player: int
    text: str
    news: tuple[Mapping[str, str], ...] = ()
    rewards: Mapping[int, float] | None = None
    invalid: tuple[int, ...] = ()
    wrong: int = 0
    roles: Mapping[int, str] = field(default_factory=dict)
    reason: str = ""
    unread: Mapping[int, str] = field(default_factory=dict, compare=False)

    def actions(self) -> list[str]:
        """All actions before it, in order."""
        actions: list[str] = []
        at: Position | None = self
        while at is not None and at.before is not None:
            at, action = at.before
            actions.append(action)
        return actions[::-1]


@dataclass(frozen=True, slots=True)
class _Display:
    """What the environment shows: whose turn it is, its text (or, without wrappers, messages), what of it is new, and
    at the end the rewards."""

    player: int
    text: Any
    news: Sequence[Any]
    rewards: Mapping[int, Any] | None


class LiveGame:
    """The one mutable environment of an episode.

    It is at its newest position; continuing from an older one rebuilds it there. Environments draw from Python's and
    NumPy's global generators, so each game has their states for itself and leaves those of all others as they were.

    Args:
        name: the environment.
        players: how many.
        seed: of its chance. TextArena seeds Python's generator with it; NumPy's is seeded alike.
        options: parameters of the environment, over those that its name stands for.
    """

    def __init__(self, name: str, players: int, seed: int, options: Mapping[str, Any]) -> None:
        self.name, self.players, self.seed, self.options = name, players, seed, dict(options)
        self._environment: Any = None
        self._chance = OwnChance(seed)
        self._at: Position | None = None
        self._wrong = False

    def start(self) -> Position:
        """The first position. Raises `SetupError` or `PluginError` if the environment cannot be made so."""
        try:
            self._reset()
            with self._chance():
                shown = self._look()
            self._at = self._position(None, shown)
            return self._at
        except ImportError as error:
            hint = "`harness list tasks --textarena` names what each environment lacks."
            raise SetupError(f"TextArena's {self.name} cannot be imported: {error}"[:300], hint=hint) from error
        except AssertionError as error:
            message = f"TextArena's {self.name} does not start with {self.players} players: {error}"
            raise PluginError(message[:300], at=("players",)) from error
        except Exception as error:
            what = next(filter(str.strip, str(error).splitlines()), "")
            message = f"TextArena's {self.name} cannot start: {type(error).__name__}: {what.strip()}"
            raise PluginError(message[:300], hint="`harness list tasks --textarena` says more.") from error

    def after(self, position: Position, action: str) -> Position:
        """The position after an action of the player whose turn it is.

        An action at which the environment itself fails counts as an empty one, and as invalid. If it fails at an empty
        one too, or the player has sent `MAX_INVALID_ACTIONS` invalid actions in a row, the game ends there: the player
        has
        the least reward, and the others have none.
        """
        if self._at is not position:
            self.go_to(position)
        try:
            shown = self._do(action)
        except Exception:
            self._at = None
            return self.after_failure(position)
        return self._reached(position, action, shown)

    def after_failure(self, position: Position) -> Position:
        """The position after an action at which the environment has failed."""
        if self._at is not position:
            self.go_to(position)
        self._at = None
        try:
            shown = self._do("")
        except Exception as error:
            return lost(position, error)
        self._wrong = True
        return self._reached(position, "", shown)

    def _reached(self, position: Position, action: str, shown: _Display) -> Position:
        found = self._position((position, action), shown)
        if found.rewards is None and found.wrong >= MAX_INVALID_ACTIONS:
            found = _lost(
                found, position.player, f"Player {position.player} sent {MAX_INVALID_ACTIONS} invalid actions in a row."
            )
        self._at = found
        return found

    def _reset(self) -> None:
        self._at = None
        family = catalog.entry(self.name).family
        with self._chance(), _no_downloads(family):  # what modules draw while they are imported is not part of the game
            textarena = importlib.import_module("textarena")
            code = textarena.envs.registration.ENV_REGISTRY[self.name].entry_point
            module = importlib.import_module(code.partition(":")[0])
        if family in catalog.UNORDERED:
            module.set = _Sorted  # type: ignore[attr-defined]
        self._chance = OwnChance(self.seed)
        with self._chance(), _no_downloads(family):
            self._environment = textarena.make(self.name, **self.options)
            self._environment.reset(num_players=self.players, seed=self.seed)
            self._watch(self._environment.state)

    def _watch(self, state: Any) -> None:
        """Notice invalid actions, and end a game whose players are all out: TextArena would seek the next forever."""
        judge, step = state.set_invalid_move, state.step

        def noticed(*args: Any, **kwargs: Any) -> Any:
            self._wrong = True
            return judge(*args, **kwargs)

        def bounded(*args: Any, **kwargs: Any) -> Any:
            if not state.done and len(set(getattr(state, "elimination_order", ()))) >= self.players:
                state.set_draw(reason="All players are out of the game.")
            return step(*args, **kwargs)

        state.set_invalid_move, state.step = noticed, bounded

    def go_to(self, position: Position) -> None:
        """Play the game again up to this position."""
        self._reset()
        with self._chance():
            self._environment.get_observation()
            for action in position.actions():
                self._environment.step(action)
                self._environment.get_observation()
        self._at = position

    def _do(self, action: str) -> _Display:
        """Act, and read the new observations. Raises whatever the environment raises."""
        with self._chance():
            self._wrong = False
            done, _ = self._environment.step(action)
            return self._look(bool(done))

    def _look(self, done: bool = False) -> _Display:
        state = self._environment.state
        if done:
            rewards = state.close()[0]
            return _Display(state.current_player_id, "", [], rewards if isinstance(rewards, Mapping) else {})
        news = list(state.observations[state.current_player_id])
        player, text = self._environment.get_observation()
        return _Display(player, text, news, None)

    def _position(self, before: tuple[Position, str] | None, shown: _Display) -> Position:
        last = before[0] if before else None
        invalid, wrong = last.invalid if last else (0,) * self.players, 0
        if last and self._wrong:
            invalid = _more(invalid, last.player)
            wrong = 1 + (last.wrong if last.before and last.before[0].player == last.player else 0)
        info = [self._environment.state.game_info.get(i, {}) for i in range(self.players)]
        own = [str(one.get("role", "Player")) for one in info]
        news = tuple(map(self._message, shown.news))
        text = shown.text
        if not isinstance(text, str):  # without wrappers, what is new
            text = "".join("\n[{from}] {text}".format_map(self._message(message)) for message in text)
        rewards = shown.rewards
        return Position(
            before=before,
            turns=last.turns + 1 if last else 0,
            player=int(shown.player),
            text=text,
            news=news,
            rewards=None if rewards is None else {i: _number(rewards.get(i, 0)) for i in range(self.players)},
            invalid=invalid,
            wrong=wrong,
            roles={} if all(role.startswith("Player") for role in own) else dict(enumerate(own)),
            reason=str(next((one["reason"] for one in info if one.get("reason")), "")),
            unread={} if rewards is None else self._unread(),
        )

    def _unread(self) -> dict[int, str]:
        shown = {i: map(self._message, self._environment.state.observations.get(i, ())) for i in range(self.players)}
        return {i: "\n".join(f"[{one['from']}] {one['text']}" for one in new)[-_END:] for i, new in shown.items()}

    def _message(self, message: Sequence[Any]) -> dict[str, str]:
        """A message of the environment; some of release 0.7.4 have their parts in another order."""
        who, text, kind = message
        if not isinstance(text, str):
            kind, who, text = message
        return {"from": self._speaker(who), "text": str(text), "kind": str(getattr(kind, "name", ""))}

    def _speaker(self, who: Any) -> str:
        """As TextArena's wrappers name senders."""
        return (
            "GAME"
            if not isinstance(who, int) or who < 0
            else str(self._environment.state.role_mapping.get(who, f"Player {who}"))
        )


class _Sorted(set[Any]):
    """A set whose members come in order: that of texts differs between processes, and so would the game."""

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(super().__iter__(), key=repr))


def _no_downloads(family: str) -> contextlib.AbstractContextManager[Any]:
    """Without data of NLTK its games are refused; with it, TextArena would still ask for it at every start."""
    reads = any(family in families for families in catalog.CORPORA.values())
    return mock.patch("nltk.download", lambda *_, **__: True) if reads else contextlib.nullcontext()


def lost(position: Position, error: Exception) -> Position:
    """The end of a game whose environment fails whatever is done: the player whose turn it is has lost."""
    invalid = _more(position.invalid, position.player)
    failed = replace(position, before=(position, ""), turns=position.turns + 1, invalid=invalid)
    return _lost(failed, position.player, f"The environment failed: {type(error).__name__}")


def _lost(position: Position, player: int, reason: str) -> Position:
    """The position as the end of a game that this player has lost; the others have neither won nor lost."""
    rewards = {i: LOSS_REWARD if i == player else 0.0 for i in range(len(position.invalid))}
    return replace(position, rewards=rewards, text="", news=(), reason=reason)


def _number(reward: Any) -> float:
    """A reward; the least for one that is not a number, as release 0.7.4 gives for invalid moves in two games."""
    return float(reward) if isinstance(reward, (int, float)) and math.isfinite(reward) else LOSS_REWARD


def _more(invalid: tuple[int, ...], player: int) -> tuple[int, ...]:
    return tuple(count + (i == player) for i, count in enumerate(invalid))
