"""What agents read about a game: its rules in our words, and what its type says."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .loading import LoadedGame

_FILE = Path(__file__).with_name("rules.md")
_KEYS = ("observes", "cooperative", "returns", "memory", "bounds")
_MAX_PAYOFF_ACTIONS = 6
"""Actions a player for which a table of payoffs is written out."""
_WRAPPED = {
    "repeated_game": ("stage_game", "The same game is played {num_repetitions} times; returns add up. Each time:"),
    "turn_based_simultaneous_game": (
        "game",
        "All choose for the same step, but one after another: choices that others have made for it are not shown.",
    ),
    "misere": ("game", "The game is played with its aim turned around: what would be a gain is a loss."),
    "zerosum": ("game", "From each return the mean of all players' returns is subtracted."),
}


@dataclass(frozen=True)
class RulesSection:
    """A section of `rules.md`: rules, which text an agent sees, whether all can reach the greatest return at once,
    whether all get the same return where the game's type does not say so, whether the text leaves out what an agent has
    to remember, and whether no play reaches the bounds that the game states."""

    rules: str
    observes: str | None = None
    cooperative: bool = False
    same: bool = False
    remembered: bool = False
    loose: bool = False


@functools.lru_cache(maxsize=1)
def described() -> dict[str, RulesSection]:
    """Game → its section."""
    sections = {}
    for section in _FILE.read_text("utf-8").split("\n## ")[1:]:
        name, *lines = section.strip().split("\n")
        keys = dict(itertools.takewhile(lambda pair: len(pair) == 2, (line.split(": ", 1) for line in lines)))
        keys = {key: value for key, value in keys.items() if key in _KEYS}
        cooperative = keys.get("cooperative") == "yes"
        same = cooperative or keys.get("returns") == "same"
        paragraphs = "\n".join(lines[len(keys) :]).split("\n\n")
        text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
        sections[name] = RulesSection(text, keys.get("observes"), cooperative, same, "memory" in keys, "bounds" in keys)
    return sections


class _Parameters(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "several"


def rules_of(name: str, parameters: dict[str, Any]) -> str:
    """The rules of a game in our words; "" for a game that has none here."""
    if name in _WRAPPED:
        key, lead = _WRAPPED[name]
        inner = parameters.get(key) or {}
        rest = rules_of(str(inner.get("name", "")), {"players": parameters.get("players"), **inner})
        return f"{lead.format_map(_Parameters(parameters))} {rest}".strip()
    found = described().get(name)
    return found.rules.format_map(_Parameters(parameters)) if found else ""


def about(loaded: LoadedGame) -> list[str]:
    """What the game's type says, in sentences."""
    utility = {
        "zero_sum": "What one player wins, the others lose.",
        "constant_sum": "What one player wins, the others lose.",
        "identical": "All players get the same return.",
        "general_sum": "Each player has a return of its own.",
    }
    sentences = [
        "All players act at the same time." if loaded.simultaneous else "Players act one at a time.",
        "Nothing is hidden." if loaded.public else "Something is hidden: you see only what you may know.",
        *(["Chance plays a part."] if loaded.chance else []),
        utility["identical" if loaded.name in described() and described()[loaded.name].same else loaded.utility],
    ]
    if (bounds := reachable(loaded)) is None:
        sentences.append("You want a large return.")
    else:
        least, greatest = bounds
        sentences.append(f"Returns lie between {least:g} and {greatest:g}, and you want a large one.")
    return sentences


def reachable(loaded: LoadedGame) -> tuple[float, float] | None:
    """The bounds of returns that the game states, if play can reach both; None where it cannot, or they are unknown."""
    inner = loaded.parameters.get(_WRAPPED[loaded.name][0]) or {} if loaded.name in _WRAPPED else {}
    ours = described().get(str(inner.get("name", loaded.name)))
    return None if ours is not None and ours.loose else loaded.bounds


@functools.lru_cache(maxsize=256)
def payoffs(loaded: LoadedGame, seat: int) -> tuple[str, ...]:
    """The payoffs of a small matrix game of two players, one line for each pair of choices, as one of them sees it."""
    game = loaded.game
    if loaded.name == "repeated_game":
        import pyspiel

        game = pyspiel.load_game(game.get_parameters()["stage_game"]["name"], _inner(game))
    state = game.new_initial_state()
    if game.num_players() != 2 or game.max_game_length() != 1 or not state.is_simultaneous_node():
        return ()
    actions = [state.legal_actions(player) for player in (0, 1)]
    if max(map(len, actions)) > _MAX_PAYOFF_ACTIONS:
        return ()
    lines = []
    for mine, theirs in itertools.product(actions[seat], actions[1 - seat]):
        end = state.clone()
        end.apply_actions([mine, theirs] if seat == 0 else [theirs, mine])
        names = state.action_to_string(seat, mine), state.action_to_string(1 - seat, theirs)
        got = end.returns()
        lines.append(f"you {names[0]}, the other {names[1]}: you get {got[seat]:g}, the other {got[1 - seat]:g}")
    return tuple(lines)


def _inner(game: Any) -> dict[str, Any]:
    stage = dict(game.get_parameters()["stage_game"])
    stage.pop("name", None)
    return stage
