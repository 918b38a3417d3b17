"""What SILO-Bench's metrics read from an episode: facts of `action_rounds`, grades of a sharded task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from harness.api import Episode

from .._numbers import grade

Among = Literal["all", "alone", "teams", "solved", "failed", "led", "unled"]
"""Which episodes count: those of a single agent with the whole input or all others; with every answer right or not;
with an emergent leader or without. The others have no number."""
LEADS = 1.5
"""Who receives more than this times the mean is a leader (Appendix G.3)."""


def facts(episode: Episode) -> Mapping[str, Any] | None:
    """The protocol's facts; None for an episode of another protocol, or without an outcome."""
    found = episode.outcome.facts if episode.outcome else {}
    return found if "sent" in found and "received" in found else None


def belongs(episode: Episode, among: Among) -> bool:
    """Whether the episode is among those."""
    if among == "all":
        return True
    if among in ("alone", "teams"):
        return bool(episode.labels.get("alone")) == (among == "alone")
    if among in ("solved", "failed"):
        success = grade(episode, "success")
        return success is not None and (success == 1) == (among == "solved")
    found = leader(episode)
    return found is not None and found == (among == "led")


def leader(episode: Episode) -> bool | None:
    """Whether an agent received more than 1.5 times the mean number of messages, or files of others that it read."""
    found = facts(episode)
    if found is None:
        return None
    counts = [count for count, _ in found["received"].values()]
    return bool(counts) and max(counts) > LEADS * sum(counts) / len(counts)


def spoken(episode: Episode) -> Iterator[tuple[int, str, str]]:
    """(batch, agent, text) of every message or file that was to be sent in the run that counts, refused ones too; where
    `wait` and `submit_result` end a round (in all protocols but command_rounds) nothing behind them."""
    found = facts(episode) or {}
    start, goes_on = found.get("final_from") or 0, "communication" in found
    for number, batch in enumerate(episode.batches[start:]):
        for move in batch:
            for call in move.action if isinstance(move.action, list) else ():
                if not isinstance(call, Mapping) or "error" in call:
                    continue
                if call.get("call") in ("wait", "submit_result") and not goes_on:
                    break
                if call.get("content"):
                    yield number, move.seat, str(call["content"])


def pairs(found: Mapping[str, Any]) -> Iterable[int]:
    """How many ordered pairs of agents one sending reached, for every sender (Section 3.3, D)."""
    n = len(found["received"])
    if found["reads"] is not None:  # shared files: successful reads by others
        return [sum(readers.values()) for readers in found["reads"].values()]
    return [
        count * (n - 1 if receiver == "*" else 1)
        for receivers in found["sent"].values()
        for receiver, (count, _) in receivers.items()
    ]
