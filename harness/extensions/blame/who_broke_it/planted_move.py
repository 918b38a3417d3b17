"""A move in place of another one that an agent could have made as well: in the same format, with others' values."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.api import Action, Move, Policy, PolicyWrapper, Turn

_NUMBER = re.compile(r'(?<![\w."])\d+(?![\w"]|\.\d)')
"""Whole numbers that are no names, no keys and no parts of others."""
_MIN_DRAWN_DIGITS = 5
"""Digits from which on a number was drawn: another agent's would be its own."""
_NAMES = ("call", "target_id", "path", "action")
"""Keys whose values say what is done, or to whom."""


class Erring(PolicyWrapper):
    """Plays as another policy does, but for one turn, in which it makes a plausible move.

    Args:
        of: the policy.
        at: the agent's own turn in which it errs, from 0.
        moves: those of the episode without the fault.
        seed: of the move.
    """

    def __init__(self, of: Policy, at: int, moves: Sequence[Move], seed: int) -> None:
        self.wrap(of)
        self.at, self.moves, self.seed = at, moves, seed

    def instead(self, turn: Turn, action: Action, now: int) -> Action:
        """Return the other policy's action, or the plausible one; the former where the form does not allow that."""
        if now != self.at:
            return action
        other = plausible(turn, action, self.moves, random.Random(self.seed))
        return other if turn.reply.allows(other) else action


def plausible(turn: Turn, action: Action, moves: Iterable[Move], rng: random.Random) -> Action:
    """Another action in the same format.

    Another option, where the form lists them. In texts another number of as many digits takes the place of one: one
    that agents say in turns of this kind, or where numbers are long, and so drawn, another one. A text without numbers
    is one that another agent sends in such a turn.
    """
    if turn.reply.options:
        others = [one for one in turn.reply.options if one != action]
        return rng.choice(others) if others else action
    said = [move.action for move in moves if move.turn == turn.name and move.action != action]
    if not action and isinstance(action, Mapping):  # it sends nothing: what others send, to those it sends to elsewhere
        own = [move.action for move in moves if move.agent == turn.agent and isinstance(move.action, Mapping)]
        to = next((list(one) for one in own if one), [])
        texts = [text for one in said for text in _texts(one)]
        return dict.fromkeys(to, rng.choice(texts)) if to and texts else action
    texts = list(dict.fromkeys(text for one in said for text in _texts(one)))
    changed: dict[str, str] = {}
    for text in dict.fromkeys(_texts(action)):
        changed[text] = _another(text, texts, rng)
    return _with(action, changed, [one for each in said for one in _numbers(each)], rng)


def _another(text: str, texts: Sequence[str], rng: random.Random) -> str:
    found = [*_NUMBER.finditer(text)]
    if not found:
        others = [
            one for one in texts if one != text and not any(len(n) >= _MIN_DRAWN_DIGITS for n in _NUMBER.findall(one))
        ]
        return rng.choice(others) if others else text
    at = rng.choice(found)
    old = at[0]
    if len(old) >= _MIN_DRAWN_DIGITS:
        new = str(rng.randint(10 ** (len(old) - 1), 10 ** len(old) - 1))
    else:
        pool = [n for one in (text, *texts) for n in _NUMBER.findall(one) if n != old and len(n) == len(old)]
        new = rng.choice(pool) if pool else old
    return text[: at.start()] + new + text[at.end() :]


def _texts(value: Any, key: str = "") -> list[str]:
    """The texts of an action, without names of calls and of those whom they reach."""
    if isinstance(value, Mapping):
        return [text for name, one in value.items() for text in _texts(one, str(name))]
    if isinstance(value, list | tuple):
        return [text for one in value for text in _texts(one, key)]
    return [value] if isinstance(value, str) and key not in _NAMES else []


def _numbers(value: Any) -> list[int | float]:
    if isinstance(value, Mapping):
        return [number for one in value.values() for number in _numbers(one)]
    if isinstance(value, list | tuple):
        return [number for one in value for number in _numbers(one)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []


def _with(
    value: Any, changed: Mapping[str, str], numbers: Sequence[int | float], rng: random.Random, key: str = ""
) -> Any:
    """The action with these texts in place of others, and numbers that others say in place of its own."""
    if isinstance(value, Mapping):
        return {name: _with(one, changed, numbers, rng, str(name)) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_with(one, changed, numbers, rng, key) for one in value]
    if isinstance(value, str) and key not in _NAMES:
        return changed.get(value, value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        others = [one for one in numbers if one != value]
        return rng.choice(others) if others else value
    return value
