"""Which environments the installed TextArena has, and why some of them cannot be played here.

Nothing here imports TextArena (2 s): the names are read from the file in which the package registers them.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import functools
import importlib.metadata
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path

from harness.api.errors import DataError, PluginError, SetupError

HINT = 'pip install "mas-eval-harness[textarena]"'

MODELS = ("Debate", "GuessWho", "ScenarioPlanning", "TwentyQuestions")
"""Families in which TextArena itself asks models behind OpenRouter, as judges or as the other side."""

CORPORA = {
    "words": (
        "Codenames",
        "DontSayIt",
        "Hangman",
        "LetterAuction",
        "SpellingBee",
        "WordChains",
        "WordLadder",
        "WordSearch",
        "Wordle",
    ),
    "averaged_perceptron_tagger_eng": ("Codenames", "DontSayIt", "Wordle"),
}
"""Data of NLTK → the families that read it."""

FILES = {"ScorableGames": "games_descriptions", "UsedCarNegotiation": "instructions"}
"""Families that read data of their own → where it would be; release 0.7.4 ships without it."""

PACKAGES = {"BabyAiText": "babyai_text"}

BROKEN = {
    ("CharacterConclave", "0.7.4"): "every action fails in it (`State.add_observation` lacks an argument)",
    ("Breakthrough-v0-blind-train", "0.7.4"): "its view shows a board, and the game sends none",
    ("LightsOut-v0-train", "0.7.4"): "its view shows a board, and the game sends none",
    ("DontSayIt-v0-unlimited", "0.7.4"): "every action fails in it (it compares a number of turns with none)",
}
"""(family, name, or name without its variant; release of TextArena) → what is wrong with it there."""

UNORDERED = ("Crosswords", "LogicPuzzle", "WordChains", "WordSearch")
"""Families that go through sets of texts, whose order is that of Python's hashes: games give them sorted sets."""

PLAYERS = {
    **dict.fromkeys(("Briscola", "Golf"), (2, 4)),
    **dict.fromkeys(("LiarsDice", "Poker"), (2, 15)),
    **dict.fromkeys(("MarketEntryGame", "PublicGoodsGame"), (2, 15)),
    **dict.fromkeys(("ThreePlayerGOPS", "ThreePlayerIPD", "ThreePlayerTicTacToe"), (3, 3)),
    **dict.fromkeys(("Codenames", "SettlersOfCatan"), (4, 4)),
    "Santorini": (2, 3),
    "SecretMafia": (6, 15),
    "Snake": (2, 15),
    "Surround": (2, 15),
    "Taboo": (4, 14),
}
"""Families with other than two players → fewest and most; what they do not check themselves, they mean."""


@dataclass(frozen=True, slots=True)
class EnvironmentEntry:
    """An environment of TextArena.

    Attributes:
        name: as TextArena registers it.
        family: the folder with its code.
        variant: "" as TextArena plays it by default; "-train" and "-raw" are other views of the same game.
        file: its code.
    """

    name: str
    family: str
    variant: str
    file: Path

    @property
    def players(self) -> tuple[int, int]:
        """The fewest and the most players."""
        if self.family in PLAYERS:
            return PLAYERS[self.family]
        code = self.file.read_text("utf-8", "replace") if self.file.is_file() else ""
        return (1, 1) if "SinglePlayerState" in code else (2, 2)

    def problem(self) -> str | None:
        """Why it cannot be played here, in words; None if nothing is known against it."""
        if self.family in MODELS:
            return "it asks models of its own over the network (OpenRouter)"
        if not self.file.is_file():
            return f"TextArena {version()} registers it and lacks its code"
        if line := _wrong_line(self.file):
            python = ".".join(map(str, sys.version_info[:2]))
            return f"its code is not Python {python} ({self.file.parent.name}/{self.file.name}, line {line})"
        if self.family in FILES and not (self.file.parent / FILES[self.family]).is_dir():
            return f"TextArena {version()} lacks its data ({self.family}/{FILES[self.family]})"
        if self.family in PACKAGES and importlib.util.find_spec(PACKAGES[self.family]) is None:
            return f"it needs the package {PACKAGES[self.family]}, which no package registry has"
        lacking = [data for data, families in CORPORA.items() if self.family in families and not _has(data)]
        if lacking:
            return f"it needs data of NLTK: `python -m nltk.downloader {' '.join(lacking)}` fetches it once"
        names = (self.family, self.name, self.name.removesuffix(self.variant))
        return next((BROKEN[name, version()] for name in names if (name, version()) in BROKEN), None)


def installed() -> bool:
    """Whether the package is there; imports nothing."""
    try:
        return importlib.util.find_spec("textarena") is not None
    except ValueError:  # the process has blocked it
        return False


def version() -> str:
    """The version of the installed package. Raises `SetupError` if it is missing; imports nothing."""
    if not installed():
        raise SetupError("the task textarena needs the package textarena", hint=HINT)
    return importlib.metadata.version("textarena")


@functools.cache
def entries() -> dict[str, EnvironmentEntry]:
    """Name → environment, in the package's order. Raises `SetupError` if the package is missing."""
    version()
    spec = importlib.util.find_spec("textarena")
    assert spec is not None and spec.origin is not None
    folder = Path(spec.origin).parent / "envs"
    found: dict[str, EnvironmentEntry] = {}
    for call in ast.walk(ast.parse((folder / "__init__.py").read_text("utf-8"))):
        given = {word.arg: word.value for word in call.keywords} if isinstance(call, ast.Call) else {}
        name, code, views = _text(given.get("id")), _text(given.get("entry_point")), given.get("wrappers")
        if not name or not code or ":" not in code:
            continue
        module = code.partition(":")[0].split(".")
        names = [_text(key) for key in views.keys] if isinstance(views, ast.Dict) else []
        names = ["", *(one for one in names if one != "default"), *(["-raw"] if names else [])]
        for variant in names:
            file = folder.joinpath(*module[2:]).with_suffix(".py")
            found[name + variant] = EnvironmentEntry(name + variant, module[2], variant, file)
    return found


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


@functools.cache
def _wrong_line(file: Path) -> int:
    """The line of a file at which this Python cannot read it; 0 if it can."""
    try:
        ast.parse(file.read_bytes())
    except SyntaxError as error:
        return error.lineno or 1
    return 0


@functools.cache
def _has(data: str) -> bool:
    """Whether NLTK has this data here."""
    import nltk

    for kind in ("corpora", "taggers"):
        with contextlib.suppress(LookupError):
            nltk.data.find(f"{kind}/{data}")
            return True
    return False


def entry(name: str) -> EnvironmentEntry:
    """The environment of this name. Raises `PluginError` with near matches, `SetupError` without the package."""
    known = entries()
    if name in known:
        return known[name]
    base = [one.name for one in known.values() if not one.variant]
    close = difflib.get_close_matches(name, base, n=3, cutoff=0.5)
    meant = f"Did you mean {' or '.join(close)}? " if close else ""
    hint = f"{meant}`harness list tasks --textarena [WORD]` lists the {len(base)} environments."
    raise PluginError(f"TextArena {version()} has no environment {name!r:.80}", hint=hint, at=("env",))


def listed(word: str) -> list[tuple[str, str, str]]:
    """(name, players, variants, or why it cannot be played) of every environment with `word` in its name.

    Raises:
        SetupError: the package is missing.
        DataError: no name has it.
    """
    known = [one for one in entries().values() if not one.variant]
    lines = []
    for one in known:
        if word.casefold() in one.name.casefold():
            few, most = one.players
            players = f"{few}" if few == most else f"{few} to {most}"
            problem = one.problem()
            lines.append((one.name, players, f"cannot be played: {problem}" if problem else ""))
    if not lines:
        raise DataError(f"no environment of TextArena has {word!r} in its name", hint=f"There are {len(known)}.")
    return lines
