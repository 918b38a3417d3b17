"""Which games of OpenSpiel there are, and which of them can be played."""

from __future__ import annotations

from typing import Any

from harness.api import DataError, SetupError, UserError

from .loading import INSTALL, PLAYERS, load, package, refusal
from .rules import rules_of
from .skill import scales


def playable() -> list[str]:
    """The games that can be played without parameters, by their short names. Raises `SetupError`."""
    return [name for name, _, _, _, _, why in games("") if not why]


def games(word: str) -> list[tuple[str, str, str, str, str, str]]:
    """(name, players, "open" or "hidden", "rules" if there are some in our words, "ceiling" if the scale of its skill
    has been measured, what keeps it from play) of games.

    Args:
        word: is in the short or the long name of all of them, in any case.

    Raises:
        SetupError: the package is missing.
        DataError: no game has the word in its name.
    """
    pyspiel = package()
    if pyspiel is None:
        raise SetupError("listing OpenSpiel's games needs the package open_spiel", hint=INSTALL)
    kinds = sorted(pyspiel.registered_games(), key=lambda kind: kind.short_name)
    found = [kind for kind in kinds if word.casefold() in f"{kind.short_name} {kind.long_name}".casefold()]
    if not found:
        raise DataError(f"no game of OpenSpiel has {word!r:.80} in its name", hint=f"There are {len(kinds)}.")
    return [_line(kind, pyspiel) for kind in found]


def _line(kind: Any, pyspiel: Any) -> tuple[str, str, str, str, str, str]:
    name, least, most = kind.short_name, max(PLAYERS[0], kind.min_num_players), min(PLAYERS[-1], kind.max_num_players)
    players = f"{least}" if least >= most else f"{least} to {most}"
    sees = "hidden" if kind.information == pyspiel.GameType.Information.IMPERFECT_INFORMATION else "open"
    ceiling = "ceiling" if name in scales() and scales()[name].measures else ""
    try:
        loaded = load(name)
    except UserError as error:
        if (why := refusal(kind, pyspiel)) is not None:
            return name, players if most > 1 else "1", sees, "", "", f"cannot be played: it {why}"
        return name, players, sees, "", "", f"needs parameters. {error.hint or ''}".strip()
    return name, players, sees, "rules" if rules_of(name, loaded.parameters) else "", ceiling, ""
