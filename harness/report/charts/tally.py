"""One pass over a run's journals: what every finished episode used, and what went wrong in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from harness import storage
from harness.errors import DataError
from harness.report import messages as traffic

_TOKENS = ("input", "output", "reasoning", "cached")


@dataclass(slots=True)
class Use:
    """What an episode used.

    Attributes:
        moves, calls: how many there were.
        input, output, reasoning, cached: tokens, of the calls that report them; None if none does. Reasoning tokens are
            among those of output, cached ones among those of input.
        characters: of all replies and actions, for telling long episodes from short ones.
        parse: moves without a readable reply.
        truncated: calls that ended at their token limit.
        limits: moves that a limit of the spec stopped.
        engine: moves that the engine failed.
    """

    moves: int = 0
    calls: int = 0
    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cached: int | None = None
    characters: int = 0
    parse: int = 0
    truncated: int = 0
    limits: int = 0
    engine: int = 0

    @property
    def tokens(self) -> int | None:
        """Input and output together; None unless both are known."""
        return None if self.input is None or self.output is None else self.input + self.output


@dataclass(slots=True)
class Talk:
    """Messages of the episodes of one condition with the same agents."""

    episodes: int = 0
    messages: int = 0


@dataclass(frozen=True, slots=True)
class Tally:
    """What a run's journals say.

    Attributes:
        uses: episode → what it used.
        talk: (condition, agents) → how much they said, where the protocol records who sent to whom.
        stated: moves whose action has a confidence.
    """

    uses: dict[str, Use] = field(default_factory=dict)
    talk: dict[tuple[str, tuple[str, ...]], Talk] = field(default_factory=dict)
    stated: Counter[str] = field(default_factory=Counter)


def tally(folder: Path) -> Tally:
    """Read a run's journals once, a line at a time. Raises `DataError` if one is damaged."""
    done = Tally()
    open_uses: dict[str, Use] = {}
    for _, line in chain.from_iterable(map(storage.confirmed, storage.journals(folder))):
        try:
            _take(done, open_uses, line)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise DataError(f"{folder}: not a line of a journal: {type(error).__name__}: {error}") from None
    return done


def _take(done: Tally, open_uses: dict[str, Use], line: Mapping[str, Any]) -> None:
    kind = line.get("k")
    if kind == "move":
        _add(open_uses.setdefault(line["e"], Use()), line)
        if confidence(line.get("a")) is not None:
            done.stated[line["s"]] += 1
    elif kind == "end":
        done.uses[line["e"]] = open_uses.pop(line["e"], Use())
        if line.get("outcome") is not None:
            _listen(done.talk, line)


def confidence(action: Any) -> float | None:
    """The confidence that an action states, from 0 to 1; None if it states none."""
    number = action.get("confidence") if isinstance(action, Mapping) else None
    if not isinstance(number, int | float) or isinstance(number, bool):
        return None
    return number if 0 <= number <= 1 else None


def _add(use: Use, line: Mapping[str, Any]) -> None:
    use.moves += 1
    if (kind := line.get("error_kind")) is not None:
        place = {"parse": "parse", "limit": "limits"}.get(kind, "engine")
        setattr(use, place, getattr(use, place) + 1)
    for call in line.get("calls", ()):
        use.calls += 1
        use.characters += len(call.get("text") or "")
        use.truncated += call.get("finish_reason") == "length"
        for name in _TOKENS:
            if (count := call.get(f"{name}_tokens")) is not None:
                setattr(use, name, (getattr(use, name) or 0) + count)


def _listen(talk: dict[tuple[str, tuple[str, ...]], Talk], line: Mapping[str, Any]) -> None:
    facts = line["outcome"].get("facts", {})
    if not isinstance(facts.get("sent"), dict):
        return
    agents, counts = traffic.counted(facts)
    if len(agents) < 2:
        return
    entry = talk.setdefault((str(line.get("condition")), agents), Talk())
    entry.episodes += 1
    entry.messages += sum(count for _, _, count, _ in counts)
