"""What becomes of the first turns of each model: how many were answered, parsed and cut off, while a run plays.

The turns that began first are counted together once all of them have ended, so that quick replies weigh no more than
slow ones: the first 20 turns of a model, then the first 40, 80, ….

Next: `harness.runtime.reply_advice`, which says where a share is too small, and why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness.api import Move
from harness.api.errors import SetupError, near
from harness.replies.parse_guard import CUT_OFF
from harness.storage import UNFINISHED

FIRST: Final = 20
"""How many turns of a model are looked at first."""
SHARES: Final = ("parsed", "answered", "complete")
"""What `--stop_unless` may ask for, as shares of turns: parsed, answered; and of replies: not cut off."""
_EXAMPLES, _MAX_CHARS = 20, 2_000


def read_shares(text: str) -> dict[str, float]:
    """Read `parsed=20%,complete=0.5`: least shares by name. Raises `ValueError`."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = (word.strip() for word in part.partition("="))
        number = re.fullmatch(r"(\d{1,3}(?:\.\d{1,9})?) ?%|([01]?\.\d{1,9}|[01])", value, re.ASCII)
        least = -1.0 if number is None else float(number[1]) / 100 if number[1] else float(number[2])
        if name not in SHARES or name in found or not 0 <= least <= 1:
            other = " (complete=70% for at most 30 % truncated)" if name == "truncated" else ""
            what = f"takes {', '.join(SHARES)}, each once with the least share of turns, as in parsed=20%"
            raise ValueError(f"{what}, found {part.strip()!r:.40}{other}")
        found[name] = least
    return found


def check_shares(shares: Any) -> None:
    """Raise `SetupError` for what is no mapping of `SHARES` to numbers from 0 to 1."""
    named: list[tuple[Any, Any]] = [*shares.items()] if isinstance(shares, Mapping) else [(shares, None)]
    for name, share in named:
        if name not in SHARES:
            message = f"stop_unless asks for a share of turns {', '.join(SHARES)}, found {name!r:.40}"
            raise SetupError(message, hint=near(str(name), SHARES) or None)
        if type(share) not in (int, float) or not 0 <= share <= 1:
            raise SetupError(f"stop_unless: {name} must be a share from 0 to 1, found {share!r:.40}")


@dataclass(frozen=True, slots=True)
class UnreadReply:
    """A reply that was not parsed: its condition and turn, why, and (the beginning of) its text."""

    condition: str
    turn: str
    error: str
    text: str
    cut_off: bool
    tokens: int | None


@dataclass(slots=True)
class TurnCounts:
    """What became of turns in which a model was asked; `complete`: answered by a reply that was not cut off."""

    asked: int = 0
    answered: int = 0
    parsed: int = 0
    complete: int = 0
    unread: list[UnreadReply] = field(default_factory=list)

    def __add__(self, other: TurnCounts) -> TurnCounts:
        return TurnCounts(
            self.asked + other.asked,
            self.answered + other.answered,
            self.parsed + other.parsed,
            self.complete + other.complete,
            [*self.unread, *other.unread][:_EXAMPLES],
        )

    def share(self, name: str) -> float:
        """One of `SHARES`: of turns, and `complete` of answered ones."""
        whole = self.answered if name == "complete" else self.asked
        return getattr(self, name) / whole if whole else 1.0

    def add(self, condition: str, move: Move) -> None:
        """Count a turn that has ended."""
        if not move.was_asked:
            return
        self.asked += 1
        if not move.calls:
            return
        last = move.calls[-1]
        cut_off = last.finish_reason == CUT_OFF
        self.answered += 1
        self.complete += not cut_off
        if move.error_kind is None:
            self.parsed += 1
        elif move.error_kind == "parse" and len(self.unread) < _EXAMPLES:
            text, error = last.shown[:_MAX_CHARS], (move.error or "")[:_MAX_CHARS]
            self.unread.append(UnreadReply(condition, move.turn, error, text, cut_off, last.output_tokens))


class _Turns:
    """The turns of one model in the order in which they began, in parts: the first 20, the next 20, 40, 80, …"""

    def __init__(self) -> None:
        self.begun = self.complete_parts = 0
        self.parts: list[tuple[list[int], TurnCounts]] = []


class TurnShares:
    """Counts the turns of each model in one process.

    Args:
        report: called with a model and all that is known of its first turns, whenever that has doubled.
    """

    def __init__(self, report: Callable[[str, TurnCounts], None]) -> None:
        self._report = report
        self._models: dict[str, _Turns] = {}
        self._open: dict[tuple[str, str], tuple[str, int]] = {}

    def begin(self, model: str, episode: str, agent: str) -> None:
        """A turn begins: an agent has one at a time."""
        turns = self._models.get(model)
        if turns is None:
            turns = self._models[model] = _Turns()
        self._open[episode, agent] = model, turns.begun
        turns.begun += 1

    def end(self, episode: str, condition: str, move: Move) -> None:
        """A turn has ended; that of a policy, and a part of one, change nothing."""
        if move.error_kind == UNFINISHED or (open_turn := self._open.pop((episode, move.agent), None)) is None:
            return
        model, number = open_turn
        turns, part = self._models[model], (number // FIRST).bit_length()
        while len(turns.parts) <= part:
            turns.parts.append(([0], TurnCounts()))
        ended, counts = turns.parts[part]
        ended[0] += 1
        counts.add(condition, move)
        if part == turns.complete_parts and ended[0] == FIRST << max(part - 1, 0):
            while turns.complete_parts < len(turns.parts) and self._is_whole(turns, turns.complete_parts):
                turns.complete_parts += 1
            self._report(model, _sum(turns.parts[: turns.complete_parts]))

    @staticmethod
    def _is_whole(turns: _Turns, part: int) -> bool:
        return turns.parts[part][0][0] == FIRST << max(part - 1, 0)

    def report_all(self) -> None:
        """Report the models that had fewer than 20 turns: none follows."""
        for model, turns in self._models.items():
            if not turns.complete_parts and turns.parts:
                self._report(model, _sum(turns.parts))


def _sum(parts: list[tuple[list[int], TurnCounts]]) -> TurnCounts:
    total = TurnCounts()
    for _, counts in parts:
        total += counts
    return total
