"""One pass over a run's journals: what every finished episode used, and what went wrong in it."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import storage
from harness.api import Move
from harness.api.episode import tokens_used
from harness.api.errors import DataError
from harness.engines.likelihoods import sums
from harness.extensions.charts import message_counts as traffic
from harness.storage import finished_episodes

_TOKENS = ("input", "output")


@dataclass(slots=True)
class Use:
    """What an episode used.

    Attributes:
        moves, calls: how many there were.
        input, output: tokens, of the calls that report them, inner ones included; None if none does.
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
    """Messages of the episodes of one condition with the same agents; `ends`: where these episodes' ends stand."""

    messages: int = 0
    ends: array[int] = field(default_factory=lambda: array("Q"))


@dataclass(frozen=True, slots=True)
class Tally:
    """What a run's journals say.

    Attributes:
        uses: episode → what it used.
        talk: (condition, agents) → how much they said, where the protocol records who sent to whom.
        stated: agent → its moves that state a confidence, or have the log-likelihoods of options.
        paths: the journals.
        ends, moves: episode → the places of its end and of its moves, for
        `harness.storage.finished_episodes.read_places`.
    """

    paths: list[Path]
    uses: dict[str, Use] = field(default_factory=dict)
    talk: dict[tuple[str, tuple[str, ...]], Talk] = field(default_factory=dict)
    stated: Counter[str] = field(default_factory=Counter)
    ends: dict[str, int] = field(default_factory=dict)
    moves: dict[str, array[int]] = field(default_factory=dict)

    def lines(self, places: Iterable[int]) -> Iterator[storage.Line]:
        """The journals' lines at these places."""
        return finished_episodes.read_places(self.paths, places)

    def end(self, episode: str) -> storage.Line:
        """The end of a finished episode."""
        return next(self.lines([self.ends[episode]]))

    def batches(self, episode: str) -> list[list[Move]]:
        """The moves of a finished episode, batch by batch. Raises `DataError` if some are gone."""
        return finished_episodes.in_batches(self.end(episode), self.lines(self.moves.get(episode, ())), self.paths[0])


def tally(folder: Path) -> Tally:
    """Read a run's journals once, a line at a time. Raises `DataError` if one is damaged."""
    done = Tally(storage.journals(folder))
    open_uses: dict[str, Use] = {}
    for place, line in finished_episodes.located(done.paths):
        try:
            _take(done, open_uses, place, line)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise DataError(f"{folder}: not a line of a journal: {type(error).__name__}: {error}") from None
    return done


def _take(done: Tally, open_uses: dict[str, Use], place: int, line: Mapping[str, Any]) -> None:
    kind = line.get("k")
    if kind == "move":
        _add(open_uses.setdefault(line["e"], Use()), line)
        done.moves.setdefault(line["e"], array("Q")).append(place)
        if confidence(line.get("a")) is not None or len(sums(line.get("a"))) > 1:
            done.stated[line["s"]] += 1
    elif kind == "end":
        done.uses[line["e"]] = open_uses.pop(line["e"], Use())
        done.ends[line["e"]] = place
        if line.get("outcome") is not None:
            _listen(done.talk, place, line)


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
    calls, inner = line.get("calls", ()), line.get("inner", {})
    for name in _TOKENS:
        kind = f"{name}_tokens"
        if (count := tokens_used((call.get(kind) for call in calls), inner.get(kind))) is not None:
            setattr(use, name, (getattr(use, name) or 0) + count)
    for call in calls:
        use.calls += 1
        use.characters += len(call.get("text") or "")
        use.truncated += call.get("finish_reason") == "length"


def _listen(talk: dict[tuple[str, tuple[str, ...]], Talk], place: int, line: Mapping[str, Any]) -> None:
    facts = line["outcome"].get("facts", {})
    if not isinstance(facts.get("sent"), dict):
        return
    agents, counts = traffic.counted(facts)
    if len(agents) < 2:
        return
    entry = talk.setdefault((str(line.get("condition")), agents), Talk())
    entry.ends.append(place)
    entry.messages += sum(count for _, _, count, _ in counts)
